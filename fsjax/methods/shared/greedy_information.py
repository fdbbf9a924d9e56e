"""Greedy filters of discrete columns: relevance minus what the columns chosen before tell.

Entropies are plug-in estimates in bits, each distinct value (or bin) a symbol. They are counted
for all columns at once: one count of joint symbols a chosen column, which also gives what is
conditional on the class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

#: ``(penalty (D,), shared (D,)) -> penalty (D,)``: takes in what one more chosen column shares.
Merge = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: Bits below which two columns are equally good; the first of them is chosen.
TIE = 1e-9

#: Values that are counted at a time.
BLOCK = 2**22

#: Columns with fewer joint symbols than this times the rows are counted in a histogram, others by
#: sorting.
FILLED = 4


class Table(NamedTuple):
    """A table of symbols.

    Attributes:
      codes: ``(D, N)`` int64 symbols of each column, from 0.
      sizes: ``(D,)`` numbers of symbols.
      y: ``(N,)`` int64 classes from 0.
      weight: ``(N,)`` positive weights of the rows.
    """

    codes: np.ndarray
    sizes: np.ndarray
    y: np.ndarray
    weight: np.ndarray


class Entropies(NamedTuple):
    """In bits.

    Attributes:
      alone: ``(D,)`` of each column, perhaps jointly with another one.
      with_class: ``(D,)`` of it jointly with the class.
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

    The penalty begins at 0, and takes in ``I(g; f) - I(g; f | y)`` of each chosen column ``g``.

    Args:
      x: ``(N, D)``.
      y: ``(N,)`` classes.
      weight: ``(N,)`` positive weights of the rows.
      depth: how many columns are chosen so; constant ones are not.
      bins: equally filled bins of each column; ``None`` leaves the values as they are.
      merge: how the penalty takes it in.

    Returns:
      ``(D,)``: ``depth`` to 1 for the chosen columns in their order; below 1, for the others,
      their relevance as a share of ``1 + log2(C)`` bits.
    """
    table = table_of(x, y, weight, bins)
    entropy_of_each = entropies(table)
    of_class = entropy(table.y, weight)
    relevance = entropy_of_each.alone + of_class - entropy_of_each.with_class
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
            information = entropy_of_each.alone[chosen] + entropy_of_each.alone - joint.alone
            given_class = (
                entropy_of_each.with_class[chosen]
                + entropy_of_each.with_class
                - joint.with_class
                - of_class
            )
            penalty = merge(penalty, information - given_class)
    return scores


def table_of(x: np.ndarray, y: np.ndarray, weight: np.ndarray, bins: int | None) -> Table:
    """The symbols of a table of numbers ``(N, D)``."""
    codes = np.empty(x.shape[::-1], np.int64)
    for column, values in enumerate(x.T):
        codes[column] = np.unique(_binned(values, bins), return_inverse=True)[1]
    return Table(codes, codes.max(axis=1) + 1, np.unique(y, return_inverse=True)[1], weight)


def _binned(values: np.ndarray, bins: int | None) -> np.ndarray:
    if bins is None:
        return values
    edges = np.quantile(values, np.arange(1, bins) / bins, method="inverted_cdf")
    return np.searchsorted(edges, values)


def entropy(codes: np.ndarray, weight: np.ndarray) -> float:
    """Bits of symbols ``(N,)``."""
    counts = np.bincount(codes, weight)
    return float(np.log2(weight.sum()) - _times_log(counts).sum() / weight.sum())


def entropies(table: Table, chosen: int | None = None) -> Entropies:
    """Entropies of all columns, alone or jointly with a chosen one, without and with the class."""
    classes = int(table.y.max()) + 1
    pairs = table.y if chosen is None else table.codes[chosen] * classes + table.y
    # Only pairs that occur, in the order of the chosen column's symbols.
    known, pairs = np.unique(pairs, return_inverse=True)
    symbol = np.unique(known // classes, return_inverse=True)[1]
    small = table.sizes * len(known) <= FILLED * len(table.y)
    sums = np.empty((2, len(table.codes)))
    for count, columns in (
        (_by_histogram, np.flatnonzero(small)),
        (_by_sorting, np.flatnonzero(~small)),
    ):
        step = max(BLOCK // len(table.y), 1)
        for at in range(0, len(columns), step):
            block = columns[at : at + step]
            sums[:, block] = count(table, block, pairs, symbol)
    total = table.weight.sum()
    return Entropies(*(np.log2(total) - sums / total))


def _by_histogram(
    table: Table, columns: np.ndarray, pairs: np.ndarray, symbol: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``sum n log2 n`` over the symbols ``(f, g)`` and ``(f, g, y)`` of some columns ``f``."""
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
    table: Table, columns: np.ndarray, pairs: np.ndarray, symbol: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same where few of the joint symbols occur."""
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


def _sums_of_runs(keys: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """``sum n log2 n`` over the runs of equal keys in each sorted line."""
    begins = np.ones(keys.shape, bool)
    begins[:, 1:] = keys[:, 1:] != keys[:, :-1]
    starts = np.flatnonzero(begins)
    if weights is None:
        counts = np.diff(starts, append=keys.size)
        terms = _times_log(np.arange(keys.shape[1] + 1.0))[counts]
    else:
        terms = _times_log(np.add.reduceat(weights, starts))
    return np.add.reduceat(terms, np.searchsorted(starts, np.arange(len(keys)) * keys.shape[1]))


def _times_log(counts: np.ndarray) -> np.ndarray:
    """``n log2 n``, 0 for nothing."""
    return counts * np.log2(np.where(counts > 0, counts, 1.0))
