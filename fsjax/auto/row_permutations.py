"""Permutations of the target for permutation tests, which keep groups and series together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fsjax.auto.folds import group_numbers

#: A series is shifted by at least this share of its length.
_LEAST_SHIFT = 0.1

#: From a random generator to an order of the rows ``(N,)``.
Draw = Callable[[np.random.Generator], np.ndarray]


def permutations(
    y: np.ndarray,
    count: int,
    seed: int,
    row_groups: Sequence | None = None,
    ordered: bool = False,
) -> np.ndarray:
    """Orders of the rows ``(count, N)``, so that ``y[order]`` is a target without relation to X.

    Dependent rows stay together, because a test would otherwise take their dependence for a
    relation of columns and target (Winkler et al. 2015):

    - Groups are exchanged as a whole: the rows of a group get the targets of another group, in its
      order, repeated if it is smaller. This is exact for groups of equal size; otherwise some rows
      are repeated and others left out.
    - A series is shifted circularly, by at least a tenth of its length.

    Args:
      y: ``(N,)`` or ``(N, C)``.
      count: number of orders; a larger count starts with the same orders.
      seed: of the draws.
      row_groups: ``(N,)`` labels of dependent rows, such as patients.
      ordered: whether the rows are in order of time.

    Raises:
      ConfigError: for groups that do not fit, or together with ``ordered``.
    """
    draw = _draw(y, row_groups, ordered)
    orders = [draw(np.random.default_rng((seed, number))) for number in range(count)]
    return np.array(orders, int).reshape(count, len(y))


def _draw(y: np.ndarray, row_groups: Sequence | None, ordered: bool) -> Draw:
    rows = np.arange(len(y))
    groups = group_numbers(row_groups, len(y), ordered)
    if ordered:
        least = int(np.ceil(_LEAST_SHIFT * len(y)))
        return lambda rng: np.roll(rows, rng.integers(least, max(least, len(y) - least) + 1))
    if row_groups is None:
        return lambda rng: rng.permutation(len(y))
    by_group, sizes = np.argsort(groups, kind="stable"), np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(len(y), int)
    place[by_group] = rows - np.repeat(starts, sizes)

    def whole_groups(rng: np.random.Generator) -> np.ndarray:
        source = rng.permutation(len(sizes))[groups]
        return by_group[starts[source] + place % sizes[source]]

    return whole_groups
