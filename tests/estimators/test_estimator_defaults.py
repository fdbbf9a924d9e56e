"""Defaults that hold on ordinary tables; the settings of the papers stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fsjax.estimators import ESTIMATORS

#: Autoencoders and gates that look for variance, of which standardising leaves none.
BY_VARIANCE = ("aefs", "dufs", "quick_selection")


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_VARIANCE)
def test_pixels_that_are_nearly_always_empty_are_not_selected(name: str) -> None:
    X, _ = load_digits(return_X_y=True)
    X = X[:500]
    selected = ESTIMATORS[name](10, task="reconstruction").fit(X).get_support()
    # Standardised, one dot in an empty corner is as large as the strokes of a hundred digits.
    assert X.std(axis=0)[selected].min() > 3.5


@pytest.mark.parametrize("name", ["cife", "icap"])
def test_continuous_columns_are_cut_into_bins(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    y = (X[:, 8] + X[:, 11] + 0.5 * rng.normal(size=300) > 0).astype(int)
    # With every value a symbol of its own, each column tells all, and the first ones win.
    assert set(ESTIMATORS[name](2).fit(X, y).get_support(indices=True)) == {8, 11}
