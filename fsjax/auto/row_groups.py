"""Rows that belong together, such as those of one patient: their groups as numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fsjax.errors import ConfigError


def group_numbers(
    row_groups: Sequence | np.ndarray | None, rows: int, ordered: bool = False
) -> np.ndarray:
    """The group of each row, ``(N,)`` from 0 in order of appearance.

    A row whose label is missing is a group of its own, and so is each row without ``row_groups``.

    Args:
      row_groups: ``(N,)`` labels of any kind, or None.
      rows: N.
      ordered: whether the rows are in order of time.

    Raises:
      ConfigError: for labels that do not fit the rows, or together with ``ordered``.
    """
    if row_groups is None:
        return np.arange(rows)
    if ordered:
        raise ConfigError("choose either groups of rows or the order of time, not both")
    shape = np.shape(row_groups)
    if shape != (rows,):
        raise ConfigError(f"row_groups has shape {shape}; give a label for each of the {rows} rows")
    numbers = pd.factorize(pd.Series(row_groups))[0]
    missing = numbers < 0
    numbers[missing] = numbers.max() + 1 + np.arange(missing.sum())
    return numbers
