"""SparseGPT's update compared with its definition, with magnitude pruning, and on networks."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fsjax import sparsity
from fsjax.errors import ConfigError
from fsjax.sparsity.optimal_brain_surgeon import prune_matrix


def correlated(rows: int, inputs: int) -> np.ndarray:
    """Rows of a few factors and noise, like the activations of a network."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(rows, 5)) @ rng.normal(size=(5, inputs))
    return (factors + 0.5 * rng.normal(size=(rows, inputs))).astype(np.float32)


def one_by_one(matrix: np.ndarray, hessian: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The same update in float64, with a new inverse Hessian of the following inputs each time."""
    matrix = matrix.astype(np.float64)
    for place in range(len(matrix)):
        inverse = np.linalg.inv(hessian[place:, place:])
        error = np.where(mask[place], 0.0, matrix[place]) / inverse[0, 0]
        matrix[place:] -= inverse[0][:, None] * error
    return np.where(mask, matrix, 0)


@pytest.mark.parametrize(("density", "group"), [(0.5, None), (0.1, None), (0.5, 4), (0.25, 8)])
def test_the_update_is_that_of_the_inverse_hessians(density: float, group: int | None) -> None:
    rows = correlated(200, 24)
    matrix = np.random.default_rng(1).normal(size=(24, 10)).astype(np.float32)
    hessian = rows.T @ rows
    new, mask = prune_matrix(matrix, hessian, density, group, damping=0.01, block=16)
    damped = hessian + 0.01 * np.mean(np.diag(hessian)) * np.eye(24)
    expected = one_by_one(matrix, damped.astype(np.float64), np.asarray(mask))
    np.testing.assert_allclose(new, expected, rtol=2e-2, atol=2e-3)
    assert int(mask.sum()) == round(density * 240)
    if group is not None:
        counts = np.asarray(mask).reshape(-1, group, 10).sum(1)
        assert (counts == density * group).all()

    def error(weights: np.ndarray) -> float:
        return float(np.square(rows @ (weights - matrix)).sum())

    kept = np.abs(matrix)
    if group is None:
        largest = kept >= np.sort(kept.ravel())[-int(mask.sum())]
    else:
        ranks = kept.reshape(-1, group, 10).argsort(1).argsort(1).reshape(24, 10)
        largest = ranks >= group - density * group
    assert error(np.asarray(new)) < 0.7 * error(np.where(largest, matrix, 0))


def test_one_connection_is_left_at_least() -> None:
    _, mask = prune_matrix(jnp.ones((20, 2)), jnp.eye(20), 0.01)
    assert mask.sum() == 1


@pytest.mark.slow
def test_inputs_that_are_always_zero_go_first() -> None:
    rows = correlated(100, 16)
    rows[:, 3] = 0
    matrix = np.full((16, 4), 1.0, np.float32)
    new, mask = prune_matrix(matrix, rows.T @ rows, 0.5)
    assert not np.asarray(mask)[3].any() and np.isfinite(np.asarray(new)).all()


class Classifier(nn.Module):
    """A convolution and two matrices."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.relu(nn.Conv(8, (3, 3), strides=2, name="conv")(x.reshape(-1, 8, 8, 1)))
        x = nn.relu(nn.Dense(32, name="hidden")(x.reshape(x.shape[0], -1)))
        return nn.Dense(10, name="out")(x)


def trained() -> tuple[Any, jax.Array, jax.Array]:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    x, y = jnp.asarray(images / 16, jnp.float32), jnp.asarray(labels)
    model = Classifier()
    params, tx = jax.jit(model.init)(jax.random.key(0), x[:1]), optax.adam(3e-3)

    def loss(params: Any) -> jax.Array:
        scores = model.apply(params, x)
        return optax.losses.softmax_cross_entropy_with_integer_labels(scores, y).mean()

    def step(carry: tuple, _: None) -> tuple:
        params, state = carry
        updates, state = tx.update(jax.grad(loss)(params), state)
        return (optax.apply_updates(params, updates), state), None

    params, _ = jax.jit(lambda c: jax.lax.scan(step, c, None, 150)[0])((params, tx.init(params)))
    return params, x, y


@pytest.mark.slow
@pytest.mark.parametrize(
    "structure", [None, pytest.param(sparsity.n_of_m(2, 4), marks=pytest.mark.long)]
)
def test_a_trained_network_loses_less_than_by_magnitude(structure: Any) -> None:
    params, x, y = trained()
    model, where = Classifier(), ("params/hidden/kernel", "params/conv/kernel")
    where = where if structure is None else where[:1]
    density = 0.3 if structure is None else None

    @jax.jit
    def loss(params: Any) -> jax.Array:
        scores = model.apply(params, x)
        return optax.losses.softmax_cross_entropy_with_integer_labels(scores, y).mean()

    result = sparsity.brain_surgeon(
        model.apply, params, x[:400], density=density, structure=structure, where=where
    )
    recipe = sparsity.magnitude_ste(density, structure=structure, distribution="uniform")
    by_size = recipe.initial_masks(jax.random.key(0), params, where)
    for path in where:
        layer = path.split("/")[1]
        mask = result.masks["params"][layer]["kernel"]
        assert int(mask.sum()) == int(by_size["params"][layer]["kernel"].sum())
        assert (np.asarray(result.params["params"][layer]["kernel"])[~np.asarray(mask)] == 0).all()
    before, after = loss(params), loss(result.params)
    plain = loss(sparsity.apply_masks(params, by_size))
    assert after - before < 0.5 * (plain - before)
    assert set(result.errors) == set(where) and all(0 < e < 0.5 for e in result.errors.values())


def test_mistakes() -> None:
    apply, params, x = (lambda p, x: x @ p["w"]), {"w": jnp.ones((6, 4))}, jnp.ones((5, 6))
    for options, message in (
        ({}, "density=None and structure=None; give exactly one"),
        ({"density": 0.0}, "density=0.0"),
        ({"structure": sparsity.n_of_m(2, 4)}, "w: n_of_m.2, 4. does not fit 6 inputs"),
        ({"structure": sparsity.block(2, 2)}, "block.2, 2. cannot be pruned input by input"),
        ({"density": 0.5, "damping": 0.0}, "damping=0.0"),
        ({"density": {"v": 0.5}}, "the pattern 'v' matches none of w"),
    ):
        with pytest.raises(ConfigError, match=message):
            sparsity.brain_surgeon(apply, params, x, **options)
    with pytest.raises(ConfigError, match="n_of_m.2, 4. does not fit 3 inputs"):
        sparsity.wanda(
            lambda p, x: jax.lax.conv(x, p["w"], (1, 1), "SAME"),
            {"w": jnp.ones((8, 3, 2, 2))},
            jnp.ones((4, 3, 5, 5)),
            structure=sparsity.n_of_m(2, 4),
        )
    with pytest.raises(ConfigError, match="w: not used exactly once"):
        sparsity.brain_surgeon(lambda p, x: x @ p["w"] @ p["w"].T, params, x, density=0.5)
