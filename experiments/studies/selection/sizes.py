"""Time, memory and verdict of ``fsjax select`` on large tables whose columns are known.

    python -m experiments.studies.selection.sizes --workdir=runs/study --budget=60

One command at a time. ``sizes.csv`` in the workdir is continued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from scipy.sparse import csr_matrix

from experiments.artifacts.markdown import as_rows
from experiments.launch import cli
from experiments.studies.selection import tables
from experiments.studies.selection.asking import Answer, Question, answer_all
from fsjax.errors import check_choice
from fsjax.storage.atomic_files import write_text

#: Shift between the classes of a wide table's planted columns.
_SHIFT = 1.2

#: Mean count of a word, and how much more frequent planted words are in one class.
_RATE, _MORE = 0.02, 3.0


class Size(NamedTuple):
    """A large table: its first ``planted`` columns matter."""

    draw: Callable[[int, int, int, int], tables.Table]
    rows: int
    columns: int
    planted: int
    suffix: str


def tall(seed: int, rows: int, columns: int, planted: int) -> tables.Table:
    """Two classes; their log odds are linear in the planted columns, but the last is squared."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns), np.float32)
    log_odds = X[:, : planted - 1].sum(axis=1) + X[:, planted - 1] ** 2 - 1.0
    y = np.where(log_odds + rng.logistic(size=rows) > 0, "yes", "no")
    return _table(pd.DataFrame(X, columns=[f"x{index}" for index in range(columns)]), y)


def wide(seed: int, rows: int, columns: int, planted: int) -> tables.Table:
    """Two classes that differ in the means of the planted columns."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((rows, columns), np.float32), np.arange(rows) % 2
    X[:, :planted] += _SHIFT * (y[:, None] - 0.5)
    return _table(pd.DataFrame(X, columns=[f"x{index}" for index in range(columns)]), y)


def counts(seed: int, rows: int, columns: int, planted: int) -> tables.Table:
    """Sparse counts of words; planted ones are more frequent in one of two classes."""
    rng, y = np.random.default_rng(seed), np.arange(rows) % 2
    rates = np.full((2, columns), _RATE)
    rates[1, :planted] *= _MORE
    return _table(csr_matrix(rng.poisson(rates[y]).astype(np.float32)), y)


def _table(X: Any, y: np.ndarray) -> tables.Table:
    return tables.Table("table", "classification", X, y.astype(str))


SIZES: dict[str, Size] = {
    "8,000 x 8": Size(tall, 8000, 8, 3, ".csv"),
    "1,000 x 5,000 sparse counts": Size(counts, 1000, 5000, 20, ".npz"),
    "60 x 20,000": Size(wide, 60, 20_000, 10, ".npz"),
    "200,000 x 40": Size(tall, 200_000, 40, 5, ".csv"),
    "1,000,000 x 20": Size(tall, 1_000_000, 20, 5, ".parquet"),
}


def questions(names: Sequence[str], seed: int, budget: float) -> Iterator[Question]:
    """A command for each size."""
    for name in names:

        def write(folder: Path, size: Size = SIZES[name]) -> tuple[Path, list[str]]:
            table = size.draw(seed, size.rows, size.columns, size.planted)
            if size.suffix == ".parquet":
                path = folder / "table.parquet"
                table.X.assign(**{tables.TARGET: table.y}).to_parquet(path)
            else:
                path = tables.write(table, folder)
            return path, tables.flags_of(table, path)

        yield Question({"size": name, "seed": seed, "budget": budget}, write, budget)


def hits(columns: Sequence[str], planted: int) -> int:
    """How many of the first ``planted`` columns, ``x0`` and so on, are selected."""
    return len({f"x{index}" for index in range(planted)}.intersection(columns))


def _planted(question: Question, answer: Answer) -> dict[str, Any]:
    planted = SIZES[question.key["size"]].planted
    return {"planted": planted, "hits": hits(answer.selection.get("columns", ()), planted)}


def page(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each command, in text."""
    return pd.DataFrame(
        [
            {
                "table": line.size,
                "seconds": f"{line.seconds:.0f}",
                "GiB": f"{line.peak_mib / 1024:.1f}",
                "verdict": line.verdict,
                "method": "" if pd.isna(line.method) else line.method,
                "columns": "" if pd.isna(line.k) else f"{line.k:.0f}",
                "planted columns selected": f"{line.hits} of {line.planted}",
            }
            for line in rows.itertuples()
        ]
    )


def main() -> None:
    """Entry point."""
    settings = flags.FLAGS
    for name in settings.sizes:
        check_choice("sizes", name, SIZES)
    workdir = Path(settings.workdir)
    asked = questions(settings.sizes, settings.seed, settings.budget)
    rows = answer_all(asked, workdir / "sizes.csv", more=_planted)
    table = page(rows[rows["budget"] == settings.budget])
    folder = Path(settings.publish or workdir)
    write_text(folder / "selection_study_sizes.md", as_rows(table))
    print(table.to_string(index=False))


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("workdir", None, "Folder for the answers.")
    flags.DEFINE_string("publish", None, "Folder for the Markdown table; the workdir by default.")
    flags.DEFINE_multi_string("sizes", list(SIZES), "A table that is drawn; may be repeated.")
    flags.DEFINE_integer("budget", 60, "Seconds that fsjax select gets.", lower_bound=1)
    flags.DEFINE_integer("seed", 0, "Of the tables.")


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/selection_study")
