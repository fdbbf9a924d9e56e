"""Compares cheaper defaults of estimators with the former ones: accuracy and CPU seconds.

    python -m experiments.studies.wide_defaults --workdir=runs/wide

Both select K columns from the same training rows; a support vector machine and boosted trees on
these columns are evaluated on other rows. ``rows.csv`` in the workdir has a line for each table,
estimator and split, and the same command resumes. It then prints the mean paired difference of the
judges' mean accuracy in percentage points, over the means of the tables, with its 95 % interval
(Student's t), and the tables on which all splits gave the same columns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from absl import flags
from scipy import stats

from experiments.launch import cli
from experiments.launch.csv_rows import add_rows, read_rows
from experiments.studies.selectors.judge import judge
from experiments.studies.selectors.tables import TABLES, Split, read, split
from fsjax.engine.compilation import cache_by_default
from fsjax.estimators import DeepLasso
from fsjax.estimators.base import Selector

#: The class of an estimator, and its former defaults for a number of columns.
FORMER: dict[str, tuple[type[Selector], Callable[[int], dict[str, Any]]]] = {
    "DeepLasso": (DeepLasso, lambda columns: {"early_stopping": None}),
}

#: Generated tables by name: training rows, columns, classes, shift of a column that matters, and
#: whether such columns come in correlated groups of five.
GENERATED: dict[str, tuple[int, int, int, float, bool]] = {
    "shift 5000": (100, 5000, 2, 0.7, False),
    "groups 5000": (100, 5000, 2, 0.8, True),
    "classes 5000": (100, 5000, 4, 1.2, False),
    "weak 3000": (150, 3000, 2, 0.5, False),
    "groups 2000": (80, 2000, 3, 1.0, True),
    "shift 20000": (60, 20000, 2, 1.0, False),
}

#: Number of columns that matter in generated tables, of rows that judge, and of columns selected.
INFORMATIVE, JUDGING, SELECTED = 50, 400, 20


def generated(name: str, seed: int) -> Split:
    """A generated table; in columns that matter, the classes have different means."""
    rows, columns, classes, shift, grouped = GENERATED[name]
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows + JUDGING)
    X = rng.normal(size=(len(y), columns))
    matter = rng.choice(columns, INFORMATIVE, replace=False)
    if grouped:
        shared = rng.normal(size=(len(y), INFORMATIVE // 5))
        X[:, matter] = np.sqrt(0.5) * (X[:, matter] + np.repeat(shared, 5, axis=1))
    X[:, matter] += shift * rng.normal(size=(classes, INFORMATIVE))[y]
    X = X.astype(np.float32)
    return Split(X[:rows], y[:rows], X[rows:], y[rows:])


def measure(estimator: str, table: str, seed: int) -> dict[str, Any]:
    """The line of a table, an estimator and a split."""
    known = TABLES.get(table)
    task, k = (known.task, known.k) if known else ("classification", SELECTED)
    rows = split(read(table), task, seed) if known else generated(table, seed)
    line: dict[str, Any] = {"table": table, "estimator": estimator, "split": seed}
    chosen = {}
    made, former = FORMER[estimator]
    for when, settings in (("before", former(rows.X.shape[1])), ("after", {})):
        started = time.process_time()
        fitted = made(k, task=task, random_state=seed, **settings).fit(rows.X, rows.y)
        line[f"seconds_{when}"] = round(time.process_time() - started, 2)
        chosen[when] = fitted.get_support(indices=True)
        line[f"score_{when}"] = round(float(np.mean(judge(rows, task, chosen[when]))), 2)
    line["same"] = len(np.intersect1d(chosen["before"], chosen["after"])) / k
    return line


def summary(rows: pd.DataFrame) -> str:
    """The paired difference of an estimator's lines, as the module describes it."""
    by_table = rows.groupby("table").mean(numeric_only=True)
    difference = by_table["score_after"] - by_table["score_before"]
    error = difference.std() / np.sqrt(len(difference))
    half = stats.t.ppf(0.975, len(difference) - 1) * error
    return (
        f"{len(by_table)} tables, {len(rows)} pairs: {difference.mean():+.2f} points "
        f"[{difference.mean() - half:+.2f}, {difference.mean() + half:+.2f}]; same columns on "
        f"{int((by_table['same'] == 1).sum())} tables, {by_table['same'].mean():.0%} on average"
    )


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("workdir", None, "Folder of rows.csv; lines in it are not measured again.")
    flags.DEFINE_multi_string("estimators", list(FORMER), "Name of an estimator")
    flags.DEFINE_multi_string("tables", [*GENERATED, *TABLES], "Name of a table")
    flags.DEFINE_integer("splits", 3, "Number of splits.", lower_bound=1)


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    cache_by_default()
    path = Path(options.workdir) / "rows.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = read_rows(path)
    for estimator in options.estimators:
        for seed in range(options.splits):
            for table in options.tables:
                key = {"table": table, "estimator": estimator, "split": seed}
                if not rows.empty and (rows[list(key)] == list(key.values())).all(axis=1).any():
                    continue
                line = measure(estimator, table, seed)
                print(line, flush=True)
                rows = add_rows(rows, [line], path)
        print(estimator, summary(rows[rows["estimator"] == estimator]), flush=True)


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/wide")
