"""Measures how many columns that matter only in pairs are found, by the width of the table.

    python -m experiments.studies.nonlinear --out=docs/tables/nonlinear.md

The protocol of Passemiers et al. (Scientific Reports, 2024): 1000 rows of uniform columns in
[-1, 1], five sixths of them for training. The numbers are best-K scores: the share of the K true
columns among the first K selected ones, averaged over tables of different seeds. They are written
to the Markdown file ``--out``; rows that it already has are not measured again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from absl import flags
from sklearn.ensemble import RandomForestClassifier

from experiments.artifacts.markdown import as_rows, continue_table
from experiments.launch import cli
from experiments.studies.known_arrays import dense_arrays, informative_columns
from fsjax.data import ring_xor_sum
from fsjax.engine.compilation import cache_by_default
from fsjax.estimators import ESTIMATORS

#: Training rows, of 1000.
TRAIN: Final = 833

#: LassoNet as the authors of the comparison set it.
PUBLISHED_LASSONET: Final[dict[str, Any]] = {
    "hidden": (32, 32),
    "dense_epochs": 30,
    "path_epochs": 30,
    "dense_patience": 10,
    "path_patience": 10,
    "path_start": 3.2768,
    "tolerance": 0.9999,
    "batch_size": 64,
    "standardize": False,
}

#: LassoNet takes minutes on wider tables.
WIDEST: Final = 512

#: Columns, X and y, K and a seed.
Select = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]


def forest(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The columns of most importance in a forest of 500 trees."""
    model = RandomForestClassifier(500, random_state=seed).fit(X, y)
    return np.argsort(-model.feature_importances_, kind="stable")[:k]


def ours(
    method: str, X: np.ndarray, y: np.ndarray, k: int, seed: int, **options: Any
) -> np.ndarray:
    """The selection of an estimator."""
    fitted = ESTIMATORS[method](k, random_state=seed, **options).fit(X, y)
    return fitted.get_support(indices=True)


#: By the name of a table's column.
SELECTORS: Final[dict[str, Select]] = {
    "forest": forest,
    "ICAP": partial(ours, "icap"),
    "LassoNet": partial(ours, "lassonet"),
    "LassoNet, hidden=(32, 32)": partial(ours, "lassonet", hidden=(32, 32)),
    "LassoNet, their settings": partial(ours, "lassonet", **PUBLISHED_LASSONET),
}

#: The paper's scores, by rule and number of columns.
PUBLISHED: Final = {
    ("ring", 2048): "forest 1.00",
    ("xor", 512): "LassoNet 1.00, forest 0.17",
}

#: Rules and columns of the table's rows.
ROWS: Final = tuple(
    (rule, columns) for rule in ("ring", "xor", "ring+xor+sum") for columns in (32, 128, 512)
) + (("ring", 2048),)


def best_k(select: Select, rule: str, columns: int, seeds: int) -> float:
    """The mean best-K score over ``seeds`` tables, in [0, 1]."""
    shares = []
    for seed in range(seeds):
        data = ring_xor_sum(1000, columns, rule, seed)
        X, y = dense_arrays(data)
        informative = informative_columns(data)
        chosen = select(2 * X[:TRAIN] - 1, y[:TRAIN], len(informative), seed)
        shares.append(np.isin(chosen, informative).mean())
    return float(np.mean(shares))


def measure(rule: str, columns: int, seeds: int) -> dict[str, str]:
    """Measures the row of a rule and a number of columns."""
    line = {"rule": f"{rule}, {columns}"}
    for name, select in SELECTORS.items():
        runs = columns <= WIDEST or not name.startswith("LassoNet")
        line[name] = f"{best_k(select, rule, columns, seeds):.2f}" if runs else ""
    return {**line, "published": PUBLISHED.get((rule, columns), "")}


def run(rows: list[tuple[str, int]], out: Path, seeds: int) -> pd.DataFrame:
    """Measures the rows that a file lacks, in the order of ``rows``, and writes it after each."""
    return continue_table(
        out,
        {f"{rule}, {columns}": partial(measure, rule, columns, seeds) for rule, columns in rows},
    )


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("out", None, "Markdown file; rows in it are not measured again.")
    flags.DEFINE_integer("seeds", 3, "Random tables of each kind.", lower_bound=1)


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    cache_by_default()
    print(as_rows(run(list(ROWS), Path(options.out), options.seeds)))


if __name__ == "__main__":
    cli.run(main, define_flags, out="docs/tables/nonlinear.md")
