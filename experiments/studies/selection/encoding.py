"""Encodes tables as numbers, in the same way for all selectors and judges of the study."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from experiments.studies.selection.tables import Table

_MISSING = "missing"


class Encoded(NamedTuple):
    """Standardised numbers of the training rows and of the held-out rows.

    Attributes:
      task: ``'classification'`` or ``'regression'``.
      X: ``(N, E)`` float32.
      y: ``(N,)`` labels as text, or numbers.
      X_test: ``(M, E)``.
      y_test: ``(M,)``.
      units: ``(E,)`` index of the table's column that a number comes from, ascending.
    """

    task: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    units: np.ndarray

    @property
    def num_columns(self) -> int:
        """The number of columns of the table."""
        return int(self.units[-1]) + 1


def encode(table: Table, train: np.ndarray, test: np.ndarray) -> Encoded:
    """Encodes categories one-hot, imputes medians and standardises, fitted on ``train``."""
    if issparse(table.X):
        X, X_test = (table.X[rows].toarray() for rows in (train, test))
        units = np.arange(X.shape[1])
    else:
        blocks = [_encode_column(table.X[name], train, test) for name in table.X]
        X, X_test = (np.hstack([block[side] for block in blocks]) for side in (0, 1))
        units = np.repeat(np.arange(len(blocks)), [block[0].shape[1] for block in blocks])
    scaler = StandardScaler().fit(X)
    scaled = (scaler.transform(part).astype(np.float32) for part in (X, X_test))
    X, X_test = scaled
    return Encoded(table.task, X, table.y[train], X_test, table.y[test], units)


def _encode_column(
    column: pd.Series, train: np.ndarray, test: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(np.float64)[:, None]
        known = values[train][~np.isnan(values[train])]
        median = np.median(known) if len(known) else 0.0
        values = np.where(np.isnan(values), median, values)
        return values[train], values[test]
    texts = column.astype(object).where(column.notna(), _MISSING).astype(str).to_numpy()[:, None]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(texts[train])
    return encoder.transform(texts[train]), encoder.transform(texts[test])
