"""Permuted targets: which rows may change places under chance, for permutation tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fsjax.auto.row_groups import group_numbers

#: A series is shifted by at least this share of its length.
_LEAST_SHIFT = 0.1

#: Draws numbers of rows ``(N,)``.
Draw = Callable[[np.random.Generator], np.ndarray]


def permutation(
    y: np.ndarray,
    rng: np.random.Generator,
    row_groups: Sequence | None = None,
    ordered: bool = False,
) -> np.ndarray:
    """Numbers of rows ``(N,)``, so that ``y[order]`` is a target without relation to X.

    Rows that resemble each other stay together, as otherwise a test takes their likeness for a
    relation of columns and target (Winkler et al. 2015):

    - Groups change places as a whole: the rows of a group have the targets of the rows of another
      group, in their order, over again where it is smaller. This is exact for groups of one size;
      otherwise, some rows are repeated and others left out.
    - A series is shifted circularly, by at least a tenth of its length.

    Args:
      y: ``(N,)`` or ``(N, C)``.
      rng: draws.
      row_groups: ``(N,)`` labels of rows that belong together, such as patients.
      ordered: whether the rows are in order of time.

    Raises:
      ConfigError: for groups that do not fit, or together with ``ordered``.
    """
    return _draw(y, row_groups, ordered)(rng)


def permutations(
    y: np.ndarray,
    count: int,
    seed: int,
    row_groups: Sequence | None = None,
    ordered: bool = False,
) -> np.ndarray:
    """Several of :func:`permutation`, ``(count, N)``; a larger count begins with the same ones."""
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
