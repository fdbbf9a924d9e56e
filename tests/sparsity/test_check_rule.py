"""Rules of the library keep their contract, and each broken rule fails with its own message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_ids
from sparsity_reference import rules_of

from fsjax.errors import ConfigError
from fsjax.sparsity import (
    Layer,
    drop,
    grow,
    largest,
    may_shrink,
    needs,
    random_subset,
)
from fsjax.sparsity.testing import check_rule

RULES: dict[str, tuple[Callable, dict[str, Any]]] = {
    **{f"drop.{name}": (rule, {}) for name, rule in rules_of(drop, "fraction").items()},
    **{f"grow.{name}": (rule, {}) for name, rule in rules_of(grow, "dropped").items()},
    "switched": (grow.switched(grow.similar, grow.random), {}),
    "kernels": (grow.gradient, {"shape": (3, 3, 2, 4)}),
}
RULES["grow.important_outputs"] = (grow.important_outputs, {"importance": "outputs"})


@slow_ids("grow.dissimilar_or_random", "grow.important_inputs")
@pytest.mark.parametrize("name", RULES)
def test_rules_of_the_library_keep_the_contract(name: str) -> None:
    rule, options = RULES[name]
    check_rule(rule, **options)


def half_as_many(layer: Layer, dropped: jax.Array, key: jax.Array) -> jax.Array:
    wanted = jnp.sum(dropped, dtype=jnp.int32) // 2
    return random_subset(key, wanted, ~layer.mask | dropped)


def test_a_rule_that_may_shrink_grows_fewer() -> None:
    with pytest.raises(AssertionError, match="marks 14 connections where 29 were dropped"):
        check_rule(half_as_many)
    check_rule(may_shrink(lambda layer, dropped, key: half_as_many(layer, dropped, key)))


# Each of these rules breaks the contract in one way.


def everything(layer, dropped, key):
    return jnp.ones(layer.weight.shape, bool)


def too_many(layer, dropped, key):
    return random_subset(key, jnp.sum(dropped) + 1, ~layer.mask | dropped)


def inactive_too(layer, fraction, key):
    return jnp.abs(layer.weight) < fraction


def per_neuron(layer, fraction, key):
    return jnp.sum(jnp.abs(layer.weight), axis=1, keepdims=True)


def integer_scores(layer, dropped, key):
    return jnp.where(layer.mask, 0, 1)


def a_pair(layer, dropped, key):
    return layer.weight, layer.mask


def fixed_key(layer, dropped, key):
    return jax.random.uniform(jax.random.key(0), layer.weight.shape)


def fixed_choice(layer, dropped, key):
    return random_subset(jax.random.key(0), jnp.sum(dropped), ~layer.mask | dropped)


def numpy_numbers(layer, dropped, key):
    return np.random.default_rng().random(layer.weight.shape, np.float32)


def one_key_twice(layer, dropped, key):
    noise = jax.random.normal(key, layer.weight.shape)
    return noise + jax.random.uniform(key, layer.weight.shape)


def in_python(layer, dropped, key):
    return layer.weight if jnp.sum(layer.weight) > 0 else -layer.weight


def undeclared(layer, dropped, key):
    return jnp.abs(layer.gradient)


def returned_undeclared(layer, dropped, key):
    return layer.similarity


def no_number(layer, dropped, key):
    return jnp.where(layer.mask, layer.weight, jnp.nan)


@needs("gradient")
def of_squares(layer, dropped, key):
    return (layer.weight.T @ layer.gradient) @ layer.weight.T


BROKEN = {
    everything: "everything marks 30 connections that are already active",
    too_many: r"too_many marks \d+ connections where \d+ were dropped; mark that many, or return",
    inactive_too: r"inactive_too marks \d+ connections that are not active",
    per_neuron: r"drop rule per_neuron returns the shape \(6, 1\); .* shape \(6, 5\)",
    integer_scores: "grow rule integer_scores returns int32; return floating point .* or bool",
    a_pair: "grow rule a_pair returns tuple; return an array",
    fixed_key: "fixed_key depends on the position of neurons.*draw random numbers from the key",
    fixed_choice: "fixed_choice depends on the position of neurons",
    numpy_numbers: "numpy_numbers returns another result when it is traced again",
    one_key_twice: "one_key_twice uses its key twice; split the key",
    in_python: "in_python raises TracerBoolConversionError under jax.jit",
    undeclared: r"undeclared raises TypeError .*declare with @fsjax.sparsity.needs are None",
    returned_undeclared: r"returned_undeclared returns NoneType; return an array",
    no_number: "no_number returns NaN as the score of connections it may choose",
    of_squares: r"of_squares returns the shape \(5, 6\)",
}


@pytest.mark.parametrize("rule", BROKEN, ids=lambda rule: rule.__name__)
def test_a_broken_rule_fails_with_its_own_message(rule: Callable) -> None:
    with pytest.raises(AssertionError, match=BROKEN[rule]) as failure:
        check_rule(rule)
    assert "\n" not in str(failure.value)


def test_the_second_parameter_tells_the_kind_of_a_rule() -> None:
    def unnamed(layer, _, key):
        return jnp.abs(layer.weight)

    with pytest.raises(ConfigError, match="call its second parameter fraction or dropped, or"):
        check_rule(unnamed)
    check_rule(unnamed, "drop")
    with pytest.raises(ConfigError, match="did you mean 'grow'"):
        check_rule(unnamed, "grows")
    with pytest.raises(ConfigError, match=r"shape=\(3, 3\); choose"):
        check_rule(unnamed, "drop", shape=(3, 3))


def test_positions_may_matter_where_the_caller_says_so() -> None:
    def near_the_diagonal(layer, dropped, key):
        rows, columns = jnp.indices(layer.weight.shape)
        return -jnp.abs(rows - columns).astype(jnp.float32)

    with pytest.raises(AssertionError, match="equivariant=False"):
        check_rule(near_the_diagonal)
    check_rule(near_the_diagonal, equivariant=False)


def test_rules_that_need_the_train_state_get_it() -> None:
    @needs("state")
    def late(layer, dropped, key):
        free = ~layer.mask | dropped
        return largest(layer.weight * layer.state["scale"], jnp.sum(dropped), free)

    with pytest.raises(ConfigError, match="late needs the state; pass state="):
        check_rule(late)
    check_rule(late, state={"scale": 2.0}, equivariant=False)
