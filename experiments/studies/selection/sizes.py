"""Measures ``fsjax select`` on large tables whose informative columns are known.

    python -m experiments.studies.selection.sizes --workdir=runs/study --budget=60

One call runs at a time. Calls whose rows are in ``sizes.csv`` in the workdir are not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from scipy.sparse import csr_matrix

from experiments.launch import cli
from experiments.studies.selection import tables
from experiments.studies.selection.asking import Answer, Question, define_study_flags, run_study
from fsjax.errors import check_names

#: Shift between the class means of the planted columns of a wide table.
_SHIFT = 1.2

#: Mean count of a word, and the factor of planted words in one class.
_RATE, _MORE = 0.02, 3.0


class Size(NamedTuple):
    """A large table whose first ``planted`` columns are informative."""

    draw: Callable[[int, int, int, int], tables.Table]
    rows: int
    columns: int
    planted: int
    suffix: str


def tall(seed: int, rows: int, columns: int, planted: int) -> tables.Table:
    """Two classes whose log odds are a sum of the planted columns, the last one squared."""
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
    """Yields a call for each size."""
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
    """The number of selected columns among the first ``planted``, ``x0``, ``x1`` and so on."""
    return len({f"x{index}" for index in range(planted)}.intersection(columns))


def _planted(question: Question, answer: Answer) -> dict[str, Any]:
    planted = SIZES[question.key["size"]].planted
    return {"planted": planted, "hits": hits(answer.selection.get("columns", ()), planted)}


def page(rows: pd.DataFrame) -> pd.DataFrame:
    """Makes the table, in text: a row for each call."""
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
    options = flags.FLAGS
    check_names("unknown size", options.sizes, SIZES)
    run_study("sizes", questions(options.sizes, options.seed, options.budget), page, _planted)


def define_flags() -> None:
    """Defines the flags of this launcher."""
    define_study_flags(budget=60)
    flags.DEFINE_multi_string("sizes", list(SIZES), "Size of a random table")
    flags.DEFINE_integer("seed", 0, "Seed of the random tables.")


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/selection_study")
