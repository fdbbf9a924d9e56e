"""Parametrisations of the logits: shapes, starts, and the update rules of IP-CAE."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from bad_calls import bad_calls, refuses

from fsjax.concrete import parametrisation
from fsjax.concrete.logits import LOGITS_INIT, default_embedding_dim

K, D = 4, 6


def test_embedding_size_is_capped_by_default() -> None:
    assert default_embedding_dim(617) == 617
    assert default_embedding_dim(1024) == 1024
    assert default_embedding_dim(20_000) == 1024


@pytest.mark.parametrize("init", LOGITS_INIT)
def test_direct_starts(key: jax.Array, init: str) -> None:
    logits = parametrisation("direct", logits_init=init)
    params = logits.init(key, 30, 200)
    if init == "near_zero":
        chex.assert_trees_all_close(params["logits"].sum(-1), jnp.ones(30), rtol=1e-5)
        assert params["logits"].min() >= 0
    else:
        assert abs(params["logits"].std() / np.sqrt(2 / 230) - 1) < 0.05


@bad_calls(
    ("fulll", {}, "direct, full, diagonal, scalar"),
    ("direct", {"logits_init": "ones"}, "near_zero"),
    ("diagonal", {"embedding_dim": 3}, "does not apply"),
    ("full", {"embedding_dim": 0}, "at least 1"),
)
def test_bad_arguments(bad: tuple) -> None:
    refuses(lambda: parametrisation(bad[0], **bad[1]), bad[2], error=ValueError)


def loss_gradient(logits: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Of a smooth loss of the logits, ``sum(tanh(logits) * target)``, in closed form."""
    return (1 - np.tanh(logits) ** 2) * target


def sgd_step(name: str, params: dict, target: jax.Array, rate: float, **options) -> np.ndarray:
    """Logits after one plain SGD step on the parameters."""
    logits = parametrisation(name, bias=False, **options)
    optimizer = optax.sgd(rate)

    @jax.jit
    def after(params: dict) -> jax.Array:
        grads = jax.grad(lambda p: jnp.sum(jnp.tanh(logits.apply(p)) * target))(params)
        updates, _ = optimizer.update(grads, optimizer.init(params))
        return logits.apply(optax.apply_updates(params, updates))

    return np.asarray(after(params), np.float64)


@pytest.mark.parametrize("p", [D, 9])
def test_full_matrix_moves_logits_by_the_transformed_gradient(p: int) -> None:
    # Eq. 8, 9: log alpha <- W psi - eta T grad with
    # T = W W^T + psi^T (psi - eta W^T grad) I, for one selector, as W is shared.
    rng = np.random.default_rng(0)
    w, psi, target = rng.normal(size=(D, p)), rng.normal(size=p), rng.normal(size=D)
    eta = 0.05
    gradient = loss_gradient(w @ psi, target)
    transform = w @ w.T + psi @ (psi - eta * w.T @ gradient) * np.eye(D)
    expected = w @ psi - eta * transform @ gradient
    params = {"psi": jnp.asarray(psi[None], jnp.float32), "kernel": jnp.asarray(w.T, jnp.float32)}
    logits_after = sgd_step(
        "full", params, jnp.asarray(target[None], jnp.float32), eta, embedding_dim=p
    )
    chex.assert_trees_all_close(logits_after[0], expected, rtol=1e-4, atol=1e-5)
    # The plain step of CAE is another one, so the check can fail.
    assert np.abs(expected - (w @ psi - eta * gradient)).max() > 0.1


def test_scalar_moves_logits_as_appendix_d_derives() -> None:
    # Eq. 44: w psi - eta (w w' grad + (dL/dw) psi), w' = w - eta dL/dw.
    rng = np.random.default_rng(1)
    w, psi, target, eta = 0.7, rng.normal(size=D), rng.normal(size=D), 0.05
    gradient = loss_gradient(w * psi, target)
    grad_w = gradient @ psi
    expected = w * psi - eta * (w * (w - eta * grad_w) * gradient + grad_w * psi)
    params = {"psi": jnp.asarray(psi[None], jnp.float32), "scale": jnp.float32(w)}
    logits_after = sgd_step("scalar", params, jnp.asarray(target[None], jnp.float32), eta)
    chex.assert_trees_all_close(logits_after[0], expected, rtol=1e-4, atol=1e-5)


def test_identity_matrix_gives_cae_exactly(key: jax.Array) -> None:
    direct, full = parametrisation("direct"), parametrisation("full", bias=False)
    logits = direct.init(key, K, D)["logits"]
    chex.assert_trees_all_equal(full.apply({"psi": logits, "kernel": jnp.eye(D)}), logits)
