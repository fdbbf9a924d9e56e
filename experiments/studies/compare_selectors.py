"""Compares the estimators with default arguments with simple selectors on many tables.

    python -m experiments.studies.compare_selectors --workdir=runs/selectors --minutes=60

Every selector chooses K columns on the training rows of three stratified splits (70/30); a support
vector machine and boosted trees on these columns are evaluated on the test rows. ``rows.csv`` in
the workdir has a line for each table, selector and split; the same command resumes. A selector that
takes more than ``--limit`` CPU seconds, including compilation, is ``skipped`` on the table's other
splits and on tables with at least as many cells; two slow packages have a higher limit there
(``PATIENCE``), and so have all with ``--patience``. Estimators that are not made for selection, and
controls, run on the smallest table only. ``--not_run=REASON`` gives up the missing lines.
``--publish`` writes means, ranks, tables of the documentation and critical-difference diagrams: one
of the wide tables, and one of the others.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags
from threadpoolctl import threadpool_limits

from experiments.launch import cli
from experiments.launch.csv_rows import add_rows, read_rows
from experiments.studies.selectors import publish
from experiments.studies.selectors.contenders import (
    CONTROLS,
    DRAWS,
    ON_SMALL,
    OURS,
    PATIENCE,
    SELECTORS,
    task_of,
)
from experiments.studies.selectors.judge import judge
from experiments.studies.selectors.tables import TABLES, Split, read, split
from fsjax.auto.contest.rankers.parts import Part
from fsjax.data import Dataset
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import FsjaxError, check_names

#: Random states of the splits.
SPLITS = (0, 1, 2)

#: The largest number of cells (rows times columns) of a small table; only wine has so few.
SMALL = 5_000

COLUMNS = ["table", "selector", "split", "k", "svm", "trees", "true", "cpu_seconds", "skipped"]


def reason(
    name: str, data: Dataset, task: str, rows: pd.DataFrame, limit: float, patience: float = 0.0
) -> str:
    """The reason to skip a selector on a table's next split; empty if it is to run.

    Args:
      name: of the selector.
      data: the table.
      task: of the table.
      rows: lines so far, with the ``cells`` of their tables.
      limit: on the CPU seconds of a fit, for other splits of the same table.
      patience: the same for other tables, if it is more.
    """
    if name in OURS and task_of(OURS[name], task) is None:
        return f"not for {task}"
    cells = data.X.size
    if OURS.get(name) in ON_SMALL:
        if cells > SMALL or task != "classification":
            return f"only on tables of at most {SMALL} cells"
    earlier = rows[(rows["selector"] == name) & (rows["cells"] <= cells)]
    same_table = earlier["table"] == data.name
    if (earlier.loc[same_table, "cpu_seconds"] > limit).any():
        return f"more than {limit:g} CPU seconds"
    limit_elsewhere = max(limit, patience, PATIENCE.get(name, 0.0))
    if (earlier.loc[~same_table, "cpu_seconds"] > limit_elsewhere).any():
        return f"more than {limit_elsewhere:g} CPU seconds"
    return ""


def measure(name: str, data: Dataset, rows: Split, k: int, task: str, seed: int) -> dict:
    """Measures a selector on a split; returns scores, true columns and seconds for a line."""
    mean, deviation = rows.X.mean(axis=0), rows.X.std(axis=0)
    part = Part((rows.X - mean) / np.where(deviation > 0, deviation, np.inf), rows.y)
    draws = DRAWS if name == "random columns" else 1
    judged, shares = [], []
    started = time.process_time()
    chosen = [SELECTORS[name](rows.X, part, k, task, seed + 100 * draw) for draw in range(draws)]
    seconds = time.process_time() - started
    for columns in chosen:
        judged.append(judge(rows, task, columns))
        if data.informative is not None:
            shares.append(np.isin(columns, data.informative).sum() / len(columns))
    svm, trees = np.mean(judged, axis=0)
    true = round(float(np.mean(shares)), 4) if shares else np.nan
    return {
        "k": len(chosen[0]),
        "svm": round(float(svm), 2),
        "trees": round(float(trees), 2),
        "true": true,
        "cpu_seconds": round(seconds, 2),
        "skipped": "",
    }


def run(
    tables: list[str],
    selectors: list[str],
    path: Path,
    minutes: float,
    limit: float,
    patience: float = 0.0,
    not_run: str = "",
) -> pd.DataFrame:
    """Measures the lines that a file lacks, until the CPU minutes are used up.

    With a reason ``not_run``, it measures nothing and writes the reason into these lines.

    Raises:
      ConfigError: for an unknown table or selector.
    """
    check_names("unknown table", tables, TABLES)
    check_names("unknown selector", selectors, SELECTORS)
    rows, sizes = read_rows(path).reindex(columns=COLUMNS), {}
    started = time.process_time()
    ranked = [name for name in selectors if OURS.get(name) not in ON_SMALL]
    unranked = [name for name in selectors if name not in ranked]
    for table, names in itertools.chain(
        ((table, ranked) for table in tables), ((table, unranked) for table in tables)
    ):
        data = read(table)
        sizes[table] = data.X.size
        for name in names:
            for seed in SPLITS:
                if (rows[["table", "selector", "split"]] == [table, name, seed]).all(axis=1).any():
                    continue
                if time.process_time() - started > 60 * minutes:
                    return rows
                earlier = rows.assign(cells=rows["table"].map(sizes))
                if not_run:
                    line = _missing(table, name, seed, f"{publish.NOT_RUN}: {not_run}")
                else:
                    line = _line(table, name, seed, data, earlier, limit, patience)
                print(", ".join(f"{key} {value}" for key, value in line.items()), flush=True)
                path.parent.mkdir(parents=True, exist_ok=True)
                rows = add_rows(rows, [line], path)
    return rows


def _line(
    table: str,
    name: str,
    seed: int,
    data: Dataset,
    rows: pd.DataFrame,
    limit: float,
    patience: float,
) -> dict:
    task, k = TABLES[table].task, TABLES[table].k
    skipped = "" if name in CONTROLS else reason(name, data, task, rows, limit, patience)
    if not skipped:
        try:
            line = {"table": table, "selector": name, "split": seed}
            return line | measure(name, data, split(data, task, seed), k, task, seed)
        except FsjaxError as error:
            skipped = f"refused: {error}"
    return _missing(table, name, seed, skipped)


def _missing(table: str, name: str, seed: int, skipped: str) -> dict:
    """The line of a fit that was not made, with the reason."""
    about = {"table": table, "selector": name, "split": seed, "k": TABLES[table].k}
    missing = dict.fromkeys(("svm", "trees", "true", "cpu_seconds"), np.nan)
    return {**about, **missing, "skipped": skipped}


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("workdir", None, "Folder of rows.csv; lines in it are not measured again.")
    flags.DEFINE_multi_string("tables", list(TABLES), "Name of a table")
    flags.DEFINE_multi_string("selectors", list(SELECTORS), "Name of a selector")
    flags.DEFINE_float("minutes", 60.0, "CPU minutes after which to stop.", lower_bound=0.0)
    flags.DEFINE_float("limit", 12.0, "Largest CPU seconds of a fit (see above).", lower_bound=0.0)
    flags.DEFINE_float(
        "patience", 0.0, "The same limit for larger tables, if it is more than --limit.", 0.0
    )
    flags.DEFINE_string("not_run", "", "Reason to write into missing lines, to measure nothing.")
    flags.DEFINE_bool("publish", False, "Write the files of reproduction and of docs.")


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    cache_by_default()
    path = Path(options.workdir) / "rows.csv"
    # Time in which threads wait for each other would count as CPU time.
    with threadpool_limits(1):
        rows = run(
            options.tables,
            options.selectors,
            path,
            options.minutes,
            options.limit,
            options.patience,
            options.not_run,
        )
    if options.publish:
        publish.write(rows, Path(__file__).parents[2])


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/selectors")
