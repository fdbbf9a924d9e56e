"""The draws and shares of the selection study."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.studies.selection import noise
from experiments.studies.selection.fdr import false_share
from experiments.studies.selection.noise import permutation_test


def test_permutation_test_tells_signal_from_noise() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 30)), np.arange(60) % 2
    assert permutation_test(X, y, seed=0, draws=199)[1] > 0.05
    X[:, :5] += 1.5 * y[:, None]
    score, p_value = permutation_test(X, y, seed=0, draws=199)
    assert score > 0.85
    assert p_value == 1 / 200


def test_shares() -> None:
    assert false_share(["x1", "x2", "x3", "x4"], ["x1", "x9"]) == 0.75
    assert false_share([], ["x1"]) == 0.0
    assert noise.share_interval(0, 20) == (0.0, pytest.approx(0.168, abs=1e-3))
    assert noise.share_interval(20, 20)[1] == 1.0
