"""Sparse networks stored as lists of connections, compared with the same ones with masks."""

from __future__ import annotations

import functools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from marks import slow_ids
from sparse_network_reference import begun, rows, spec_for

import fsjax
from fsjax.engine.loop import init_state, train_epoch
from fsjax.engine.rows import as_batch
from fsjax.method import TrainState, for_run
from fsjax.methods.shared.layers.network import expand_layers
from fsjax.methods.shared.sparse_network import sparse_network
from fsjax.sparsity import Layer, active_only, drop, grow, needs
from fsjax.sparsity.connections import dense, is_connections

METHODS = {
    "ctre_seq": dict(epsilon=2.0, patience=9, grow_init="zeros"),
    "rigl": dict(epsilon=2.0),
    "static_sparse": dict(epsilon=2.0),
    "set": dict(epsilon=2.0, drop_fraction=0.0),
    "quick_selection": dict(density=0.1, input_noise=0.0, drop_fraction=0.0),
}
SLOW = [pytest.param(name, marks=pytest.mark.long) for name in METHODS if name != "ctre_seq"]
OPTIONS = dict(num_epochs=3, num_features=5, batch_size=20, seeds=(0, 1))


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(90, 40)).astype(np.float32), rng.integers(0, 3, 90)


def method(name: str, form: str) -> fsjax.Method:
    """Two layers held by their connections, and a last one with a mask."""
    return getattr(fsjax.methods, name)(hidden=(32, 24), form=form, **METHODS[name])


def with_masks(held: fsjax.Method, state: TrainState) -> TrainState:
    """A state of connections as one with masks."""
    return expand_layers(state, for_run(held.optimizer, state.spec), 2**20)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ctre_seq", *SLOW])
def test_epochs_are_those_of_masks(name: str) -> None:
    """From the same connections, for rules that draw no random numbers."""
    held, masked = (method(name, form) for form in ("topology", "dense"))
    plan = fsjax.plan(held, table(), **OPTIONS)
    arrays, spec = jax.tree.map(jnp.asarray, plan.prepared.arrays), plan.spec
    everything = as_batch(spec.task, arrays.train)
    start, of_masks = (
        init_state(of, spec, np.uint32(0), everything, jnp.ones(40, bool)) for of in (held, masked)
    )
    equal = with_masks(held, start)
    of_masks = of_masks.replace(params=equal.params, masks=equal.masks, opt_state=equal.opt_state)
    states = (start, of_masks)
    for _ in range(2):
        states = tuple(
            jax.jit(functools.partial(train_epoch, of))(state, arrays)[0]
            for of, state in zip((held, masked), states, strict=True)
        )
    connections, masks = states
    assert is_connections(connections.masks["layer_0"]["kernel"])
    assert not is_connections(connections.masks["layer_2"]["kernel"]) or name == "quick_selection"
    if name in ("ctre_seq", "rigl"):
        assert connections.masks["layer_0"]["kernel"].grown > start.masks["layer_0"]["kernel"].grown
    expected = with_masks(held, connections)
    chex.assert_trees_all_equal(expected.masks, masks.masks)
    chex.assert_trees_all_close(expected.params, masks.params, atol=1e-5)
    chex.assert_trees_all_close(expected.opt_state, masks.opt_state, atol=1e-5)


@pytest.mark.slow
def test_results_of_connections(tmp_path) -> None:
    data = table()
    options = dict(hidden=(32, 24), epsilon=2.0)
    masked, held = (
        fsjax.fit(fsjax.methods.set(form=form, **options), data, **OPTIONS)
        for form in ("dense", "topology")
    )
    where = held.states.masks["layer_0"]["kernel"]
    assert is_connections(where) and where.rows.shape == (2, 144)
    assert held.states.params["layer_0"]["kernel"].shape == (2, 144)
    assert held.cost["params"] == masked.cost["params"]
    assert held.cost["train_flops"] == masked.cost["train_flops"]
    assert (held.input_connections.sum(axis=-1) == 144).all()
    fsjax.save(held, tmp_path / "held.npz")
    again = fsjax.load(tmp_path / "held.npz")
    np.testing.assert_array_equal(again.predict(data[0]), held.predict(data[0]))


@pytest.mark.long
def test_export_and_continued_runs(tmp_path) -> None:
    data = table()
    held = fsjax.methods.set(hidden=(32, 24), form="topology", epsilon=2.0, rank_by="strength")
    uninterrupted = fsjax.fit(held, data, **OPTIONS)
    part = OPTIONS | {"checkpoint_dir": tmp_path, "checkpoint_every": 1}
    fsjax.fit(held, data, **part, callback=lambda progress: True)
    again = fsjax.fit(held, data, **part)
    chex.assert_trees_all_equal(again.states.params, uninterrupted.states.params)
    program = jax.export.deserialize(bytearray(fsjax.export(uninterrupted)))
    chex.assert_trees_all_close(
        np.asarray(program.call(data[0])), uninterrupted.predict(data[0])[0], atol=1e-4
    )
    onward = fsjax.fit(held, data, **OPTIONS, start=uninterrupted)
    assert onward.history["train/loss"][0, 0] < uninterrupted.history["train/loss"][0, 0]


def largest_array(jaxpr: jax.extend.core.Jaxpr) -> int:
    """Entries of the largest array anywhere in a program."""
    largest = 0
    for equation in jaxpr.eqns:
        largest = max(
            [largest, *(math.prod(getattr(v.aval, "shape", ())) for v in equation.outvars)]
        )
        for inner in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda p: hasattr(p, "eqns")
        ):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                largest = max(largest, largest_array(inner))
    return largest


@slow_ids("set")
@slow_ids("rigl")
@slow_ids("ctre_sim")
@pytest.mark.parametrize("name", ["set", "ctre_sim", "rigl"])
def test_no_array_of_all_pairs_of_neurons(name: str) -> None:
    width, rows = 8000, 6
    held = getattr(fsjax.methods, name)(hidden=(width, width), epsilon=1.0, form="auto")
    assert width * width > 2**25
    data = (np.tile(np.arange(rows, dtype=np.float32)[:, None], 9000), np.arange(rows) % 3)
    empty = np.arange(0)
    split = fsjax.data.Split(np.arange(rows), empty, empty)
    plan = fsjax.plan(held, data, split=split, scaling="none", num_epochs=2, batch_size=2)
    arrays, spec = jax.tree.map(jnp.asarray, plan.prepared.arrays), plan.spec
    batch = as_batch(spec.task, arrays.train)

    def run(seed):
        state = init_state(held, spec, seed, batch, jnp.ones(9000, bool))
        return train_epoch(held, state, arrays)[0]

    # A pass over blocks of scores holds some millions of them.
    assert largest_array(jax.make_jaxpr(run)(np.uint32(0)).jaxpr) < width * width / 8


def weakest_neurons(layer: Layer, fraction: jax.Array, key: jax.Array) -> jax.Array:
    """Not from a vector of connections, whose sum over axis 0 is that of all weights."""
    strength = jnp.sum(jnp.abs(layer.weight), axis=0)
    return jnp.broadcast_to(strength, layer.weight.shape)


@active_only
@needs("gradient")
def least_sensitive(layer: Layer, fraction: jax.Array, key: jax.Array) -> jax.Array:
    return jnp.abs(layer.weight * layer.gradient)


#: Of ``least_sensitive``, which drops by the gradient, and grows by the similarity or by both.
GROW = {"similar": grow.similar, "both": grow.switched(grow.similar, grow.gradient)}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROW)
def test_a_drop_rule_of_ones_own_on_connections(name: str) -> None:
    rules = dict(drop=least_sensitive, grow=GROW[name], drop_fraction=0.5)
    if name == "both":
        rules["search"] = lambda state: state.epoch < 0
    forms = ("topology", "dense")
    networks = [sparse_network(**rules, hidden=(8,), epsilon=1.0, form=form) for form in forms]
    start = begun(networks[0], spec_for())
    states = (start, with_masks(networks[0], start))
    before = states[1].masks["layer_0"]["kernel"]
    connections, expected = (
        jax.jit(network.after_epoch)(state, rows(), jax.random.key(1)).masks["layer_0"]["kernel"]
        for network, state in zip(networks, states, strict=True)
    )
    assert is_connections(connections) and not is_connections(expected)
    ones = jnp.ones(connections.rows.shape, bool)
    chex.assert_trees_all_equal(dense(ones, connections), expected)
    assert (before & ~expected).sum() > 3


@bad_calls(
    (lambda: fsjax.methods.set(grow="short_paths", form="topology"), "short_paths needs one"),
    (
        lambda: sparse_network(drop=weakest_neurons, grow=grow.random, form="topology"),
        "the rule weakest_neurons needs one",
    ),
    (lambda: fsjax.methods.snip(form="topology"), "pruning before training"),
    (lambda: sparse_network(drop=drop.magnitude, form="topology"), "may lose some"),
)
def test_rules_that_look_at_all_pairs(bad: tuple) -> None:
    refuses(*bad)
