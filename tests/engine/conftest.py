"""Fixtures with data for the engine's tests."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 11)).astype(np.float32)
    return x, (x[:, 2] > 0).astype(int) + (x[:, 7] > 0)
