"""Sparse training with parameters of several frameworks; packed, sharded and restored masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chex
import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from bad_calls import refuses
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from marks import slow_ids

from fsjax import sparsity

X = jax.random.normal(jax.random.key(0), (32, 8))
Y = X[:, :3] ** 2


class Linen(nn.Module):
    """A network of Flax Linen."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        hidden = nn.relu(nn.Dense(16)(x))
        return nn.Dense(3)(hidden)


class Nnx(nnx.Module):
    """The same network in Flax NNX."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.first = nnx.Linear(8, 16, rngs=rngs)
        self.second = nnx.Linear(16, 3, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.second(nnx.relu(self.first(x)))


def linen() -> tuple[Any, Callable]:
    model = Linen()
    return model.init(jax.random.key(1), X), model.apply


def nnx_split() -> tuple[Any, Callable]:
    graph, params = nnx.split(Nnx(), nnx.Param)
    return params, lambda params, x: nnx.merge(graph, params)(x)


def equinox() -> tuple[Any, Callable]:
    keys = jax.random.split(jax.random.key(1))
    model = eqx.nn.Sequential(
        [
            eqx.nn.Linear(8, 16, key=keys[0]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.Linear(16, 3, key=keys[1]),
        ]
    )
    params, static = eqx.partition(model, eqx.is_array)
    return params, lambda params, x: jax.vmap(eqx.combine(params, static))(x)


def haiku_like() -> tuple[Any, Callable]:
    """Dicts as those of Haiku: ``{"linear": {"w": ..., "b": ...}}``."""
    keys = jax.random.split(jax.random.key(1))
    params = {
        "mlp/~/linear_0": {"w": jax.random.normal(keys[0], (8, 16)) / 3, "b": jnp.zeros(16)},
        "mlp/~/linear_1": {"w": jax.random.normal(keys[1], (16, 3)) / 4, "b": jnp.zeros(3)},
    }

    def apply(params: Any, x: jax.Array) -> jax.Array:
        first, second = params.values()
        return jax.nn.relu(x @ first["w"] + first["b"]) @ second["w"] + second["b"]

    return params, apply


NETWORKS = {"linen": linen, "nnx": nnx_split, "equinox": equinox, "haiku": haiku_like}


def loss_of(apply: Callable) -> Callable[[Any], jax.Array]:
    return lambda params: jnp.mean((apply(params, X) - Y) ** 2)


def train(
    params: Any, apply: Callable, recipe: sparsity.Recipe, steps: int, **options: Any
) -> tuple[Any, Any]:
    tx = sparsity.sparse(optax.adam(0.02), recipe, jax.random.key(3), **options)
    slope = jax.grad(loss_of(apply))

    def step(carry: tuple, _: None) -> tuple:
        params, state = carry
        updates, state = tx.update(slope(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    state = tx.init(params)
    carry = (sparsity.mask_params(params, state), state)
    return jax.jit(lambda carry: jax.lax.scan(step, carry, None, steps)[0])(carry)


def kernels(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if jnp.ndim(leaf) == 2]


@slow_ids("equinox")
@slow_ids("haiku", "linen")
@pytest.mark.parametrize("name", list(NETWORKS))
def test_every_framework_trains_sparsely(name: str) -> None:
    params, apply = NETWORKS[name]()
    recipe = sparsity.rigl(0.5, every=10, distribution="uniform")
    trained, state = train(params, apply, recipe, 155)
    masks = sparsity.masks_of(state)
    assert [mask.sum() for mask in kernels(masks)] == [64, 24]
    for weight, mask in zip(kernels(trained), kernels(masks), strict=True):
        assert (weight[~mask] == 0).all() and (weight[mask] != 0).all()
    start = sparsity.mask_params(
        params, sparsity.sparse(optax.adam(0.02), recipe, jax.random.key(3)).init(params)
    )
    assert loss_of(apply)(trained) < 0.6 * loss_of(apply)(start)
    np.testing.assert_allclose(apply(sparsity.apply_masks(trained, masks), X), apply(trained, X))


def test_the_optimizer_of_nnx_keeps_a_model_sparse() -> None:
    model = Nnx()
    tx = sparsity.sparse(optax.adam(0.02), sparsity.rigl(0.25, every=5), jax.random.key(0))
    optimizer = nnx.Optimizer(model, tx, wrt=nnx.Param)

    @nnx.jit
    def step(model: Nnx, optimizer: nnx.Optimizer) -> None:
        gradients = nnx.grad(lambda model: jnp.mean((model(X) - Y) ** 2))(model)
        optimizer.update(model, gradients)

    for _ in range(12):
        step(model, optimizer)
    masks = sparsity.masks_of(nnx.as_pure(optimizer.opt_state))
    weights = kernels(nnx.as_pure(nnx.state(model, nnx.Param)))
    assert [int((weight != 0).sum()) for weight in weights] == [m.sum() for m in kernels(masks)]
    assert sum(mask.sum() for mask in kernels(masks)) == 44


def test_patterns_name_variables_of_nnx_as_the_pure_tree_does() -> None:
    variables, _ = nnx_split()
    names = sparsity.to_numpy(nnx.as_pure(variables))
    assert "first.kernel" in names
    for end in ("", "/value"):
        by_layer = sparsity.static({f"first/kernel{end}": 0.25, f"second/kernel{end}": 0.5})
        masks = by_layer.initial_masks(jax.random.key(0), variables)
        assert [int(count) for count in sparsity.count_active(masks)] == [16, 32, 3, 24]
        of_one = sparsity.sparse(
            optax.sgd(0.1), sparsity.static(0.25), jax.random.key(0), f"first/kernel{end}"
        )
        active = sparsity.count_active(sparsity.masks_of(of_one.init(variables)))
        assert [int(count) for count in active] == [16, 32, 3, 48]


@pytest.mark.slow
@pytest.mark.parametrize(
    "structure",
    [sparsity.n_of_m(2, 4), sparsity.block(4, 1)],
)
def test_structures_mean_the_same_where_outputs_come_first(structure: Any) -> None:
    """The network of Equinox is that of Linen with transposed kernels."""
    density = {} if structure.fixed_density else {"density": 0.5}
    recipe = sparsity.rigl(structure=structure, every=4, **density)
    params, apply = equinox()
    other, apply_other = linen()
    flat = jax.tree.leaves(params)
    turned = {
        "params": {
            "Dense_0": {"bias": flat[1], "kernel": flat[0].T},
            "Dense_1": {"bias": flat[3], "kernel": flat[2].T},
        }
    }
    chex.assert_trees_all_equal_shapes(turned, other)
    results = [train(params, apply, recipe, 9), train(turned, apply_other, recipe, 9)]
    masks = [kernels(sparsity.masks_of(state)) for _, state in results]
    for first, second in zip(*masks, strict=True):
        np.testing.assert_array_equal(first.T, second)


@pytest.mark.slow
def test_packed_masks_are_the_masks_in_an_eighth_of_the_bytes() -> None:
    params, apply = linen()
    recipe = sparsity.rigl(0.5, every=2)
    plain, packed = (train(params, apply, recipe, 7, packed_masks=on) for on in (False, True))
    # The change of masks computes the optimiser's step a second time inside lax.cond, and XLA fuses
    # the unpacking with it. Weights may therefore differ by rounding; masks are equal.
    chex.assert_trees_all_close(plain[0], packed[0], rtol=1e-6, atol=1e-7)
    chex.assert_trees_all_equal(*(sparsity.masks_of(state) for _, state in (plain, packed)))
    sizes = [sum(leaf.nbytes for leaf in jax.tree.leaves(s.masks)) for _, s in (plain, packed)]
    assert sizes[1] <= sizes[0] / 8 + 4
    changed = sparsity.with_masks(packed[1], sparsity.masks_of(plain[1]))
    chex.assert_trees_all_equal(changed, packed[1])


@pytest.mark.slow
def test_masks_follow_the_sharding_of_their_weights(tmp_path: Any) -> None:
    """The same masks on two devices as on one, also after saving and restoring with Orbax."""
    devices = jax.devices()[:2]
    if len(devices) < 2:
        pytest.skip("needs two devices")
    mesh = Mesh(np.array(devices), ("model",))
    params, apply = linen()
    sharding = jax.tree.map(
        lambda leaf: NamedSharding(
            mesh, PartitionSpec("model") if leaf.shape[0] % 2 == 0 else PartitionSpec()
        ),
        params,
    )
    recipe = sparsity.rigl(0.5, every=2)
    spread = jax.device_put(params, sharding)
    tx = sparsity.sparse(optax.adam(0.02), recipe, jax.random.key(3))
    for mask, leaf in zip(
        jax.tree.leaves(tx.init(spread).masks), jax.tree.leaves(spread), strict=True
    ):
        assert mask.sharding == leaf.sharding
    alone, state = train(params, apply, recipe, 6)
    together, spread_state = train(spread, apply, recipe, 6)
    chex.assert_trees_all_equal(state.masks, jax.device_get(spread_state.masks))
    chex.assert_trees_all_close(alone, jax.device_get(together), rtol=1e-5, atol=1e-6)

    saved = (together, jax.tree.map(lambda leaf: leaf, spread_state._replace(key=0)))
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "run", saved)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(tmp_path / "run", saved)
    chex.assert_trees_all_equal(restored[1].masks, spread_state.masks)


@pytest.mark.slow
def test_masks_of_another_structure_are_refused() -> None:
    params, _ = haiku_like()
    recipe = sparsity.rigl(structure=sparsity.n_of_m(2, 4))
    tx = sparsity.sparse(optax.adam(0.02), recipe, jax.random.key(3))
    state = jax.jit(tx.init)(params)

    def drawn(recipe: sparsity.Recipe) -> Any:
        return jax.jit(recipe.initial_masks)(jax.random.key(5), params)

    others = drawn(sparsity.rigl(0.5))
    place = "mlp/~/linear_0/w: "
    refuses(lambda: sparsity.with_masks(state, others, recipe), place, "n_of_m(2, 4)")
    fewer = drawn(sparsity.static(0.25, distribution="uniform"))
    uniform = sparsity.rigl(0.5, distribution="uniform")
    refuses(lambda: sparsity.with_masks(state, fewer, uniform), place, " 32 ", "64")
    right = drawn(recipe)
    chex.assert_trees_all_equal(sparsity.masks_of(sparsity.with_masks(state, right, recipe)), right)


@pytest.mark.slow
def test_other_layouts_and_biases_of_convolutions() -> None:
    """The bias of a convolution of Equinox has three axes, but is not a kernel."""
    params = eqx.filter(eqx.nn.Conv2d(4, 6, 3, key=jax.random.key(0)), eqx.is_array)
    recipe = sparsity.rigl(structure=sparsity.n_of_m(1, 4), every=1)
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(1))
    state = tx.init(params)
    _, state = tx.update(jax.tree.map(jnp.ones_like, params), state, params)
    masks = sparsity.masks_of(state)
    assert masks.bias.all() and (masks.weight.sum(1) == 1).all()
