"""Attribution against derivatives by hand, and what it finds on data with known truth."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fsjax
from fsjax.method import Batch
from fsjax.methods.shared import attribution as module
from fsjax.methods.shared.attribution import attribution

N, D, H, C = 23, 6, 5, 3
RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(size=(D, H)), RNG.normal(size=(H, C))


def network(x):
    return jnp.tanh(x @ FIRST.astype(np.float32)) @ SECOND.astype(np.float32)


def data_of(y: np.ndarray, filled: int = 4) -> tuple[Batch, np.ndarray, np.ndarray]:
    """Rows, the last of which are padding with values that must not count."""
    x = RNG.normal(size=(N, D))
    weight = np.where(np.arange(N) < N - filled, RNG.uniform(0.5, 2, N), 0.0)
    values = np.where(weight[:, None] > 0, x, np.nan)
    arrays = (jnp.asarray(a, jnp.float32) for a in (values, weight))
    rows, weights = arrays
    return Batch(rows, jnp.asarray(y), weights), x, weight


def slopes_of(x: np.ndarray) -> np.ndarray:
    """``(N, D, C)`` derivatives by the chain rule."""
    inner = 1 - np.tanh(x @ FIRST) ** 2
    return np.einsum("dh,nh,hc->ndc", FIRST, inner, SECOND)


@pytest.mark.parametrize("times_input", [False, True])
@pytest.mark.parametrize("at_once", [1024, 7])
def test_derivatives_of_the_true_class(
    times_input: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", at_once)
    y = RNG.integers(0, C, N)
    data, x, weight = data_of(y)
    slopes = np.abs(slopes_of(x)[np.arange(N), :, y])
    if times_input:
        slopes = slopes * np.abs(x)
    scores = jax.jit(lambda d: attribution(network, "classification", d, times_input))(data)
    np.testing.assert_allclose(scores, weight @ slopes / weight.sum(), rtol=1e-4)


def test_all_outputs_count_without_classes() -> None:
    data, x, weight = data_of(RNG.normal(size=(N, C)))
    expected = weight @ np.abs(slopes_of(x)).sum(-1) / weight.sum()
    np.testing.assert_allclose(attribution(network, "regression", data), expected, rtol=1e-4)


def test_attribution_is_the_default_of_classifiers() -> None:
    plain = fsjax.methods.set(hidden=(4,))
    assert plain is fsjax.methods.set(hidden=(4,), rank_by="attribution")
    assert fsjax.methods.quick_selection() is fsjax.methods.quick_selection(rank_by="strength")
    with pytest.raises(fsjax.ConfigError, match="attribution"):
        fsjax.methods.set(rank_by="attributoin")
