"""The kept epoch is a trained one, even if ``keep`` has no finite value for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from engine_helpers import linear_method

import fsjax

WARMUP = 4


def table() -> tuple[np.ndarray, np.ndarray]:
    """Columns 0 and 3 of six determine the class."""
    x = np.random.default_rng(0).normal(size=(120, 6)).astype(np.float32)
    return x, (x[:, 0] + x[:, 3] > 0).astype(int)


def fitted(keep: Callable[..., Any] | None = None, **options: Any) -> fsjax.FitResult:
    """A fit of a method that keeps no epoch before the end of a warm-up."""
    late = keep or (lambda state: jnp.where(state.epoch <= WARMUP, jnp.inf, state.value))
    options = {"num_epochs": 20, "seeds": (0, 1), "split": "random", "batch_size": 16} | options
    return fsjax.fit(linear_method(keep=late), table(), **options)


@pytest.mark.slow
def test_patience_counts_from_the_first_finite_value() -> None:
    result = fitted(early_stopping=2)
    assert (result.best_epoch > WARMUP).all()
    # A patience of two epochs is less than the warm-up.
    assert result.history["train/loss"].shape[1] >= WARMUP + 2


@pytest.mark.slow
def test_a_callback_that_ends_in_the_warmup_leaves_the_newest_epoch() -> None:
    with pytest.warns(UserWarning, match="no finite value for 2 of 2 seeds in the 3"):
        early = fitted(callback=lambda progress: progress.epoch == 3)
    assert early.best_epoch.tolist() == [3, 3]
    # The same as a run of only three epochs.
    with pytest.warns(UserWarning, match="no finite value"):
        whole = fitted(num_epochs=3)
    np.testing.assert_allclose(early.scores, whole.scores, rtol=1e-5)


@pytest.mark.slow
def test_time_that_ends_in_the_warmup_leaves_a_trained_epoch() -> None:
    with pytest.warns(UserWarning, match="no finite value"):
        result = fitted(max_time=1e-6)
    assert (result.best_epoch >= 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("value", [jnp.nan, jnp.inf])
def test_the_last_epoch_is_kept_where_no_value_is_a_number(value: float) -> None:
    with pytest.warns(UserWarning, match="no finite value"):
        result = fitted(keep=lambda state: jnp.full((), value), num_epochs=3)
    assert result.best_epoch.tolist() == [3, 3]
