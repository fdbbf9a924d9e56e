"""Every drop rule with every grow rule: exact counts, and the connections that the rules rank."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from marks import slow_ids
from sparsity_reference import first_of_sort, rules_of

from fsjax import sparsity
from fsjax.errors import ConfigError
from fsjax.sparsity import drop, grow, needs, rules, topology, updates
from fsjax.sparsity.rules import Layer

IN, OUT = 6, 5
SIZE = IN * OUT


DROP = rules_of(drop, "fraction")
GROW = rules_of(grow, "dropped") | {"switched": grow.switched(grow.random, grow.gradient)}


def cases() -> tuple[Layer, np.ndarray]:
    """Layers stacked along axis 0, and the fraction of each.

    Continuous and tied values, all zero, densities from one connection to all of them, fractions
    0 and 1.
    """
    rng = np.random.default_rng(0)
    layers, fractions = [], []
    for number in (1, 2, 9, 15, SIZE - 1, SIZE):
        for draw in ("continuous", "tied", "zero"):
            for fraction in (0.0, 0.2, 0.3, 0.5, 1.0):
                mask = (rng.permutation(SIZE) < number).reshape(IN, OUT)
                shapes = {"weight": (IN, OUT), "gradient": (IN, OUT), "similarity": (IN, OUT)}
                shapes |= dict.fromkeys(("hessian_gradient", "momentum", "movement"), (IN, OUT))
                shapes["importance"] = (IN, 1) if len(layers) % 2 else (1, OUT)
                values = {
                    name: {
                        "continuous": rng.normal(size=shape),
                        "tied": rng.integers(-2, 3, shape),
                        "zero": np.zeros(shape),
                    }[draw].astype(np.float32)
                    for name, shape in shapes.items()
                }
                values["similarity"] = np.abs(values["similarity"])
                # Broadcast, so that layers can be stacked; rules accept any of these shapes.
                values["importance"] = np.broadcast_to(np.abs(values["importance"]), (IN, OUT))
                values["weight"] = np.where(mask, values["weight"], 0)
                layers.append(Layer(mask=mask, search=np.array(rng.random() < 0.5), **values))
                fractions.append(np.float32(fraction))
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *layers)
    return stacked, np.array(fractions)


LAYERS, FRACTIONS = cases()
CASES = len(FRACTIONS)


def case(i: int, layers: Layer = LAYERS) -> Layer:
    return jax.tree.map(lambda leaf: leaf[i], layers)


def keys(seed: int) -> jax.Array:
    return jax.random.split(jax.random.key(seed), CASES)


@functools.cache
def dropped_by(name: str) -> np.ndarray:
    """The connections that a drop rule removes in every case."""
    rule = functools.partial(topology.choose_dropped, DROP[name])
    return np.asarray(jax.jit(jax.vmap(rule))(LAYERS, FRACTIONS, keys(1)))


@functools.cache
def rewiring(name: str) -> Callable:
    """``(layers, dropped, keys) -> Rewired`` with a grow rule, for stacked layers."""

    def change(layer: Layer, dropped: jax.Array, key: jax.Array) -> topology.Rewired:
        return topology.rewire(layer, lambda *_: dropped, GROW[name], jnp.float32(0), key)

    return jax.jit(jax.vmap(change))


@pytest.mark.parametrize("drop_name", DROP)
@pytest.mark.parametrize("grow_name", GROW)
def test_number_of_connections_never_changes(drop_name: str, grow_name: str) -> None:
    dropped = dropped_by(drop_name)
    mask, new = (np.asarray(a) for a in rewiring(grow_name)(LAYERS, dropped, keys(2)))
    before = LAYERS.mask
    np.testing.assert_array_equal(mask.sum((1, 2)), before.sum((1, 2)))
    assert not (dropped & ~before).any()  # Only active connections are dropped,
    assert not ((before & ~dropped) & ~mask).any()  # the others stay,
    np.testing.assert_array_equal(new, mask & ~before)  # and new ones were inactive.


def number(fraction: float, active: int) -> int:
    return int(np.floor(float(fraction) * active + 1e-3))


def lowest(scores: np.ndarray, fraction: float, mask: np.ndarray) -> np.ndarray:
    return first_of_sort(scores, number(fraction, int(mask.sum())), mask)


def set_drop(layer: Layer, fraction: float) -> np.ndarray:
    """SET: of the positive weights the smallest, of the negative the largest, and zeros."""
    weight, mask = layer.weight, layer.mask
    dropped = mask & (weight == 0)
    for sign in (1, -1):
        side = mask & (sign * weight > 0)
        dropped |= lowest(sign * weight * layer.importance, fraction, side)
    return dropped


DROP_REFERENCE = {
    "magnitude": lambda layer, f: lowest(np.abs(layer.weight), f, layer.mask),
    "gradient_flow": lambda layer, f: lowest(layer.weight * layer.hessian_gradient, f, layer.mask),
    "magnitude_times_importance": lambda layer, f: lowest(
        np.abs(layer.weight) * layer.importance, f, layer.mask
    ),
    "per_sign": set_drop,
    "lowest_similarity": lambda layer, f: lowest(layer.similarity, f, layer.mask),
    "movement": lambda layer, f: lowest(layer.movement, f, layer.mask),
}


@pytest.mark.parametrize("name", DROP_REFERENCE)
def test_dropped_are_those_the_rule_says(name: str) -> None:
    for i in range(CASES):
        expected = DROP_REFERENCE[name](case(i), FRACTIONS[i])
        np.testing.assert_array_equal(dropped_by(name)[i], expected, err_msg=f"case {i}")


@pytest.mark.parametrize("name", sorted(set(DROP) - {"per_sign"}))
def test_number_of_dropped_is_the_whole_part_of_the_fraction(name: str) -> None:
    active = LAYERS.mask.sum((1, 2))
    expected = [number(f, int(n)) for f, n in zip(FRACTIONS, active, strict=True)]
    np.testing.assert_array_equal(dropped_by(name).sum((1, 2)), expected)


def test_number_to_drop_is_free_of_rounding_errors() -> None:
    tenths = jnp.arange(11) / jnp.float32(10)
    for active in (10, 100, 1000):
        mask = jnp.ones(active, bool)
        numbers = jax.vmap(lambda f, mask=mask: topology.number_to_drop(mask, f))(tenths)
        np.testing.assert_array_equal(numbers, np.arange(11) * active // 10)


def test_per_sign_without_importance_looks_at_weights_alone() -> None:
    layer = case(int(np.flatnonzero(LAYERS.mask.sum((1, 2)) == 15)[2]))._replace(importance=None)
    scores = jax.jit(drop.per_sign)(layer, jnp.float32(0.5), jax.random.key(0))
    expected = set_drop(layer._replace(importance=np.ones((IN, OUT), np.float32)), 0.5)
    np.testing.assert_array_equal(scores, expected)


def neurons_in_order(layer: Layer, dropped: np.ndarray, axis: int) -> np.ndarray:
    """All free connections, sorted by importance of their neuron, neuron and position."""
    importance = layer.importance[:, 0] if axis == 0 else layer.importance[0]
    free = [tuple(c) for c in np.argwhere(~layer.mask | dropped)]
    free.sort(key=lambda c: (-importance[c[axis]], c[axis], c[1 - axis]))
    grown = np.zeros((IN, OUT), bool)
    for c in free[: int(dropped.sum())]:
        grown[c] = True
    return grown


def highest(scores: np.ndarray, layer: Layer, dropped: np.ndarray) -> np.ndarray:
    free = ~layer.mask | dropped
    return first_of_sort(scores, int(dropped.sum()), free, descending=True)


GROW_REFERENCE = {
    "gradient": lambda layer, dropped: highest(np.abs(layer.gradient), layer, dropped),
    "momentum": lambda layer, dropped: highest(np.abs(layer.momentum), layer, dropped),
    "similar": lambda layer, dropped: highest(layer.similarity, layer, dropped),
    "important_inputs": functools.partial(neurons_in_order, axis=0),
    "important_outputs": functools.partial(neurons_in_order, axis=1),
}


@pytest.mark.parametrize("name", GROW_REFERENCE)
@pytest.mark.parametrize("drop_name", ["magnitude", "random"])
def test_grown_are_those_the_rule_says(name: str, drop_name: str) -> None:
    dropped = dropped_by(drop_name)
    masks = rewiring(name)(LAYERS, dropped, keys(3)).mask
    for i in range(CASES):
        layer = case(i)
        expected = (layer.mask & ~dropped[i]) | GROW_REFERENCE[name](layer, dropped[i])
        np.testing.assert_array_equal(masks[i], expected, err_msg=f"case {i}")


@pytest.mark.parametrize("name", ["important_inputs", "important_outputs"])
def test_many_neurons_are_sorted_to_the_same_order(name: str, monkeypatch) -> None:
    dropped = dropped_by("magnitude")
    numbers = np.argsort(dropped.sum((1, 2)))[-12:]
    layers = [case(number) for number in numbers]
    if name == "important_outputs":
        layers = [layer._replace(importance=layer.importance[:OUT].T) for layer in layers]
    choices = []
    for most in (OUT - 1, IN):
        monkeypatch.setattr(grow, "MAX_COMPARED", most)
        choose = jax.jit(lambda *inputs: getattr(grow, name)(*inputs, jax.random.key(0)))
        choices.append([choose(*of) for of in zip(layers, dropped[numbers], strict=True)])
    chex.assert_trees_all_equal(*choices)
    assert [choice.sum() for choice in choices[0]] == dropped[numbers].sum((1, 2)).tolist()
    assert dropped[numbers].sum((1, 2)).min() > 4


@pytest.mark.parametrize(("name", "sign"), [("similar_or_random", 1), ("dissimilar_or_random", -1)])
def test_rejected_similar_connections_are_replaced_at_random(name: str, sign: int) -> None:
    dropped = dropped_by("lowest_similarity")
    draws = [np.asarray(rewiring(name)(LAYERS, dropped, keys(seed)).mask) for seed in range(20, 30)]
    rejections = 0
    for i in range(CASES):
        layer = case(i)
        picks = highest(sign * layer.similarity, layer, dropped[i])
        kept = layer.mask & ~dropped[i]
        certain = kept | (picks & ~dropped[i])
        rejected = int((picks & dropped[i]).sum())
        for mask in draws:
            assert not (certain & ~mask[i]).any()
            assert int((mask[i] & ~certain).sum()) == rejected
        anywhere = int((~certain).sum())
        if 0 < rejected < anywhere:
            rejections += 1
            # Not the rejected connections, but others, which differ between draws.
            assert len({mask[i].tobytes() for mask in draws}) > 1
    assert rejections > 5


def test_switched_follows_search() -> None:
    dropped = dropped_by("magnitude")
    by_gradient = np.asarray(rewiring("gradient")(LAYERS, dropped, keys(4)).mask)
    at_random = np.asarray(rewiring("random")(LAYERS, dropped, keys(4)).mask)
    masks = np.asarray(rewiring("switched")(LAYERS, dropped, keys(4)).mask)
    expected = np.where(LAYERS.search[:, None, None], by_gradient, at_random)
    np.testing.assert_array_equal(masks, expected)
    assert (by_gradient != at_random).any()


def permuted(array: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return array if array.ndim < 3 else array[:, rows][:, :, columns]


def untied(layers: Layer) -> Layer:
    """The same layers without ties."""
    rng = np.random.default_rng(5)

    def distinct(shape: tuple[int, ...]) -> np.ndarray:
        return rng.permuted(np.tile(np.arange(1, np.prod(shape) + 1), (CASES, 1)), axis=1).reshape(
            CASES, *shape
        )

    weight = distinct((IN, OUT)) * rng.choice([-1, 1], (CASES, IN, OUT))
    return layers._replace(
        weight=np.where(layers.mask, weight, 0).astype(np.float32),
        gradient=distinct((IN, OUT)).astype(np.float32),
        similarity=distinct((IN, OUT)).astype(np.float32),
        importance=np.broadcast_to(distinct((IN, 1)), (CASES, IN, OUT)).astype(np.float32),
        hessian_gradient=np.full((CASES, IN, OUT), 2, np.float32),
        momentum=distinct((IN, OUT)).astype(np.float32),
        movement=distinct((IN, OUT)).astype(np.float32),
    )


ROWS, COLUMNS = (np.random.default_rng(6).permutation(n) for n in (IN, OUT))


@pytest.mark.parametrize("name", sorted(DROP_REFERENCE))
def test_order_of_neurons_does_not_matter_to_drop(name: str) -> None:
    layers = untied(LAYERS)
    if name == "magnitude_times_importance":  # Powers of 2, so that no products tie.
        powers = np.broadcast_to(2.0 ** (5 * np.arange(IN))[:, None], (CASES, IN, OUT))
        layers = layers._replace(importance=powers.astype(np.float32))
    rule = jax.jit(jax.vmap(functools.partial(topology.choose_dropped, DROP[name])))
    if name == "per_sign":
        layers = layers._replace(importance=np.ones((CASES, IN, OUT), np.float32))
    choices = np.asarray(rule(layers, FRACTIONS, keys(7)))
    moved = jax.tree.map(lambda leaf: permuted(leaf, ROWS, COLUMNS), layers)
    np.testing.assert_array_equal(rule(moved, FRACTIONS, keys(7)), permuted(choices, ROWS, COLUMNS))


@pytest.mark.parametrize("name", sorted(GROW_REFERENCE))
def test_order_of_neurons_does_not_matter_to_grow(name: str) -> None:
    # In the last neuron that gets connections, ties are broken by position.
    rows = np.arange(IN) if name == "important_outputs" else ROWS
    columns = np.arange(OUT) if name == "important_inputs" else COLUMNS
    layers = untied(LAYERS)
    if name == "important_outputs":
        importance = np.broadcast_to(
            layers.importance[:, :OUT, :1].transpose(0, 2, 1), (CASES, IN, OUT)
        )
        layers = layers._replace(importance=importance)
    dropped = dropped_by("random")
    masks = np.asarray(rewiring(name)(layers, dropped, keys(8)).mask)
    moved = jax.tree.map(lambda leaf: permuted(leaf, rows, columns), layers)
    again = rewiring(name)(moved, permuted(dropped, rows, columns), keys(8)).mask
    np.testing.assert_array_equal(again, permuted(masks, rows, columns))


@slow_ids("magnitude-gradient")
@slow_ids("per_sign-random")
@pytest.mark.parametrize(
    ("drop_name", "grow_name"),
    [("magnitude", "gradient"), ("per_sign", "random"), ("random", "similar_or_random")],
)
def test_rewire_alone_equals_rewire_in_a_batch(drop_name: str, grow_name: str) -> None:
    def change(layer: Layer, fraction: jax.Array, key: jax.Array) -> topology.Rewired:
        return topology.rewire(layer, DROP[drop_name], GROW[grow_name], fraction, key)

    alone = jax.jit(change)
    together = jax.jit(jax.vmap(change))(LAYERS, FRACTIONS, keys(9))
    for i in range(0, CASES, 7):
        result = alone(case(i), FRACTIONS[i], keys(9)[i])
        chex.assert_trees_all_equal(result, jax.tree.map(lambda leaf, i=i: leaf[i], together))
    assert alone._cache_size() == 1  # Fractions and masks are traced.


def test_convolution_kernels_are_rewired(key: jax.Array) -> None:
    shape = (3, 3, 2, 4)
    key_mask, key_weight, key_rewire = jax.random.split(key, 3)
    mask = jax.random.bernoulli(key_mask, 0.3, shape)
    weight = jnp.where(mask, jax.random.normal(key_weight, shape), 0)
    layer = Layer(weight, mask, gradient=jnp.arange(72.0).reshape(shape))
    rewired = jax.jit(
        lambda layer, key: topology.rewire(layer, drop.magnitude, grow.gradient, 0.5, key)
    )(layer, key_rewire)
    assert rewired.mask.shape == shape and int(rewired.mask.sum()) == int(mask.sum())


PARAMS = {
    f"layer_{number}": {"kernel": jnp.full((3, 4), 1.0 + number), "bias": jnp.ones(4)}
    for number in range(11)
}
FULL = jax.tree.map(lambda leaf: jnp.ones(leaf.shape, bool), PARAMS)


def change(grow_rule: rules.GrowRule | None, **fields: Any) -> topology.Changed:
    """Drops a random half of the connections of every layer."""
    recipe = sparsity.Recipe(density=1.0, drop=drop.random, grow=grow_rule, fraction=0.5)
    layers = updates.layers_of(PARAMS, FULL, **fields)
    return recipe.change(PARAMS, FULL, layers, jax.random.key(0))


def test_without_a_grow_rule_the_counts_fall() -> None:
    changed = change(None)
    for name, layer in changed.masks.items():
        assert int(layer["kernel"].sum()) == 6 and layer["bias"].all()
        kept, weight = changed.kept[name], changed.params[name]["kernel"]
        chex.assert_trees_all_equal(kept["kernel"], layer["kernel"])
        np.testing.assert_array_equal(weight != 0, layer["kernel"])
        chex.assert_trees_all_equal(changed.params[name]["bias"], PARAMS[name]["bias"])
    # Each layer draws by itself.
    assert len({np.asarray(layer["kernel"]).tobytes() for layer in changed.masks.values()}) > 5


def test_rules_see_the_number_of_their_layer_and_the_state() -> None:
    seen = []

    @sparsity.may_shrink
    def rule(layer: Layer, dropped: jax.Array, key: jax.Array) -> jax.Array:
        del key
        seen.append((layer.number, float(layer.weight.max()), layer.state))
        # Only the first layer grows.
        return dropped & (layer.number == 0)

    changed = change(rule, state="of the method")
    # In the order of the network, not in alphabetical order: layer_10 is the last one.
    assert sorted(seen) == [(i, 1.0 + i, "of the method") for i in range(11)]
    counts = [int(layer["kernel"].sum()) for layer in changed.masks.values()]
    assert sorted(counts) == [6] * 10 + [12]
    assert int(changed.masks["layer_0"]["kernel"].sum()) == 12


#: What rules may return, for example NaN, infinities, and marks where they must not be.
RETURNED = {
    "all": np.ones((CASES, IN, OUT), bool),
    "none": np.zeros((CASES, IN, OUT), bool),
    "some": np.random.default_rng(8).random((CASES, IN, OUT)) < 0.5,
    "NaN": np.full((CASES, IN, OUT), np.nan, np.float32),
    "infinite": np.random.default_rng(9).choice([-np.inf, np.nan, 0, 1, np.inf], LAYERS.mask.shape),
    "half precision": np.zeros((CASES, IN, OUT), np.float16),
}


@jax.jit
@jax.vmap
def changed(layer: Layer, fraction: jax.Array, key: jax.Array, *returned: jax.Array) -> jax.Array:
    """The mask after a change by rules that return the given arrays."""
    rules = (lambda *_, picks=picks: picks for picks in returned)
    return topology.rewire(layer, *rules, fraction, key).mask


@pytest.mark.parametrize("dropping", RETURNED)
def test_whatever_rules_return_the_number_of_connections_stays(dropping: str) -> None:
    for growing in RETURNED.values():
        mask = changed(LAYERS, FRACTIONS, keys(10), RETURNED[dropping], growing)
        np.testing.assert_array_equal(mask.sum((1, 2)), LAYERS.mask.sum((1, 2)))


def test_what_a_choice_has_too_many_or_too_few_goes_by_position() -> None:
    mask = np.asarray([[True, True, False, False], [False, True, False, False]])
    layer = Layer(jnp.where(mask, 1.0, 0.0), jnp.asarray(mask))
    dropped = jnp.asarray([[True, False, False, False], [False, True, False, False]])

    def grown(*places: tuple[int, int]) -> list[tuple[int, ...]]:
        choice = jnp.zeros((2, 4), bool).at[tuple(np.transpose(places))].set(True)
        return [tuple(place) for place in np.argwhere(choose(choice)).tolist()]

    choose = jax.jit(lambda choice: topology.choose_grown(lambda *_: choice, layer, dropped, None))

    assert grown((0, 1), (0, 3), (1, 0), (1, 3)) == [(0, 3), (1, 0)]  # (0, 1) is there.
    assert grown((1, 3)) == [(0, 0), (1, 3)]
    dropped = topology.choose_dropped(lambda *_: ~layer.mask, layer, 0.5, None)
    assert not dropped.any()


@bad_calls(
    (np.ones(OUT, bool), "shape (5,)", "shape (6, 5)"),
    (np.ones((IN, OUT), int), "int64", "bool"),
    (np.ones((IN, OUT), complex), "complex128"),
    (None, "NoneType"),
    (0.5, "returns float"),
)
def test_other_shapes_and_types_are_refused_while_tracing(bad: tuple) -> None:
    def mine(layer: Layer, second: jax.Array, key: jax.Array, power: float = 1.0) -> Any:
        return bad[0]

    # A partial rule is called like its function.
    rule, key = functools.partial(mine, power=2.0), keys(0)[0]
    for kind, pair in (("drop", (rule, grow.random)), ("grow", (drop.magnitude, rule))):
        trace = functools.partial(topology.rewire, case(0), *pair, 0.5)
        refuses(functools.partial(jax.eval_shape, trace, key), f"the {kind} rule mine", *bad[1:])


def test_marks_of_a_rule_are_those_of_its_function() -> None:
    @needs("gradient")
    @sparsity.may_shrink
    def mine(layer: Layer, dropped: jax.Array, key: jax.Array, power: float) -> jax.Array:
        return dropped & (layer.gradient**power > 0)

    rule = rules.as_rule(functools.partial(mine, power=2.0))
    assert rule.name == "mine" and rule.needs == {"gradient"} and rule.may_shrink
    assert grow.switched(grow.random, rule).may_shrink
    assert not grow.switched(grow.random, grow.similar).may_shrink
    with pytest.raises(ConfigError, match="needs='gradeint': did you mean 'gradient'"):
        needs("gradeint")


def test_rules_are_values() -> None:
    def mine(layer: Layer, dropped: jax.Array, key: jax.Array) -> jax.Array:
        return layer.weight

    assert rules.as_rule(mine) == rules.as_rule(mine) != rules.as_rule(grow.random)
    assert rules.as_rule(grow.random) is grow.random
    assert pickle.loads(pickle.dumps(grow.random)) is grow.random
    assert sparsity.Recipe(density=0.1, drop=mine).rules == (rules.as_rule(mine), None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        grow.random.may_shrink = True  # type: ignore[misc]
