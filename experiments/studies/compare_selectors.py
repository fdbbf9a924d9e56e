"""How the estimators with default arguments compare with simple selectors, over many tables.

    python -m experiments.studies.compare_selectors --workdir=runs/selectors --minutes=60

Every selector chooses K columns of the training rows of three stratified splits (70/30); a support
vector machine and boosted trees judge them on the test rows. ``rows.csv`` in the workdir has a line
for each table, selector and split, and is continued. A selector that took more than ``--limit`` CPU
seconds, compilation included, is not run on the table's other splits, nor on tables with as many
cells; it is ``skipped`` there. Two packages that are slow get more (``PATIENCE``). Estimators that
are not made for selecting, and controls of others, run on the smallest table only.
``--publish`` writes the means, the ranks, the tables of the documentation and the
critical-difference picture.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags
from threadpoolctl import threadpool_limits

from experiments.launch import cli
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
from fsjax.auto.rankers.parts import Part
from fsjax.data import Dataset
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import ConfigError, FsjaxError, nearest
from fsjax.storage.atomic_files import write_text

#: Random states of the splits.
SPLITS = (0, 1, 2)

#: Cells, rows times columns, of the smallest table, wine, at most.
SMALL = 5_000

COLUMNS = ["table", "selector", "split", "k", "svm", "trees", "true", "cpu_seconds", "skipped"]


def read_rows(path: Path) -> pd.DataFrame:
    """The lines that are there; none if there is no file."""
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    return pd.read_csv(path, dtype={name: str for name in ("table", "selector", "skipped")})


def reason(name: str, data: Dataset, task: str, rows: pd.DataFrame, limit: float) -> str:
    """Why a selector does not run on a table's next split; empty where it does.

    Args:
      name: of the selector.
      data: the table.
      task: of the table.
      rows: lines so far, with the ``cells`` of their tables.
      limit: CPU seconds of a fit.
    """
    if name in OURS and task_of(OURS[name], task) is None:
        return f"not for {task}"
    cells = data.X.size
    if OURS.get(name) in ON_SMALL:
        if cells > SMALL or task != "classification":
            return f"only on tables of at most {SMALL} cells"
    before = rows[(rows["selector"] == name) & (rows["cells"] <= cells)]
    same = before["table"] == data.name
    if (before.loc[same, "cpu_seconds"] > limit).any():
        return f"more than {limit:g} CPU seconds"
    elsewhere = max(limit, PATIENCE.get(name, 0.0))
    if (before.loc[~same, "cpu_seconds"] > elsewhere).any():
        return f"more than {elsewhere:g} CPU seconds"
    return ""


def measure(name: str, data: Dataset, rows: Split, k: int, task: str, seed: int) -> dict:
    """A line: what a selector finds on a split, and what it costs."""
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
    tables: list[str], selectors: list[str], path: Path, minutes: float, limit: float
) -> pd.DataFrame:
    """Adds what is missing to the lines of a file until the CPU minutes are used up.

    Raises:
      ConfigError: for an unknown table or selector.
    """
    for chosen, known, what in ((tables, TABLES, "tables"), (selectors, SELECTORS, "selectors")):
        for name in chosen:
            if name not in known:
                raise ConfigError(f"{what} has {name!r}: {nearest(name, known)}")
    rows, sizes, started = read_rows(path), {}, time.process_time()
    # The expensive ones last.
    quick = [name for name in selectors if OURS.get(name) not in ON_SMALL]
    rest = [name for name in selectors if name not in quick]
    for table, names in (*((item, quick) for item in tables), *((item, rest) for item in tables)):
        data = read(table)
        sizes[table] = data.X.size
        for name in names:
            for seed in SPLITS:
                if _is_there(rows, table, name, seed):
                    continue
                if time.process_time() - started > 60 * minutes:
                    return rows
                before = rows.assign(cells=rows["table"].map(sizes))
                line = _line(table, name, seed, data, before, limit)
                print(", ".join(f"{key} {value}" for key, value in line.items()), flush=True)
                new = pd.DataFrame([line])
                rows = pd.concat([rows, new], ignore_index=True) if len(rows) else new
                path.parent.mkdir(parents=True, exist_ok=True)
                write_text(path, rows.to_csv(index=False))
    return rows


def _is_there(rows: pd.DataFrame, table: str, name: str, seed: int) -> bool:
    key = (rows["table"] == table) & (rows["selector"] == name) & (rows["split"] == seed)
    return bool(key.any())


def _line(
    table: str, name: str, seed: int, data: Dataset, rows: pd.DataFrame, limit: float
) -> dict:
    task, k = TABLES[table].task, TABLES[table].k
    line = {"table": table, "selector": name, "split": seed}
    skipped = "" if name in CONTROLS else reason(name, data, task, rows, limit)
    if not skipped:
        try:
            return line | measure(name, data, split(data, task, seed), k, task, seed)
        except FsjaxError as error:
            skipped = f"refused: {error}"
    nothing = dict.fromkeys(("svm", "trees", "true", "cpu_seconds"), np.nan)
    return {**line, "k": k, **nothing, "skipped": skipped}


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("workdir", None, "Folder of rows.csv, which is continued.")
    flags.DEFINE_multi_string("tables", list(TABLES), "Names of tables; may be repeated.")
    flags.DEFINE_multi_string("selectors", list(SELECTORS), "Names; may be repeated.")
    flags.DEFINE_float("minutes", 60.0, "CPU minutes after which it stops.", lower_bound=0.0)
    flags.DEFINE_float("limit", 12.0, "CPU seconds of a fit that are too many.", lower_bound=0.0)
    flags.DEFINE_bool("publish", False, "Write reproduction/selectors.csv and docs.")


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    cache_by_default()
    path = Path(options.workdir) / "rows.csv"
    # Threads that wait for each other would count as CPU time.
    with threadpool_limits(1):
        rows = run(options.tables, options.selectors, path, options.minutes, options.limit)
    if options.publish:
        publish.write(rows, Path(__file__).parents[2])


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/selectors")
