"""Structures: exact counts per group, complete units and ties by position, for all rules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow_ids

from fsjax import sparsity
from fsjax.sparsity import Layer, drop, grow, rewire
from fsjax.sparsity.structures import (
    Structure,
    block,
    channel,
    fan_in,
    highest,
    lowest,
    n_of_m,
    unstructured,
)

SHAPE = (12, 8)

STRUCTURES = {
    "unstructured": unstructured(),
    "blocks": block(3, 2),
    "rows": channel(-2),
    "columns": channel(-1),
    "fan_in": fan_in(),
    "fan_in of rows": fan_in(0),
    "2:4": n_of_m(2, 4),
    "1:3": n_of_m(1, 3),
    "2:8 along the outputs": n_of_m(2, 8, axis=-1),
}

#: Rules that return scores.
DROP = (drop.magnitude, drop.random, drop.saliency, drop.magnitude_times_importance)
GROW = (grow.random, grow.gradient, grow.similar)


def by_units(mask: np.ndarray, structure: Structure) -> np.ndarray:
    """The entries of each unit, ``(G, U, E)``, computed without the code under test."""
    rows, columns = mask.shape
    return {
        "unstructured": lambda: mask.reshape(1, -1, 1),
        "blocks": lambda: (
            mask.reshape(rows // 3, 3, columns // 2, 2).swapaxes(1, 2).reshape(1, -1, 6)
        ),
        "rows": lambda: mask[None],
        "columns": lambda: mask.T[None],
        "fan_in": lambda: mask.T[..., None],
        "fan_in of rows": lambda: mask[..., None],
        "2:4": lambda: mask.T.reshape(-1, 4, 1),
        "1:3": lambda: mask.T.reshape(-1, 3, 1),
        "2:8 along the outputs": lambda: mask.reshape(-1, 8, 1),
    }[next(name for name, each in STRUCTURES.items() if each is structure)]()


def layer_of(seed: int, mask: np.ndarray, kind: str) -> Layer:
    """A layer whose weights are random, full of ties, all zero, or not finite."""
    rng = np.random.default_rng(seed)
    draw: dict[str, Callable[[], np.ndarray]] = {
        "normal": lambda: rng.normal(size=SHAPE),
        "ties": lambda: rng.integers(-1, 2, SHAPE),
        "zeros": lambda: np.zeros(SHAPE),
        "broken": lambda: rng.choice([np.nan, np.inf, 1.0], SHAPE),
    }
    fields = [jnp.asarray(draw[kind](), jnp.float32) for _ in range(3)]
    return Layer(
        fields[0] * mask,
        jnp.asarray(mask),
        gradient=fields[1],
        similarity=fields[2],
        importance=jnp.asarray(rng.random((SHAPE[0], 1)), jnp.float32),
    )


def start(structure: Structure, density: float, seed: int) -> np.ndarray:
    options: dict[str, Any] = {} if structure.fixed_density else {"density": density}
    recipe = sparsity.static(structure=structure, **options)
    masks = recipe.initial_masks(jax.random.key(seed), {"kernel": jnp.ones(SHAPE)})
    return np.asarray(masks["kernel"])


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    structure=st.sampled_from(list(STRUCTURES.values())),
    rules=st.tuples(st.sampled_from(DROP), st.sampled_from(GROW)),
    density=st.sampled_from([1e-6, 0.02, 0.3, 0.5, 0.98, 1.0]),
    fraction=st.sampled_from([0.0, 0.3, 0.77, 1.0]),
    kind=st.sampled_from(["normal", "ties", "zeros", "broken"]),
    seed=st.integers(0, 5),
)
def test_counts_are_exact(structure, rules, density, fraction, kind, seed) -> None:
    before = start(structure, density, seed)
    units = by_units(before, structure)
    expected = max(round((structure.fixed_density or density) * units.shape[1]), 1)
    assert (units.all(-1) == units.any(-1)).all()
    assert (units[..., 0].sum(1) == expected).all()
    layer = layer_of(seed, before, kind)
    rewired = rewire(layer, *rules, fraction, jax.random.key(seed), structure)
    after = by_units(np.asarray(rewired.mask), structure)
    assert (after.all(-1) == after.any(-1)).all()
    assert (after[..., 0].sum(1) == expected).all()
    np.testing.assert_array_equal(rewired.new, np.asarray(rewired.mask) & ~before)
    without = rewire(layer, rules[0], None, fraction, jax.random.key(seed), structure).mask
    gone = units[..., 0].sum() - by_units(np.asarray(without), structure)[..., 0].sum()
    assert gone == int(fraction * units[..., 0].sum() + 1e-3)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    groups=st.sampled_from([1, 3]),
    units=st.sampled_from([1, 5, 33, 70]),
    kind=st.sampled_from(["normal", "ties"]),
    count=st.integers(0, 80),
    seed=st.integers(0, 9),
)
def test_lowest_and_highest_are_those_of_a_stable_sort(groups, units, kind, count, seed) -> None:
    rng = np.random.default_rng(seed)
    scores = (
        rng.normal(size=(groups, units))
        if kind == "normal"
        else rng.integers(3, size=(groups, units))
    )
    scores, among = scores.astype(np.float32), rng.random((groups, units)) < 0.7
    for function, sign in ((lowest, 1), (highest, -1)):
        marked = np.asarray(jax.jit(function)(jnp.asarray(scores), count, jnp.asarray(among)))
        for group in range(groups):
            candidates = np.flatnonzero(among[group])
            order = np.argsort(sign * scores[group, candidates], kind="stable")
            assert set(np.flatnonzero(marked[group])) == set(candidates[order[:count]])


@slow_ids("blocks")
@slow_ids("2:8 along the outputs", "columns")
@slow_ids("1:3", "fan_in of rows", "rows", "unstructured")
@pytest.mark.parametrize("name", list(STRUCTURES))
def test_a_vmapped_change_equals_single_changes(name: str) -> None:
    structure = STRUCTURES[name]
    masks = jnp.stack([jnp.asarray(start(structure, 0.4, seed)) for seed in range(3)])
    gradients = jax.random.normal(jax.random.key(1), (3, *SHAPE))

    def keys() -> jax.Array:
        return jax.random.split(jax.random.key(2), 3)

    def change(mask: jax.Array, gradient: jax.Array, key: jax.Array) -> jax.Array:
        layer = Layer(mask * gradient[::-1], mask, gradient=gradient)
        return rewire(layer, drop.magnitude, grow.gradient, 0.5, key, structure).mask

    single, together = jax.jit(change), jax.jit(jax.vmap(change))(masks, gradients, keys())
    for number in range(3):
        alone = single(masks[number], gradients[number], keys()[number])
        np.testing.assert_array_equal(together[number], alone)


@pytest.mark.slow
def test_bfloat16_weights_and_convolutions() -> None:
    """A kernel of 3 x 3 positions: N:M along the input channels, counts per position."""
    params = {"conv": jax.random.normal(jax.random.key(0), (3, 3, 8, 5), jnp.bfloat16)}
    recipe = sparsity.rigl(structure=n_of_m(2, 4), every=1)
    mask = recipe.initial_masks(jax.random.key(1), params)["conv"]
    layer = Layer(params["conv"] * mask, mask, gradient=params["conv"])
    after = rewire(layer, drop.magnitude, grow.gradient, 0.5, jax.random.key(2), n_of_m(2, 4)).mask
    assert (after.reshape(9, 2, 4, 5).sum(2) == 2).all() and (after != mask).any()


def masks_with(structure: Structure) -> Any:
    options: dict[str, Any] = {} if structure.fixed_density else {"density": 0.5}
    recipe = sparsity.static(structure=structure, **options)
    return recipe.initial_masks(jax.random.key(0), {"dense": {"kernel": jnp.ones(SHAPE)}})


@bad_calls(
    (lambda: n_of_m(5, 4), "n_of_m(5, 4): n=5 is larger than m=4"),
    (lambda: n_of_m(0, 4), "n=0"),
    (lambda: block(0, 4), "height=0"),
    (lambda: sparsity.static(0.5, structure=n_of_m(2, 4)), "determines the density"),
    (lambda: sparsity.static(structure=block(2, 2)), "exactly one of the two"),
    (lambda: masks_with(n_of_m(2, 5)), "dense/kernel: n_of_m(2, 5)", "(12, 8)"),
    (lambda: masks_with(block(3, 3)), "dense/kernel: block(3, 3)", "3 does not divide 8"),
    (lambda: masks_with(channel(2)), "dense/kernel: channel(axis=2)", "an axis from -2 to 1"),
)
def test_mistakes_in_a_structure(bad: tuple) -> None:
    refuses(*bad)


@pytest.mark.slow
def test_rules_that_choose_cannot_keep_a_structure() -> None:
    layer = layer_of(0, start(block(3, 2), 0.5, 0), "normal")
    for dropping, growing, structure, words in (
        (drop.per_sign, grow.random, block(3, 2), "drop rule per_sign chooses connections"),
        (drop.magnitude, grow.similar_or_random, fan_in(), "grow rule similar_or_random chooses"),
    ):
        change = functools.partial(rewire, layer, dropping, growing, 0.3)
        refuses(functools.partial(change, jax.random.key(0), structure), words)
