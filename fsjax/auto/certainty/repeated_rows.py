"""Rows that are equal or nearly equal: copies of one row, or repeated measurements of one unit.

On both sides of a split they would let a model remember instead of predict, so they are treated as
a group of rows. Equal rows are left as they are where columns of few values make them likely.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from fsjax.auto.contest.rankers.parts import standardise
from fsjax.auto.reading.column_operations import Columns, ranks, with_column_means
from fsjax.auto.reading.columns import Design
from fsjax.auto.reading.notes import ROWS, Note

#: Equal rows are no coincidence if there are more than this many times those expected. If at least
#: this share of them is no coincidence, all are taken for copies.
_EXCESS, _COPIED = 10.0, 0.5

#: Share of equal rows with an equal target from which they are copies.
_SAME_TARGET = 0.95

#: Share of rows that equal an earlier one, and rows of a set, up to which coincidences are grouped
#: as well, because that costs nothing.
_FEW, _FEW_OF_SET = 0.1, 5

#: A set with a greater share of the rows is no repetition unless its target is the same; one with
#: more than the second share is never a group, because it leaves too few rows outside.
_LARGE, _TOO_LARGE = 0.05, 0.34

#: Share of rows from which a note on them is a warning.
_MENTIONED = 0.05

#: Most units whose values are compared.
_COUNTED = 300

#: Rows whose neighbours are looked at, the fewest rows, most neighbours, and most products.
_QUERIES, _MIN_ROWS, _NEIGHBOURS, _PRODUCTS = 400, 30, 64, 2e10

#: Most rows of a unit, and the fewest units, of repeated measurements.
_MEASUREMENTS, _UNITS = 30, 8

#: A gap between neighbours: ratio of the distances before and after it, and its probability in rows
#: without clusters. Share of the rows with such a gap from which rows are repeated measurements.
_GAP, _GAP_CHANCE, _GAP_ROWS = 0.8, 3e-4, 0.25

#: Share of pairs with the same value up to which a column can show distances, and the fewest such
#: columns: in one or two, rows come close by coincidence where values are rounded.
_CONTINUOUS, _MIN_COLUMNS = 0.02, 3


class RepeatedRows(NamedTuple):
    """What was found about equal and nearly equal rows.

    Attributes:
      groups: ``(N,)`` numbers from 0 of rows that belong together, or ``None`` if all differ.
      notes: on their number and what is done about them.
      kept: ``(N,)`` bool, the rows to keep: of a series the first of equal rows.
    """

    groups: np.ndarray | None
    notes: tuple[Note, ...]
    kept: np.ndarray


def repeated_rows(
    design: Design,
    y: np.ndarray,
    row_groups: np.ndarray | None = None,
    ordered: bool = False,
    seed: int = 0,
) -> RepeatedRows:
    """Finds equal and nearly equal rows, and merges them with the user's groups.

    Args:
      y: ``(N,)`` or ``(N, C)``.
      row_groups: ``(N,)`` numbers of groups of rows. With them, only equal rows are looked for.
      ordered: whether the rows are in order of time. Rows cannot be grouped then, so that only the
        first of equal rows is kept, and nearly equal ones are expected.
    """
    count = len(y)
    sets, notes, kept = _equal_sets(design), [], np.ones(count, bool)
    repeated = count - len(np.unique(sets))
    joined = _copied_sets(design, y, sets)
    groups = row_groups
    if repeated:
        extra = count - len(np.unique(joined))
        if extra and ordered:
            kept = np.zeros(count, bool)
            kept[np.unique(joined, return_index=True)[1]] = True
        elif extra:
            groups = _merged(joined, row_groups)
        notes.append(_note_on_equal(count, repeated, extra, ordered))
    if row_groups is None and not ordered:
        first = np.unique(joined, return_index=True)[1]
        near = near_equal_rows(design, first, seed)
        if near is not None:
            clusters, size = near
            # Rows that equal one of a cluster belong to it.
            labels = np.full(count, -1)
            labels[first] = clusters
            of_set = np.full(joined.max() + 1, -1)
            of_set[joined[first]] = clusters
            groups = of_set[joined]
            units = len(np.unique(groups))
            notes.append(_note_on_near(count, size, units))
    return RepeatedRows(groups, tuple(notes), kept)


def near_equal_rows(design: Design, rows: np.ndarray, seed: int) -> tuple[np.ndarray, int] | None:
    """Clusters ``(n,)`` of nearly equal rows, and the number of rows in them; None without any.

    A row has repetitions if its first few neighbours are much closer than all further ones: by a
    gap that is improbable in rows of the same intrinsic dimension without clusters.

    Args:
      rows: ``(n,)`` numbers of different rows.
    """
    count = len(rows)
    if count < _MIN_ROWS or not isinstance(design.X, np.ndarray):
        return None
    values = with_column_means(design.X[rows])
    continuous = [
        column
        for column in range(values.shape[1])
        if len(np.unique(values[:200, column])) > 3
        and _collisions(values[:, column]) <= _CONTINUOUS
    ]
    if len(continuous) < _MIN_COLUMNS or count * count * len(continuous) > _PRODUCTS:
        return None
    (X,) = standardise(ranks(values[:, continuous]))
    X = X.astype(np.float32)
    queries = np.random.default_rng(seed).permutation(count)[:_QUERIES]
    most = min(_NEIGHBOURS, count // 3)
    distances = np.sqrt(np.partition(_squares(X[queries], X), range(most + 1), axis=1))
    distances = np.maximum(distances[:, 1 : most + 1], 1e-12)
    limit = _threshold(distances, count)
    if limit is None:
        return None
    edges = [
        sp.csr_array(_squares(X[start : start + 2000], X) <= limit**2)
        for start in range(0, count, 2000)
    ]
    clusters = connected_components(sp.vstack(edges), directed=False)[1]
    sizes = np.bincount(clusters)
    if sizes.max() > count * _TOO_LARGE or len(sizes) < _UNITS:
        return None
    return clusters, int(sizes[sizes > 1].sum())


def _threshold(distances: np.ndarray, count: int) -> float | None:
    """The distance within which rows belong to one unit, from those to neighbours ``(q, k)``."""
    most = distances.shape[1]
    ratio = np.median(np.log(distances[:, -1] / distances[:, most // 2 - 1]))
    dimension = np.log(most / (most // 2)) / max(float(ratio), 1e-6)
    places = np.arange(1, min(_MEASUREMENTS, count // _UNITS, most - 1) + 1)
    if not len(places):
        return None
    gaps = distances[:, places - 1] / distances[:, places]
    chance = gaps ** (dimension * places)
    clear = (gaps <= _GAP) & (chance <= _GAP_CHANCE)
    flagged = clear.any(axis=1)
    if flagged.mean() < _GAP_ROWS:
        return None
    place = np.where(clear, chance, 1.0)[flagged].argmin(axis=1)
    numbers = np.arange(int(flagged.sum()))
    near, far = distances[flagged][numbers, place], distances[flagged][numbers, place + 1]
    return float(np.median(np.sqrt(near * far)))


def _squares(some: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Squared distances ``(n, N)``."""
    squares = np.square(some).sum(axis=1)[:, None] + np.square(rows).sum(axis=1)
    return np.maximum(squares - 2.0 * some @ rows.T, 0.0)


def _equal_sets(design: Design) -> np.ndarray:
    """``(N,)`` numbers from 0, in order of appearance, that equal rows of the columns share."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in _keys(design.X)], int)


def _keys(X: Columns) -> list[Any]:
    """A hashable value for each row; those of equal rows are equal."""
    if isinstance(X, np.ndarray):
        # One zero, and one kind of missing value.
        same = np.ascontiguousarray(np.where(np.isnan(X), np.nan, X + 0.0))
        return [row.tobytes() for row in same]
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    ends = X.indptr.tolist()
    return [
        (X.indices[start:end].tobytes(), X.data[start:end].tobytes())
        for start, end in zip(ends[:-1], ends[1:], strict=True)
    ]


def _copied_sets(design: Design, y: np.ndarray, sets: np.ndarray) -> np.ndarray:
    """The sets ``(N,)`` of equal rows that are no coincidence; other rows are sets of their own."""
    count, alone = len(sets), np.arange(len(sets))
    first, sizes = np.unique(sets, return_index=True)[1], np.bincount(sets)
    extra = sizes - 1
    if not extra.any():
        return alone
    same_target = (y == y[first[sets]]).reshape(count, -1).all(axis=1)
    agreement = np.bincount(sets, same_target) / sizes
    if extra.sum() > _FEW * count or sizes.max() > _FEW_OF_SET:
        # One column alone bounds the number of coincidences. That of independent columns is
        # smaller, and the root allows for their dependence.
        rarest, product = _shares_of_values(design, first)
        improbable = extra > _EXCESS * count * rarest
        if (same_target.sum() - len(first)) / extra.sum() >= _SAME_TARGET:
            improbable |= extra > _EXCESS * count * np.sqrt(product)
        if extra[improbable].sum() < _COPIED * extra.sum():
            return alone
    large = (sizes > _LARGE * count) & (sizes > _FEW_OF_SET)
    grouped = ~(large & (agreement < _SAME_TARGET)) & (sizes <= _TOO_LARGE * count)
    return np.unique(np.where(grouped[sets], first[sets], alone), return_inverse=True)[1]


def _shares_of_values(design: Design, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each of n different rows, how many of the others have its values in a unit, as shares.

    Returns:
      ``(n,)`` the smallest share of the first units, and ``(n,)`` the product of their shares.
    """
    others = max(len(rows) - 1, 1)
    if isinstance(design.X, np.ndarray):
        X, smallest, logarithm = design.X[rows], np.ones(len(rows)), np.zeros(len(rows))
        # Missing values are equal, which NaNs are not.
        X = np.where(np.isnan(X), np.inf, X)
        for unit in range(min(design.num_units, _COUNTED)):
            codes = np.unique(X[:, design.columns_of([unit])], axis=0, return_inverse=True)[1]
            equal = np.bincount(codes.ravel())[codes.ravel()] - 1
            smallest = np.minimum(smallest, equal / others)
            logarithm += np.log(np.maximum(equal, 0.5) / others)
        return smallest, np.exp(logarithm)
    X = design.X[rows]
    owner = np.repeat(np.arange(len(rows)), np.diff(X.indptr))
    stored = pd.DataFrame({"column": X.indices, "value": X.data})
    equal = stored.groupby(["column", "value"])["value"].transform("size").to_numpy() - 1
    zeros = len(rows) - np.bincount(X.indices, minlength=X.shape[1])
    of_zero = np.log(np.maximum(zeros - 1, 0.5) / others)
    smallest = np.ones(len(rows))
    np.minimum.at(smallest, owner, equal / others)
    change = np.log(np.maximum(equal, 0.5) / others) - of_zero[X.indices]
    return smallest, np.exp(of_zero.sum() + np.bincount(owner, change, minlength=len(rows)))


def _collisions(values: np.ndarray) -> float:
    """Share of pairs of different rows that have the same value."""
    counts = np.unique(values, return_counts=True)[1].astype(float)
    total = len(values)
    return float((counts * (counts - 1)).sum() / max(total * (total - 1), 1))


def _merged(sets: np.ndarray, row_groups: np.ndarray | None) -> np.ndarray:
    """Groups ``(N,)`` in which rows of one set, or of one of the user's groups, are together."""
    if row_groups is None:
        return sets
    count = len(sets)
    shift = int(sets.max()) + 1
    links = sp.coo_array(
        (np.ones(count), (sets, shift + row_groups)), shape=[shift + int(row_groups.max()) + 1] * 2
    )
    joined = connected_components(links, directed=False)[1][sets]
    return np.unique(joined, return_inverse=True)[1]


def _note_on_equal(count: int, repeated: int, extra: int, ordered: bool) -> Note:
    """A note on the rows that equal an earlier one, and on those of them that are grouped."""
    if not extra:
        text = (
            f"{_of_rows(repeated, count)} equal to an earlier one in all columns; nothing "
            "shows that they are copies, so they count as different rows"
        )
        return Note(ROWS, "rows", text)
    done = (
        "only the first of equal rows is kept"
        if ordered
        else "equal rows stay together in every split and permutation, and count as one group"
    )
    kind = "equal rows" if extra >= _MENTIONED * count else "rows"
    text = f"{_of_rows(extra, count)} equal to an earlier one in all columns; {done}"
    return Note(ROWS, kind, text)


def _note_on_near(count: int, size: int, units: int) -> Note:
    text = (
        f"{_of_rows(size, count)} nearly equal to another one, as repeated measurements of one "
        f"unit are: {units:,} groups of rows, which stay together in every split and permutation; "
        "if a column names the units, give it as row_groups (on the command line --groups=COLUMN)"
    )
    return Note(ROWS, "equal rows", text)


def _of_rows(number: int, count: int) -> str:
    return f"{number:,} of the {count:,} rows {'is' if number == 1 else 'are'}"
