"""Groups of columns that are selected together, for example the one-hot columns of a category.

Groups are a tuple (``Spec.groups``) with a whole number from 0 to G - 1 for each of the D columns;
``None`` makes every column its own group.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from fsjax.errors import ConfigError

Groups = tuple[int, ...] | None

#: The name of a group lists all its columns if there are at most this many.
_NAMED = 3


def checked_groups(groups: Sequence[int] | np.ndarray | None, num_columns: int) -> Groups:
    """Checks the groups, ``(D,)`` whole numbers from 0 to G - 1, and returns them as a tuple.

    Raises:
      ConfigError: if there is not one number for each of the D columns, or if a number from 0 to
        G - 1 is missing.
    """
    if groups is None:
        return None
    try:
        labels = np.asarray(groups)
    except ValueError:  # rows of different lengths
        labels = np.asarray(None)
    if labels.shape != (num_columns,) or labels.dtype.kind not in "iu":
        raise ConfigError(
            f"groups has shape {labels.shape} and type {labels.dtype}; give a whole number for "
            f"each of the {num_columns} columns"
        )
    distinct = np.unique(labels)
    if not np.array_equal(distinct, np.arange(len(distinct))):
        raise ConfigError(
            f"groups has the numbers {distinct[:5].tolist()}...; number the groups from 0 without "
            "gaps, for example by np.unique(groups, return_inverse=True)[1]"
        )
    return tuple(labels.tolist())


def unit_names(feature_names: Sequence[str] | None, groups: Groups) -> tuple[str, ...] | None:
    """The names of the columns or, if there are groups, of the groups.

    The name of a group is made of its columns' names: ``red, green``, or ``x3 to x30 (28)`` for
    many columns. Returns ``None`` for columns without names.
    """
    if groups is None:
        return None if feature_names is None else tuple(map(str, feature_names))
    names = feature_names or [f"x{column}" for column in range(len(groups))]
    members = pd.Series(list(map(str, names))).groupby(np.asarray(groups)).agg(list)
    return tuple(
        ", ".join(columns)
        if len(columns) <= _NAMED
        else f"{columns[0]} to {columns[-1]} ({len(columns)})"
        for columns in members
    )


def expand(values: Array, groups: Groups) -> Array:
    """Repeats ``(..., G)`` values of groups for each of their columns: ``(..., D)``."""
    return values if groups is None else values[..., np.asarray(groups)]


def any_column(columns: np.ndarray, groups: Groups) -> np.ndarray:
    """``(S, D)`` bool to ``(S, G)``: whether a group has at least one true column."""
    if groups is None:
        return columns
    return pd.DataFrame(columns.T).groupby(np.asarray(groups)).any().to_numpy().T


def gather(rows: Array, groups: Groups) -> Array:
    """``(D, ...)`` to ``(G, L, ...)``: the rows of each group, padded with zeros.

    L is the size of the largest group. Without groups the result is ``(D, 1, ...)``.
    """
    if groups is None:
        return rows[:, None]
    members, _ = _members(groups)
    padded = jnp.concatenate([rows, jnp.zeros((1, *rows.shape[1:]), rows.dtype)])
    return padded[members]


def scatter(gathered: Array, groups: Groups) -> Array:
    """The inverse of :func:`gather`."""
    if groups is None:
        return gathered[:, 0]
    _, place = _members(groups)
    return gathered[np.asarray(groups), place]


def _members(groups: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """``(G, L)`` columns of each group, padded with D, and ``(D,)`` places within the groups."""
    numbers = np.asarray(groups)
    counts = np.bincount(numbers)
    members = np.full((len(counts), counts.max()), len(numbers))
    place = pd.Series(numbers).groupby(numbers).cumcount().to_numpy()
    members[numbers, place] = np.arange(len(numbers))
    return members, place
