"""Pruning by schedules, straight-through training, densities by path, masks before training.

Covers ``fsjax.sparsity.schedules``, ``fsjax.sparsity.masks``, ``fsjax.sparsity.topology``,
``fsjax.sparsity.pruning_at_init``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from bad_calls import bad_calls, refuses
from marks import slow_ids

from fsjax import sparsity
from fsjax.sparsity import drop
from fsjax.sparsity.structures import n_of_m

PARAMS = {
    "first": {"bias": jnp.ones(8), "kernel": jax.random.normal(jax.random.key(0), (12, 8))},
    "second": {"bias": jnp.ones(4), "kernel": jax.random.normal(jax.random.key(1), (8, 4)) / 9},
}
SIZES = (96, 32)


def gradient(params: Any, step: jax.Array) -> Any:
    """The gradient of a quadratic loss whose minimum moves."""
    return jax.tree.map(
        lambda p: p - 0.3 * jnp.cos(step + jnp.arange(p.size)).reshape(p.shape), params
    )


def train(recipe: sparsity.Recipe, steps: int, where: Any = sparsity.is_kernel) -> tuple[Any, Any]:
    """Parameters and masks after every step, stacked, from step 1."""
    tx = sparsity.sparse(optax.adam(0.01), recipe, jax.random.key(5), where)

    def step(carry: tuple, number: jax.Array) -> tuple:
        params, state = carry
        updates, state = tx.update(gradient(params, number), state, params)
        params = optax.apply_updates(params, updates)
        return (params, state), (params, state.masks)

    start = (PARAMS, tx.init(PARAMS))
    return jax.jit(lambda carry: jax.lax.scan(step, carry, jnp.arange(1, steps + 1))[1])(start)


def actives(masks: Any) -> np.ndarray:
    """Active connections after every step, ``(steps, 2)``."""
    return np.stack([masks[name]["kernel"].sum((1, 2)) for name in ("first", "second")], axis=1)


@slow_ids("magnitude")
@slow_ids("saliency")
@pytest.mark.parametrize("build", [sparsity.magnitude, sparsity.saliency])
def test_cubic_pruning_follows_its_schedule_and_ends_exactly(build: Callable) -> None:
    schedule = sparsity.polynomial(10, 47, every=5)
    recipe = build(0.1, schedule=schedule, distribution="uniform")
    params, masks = train(recipe, 60)
    active = actives(masks)
    final = np.array(recipe.counts([(12, 8), (8, 4)]))
    assert final.tolist() == [10, 3]
    for step in range(1, 61):
        newest = 47 if step >= 47 else 10 + (max(step - 10, 0) // 5) * 5
        way = 1 - (1 - np.clip((newest - 10) / 37, 0, 1)) ** 3
        expected = np.array(SIZES) - np.floor(way * (np.array(SIZES) - final) + 1e-3)
        assert active[step - 1].tolist() == expected.tolist(), step
    assert active[-1].tolist() == [10, 3]
    for name in PARAMS:
        kernel, mask = params[name]["kernel"], masks[name]["kernel"]
        assert (np.asarray(kernel)[~np.asarray(mask)] == 0).all()
        # Pruned connections never return.
        assert (~mask[:-1] & mask[1:]).sum() == 0


def test_magnitude_pruning_keeps_the_largest() -> None:
    recipe = sparsity.magnitude(0.25, schedule=sparsity.one_shot(7), distribution="uniform")
    params, masks = train(recipe, 8)
    assert actives(masks)[5].tolist() == [96, 32]
    for name in PARAMS:
        before = np.abs(np.asarray(params[name]["kernel"]))[6]
        kept = np.asarray(masks[name]["kernel"])[6]
        # The weights of step 7 are already pruned; the remaining ones exceed those pruned before.
        dense = np.abs(np.asarray(params[name]["kernel"]))[5]
        threshold = np.sort(dense.ravel())[-kept.sum()]
        assert (before[kept] > threshold - 0.03).all()


def test_global_pruning_ranks_the_layers_together() -> None:
    schedule = sparsity.one_shot(1)
    layered = sparsity.magnitude(0.5, schedule=schedule, distribution="uniform")
    together = sparsity.magnitude(0.5, schedule=schedule, distribution="uniform", scope="global")
    assert actives(train(layered, 1)[1])[0].tolist() == [48, 16]
    first, second = actives(train(together, 1)[1])[0]
    # The weights of the second layer are smaller by a factor of nine.
    assert first + second == 64 and second < 8


class At3And7:
    """A schedule of one's own."""

    def is_due(self, step: Any) -> Any:
        return (step == 3) | (step == 7)

    def __call__(self, step: Any) -> Any:
        return jnp.where(step < 7, 0.5, 1.0)


def test_a_schedule_of_ones_own_says_when_changes_are_due() -> None:
    def due(recipe: sparsity.Recipe) -> list[int]:
        return [step for step in range(1, 13) if recipe.is_due(step)]

    recipe = sparsity.magnitude(0.25, schedule=At3And7(), distribution="uniform")
    assert due(recipe) == due(sparsity.rigl(0.1, schedule=At3And7())) == [3, 7]
    active = actives(train(recipe, 8)[1])
    assert active[:, 0].tolist() == [96] * 2 + [60] * 4 + [24] * 2
    timed = sparsity.Recipe(density=0.1, drop=drop.magnitude, schedule=lambda step: 1.0, every=5)
    assert due(sparsity.magnitude(0.1, schedule=timed.times)) == [5, 10]


@slow_ids("structure1")
@slow_ids("None")
@pytest.mark.parametrize("structure", [None, n_of_m(1, 4)])
def test_a_schedule_of_ones_own_prunes_structures(structure: Any) -> None:
    options = {"density": 0.25} if structure is None else {"structure": structure}
    recipe = sparsity.magnitude(
        schedule=lambda step: jnp.minimum(step / 20, 1.0),
        every=4,
        distribution="uniform",
        **options,
    )
    active = actives(train(recipe, 24)[1])
    assert (np.diff(active, axis=0) <= 0).all()
    assert active[-1].tolist() == [24, 8]
    if structure is not None:
        masks = train(recipe, 24)[1]["first"]["kernel"][-1]
        assert (masks.reshape(3, 4, 8).sum(1) == 1).all()


def test_straight_through_trains_all_weights() -> None:
    recipe = sparsity.magnitude_ste(0.25, every=3, distribution="uniform")
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))
    target = jax.tree.map(jnp.ones_like, PARAMS)

    def loss(params: Any, state: Any) -> jax.Array:
        used = sparsity.forward_params(params, state)
        return jnp.asarray(
            optax.tree.sum(jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), used, target))
        )

    slope, update = jax.jit(jax.grad(loss)), jax.jit(tx.update)
    params, state = PARAMS, jax.jit(tx.init)(PARAMS)
    for name, count in (("first", 24), ("second", 8)):
        mask = np.asarray(state.masks[name]["kernel"])
        size = np.abs(np.asarray(PARAMS[name]["kernel"]))
        assert mask.sum() == count and size[mask].min() >= size[~mask].max()
    slopes = slope(params, state)
    # Inactive weights get the gradient at 0.
    inactive = ~np.asarray(state.masks["first"]["kernel"])
    np.testing.assert_allclose(np.asarray(slopes["first"]["kernel"])[inactive], -2.0)
    before = state.masks
    for _ in range(3):
        updates, state = update(slope(params, state), state, params)
        params = jax.tree.map(np.add, params, updates)
    assert (np.asarray(params["first"]["kernel"])[inactive] != 0).all()
    assert (before["first"]["kernel"] != state.masks["first"]["kernel"]).any()
    assert actives(jax.tree.map(lambda x: x[None], state.masks))[0].tolist() == [24, 8]


def test_densities_by_path() -> None:
    recipe = sparsity.static({"first/*": 0.5, "*": 0.25})
    assert actives(train(recipe, 1)[1])[0].tolist() == [48, 8]
    recipe = sparsity.static({"second/kernel": 0.25})
    assert actives(train(recipe, 1)[1])[0].tolist() == [96, 8]


def test_a_density_by_a_function() -> None:
    def wide_layers_first(shapes: Any) -> dict[str, float]:
        return {path: min(1.0, 2.0 / shape[-1]) for path, shape in shapes.items()}

    recipe = sparsity.static(wide_layers_first)
    assert actives(train(recipe, 1)[1])[0].tolist() == [24, 16]


def changes_of_two_layers(recipe: sparsity.Recipe, scales: Any) -> list[list[int]]:
    """Connections of two layers after each change; the second has gradients times these scales."""
    keys = jax.random.split(jax.random.key(0), 2)
    params = {name: jax.random.normal(key, (20, 20)) for name, key in zip("ab", keys, strict=True)}
    params["b"] *= 1e-2
    tx = sparsity.sparse(optax.sgd(0.0), recipe, jax.random.key(0))

    def step(state: Any, scale: Any) -> Any:
        gradients = {"a": scale[0] * jnp.ones((20, 20)), "b": scale[1] * jnp.ones((20, 20))}
        _, state = tx.update(gradients, state, params)
        return state, [mask.sum() for mask in jax.tree.leaves(sparsity.masks_of(state))]

    return np.stack(jax.lax.scan(step, tx.init(params), jnp.asarray(scales))[1], -1).tolist()


def test_global_pruning_in_several_changes_ends_with_all_connections() -> None:
    recipe = sparsity.global_magnitude(0.1, schedule=sparsity.periodic(1))
    changes = changes_of_two_layers(recipe, jnp.ones((3, 2)))
    assert changes == [[80, 0]] * 3 and sum(recipe.counts([(20, 20)] * 2)) == 80


class NearlyAtOnce(At3And7):
    """Nine tenths of the way at the first step, the rest at the second."""

    def is_due(self, step: Any) -> Any:
        return step > 0

    def __call__(self, step: Any) -> Any:
        return jnp.where(step < 2, 0.9, 1.0)


@pytest.mark.parametrize(
    ("scales", "numbers"),
    [
        # A layer whose gradients are 0 keeps its own count, all that it has, or what others lack.
        ([[1.0, 100.0], [1.0, 0.0]], [[111, 113], [80, 80]]),
        ([[1.0, 60.0], [1.0, 0.0]], [[164, 60], [100, 60]]),
        ([[1.0, 150.0], [1.0, 0.0]], [[71, 153], [71, 89]]),
    ],
)
def test_global_pruning_with_a_layer_that_is_not_ranked(scales: Any, numbers: Any) -> None:
    recipe = sparsity.global_saliency(0.2, schedule=NearlyAtOnce())
    assert changes_of_two_layers(recipe, scales) == numbers
    assert recipe.counts([(20, 20)] * 2) == [80, 80]


@pytest.mark.slow
def test_global_pruning_by_a_rule_that_divides_by_the_norm_of_the_layer() -> None:
    keys = jax.random.split(jax.random.key(0), 2)
    params = {name: jax.random.normal(key, (50, 50)) for name, key in zip("ab", keys, strict=True)}
    found = []
    for scale in (1.0, 0.01):
        recipe = sparsity.global_magnitude(
            0.2,
            schedule=sparsity.one_shot(1),
            drop=lambda layer, fraction, key: abs(layer.weight) / jnp.linalg.norm(layer.weight),
        )
        tx = sparsity.sparse(optax.sgd(0.0), recipe, jax.random.key(0))
        scaled = {**params, "b": scale * params["b"]}
        _, state = jax.jit(tx.update)(scaled, tx.init(scaled), scaled)
        found.append([int(mask.sum()) for mask in jax.tree.leaves(sparsity.masks_of(state))])
    assert found[0] == found[1] and sum(found[0]) == 1000 and min(found[0]) > 450


def test_parameters_by_pattern() -> None:
    recipe = sparsity.static(0.25, distribution="uniform")
    masks = train(recipe, 1, where="second/*")[1]
    assert actives(masks)[0].tolist() == [96, 8] and masks["second"]["bias"].all()


@pytest.mark.slow
def test_snip_and_grasp_over_all_layers() -> None:
    @jax.jit
    def loss(params: Any) -> jax.Array:
        hidden = jnp.tanh(jnp.linspace(-1, 1, 24).reshape(2, 12) @ params["first"]["kernel"])
        return jnp.sum((hidden @ params["second"]["kernel"] - 1.0) ** 2)

    counts = sparsity.static(0.25, distribution="uniform").counts
    slopes = jax.jit(jax.grad(loss))(PARAMS)
    masks = sparsity.snip_masks(PARAMS, slopes, counts, scope="global")
    scores = [np.abs(slopes[n]["kernel"] * PARAMS[n]["kernel"]) for n in ("first", "second")]
    threshold = np.sort(np.concatenate([score.ravel() for score in scores]))[-32]
    for name, score in zip(("first", "second"), scores, strict=True):
        np.testing.assert_array_equal(masks[name]["kernel"], score >= threshold)
        assert masks[name]["bias"].all()
    # GraSP keeps the weights whose removal would reduce the gradient norm most, to first order.
    masks = sparsity.grasp_masks(loss, PARAMS, counts)

    def flow(params: Any) -> jax.Array:
        return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(jax.grad(loss)(params)))

    change = jax.tree.map(lambda slope, p: -slope * p, jax.jit(jax.grad(flow))(PARAMS), PARAMS)
    ranked = [np.asarray(change[name]["kernel"]).ravel() for name in ("first", "second")]
    threshold = np.sort(np.concatenate(ranked))[31]
    for name, values in zip(("first", "second"), ranked, strict=True):
        expected = (values <= threshold).reshape(PARAMS[name]["kernel"].shape)
        np.testing.assert_array_equal(masks[name]["kernel"], expected)


@bad_calls(
    (lambda: sparsity.polynomial(10, 10), "starts at step 10 and ends at 10"),
    (lambda: sparsity.polynomial(-1, 10), "start=-1", "whole number, at least 0"),
    (lambda: sparsity.polynomial(2.5, 50), "start=2.5", "whole number"),
    (lambda: sparsity.periodic(10, start=2.5), "start=2.5", "whole number"),
    (lambda: sparsity.one_shot(0), "step=0"),
    (lambda: sparsity.magnitude(0.1, schedule=3), "schedule=3"),
    (
        lambda: sparsity.magnitude(0.1, schedule=sparsity.one_shot(9), grow=sparsity.grow.random),
        "with a grow rule",
    ),
    (lambda: sparsity.rigl(0.1, scope="global"), "scope='global'", "unstructured pruning"),
    (lambda: sparsity.rigl(0.1, scope="all"), "scope='all'"),
    (lambda: train(sparsity.static({"third/*": 0.5}), 1), "'third/*' matches none", "first/kernel"),
    (lambda: sparsity.static({"*": 1.5}), "density of"),
    (
        lambda: train(sparsity.static(0.25), 1, where=("second/*", "third")),
        "'third' matches none of first/bias, first/kernel",
    ),
    (
        lambda: train(
            sparsity.magnitude(0.1, schedule=sparsity.one_shot(2), drop=drop.per_sign), 2
        ),
        "per_sign chooses connections",
    ),
)
def test_mistakes(bad: tuple) -> None:
    refuses(*bad)
