"""A table, and the cheapest estimator, that the tests of estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np

from fsjax.estimators import FisherScore

ROWS, COLUMNS = 60, 6


def table(kind: str = "classes") -> tuple[np.ndarray, np.ndarray]:
    """Column 2 tells the target; columns 0 and 5 are constant and noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, COLUMNS))
    x[:, 0] = 3.0
    if kind == "classes":
        return x, np.where(x[:, 2] > 0, "high", "low")
    if kind == "several":
        return x, np.stack([x[:, 2], 2.0 * x[:, 2] + 1.0], axis=1)
    return x, 3.0 * x[:, 2] + 1.0


def quick(**changes: Any) -> FisherScore:
    """The cheapest of them: all that use it share one program."""
    options = {"n_features_to_select": 2, "hidden": (4,), "num_epochs": 3, "learning_rate": 0.1}
    return FisherScore(**{**options, **changes})
