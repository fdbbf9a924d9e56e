"""Greedy filters for discrete columns: information on the class minus redundancy (CIFE, ICAP).

Entropies are plug-in estimates in bits; each distinct value (or bin) is a symbol. Joint symbols
are counted for all columns at once, one count per chosen column, which also yields the entropies
conditional on the class. Where a column mostly has one symbol, as pixels and word counts have, only
the other rows are counted; the rest follows by subtraction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fsjax.arguments import Count
from fsjax.method import Method
from fsjax.methods.shared.fixed_columns import filter_method, on_host

#: ``(penalty (D,), shared (D,)) -> penalty (D,)``: adds what one more chosen column shares.
Merge = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: Difference in bits below which two columns count as equally good; the first of them is chosen.
TIE = 1e-9

#: Number of values that are counted at a time, which bounds the memory.
BLOCK = 2**22

#: Columns with fewer joint symbols than this times the rows are counted in a histogram, others by
#: sorting.
FILLED = 4

#: A column's rows by symbol and class are kept if these are at most this times the rows, which
#: bounds the memory.
KEPT = 1

#: Columns in which less than this share of the rows have another symbol than the commonest are
#: counted by difference, which is then cheaper.
RARE = 0.25


@dataclass(frozen=True)
class GreedyOptions:
    """Arguments of both greedy filters.

    Attributes:
      depth: how many columns are chosen greedily; all others are ranked by their own information
        on the class, ``I(f; y)``.
      bins: number of equally filled bins of each column. ``None`` takes each distinct value as a
        symbol, as the papers do; a continuous column then appears to determine the class.

    Examples:
      >>> greedy = fsjax.methods.icap(bins=4)
    """

    depth: Count = 200
    bins: Count | None = 5


def greedy_filter(merge: Merge, **options: Any) -> Method:
    """The method that ranks columns by :func:`greedy_scores` with the given penalty."""
    o = GreedyOptions(**options)

    score_rows = functools.partial(greedy_scores, depth=o.depth, bins=o.bins, merge=merge)
    return filter_method(lambda key, spec, data: on_host(score_rows, data), ("classification",))


class CountTable(NamedTuple):
    """A table of symbols.

    Attributes:
      codes: ``(D, N)`` int64 symbols of each column, from 0.
      sizes: ``(D,)`` number of distinct symbols of each column.
      y: ``(N,)`` int64 classes from 0.
      weight: ``(N,)`` positive weights of the rows.
      commonest: ``(D,)`` the commonest symbol of each column.
      rare: ``(D,)`` number of rows with another symbol.
      counts: for each column ``(size, C)`` rows by symbol and class; empty where these would be
        many (:data:`KEPT`), or if weights differ from 1.
    """

    codes: np.ndarray
    sizes: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    commonest: np.ndarray
    rare: np.ndarray
    counts: tuple[np.ndarray, ...]


class Entropies(NamedTuple):
    """Entropies of columns in bits.

    Attributes:
      alone: ``(D,)`` entropy of each column, or of each column jointly with a chosen one.
      with_class: ``(D,)`` the same, jointly with the class.
    """

    alone: np.ndarray
    with_class: np.ndarray


def greedy_scores(
    x: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    *,
    depth: int,
    bins: int | None,
    merge: Merge,
) -> np.ndarray:
    """Ranks columns greedily by ``I(f; y) - penalty(f)``.

    The penalty starts at 0; each chosen column ``g`` adds ``I(g; f) - I(g; f | y)`` to it.

    Args:
      x: ``(N, D)``.
      y: ``(N,)`` classes.
      weight: ``(N,)`` positive weights of the rows.
      depth: how many columns are chosen greedily; constant columns are never chosen.
      bins: number of equally filled bins of each column; ``None`` leaves the values as they are.
      merge: how the penalty of a column grows.

    Returns:
      ``(D,)``: ``depth`` to 1 for the chosen columns in the order of choice; for the others, their
      ``I(f; y)`` as a share of ``1 + log2(C)`` bits, which is below 1.
    """
    table = count_table(x, y, weight, bins)
    column = entropies(table)
    class_entropy = entropy(table.y, weight)
    relevance = column.alone + class_entropy - column.with_class
    scores = np.maximum(relevance, 0.0) / (1.0 + np.log2(table.y.max() + 1))
    penalty = np.zeros(len(scores))
    is_open = table.sizes > 1
    depth = min(depth, int(is_open.sum()))
    for place in range(depth, 0, -1):
        value = np.where(is_open, relevance - penalty, -np.inf)
        chosen = int(np.argmax(value >= value.max() - TIE))
        scores[chosen], is_open[chosen] = place, False
        if place > 1:
            joint = entropies(table, chosen)
            information = column.alone[chosen] + column.alone - joint.alone
            conditional = (
                column.with_class[chosen] + column.with_class - joint.with_class - class_entropy
            )
            penalty = merge(penalty, information - conditional)
    return scores


def count_table(x: np.ndarray, y: np.ndarray, weight: np.ndarray, bins: int | None) -> CountTable:
    """Converts a table of numbers ``(N, D)`` to symbols."""
    codes = np.empty(x.shape[::-1], np.int64)
    for column, values in enumerate(x.T):
        codes[column] = np.unique(_binned(values, weight, bins), return_inverse=True)[1]
    sizes, y = codes.max(axis=1) + 1, np.unique(y, return_inverse=True)[1]
    rows = [np.bincount(column) for column in codes]
    classes = int(y.max()) + 1
    counted = (sizes * classes <= KEPT * len(y)) & np.all(weight == 1)
    counts = tuple(
        np.bincount(column * classes + y, minlength=size * classes).reshape(-1, classes)
        if use
        else np.zeros((0, classes), np.int64)
        for column, size, use in zip(codes, sizes, counted, strict=True)
    )
    commonest = np.array([of_column.argmax() for of_column in rows])
    rare = len(y) - np.array([of_column.max() for of_column in rows])
    return CountTable(codes, sizes, y, weight, commonest, rare, counts)


def _binned(values: np.ndarray, weight: np.ndarray, bins: int | None) -> np.ndarray:
    if bins is None:
        return values
    order = np.argsort(values)
    # The number of the last of a value's rows, as if a row of weight w were w rows.
    last = np.cumsum(weight[order]) - 1
    # Divided last, which is exact where the rows are a multiple of the bins.
    edges = np.searchsorted(last, (last[-1] + 1) * np.arange(1, bins) / bins - 1)
    return np.searchsorted(values[order[edges]], values)


def entropy(codes: np.ndarray, weight: np.ndarray) -> float:
    """Entropy of symbols ``(N,)`` in bits."""
    counts = np.bincount(codes, weight)
    return float(np.log2(weight.sum()) - _times_log(counts).sum() / weight.sum())


def entropies(table: CountTable, chosen: int | None = None) -> Entropies:
    """Entropies of all columns, alone or jointly with the column ``chosen``."""
    classes = int(table.y.max()) + 1
    pairs = table.y if chosen is None else table.codes[chosen] * classes + table.y
    # Renumbers the pairs that occur; they stay in the order of the chosen column's symbols.
    occurring, pairs = np.unique(pairs, return_inverse=True)
    symbol = np.unique(occurring // classes, return_inverse=True)[1]
    small = table.sizes * len(occurring) <= FILLED * len(table.y)
    counted = np.array([len(counts) > 0 for counts in table.counts])
    rare = counted & (table.rare < RARE * len(table.y))
    sums = np.empty((2, len(table.codes)))
    for count, columns in (
        (_by_difference, np.flatnonzero(rare)),
        (_by_histogram, np.flatnonzero(small & ~rare)),
        (_by_sorting, np.flatnonzero(~small & ~rare)),
    ):
        step = max(BLOCK // len(table.y), 1)
        for start in range(0, len(columns), step):
            block = columns[start : start + step]
            sums[:, block] = count(table, block, pairs, symbol)
    total = table.weight.sum()
    return Entropies(*(np.log2(total) - sums / total))


def _by_histogram(
    table: CountTable, columns: np.ndarray, pairs: np.ndarray, symbol: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``sum n log2 n`` over the joint symbols ``(f, g)`` and ``(f, g, y)``, g the chosen column.

    Args:
      table: all columns.
      columns: indices of the columns f.
      pairs: ``(N,)`` symbols of (g, y).
      symbol: the symbol of g in each of the pairs.
    """
    sizes = table.sizes[columns]
    starts = np.cumsum(sizes) - sizes
    cells = (table.codes[columns] + starts[:, None]) * len(symbol) + pairs
    weights = np.broadcast_to(table.weight, cells.shape).ravel()
    counts = np.bincount(cells.ravel(), weights, int(sizes.sum()) * len(symbol))
    counts = counts.reshape(-1, len(symbol))
    merged = np.add.reduceat(counts, np.flatnonzero(np.diff(symbol, prepend=-1)), axis=1)

    def sums(part: np.ndarray) -> np.ndarray:
        return np.add.reduceat(_times_log(part).sum(axis=1), starts)

    return sums(merged), sums(counts)


def _by_sorting(
    table: CountTable, columns: np.ndarray, pairs: np.ndarray, symbol: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """:func:`_by_histogram` for columns of whose joint symbols few occur."""
    keys = table.codes[columns] * len(symbol) + pairs
    if np.all(table.weight == 1):
        keys.sort(axis=1)
        weights = None
    else:
        order = np.argsort(keys, axis=1)
        keys = np.take_along_axis(keys, order, axis=1)
        weights = table.weight[order].ravel()
    merged = keys // len(symbol) * len(symbol) + symbol[keys % len(symbol)]
    return _sums_of_runs(merged, weights), _sums_of_runs(keys, weights)


def _by_difference(
    table: CountTable, columns: np.ndarray, pairs: np.ndarray, symbol: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """:func:`_by_histogram` from the rows in which neither f nor g has its commonest symbol.

    Rows have weight 1, so that differences of counts are exact.
    """
    num_columns, num_pairs, classes = len(columns), len(symbol), int(table.y.max()) + 1
    class_of = np.empty(num_pairs, np.int64)
    class_of[pairs] = table.y
    of_pairs = np.bincount(pairs)
    common_g = int(np.argmax(np.bincount(symbol, of_pairs)))
    rows = np.flatnonzero(symbol[pairs] != common_g)
    codes = table.codes[columns][:, rows]
    column, place = np.nonzero(codes != table.commonest[columns][:, None])
    sizes = table.sizes[columns]
    starts = np.cumsum(sizes) - sizes
    keys = (codes[column, place] + starts[column]) * num_pairs + pairs[rows[place]]
    keys.sort()
    # Cells (f, g, y) with rarer symbols f and g: their numbers of rows, and where they are.
    is_start = np.diff(keys, prepend=-1) > 0
    inner = np.diff(np.flatnonzero(is_start), append=len(keys))
    f, pair = np.divmod(keys[is_start], num_pairs)
    column = np.repeat(np.arange(num_columns), sizes)[f]
    # Cells with the commonest g, by f and y; and those with the commonest f, by g and y.
    other_f = np.concatenate([table.counts[index] for index in columns])
    other_f = other_f - _counts(f * classes + class_of[pair], inner, other_f.shape)
    other_g = of_pairs - _counts(column * num_pairs + pair, inner, (num_columns, num_pairs))
    with_common = starts + table.commonest[columns]
    corner = other_f[with_common]
    other_f[with_common] = 0
    other_g[:, symbol == common_g] = 0
    for of_class in range(classes):
        corner[:, of_class] -= other_g[:, class_of == of_class].sum(axis=1)
    terms = _times_log(np.arange(len(table.y) + 1.0))

    def sums(inner: np.ndarray, column: np.ndarray, *outer: np.ndarray) -> np.ndarray:
        by_f, by_g, both = outer
        inside = np.bincount(column, terms[inner], num_columns)
        total = inside + np.add.reduceat(terms[by_f].sum(axis=1), starts)
        return total + terms[by_g].sum(axis=1) + terms[both].sum(axis=1)

    is_first = (np.diff(f, prepend=-1) > 0) | (np.diff(symbol[pair], prepend=-1) != 0)
    first_of_f_and_g = np.flatnonzero(is_first)
    by_symbol = np.flatnonzero(np.diff(symbol, prepend=-1))
    merged = sums(
        np.add.reduceat(inner, first_of_f_and_g) if len(inner) else inner,
        column[first_of_f_and_g],
        other_f.sum(axis=1, keepdims=True),
        np.add.reduceat(other_g, by_symbol, axis=1),
        corner.sum(axis=1, keepdims=True),
    )
    return merged, sums(inner, column, other_f, other_g, corner)


def _counts(cells: np.ndarray, counts: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sums of whole numbers by cell, in an array of the given shape."""
    sums = np.bincount(cells, counts, int(np.prod(shape)))
    return sums.astype(np.int64).reshape(shape)


def _sums_of_runs(keys: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """``sum n log2 n`` over the runs of equal keys in each sorted row."""
    is_start = np.ones(keys.shape, bool)
    is_start[:, 1:] = keys[:, 1:] != keys[:, :-1]
    starts = np.flatnonzero(is_start)
    if weights is None:
        counts = np.diff(starts, append=keys.size)
        terms = _times_log(np.arange(keys.shape[1] + 1.0))[counts]
    else:
        terms = _times_log(np.add.reduceat(weights, starts))
    return np.add.reduceat(terms, np.searchsorted(starts, np.arange(len(keys)) * keys.shape[1]))


def _times_log(counts: np.ndarray) -> np.ndarray:
    """``n log2 n``, and 0 for n = 0."""
    return counts * np.log2(np.where(counts > 0, counts, 1.0))
