"""Measures how often comparisons of a selection are wrong, and how often they show a difference.

    python -m experiments.studies.selection.comparisons --workdir=runs/study --first=100 --draws=13

On random tables of several kinds the selection of ``univariate`` or ``l1`` is compared with all
columns, random ones, and the other method. The truth is the difference of their scores on 20,000
new rows, after training on all rows of the table. "Better" or "worse" is false if this difference
has the other sign or is 0. Beside the intervals over rows stand those over folds (Nadeau and Bengio
2003), of all rounds and of the first one. How much training rows count in the intervals over rows
was chosen on tables 0 to 5, so that only other tables show how good they are. Tables whose rows are
in ``comparisons.csv`` in the workdir are not repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from threadpoolctl import threadpool_limits

from experiments.artifacts.markdown import as_rows
from experiments.launch import cli
from experiments.studies.selection.noise import share_interval
from fsjax.auto.answer import early_choice
from fsjax.auto.budget import Clock
from fsjax.auto.columns import design_of_array
from fsjax.auto.comparisons import comparisons
from fsjax.auto.compete import ALL, Contest, rank
from fsjax.auto.differences import BETTER, WORSE, difference
from fsjax.auto.folds import Fold, parts
from fsjax.auto.judge import judged, judges_of
from fsjax.auto.problem import Problem, on_rows, sizes_of
from fsjax.auto.progress_file import Ledger
from fsjax.auto.scoring import METRICS, choose_metric
from fsjax.errors import check_names
from fsjax.storage.atomic_files import write_text

#: New rows for the truth, and draws of random columns there.
_NEW_ROWS, _RANDOM = 20_000, 10

#: Methods that are compared, the first two of which every contest has.
_METHODS = ("random", "univariate", "l1")


class Draw(NamedTuple):
    """Columns, target and task; the judge, and rows per group."""

    X: np.ndarray
    y: np.ndarray
    task: str = "regression"
    judge: str = "linear"
    visits: int = 1


def _signs(number: int) -> np.ndarray:
    return np.where(np.arange(number) % 2, -1.0, 1.0)


def regression(rng: np.random.Generator, rows: int) -> Draw:
    """Three of 30 columns matter."""
    X = rng.standard_normal((rows, 30))
    return Draw(X, X[:, :3] @ _signs(3) + 1.5 * rng.standard_normal(rows))


def classes(rng: np.random.Generator, rows: int) -> Draw:
    """Three of 30 columns matter, for two classes."""
    X, y, *_ = regression(rng, rows)
    return Draw(X, (y > 0).astype(int), "classification")


def equal_columns(rng: np.random.Generator, rows: int) -> Draw:
    """All columns are equally noisy measurements of one number: random ones are as good."""
    signal = rng.standard_normal(rows)
    X = signal[:, None] + rng.standard_normal((rows, 20))
    return Draw(X, signal + 0.5 * rng.standard_normal(rows))


def all_matter(rng: np.random.Generator, rows: int) -> Draw:
    """Each of 30 columns matters as much as any other."""
    X = rng.standard_normal((rows, 30))
    return Draw(X, X.sum(axis=1) + 8.0 * rng.standard_normal(rows))


def copies(rng: np.random.Generator, rows: int) -> Draw:
    """Five noisy copies of one column that matters, one other, and 24 of noise."""
    X = rng.standard_normal((rows, 30))
    signal = X[:, 0].copy()
    X[:, :5] = signal[:, None] + 0.3 * rng.standard_normal((rows, 5))
    return Draw(X, (signal + X[:, 5] + rng.standard_normal(rows) > 0).astype(int), "classification")


def heavy_tails(rng: np.random.Generator, rows: int) -> Draw:
    """Columns and noise with Student's t distribution, 3 degrees of freedom."""
    X = rng.standard_t(3, (rows, 30))
    return Draw(X, X[:, 0] - X[:, 1] + rng.standard_t(3, rows))


def rare_class(rng: np.random.Generator, rows: int) -> Draw:
    """One row of 12 is in the class, scored by the area under the ROC curve."""
    X, y, *_ = regression(rng, rows)
    return Draw(X, (y > 3.2).astype(int), "classification")


def groups(rng: np.random.Generator, rows: int) -> Draw:
    """Four rows of each group are nearly alike, in columns and target."""
    X, y, *_ = regression(rng, rows // 4)
    X, y = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    return Draw(X + 0.3 * rng.standard_normal(X.shape), y, visits=4)


def ring(rng: np.random.Generator, rows: int) -> Draw:
    """Two of 20 columns tell inside from outside."""
    X = rng.standard_normal((rows, 20))
    return Draw(X, (np.square(X[:, :2]).sum(axis=1) > 1.4).astype(int), "classification", "rbf")


def wide(rng: np.random.Generator, rows: int) -> Draw:
    """Five of 200 columns are shifted between two classes; a third of the rows."""
    rows = rows if rows >= _NEW_ROWS else rows // 3
    X, y = rng.standard_normal((rows, 200)), rng.permutation(np.arange(rows) % 2)
    X[:, :5] += 0.8 * (y[:, None] - 0.5)
    return Draw(X, y, "classification")


def counts(rng: np.random.Generator, rows: int) -> Draw:
    """Poisson counts whose logarithm is a sum of two of 20 columns."""
    X = rng.standard_normal((rows, 20))
    return Draw(X, rng.poisson(np.exp(0.4 * X[:, 0] - 0.4 * X[:, 1])), "counts")


KINDS: dict[str, Callable[[np.random.Generator, int], Draw]] = {
    "regression": regression,
    "two classes": classes,
    "equal columns": equal_columns,
    "all matter": all_matter,
    "copies": copies,
    "heavy tails": heavy_tails,
    "rare class": rare_class,
    "groups": groups,
    "ring": ring,
    "wide": wide,
    "counts": counts,
}


def compared(kind: str, seed: int, rows: int) -> list[dict[str, Any]]:
    """The comparisons of a table over rows and over folds, each with the truth."""
    rng = np.random.default_rng((seed, list(KINDS).index(kind)))
    table, new = KINDS[kind](rng, rows), KINDS[kind](rng, _NEW_ROWS)
    units, count = table.X.shape[1], len(table.y)
    metric = METRICS["auc"] if kind == "rare class" else choose_metric(None, table.task, table.y)
    if table.task == "regression":
        metric = METRICS["r2"]
    judge = next(judge for judge in judges_of(table.task) if judge.name == table.judge)
    numbers = np.arange(count) // table.visits if table.visits > 1 else None
    whole = Problem(
        design_of_array(table.X, None, None), table.y, table.task, metric, [], _METHODS, seed,
        sizes_of(units), judge, row_groups=numbers,
    )  # fmt: skip
    problem = on_rows(whole, np.arange(count))
    contest = Contest(problem, Ledger(None), Clock(float("inf")))
    contest.run_needed()
    contest.run_simple(1.0)
    contest.run_further_rounds(1.0)
    choice = early_choice(contest)
    if choice is None or choice.method == ALL:
        return []
    both = design_of_array(np.concatenate([table.X, new.X]), None, None)
    fold = Fold(np.arange(count), np.arange(count, count + len(new.y)))
    train, test = parts(both, np.concatenate([table.y, new.y]), fold)

    def on_new_rows(columns: np.ndarray) -> float:
        return judged(judge, metric, table.task, train, test, np.sort(columns))

    def true_score(name: str) -> float:
        if name == ALL:
            return on_new_rows(np.arange(units))
        if name == "random":
            draws = (rng.choice(units, choice.size, replace=False) for _ in range(_RANDOM))
            return float(np.mean([on_new_rows(columns) for columns in draws]))
        order = rank(problem, name, train, problem.sizes, seed, 1.0).order[choice.size]
        return on_new_rows(order)

    selected, scores, lines = true_score(choice.method), contest.scores(), []
    for row in comparisons(contest, choice):
        name = row.method
        key = (name, units if name == ALL else choice.size)
        one, other = scores[choice.method, choice.size], scores[key]
        folds = difference(one, other, problem.share)
        five = difference(one[: problem.folds], other[: problem.folds], problem.share)
        lines.append(
            {
                "kind": kind,
                "draw": seed,
                "against": name,
                "columns": choice.size,
                "truth": selected - true_score(name),
                **{f"rows_{field}": getattr(row.difference, field) for field in _FIELDS},
                **{f"folds_{field}": getattr(folds, field) for field in _FIELDS},
                **{f"five_{field}": getattr(five, field) for field in _FIELDS},
            }
        )
    return lines


_FIELDS = ("mean", "low", "high")

#: Intervals that are compared, in words.
_OVER = {"five": "first five folds", "folds": "all folds", "rows": "rows"}


def claims(rows: pd.DataFrame, over: str) -> pd.Series:
    """``better``, ``worse`` or nothing for each comparison, by its interval over rows or folds."""
    low, high = rows[f"{over}_low"], rows[f"{over}_high"]
    return pd.Series(np.select([low > 0, high < 0], [BETTER, WORSE], ""), rows.index)


def page(rows: pd.DataFrame) -> pd.DataFrame:
    """Makes the table, in text: a row for each kind of table, what is compared with, and all."""
    parts_of = [
        *((str(kind), part) for kind, part in rows.groupby("kind", sort=False)),
        *((f"against {name}", part) for name, part in rows.groupby("against", sort=False)),
        ("all", rows),
    ]
    lines = []
    for name, part in parts_of:
        line = {"tables": name, "comparisons": str(len(part))}
        for over, words in _OVER.items():
            claim = claims(part, over)
            wrong = ((claim == BETTER) & (part["truth"] <= 0)) | (
                (claim == WORSE) & (part["truth"] >= 0)
            )
            held = part["truth"].between(part[f"{over}_low"], part[f"{over}_high"])
            low, high = share_interval(int(wrong.sum()), len(part))
            line[f"shown, {words}"] = f"{(claim != '').mean():.2f}"
            line[f"false, {words}"] = f"{wrong.mean():.3f} ({low:.3f} to {high:.3f})"
            line[f"interval has the truth, {words}"] = f"{held.mean():.2f}"
        lines.append(line)
    return pd.DataFrame(lines)


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    check_names("unknown kind", options.kinds, KINDS)
    folder = Path(options.workdir)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "comparisons.csv"
    rows = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["kind", "draw"])
    finished = set(zip(rows["kind"], rows["draw"], strict=True))
    with threadpool_limits(1):
        for seed in range(options.first, options.first + options.draws):
            for kind in options.kinds:
                if (kind, seed) not in finished:
                    lines = compared(kind, seed, options.rows)
                    rows = pd.concat([rows, pd.DataFrame(lines)], ignore_index=True)
                    rows.to_csv(path, index=False)
    table = page(rows)
    write_text(Path(options.publish or folder) / "selection_study_comparisons.md", as_rows(table))
    print(table.to_string(index=False))


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("workdir", None, "Folder for the results; tables in it are not repeated.")
    flags.DEFINE_string("publish", None, "Folder for the Markdown table; the workdir by default.")
    flags.DEFINE_list("kinds", list(KINDS), "Kinds of tables.")
    flags.DEFINE_integer("draws", 20, "Random tables of each kind.", lower_bound=1)
    flags.DEFINE_integer("first", 0, "Number of the first table.", lower_bound=0)
    flags.DEFINE_integer("rows", 200, "Rows of a table.", lower_bound=40)


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/selection_study")
