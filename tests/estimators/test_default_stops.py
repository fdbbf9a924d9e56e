"""The epochs after which an estimator stops by default."""

from __future__ import annotations

import numpy as np
import pytest
from marks import slow_ids

from fsjax.estimators import DeepLasso
from fsjax.methods import METHODS


@slow_ids("0.0")
@pytest.mark.parametrize("share", [0.3, 0.0])
def test_deep_lasso_stops_after_its_best_epoch(share: float) -> None:
    X = np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)
    y = np.random.default_rng(1).integers(0, 2, 60)
    fitted = DeepLasso(2, hidden=(4,), num_epochs=70, validation_fraction=share).fit(X, y)
    patience = METHODS["deep_lasso"].registration.training["early_stopping"]
    kept = int(np.asarray(fitted.result_.states.best.epoch)[0])
    assert fitted.n_iter_ == (kept + patience if share else 70)
    assert kept + patience < 70 or not share
