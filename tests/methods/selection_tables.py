"""Small tables with few informative columns, and a shuffled control."""

from __future__ import annotations

import numpy as np

import fsjax
from fsjax.method import Method

#: The informative columns.
INFORMATIVE = {2, 7, 11}


def table(shuffled: bool) -> tuple[np.ndarray, np.ndarray]:
    """400 rows; in the control every column is shuffled separately."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    x = rng.normal(size=(400, 20))
    x[:, sorted(INFORMATIVE)] += 1.5 * (2 * y[:, None] - 1)
    return rng.permuted(x, axis=0) if shuffled else x, y


def hits(method: Method, shuffled: bool, num_epochs: int) -> list[int]:
    """Informative columns among the three that two seeds select."""
    result = fsjax.fit(
        method,
        table(shuffled),
        num_features=3,
        seeds=(0, 1),
        num_epochs=num_epochs,
        batch_size=32,
        valid_fraction=0.0,
        best_by="last",
    )
    return [len(INFORMATIVE & set(row.tolist())) for row in result.selected]


def linear_table(rows: int, columns: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Three classes, which depend on columns 1 and 5."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, rows)
    x = rng.normal(size=(rows, columns))
    x[:, 1] += 2.0 * (y == 1)
    x[:, 5] -= 2.0 * (y == 2)
    return x, y
