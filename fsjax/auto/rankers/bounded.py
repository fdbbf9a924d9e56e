"""Bounds the size of tables: fewer rows of a long table, fewer columns of a wide one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsjax.auto.rankers.parts import Part, standardise
from fsjax.auto.rankers.ranking import LEFT_OUT
from fsjax.tables.base import as_table
from fsjax.tables.columns import densify
from fsjax.tasks import TABLE

#: At least this many rows and columns are kept, however small the effort.
_LEAST_ROWS, _LEAST_COLUMNS = 200, 50


class DensePart(NamedTuple):
    """A dense table of bounded size.

    Attributes:
      X: ``(n, d)`` float64, mean 0 and deviation 1.
      y: ``(n,)`` or ``(n, C)``.
      columns: ``(d,)`` numbers of these columns in the whole table.
    """

    X: np.ndarray
    y: np.ndarray
    columns: np.ndarray


def fewer_rows(part: Part, task: str, most: int, seed: int) -> Part:
    """At most ``most`` rows (but never under 200), standardised again; classes in proportion."""
    most = max(_LEAST_ROWS, most)
    rows = len(part.y)
    if rows <= most:
        return part
    strata = TABLE[task].strata(part.y)
    shuffled = np.random.default_rng(seed).permutation(rows)
    if strata is not None:
        # Evenly spaced rows of a table sorted by class keep the proportions of the classes.
        shuffled = shuffled[np.argsort(strata[shuffled], kind="stable")]
    kept = np.sort(shuffled[np.linspace(0, rows - 1, most).astype(int)])
    return Part(standardise(part.X[kept])[0], part.y[kept])


def fewer_columns(part: Part, relevance: np.ndarray, most: int) -> DensePart:
    """The most relevant columns as a dense table, at most ``most`` of them (but never under 50).

    Args:
      part: rows, already of bounded number.
      relevance: ``(D,)``; columns with :data:`LEFT_OUT` are left out.
      most: number of columns.
    """
    ordered = np.argsort(-relevance, kind="stable")[: max(_LEAST_COLUMNS, most)]
    columns = np.sort(ordered[relevance[ordered] > LEFT_OUT])
    X = part.X
    if as_table(X).sparse:
        X = standardise(densify(X[:, columns]))[0]
    elif len(columns) < X.shape[1]:
        X = X[:, columns]
    return DensePart(X, part.y, columns)
