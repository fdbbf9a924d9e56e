"""What goes wrong in silence in sparse training, and what says so."""

from __future__ import annotations

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from marks import slow_ids
from sklearn.datasets import load_digits

from fsjax import sparsity
from fsjax.errors import ConfigError

LAST = sparsity.one_shot(10)


def network(seed: int = 0) -> dict[str, Any]:
    keys = jax.random.split(jax.random.key(seed), 2)
    return {"a": jax.random.normal(keys[0], (20, 30)), "b": jax.random.normal(keys[1], (30, 10))}


def trained(tx: optax.GradientTransformation, steps: int) -> tuple[Any, Any]:
    """Parameters and state after some steps on random gradients."""
    params = network()
    state = jax.jit(tx.init)(params)
    params = sparsity.mask_params(params, state)
    update = jax.jit(tx.update)
    for step in range(steps):
        updates, state = update(network(step + 1), state, params)
        params = optax.apply_updates(params, updates)
    return params, state


def sparse(recipe: sparsity.Recipe) -> optax.GradientTransformationExtraArgs:
    return sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0))


RECIPES = {
    "rigl": sparsity.rigl(0.2, every=2),
    "pruning": sparsity.magnitude(0.2, schedule=sparsity.polynomial(1, 6)),
    "structure": sparsity.rigl(structure=sparsity.n_of_m(2, 5), every=2),
    "straight through": sparsity.magnitude_ste(0.2),
}


@slow_ids("rigl")
@slow_ids("structure")
@pytest.mark.parametrize("name", RECIPES)
def test_nothing_is_wrong_in_ordinary_training(name: str) -> None:
    params, state = trained(sparse(RECIPES[name]), 7)
    sparsity.check(params, state, RECIPES[name], num_steps=8)


WRONG = {
    "a step after the wrapper": (
        optax.chain(sparse(sparsity.rigl(0.2, every=2)), optax.scale(0.5)),
        {},
        "inactive weights that are not 0.*nothing may follow sparse",
    ),
    "no change in time": (
        sparse(sparsity.rigl(0.2, every=100)),
        {"recipe": sparsity.rigl(0.2, every=100), "num_steps": 50},
        "no connection ever changes in 50 steps",
    ),
    "a fraction of less than a connection": (
        sparse(sparsity.evolutionary(0.02, every=2, fraction=0.05)),
        {"recipe": sparsity.evolutionary(0.02, every=2, fraction=0.05), "num_steps": 50},
        "the fraction of every layer is less than one",
    ),
    "an unfinished schedule": (
        sparse(sparsity.magnitude(0.2, schedule=sparsity.polynomial(1, 50))),
        {
            "recipe": sparsity.magnitude(0.2, schedule=sparsity.polynomial(1, 50)),
            "num_steps": 30,
        },
        "after 30 steps pruning is only 9[0-9]%",
    ),
    "another density": (
        sparse(sparsity.static(0.2)),
        {"recipe": sparsity.static(0.4)},
        "the recipe requires",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case: str) -> None:
    tx, options, problem = WRONG[case]
    # The others show in the recipe and the initial masks.
    params, state = trained(tx, 5 if case == "a step after the wrapper" else 0)
    with pytest.raises(ConfigError, match=problem):
        sparsity.check(params, state, **options)


def steps_to(end: float) -> sparsity.Recipe:
    """Linear pruning in changes every 4 steps."""
    return sparsity.magnitude(0.2, schedule=lambda step: jnp.minimum(step / end, 1.0), every=4)


SKIPPED = {
    "one shot": sparsity.magnitude(0.2, schedule=sparsity.one_shot(1)),
    "all layers": sparsity.global_magnitude(0.2, schedule=sparsity.one_shot(1)),
    "structure": sparsity.magnitude(structure=sparsity.n_of_m(2, 5), schedule=sparsity.one_shot(1)),
}


@pytest.mark.parametrize("name", SKIPPED)
def test_a_change_that_did_not_take_place_is_named(name: str) -> None:
    params, tx = network(), sparse(SKIPPED[name])
    infinite = jax.tree.map(lambda leaf: leaf * jnp.nan, params)
    _, state = jax.jit(tx.update)(infinite, tx.init(params), params)
    place = "all layers" if name == "all layers" else "a"
    with pytest.raises(ConfigError, match=f"{place}: the mask has .* active.*not finite"):
        sparsity.check(params, state, SKIPPED[name])


def test_too_few_connections_at_the_end_are_not_put_down_to_a_skipped_change() -> None:
    masks = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, bool), network())
    masks["a"] = masks["a"].at[1:].set(False)
    recipe = sparsity.magnitude(0.2, schedule=sparsity.one_shot(1))
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0), masks=masks)
    _, state = jax.jit(tx.update)(network(), tx.init(network()), network())
    params = sparsity.mask_params(network(), state)
    with pytest.raises(ConfigError, match="a: the mask has 30 active.*masks of the same recipe$"):
        sparsity.check(params, state, recipe)


def test_the_last_change_before_the_end_counts() -> None:
    params = network()
    state = sparse(steps_to(7)).init(params)
    with pytest.raises(ConfigError, match="after 7 steps pruning is only 57% of its way"):
        sparsity.check(params, state, steps_to(7), num_steps=7)
    sparsity.check(params, state, steps_to(8), num_steps=8)


FEWER = {
    "pruning": sparsity.magnitude(0.9, schedule=sparsity.polynomial(2, 20)),
    "all layers": sparsity.global_magnitude(0.9, schedule=sparsity.polynomial(2, 20)),
    "straight through": sparsity.magnitude_ste(0.9),
}


@pytest.mark.parametrize("name", FEWER)
def test_masks_that_a_recipe_cannot_have_are_refused(name: str) -> None:
    recipe = FEWER[name]
    state = sparse(recipe).init(network())
    rows = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, bool).at[0].set(True), network())
    with pytest.raises(ConfigError, match="active connections, but the recipe requires"):
        sparsity.with_masks(state, rows, recipe)
    sparsity.with_masks(state, sparsity.masks_of(state), recipe)
    if name == "straight through":
        with pytest.raises(ConfigError, match="the recipe requires [0-9]"):
            sparsity.check(network(), sparsity.with_masks(state, rows), recipe)


def test_all_problems_are_listed() -> None:
    params, state = trained(sparse(sparsity.static(0.2)), 1)
    masks = {**sparsity.masks_of(state), "b": jnp.zeros((30, 10), bool)}
    params["a"] = jnp.full((20, 30), jnp.nan)
    with pytest.raises(ConfigError) as error:
        sparsity.check(params, sparsity.with_masks(state, masks))
    lines = str(error.value).splitlines()
    assert lines[0] == "4 problems:"
    assert [line.split(" has ")[0] for line in lines[1:]] == ["a", "a", "b", "b"]


NEVER = {
    "an end before the first change": lambda: sparsity.rigl(0.2, every=100, end_step=50),
    "a period that ends at its change": lambda: sparsity.periodic(20, start=100, end=120),
}


@pytest.mark.parametrize("case", NEVER)
def test_schedules_without_a_change_are_refused(case: str) -> None:
    with pytest.raises(ConfigError, match="no change comes before end"):
        NEVER[case]()


def test_a_pattern_behind_one_that_matches_the_same_is_refused() -> None:
    recipe = sparsity.static({"*": 0.5, "a": 0.1})
    with pytest.raises(ConfigError, match=r"'a' has no effect, as '\*' before it"):
        sparse(recipe).init(network())
    sparse(sparsity.static({"a": 0.1, "*": 0.5})).init(network())


def test_scores_are_no_masks() -> None:
    (params, state), x = trained(sparse(sparsity.static(0.2)), 0), jnp.ones((1, 20))
    scores = jax.tree.map(jnp.abs, params)
    for call in (
        lambda: sparsity.with_masks(state, scores),
        lambda: sparsity.apply_masks(params, scores),
        lambda: sparsity.sparsity(scores),
        lambda: sparsity.count_active(scores),
        lambda: sparsity.summarize(params, scores),
        lambda: sparsity.to_numpy(params, scores),
        lambda: sparsity.overlap(sparsity.masks_of(state), scores),
        lambda: sparsity.shrink(lambda p, x: x @ p["a"] @ p["b"], params, x, masks=scores),
    ):
        with pytest.raises(ConfigError, match="the mask of a is float32.*scores > 0"):
            call()
    with pytest.raises(ConfigError, match=r"the mask is float32"):
        sparsity.degrees(scores["a"])
    masks = sparsity.masks_of(state)
    sparsity.with_masks(state, jax.tree.map(lambda mask: mask.astype(jnp.uint8), masks))
    packed = sparsity.to_numpy(params, sparsity.pack(masks))
    chex.assert_trees_all_equal(packed, sparsity.to_numpy(params, masks))


def test_states_of_networks_with_outputs_first_are_right() -> None:
    recipe = sparsity.static(structure=sparsity.n_of_m(2, 4))
    params = {"w": jnp.ones((6, 8))}
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(0), output_first=True)
    state = tx.init(params)
    params, masks = sparsity.mask_params(params, state), sparsity.masks_of(state)
    sparsity.check(params, state, recipe, output_first=True)
    sparsity.with_masks(state, masks, recipe, output_first=True)
    table = sparsity.summarize(params, masks, output_first=True)
    assert table.loc["w", "structure"] == "2:4"
    options = {"structure": sparsity.fan_in(), "output_first": True}
    ticket = next(sparsity.lottery_tickets(lambda params, _: params, params, [0.25], **options))
    assert (ticket.masks["w"].sum(1) == 2).all()


def test_arrays_that_would_be_lost_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"two parameters have the path a\.b"):
        sparsity.to_numpy({"a.b": jnp.ones(2), "a": {"b": jnp.ones(2)}})
    like = {"n": jnp.zeros(2, jnp.int8)}
    for lost in (np.asarray([1.7, 0.0]), np.asarray([300, 0])):
        with pytest.raises(ConfigError, match="n is .*int8"):
            sparsity.from_numpy({"n": lost}, like)
    rounded = sparsity.from_numpy({"n": np.asarray([0.1])}, {"n": jnp.zeros(1, jnp.bfloat16)})
    assert rounded["n"].dtype == jnp.bfloat16


def test_parameters_of_another_optimiser_stay() -> None:
    tx = optax.multi_transform(
        {"sparse": sparse(sparsity.rigl(0.2, every=2)), "frozen": optax.set_to_zero()},
        {"a": "sparse", "b": "frozen"},
    )
    params, state = trained(tx, 3)
    np.testing.assert_array_equal(params["b"], network()["b"])
    assert int((params["a"] != 0).sum()) <= sparsity.rigl(0.2).counts([(20, 30)])[0]
    forward = sparsity.forward_params(params, state)
    np.testing.assert_array_equal(forward["b"], params["b"])


def test_a_pruned_network_that_gets_other_connections_is_named() -> None:
    pruned, state = trained(sparse(sparsity.magnitude(0.2, schedule=sparsity.one_shot(1))), 2)
    new = sparse(sparsity.static(0.2)).init(pruned)
    with pytest.warns(UserWarning, match=r"[ab] is sparse already, .* lost; keep .* with_masks"):
        sparsity.mask_params(pruned, new)
    # No warning, which would be an error here: the connections of the pruned network.
    masked = sparsity.mask_params(pruned, sparsity.with_masks(new, sparsity.masks_of(state)))
    np.testing.assert_array_equal(masked["a"], pruned["a"])


def head_accuracy(masks: Any, params: Any, data: tuple[jax.Array, jax.Array]) -> float:
    """Training accuracy of a network of one hidden layer with fixed masks."""
    x, y = data

    def outputs(params: Any) -> jax.Array:
        return jnp.tanh(x @ params["a"]) @ params["b"]

    def loss(params: Any) -> jax.Array:
        logits = outputs(sparsity.apply_masks(params, masks))
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    tx = optax.adam(3e-2)

    def step(carry: Any, _: None) -> tuple[Any, None]:
        params, state = carry
        updates, state = tx.update(jax.grad(loss)(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    (params, _), _ = jax.lax.scan(step, (params, tx.init(params)), length=60)
    predicted = outputs(sparsity.apply_masks(params, masks)).argmax(-1)
    return float((predicted == y).mean())


@pytest.mark.slow
def test_snip_keeps_a_head_that_starts_at_zero() -> None:
    rows, labels = load_digits(return_X_y=True)
    data = jnp.asarray(rows[:500] / 16, jnp.float32), jnp.asarray(labels[:500])

    def loss(params: Any) -> jax.Array:
        logits = jnp.tanh(data[0] @ params["a"]) @ params["b"]
        return optax.softmax_cross_entropy_with_integer_labels(logits, data[1]).mean()

    accuracies = []
    for head in (jnp.zeros((64, 10)), 0.1 * jax.random.normal(jax.random.key(1), (64, 10))):
        # Behind a head of zeros the gradients of the first layer are 0 too.
        params = {"a": 0.2 * jax.random.normal(jax.random.key(0), (64, 64)), "b": head}
        # The gradient of the first layer is 0 behind a head of zeros: both cannot be ranked.
        masks = sparsity.snip_masks(
            params,
            jax.grad(loss)(params),
            lambda shapes: sparsity.uniform_counts(shapes, 0.2),
            scope="global",
        )
        counts = [int(mask.sum()) for mask in jax.tree.leaves(masks)]
        assert min(counts) > 0 and sum(counts) == 819 + 128
        accuracies.append(head_accuracy(masks, params, data))
    assert accuracies[1] > 0.9 and accuracies[0] > accuracies[1] - 0.1


@pytest.mark.parametrize("head", [0.0, 1.0])
def test_the_recipe_of_snip_ranks_a_head_that_starts_at_zero_apart(head: float) -> None:
    params, gradients = network(), network(1)
    # Behind a head of zeros the gradients of the first layer are 0 too.
    params["b"], gradients["a"] = head * params["b"], head * gradients["a"]
    recipe = sparsity.snip(0.2)
    tx = sparse(recipe)
    _, state = jax.jit(tx.update)(gradients, tx.init(params), params)
    masks, counts = sparsity.masks_of(state), recipe.counts([(20, 30), (30, 10)])
    num_active = [int(masks[name].sum()) for name in ("a", "b")]
    assert sum(num_active) == sum(counts) and (num_active == counts) == (head == 0)
    if head == 0:
        for name, size in (("a", params["a"]), ("b", gradients["b"])):
            sizes, mask = np.abs(size), np.asarray(masks[name])
            assert sizes[mask].min() > sizes[~mask].max()


@pytest.mark.slow
def test_brain_surgeon_refuses_what_it_cannot_prune() -> None:
    params, rows = network(), jax.random.normal(jax.random.key(3), (50, 20))

    def apply(params: Any, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ params["a"]) @ params["b"]

    with pytest.raises(ConfigError, match="the inputs of a hold numbers that are not finite"):
        sparsity.brain_surgeon(apply, params, rows.at[0, 0].set(jnp.nan), density=0.5)

    def stacked(params: Any, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, params["w"])[0] @ params["b"]

    layers = {"w": jnp.ones((3, 20, 20)), "b": jnp.ones((20, 5))}
    with pytest.raises(ConfigError, match="w: not used exactly once, outside of loops"):
        sparsity.brain_surgeon(stacked, layers, rows, density=0.5)

    def looked_up(params: Any, x: jax.Array) -> jax.Array:
        return x @ params["b"] + params["b"][0]

    with pytest.raises(ConfigError, match="b: not used exactly once"):
        sparsity.brain_surgeon(looked_up, {"b": layers["b"]}, rows, density=0.5)
    assert (
        not sparsity.brain_surgeon(stacked, layers, rows, density=0.5, where="b").masks["b"].all()
    )


def test_brain_surgeon_leaves_out_what_is_no_kernel() -> None:
    params = {"w": jnp.ones((20, 5)), "gain": jnp.ones((50, 20))}
    rows = jax.random.normal(jax.random.key(3), (50, 20))

    def apply(params: Any, x: jax.Array) -> jax.Array:
        return (x * params["gain"]) @ params["w"]

    with pytest.raises(ConfigError, match="gain: not used exactly once"):
        sparsity.brain_surgeon(apply, params, rows, density=0.5)
    axes = sparsity.axes(apply, params, rows)
    pruned = sparsity.brain_surgeon(apply, params, rows, density=0.5, axes=axes)
    assert pruned.masks["gain"].all() and pruned.masks["w"].sum() == 50
