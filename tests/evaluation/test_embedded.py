"""Test metrics against formulas and scikit-learn's definitions.

Covers ``fsjax.evaluation.protocols``.
"""

from __future__ import annotations

import numpy as np
import pytest

from fsjax.evaluation import embedded_metrics


def test_classification() -> None:
    outputs = np.array([[2.0, 1.0], [0.0, 3.0], [1.0, 0.0], [0.0, 1.0]])
    metrics = embedded_metrics("classification", outputs, np.array([0, 1, 1, 1]))
    assert metrics["embedded_accuracy"] == 75.0
    # Pairs (positive, negative) in the right order: margins -1 against 3, -1, 1.
    assert metrics["auc"] == pytest.approx(2.5 / 3)
    three = np.eye(3)
    assert embedded_metrics("classification", three, np.arange(3)) == {"embedded_accuracy": 100.0}


def test_reconstruction_is_the_mean_norm_over_d() -> None:
    y = np.zeros((2, 4))
    outputs = np.array([[3.0, 4.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    metrics = embedded_metrics("reconstruction", outputs, y)
    assert metrics["reconstruction_frobenius"] == pytest.approx((5 / 4 + 2 / 4) / 2)
    assert metrics["mse"] == pytest.approx((25 + 4) / 8)


def test_regression() -> None:
    y = np.array([[1.0], [2.0], [3.0]])
    for target in (y, y[:, 0]):
        assert embedded_metrics("regression", y, target) == {"mse": 0.0, "r2": 1.0}
    assert embedded_metrics("regression", np.full((3, 1), 2.0), y)["r2"] == pytest.approx(0.0)
