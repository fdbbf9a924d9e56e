"""The experiment on columns that matter in pairs."""

from __future__ import annotations

import numpy as np

from experiments.studies import nonlinear
from fsjax.data import ring_xor_sum


def test_best_k_counts_true_columns_on_rows_of_the_paper() -> None:
    seen = []

    def first_true(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> np.ndarray:
        seen.append((X.shape, X.min() < -0.9, X.max() > 0.9, len(y)))
        true = ring_xor_sum(1000, 12, "ring", seed).informative
        others = np.setdiff1d(np.arange(12), true)
        return np.array([true[0], others[0]])

    assert nonlinear.best_k(first_true, "ring", 12, 2) == 0.5
    assert seen == [((833, 12), True, True, 833)] * 2
