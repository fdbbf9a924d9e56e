"""NeuroFS: its changes of neurons against a NumPy version, exact numbers, and what it finds."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fsjax
from fsjax.engine.loop import init_state, train_epoch
from fsjax.engine.rows import Arrays, Rows
from fsjax.method import Batch, Spec, TrainState, create_state
from fsjax.methods.neurofs import Evolution, drop_inputs, evolve, grow_inputs
from fsjax.sparsity import Layer

N, D, H, C, K, EPOCHS = 60, 20, 8, 2, 3, 20
ZETA, HIDDEN, ALPHA = 0.2, 0.3, 0.65
SPEC = Spec(D, C, "classification", N, 15, num_epochs=EPOCHS, steps_per_epoch=4)
#: Connections of every layer.
EPSILON = 3.0


def layer_at(epoch: int, num_active: int, seed: int) -> tuple[Layer, np.ndarray]:
    """The first layer after an epoch, and the neurons that were added at the last change."""
    rng = np.random.default_rng(seed)
    active = rng.permutation(D) < num_active
    mask = (rng.random((D, H)) < 0.5) & active[:, None]
    mask[active, 0] = True
    weight = np.where(mask, rng.normal(size=(D, H)), 0)
    young = active & (rng.random(D) < 0.3)
    # The young ones are weak.
    weight = np.where(young[:, None], 1e-3 * weight, weight).astype(np.float32)
    state = create_state(SPEC, (), extra={"young": jnp.asarray(young)})
    state = state.replace(epoch=jnp.int32(epoch))
    gradient = rng.normal(size=(D, H)).astype(np.float32)
    return Layer(
        jnp.asarray(weight), jnp.asarray(mask), 0, jnp.asarray(gradient), state=state
    ), young


def reference(layer: Layer, young: np.ndarray, epoch: int) -> tuple[set[int], int]:
    """Neurons that stay and the number that is added; epochs count from 0 in the paper."""
    t, mask = epoch - 1, np.asarray(layer.mask)
    strength = np.abs(np.asarray(layer.weight)).sum(1)
    active = [i for i in range(D) if mask[i].any()]
    gone, target = D - len(active), int((1 - ZETA) * D - K)
    if t < 2:
        return set(active), 0
    leaving = 0
    if gone < target:
        leaving = math.ceil((target - gone) / max(int(ALPHA * EPOCHS) - t, 1))
    exchanged = int(gone * ZETA * (1 - t / EPOCHS) + 1e-6)
    by_strength = sorted(active, key=lambda i: -strength[i])
    stay = set(by_strength[: len(active) - leaving - exchanged])
    if gone + leaving < target:
        stay |= set(np.flatnonzero(young)) & set(active)
    return stay, max(len(active) - len(stay) - leaving, 0)


CASES = [(1, 20), (2, 20), (3, 20), (5, 17), (8, 14), (12, 9), (13, 8), (14, 7), (17, 7), (19, 7)]


@pytest.mark.parametrize(("epoch", "num_active"), CASES)
def test_neurons_that_stay_and_how_many_are_added(epoch: int, num_active: int) -> None:
    for seed in range(5):
        layer, young = layer_at(epoch, num_active, seed)
        evolution = evolve(layer, K, ZETA, ALPHA)
        kept, number = reference(layer, young, epoch)
        assert set(np.flatnonzero(evolution.kept)) == kept
        assert int(evolution.number) == number
        np.testing.assert_array_equal(evolution.inactive, ~np.asarray(layer.mask).any(1))


def test_constant_columns_leave_first() -> None:
    layer, _ = layer_at(14, 9, 0)
    active = np.flatnonzero(np.asarray(layer.mask).any(1))
    strongest = active[np.argmax(np.abs(np.asarray(layer.weight)).sum(1)[active])]
    mask = jnp.ones(D, bool).at[strongest].set(False)
    without = layer._replace(state=layer.state.replace(feature_mask=mask))
    assert bool(evolve(layer, K, ZETA, ALPHA).kept[strongest])
    assert not bool(evolve(without, K, ZETA, ALPHA).kept[strongest])


def test_connections_are_grown_at_neurons_that_stay_or_are_added() -> None:
    layer, _ = layer_at(14, 12, 3)
    kept = jnp.asarray(np.isin(np.arange(D), np.flatnonzero(np.asarray(layer.mask).any(1))[:8]))
    inactive = ~jnp.any(layer.mask, axis=1)

    def evolution(layer: Layer) -> Evolution:
        return Evolution(kept, inactive, jnp.int32(2))

    key = jax.random.key(0)
    dropped = np.asarray(drop_inputs(evolution, ZETA, HIDDEN)(layer, 0.0, key))
    mask, weight = np.asarray(layer.mask), np.asarray(layer.weight)
    for i in range(D):
        assert kept[i] or (dropped[i] == mask[i]).all()
    for sign in (1, -1):
        side = mask & np.asarray(kept)[:, None] & (sign * weight > 0)
        count = int(ZETA * side.sum() + 1e-3)
        order = np.sort(np.abs(weight[side]))
        np.testing.assert_array_equal(np.sort(np.abs(weight[side & dropped])), order[:count])
    grown = np.asarray(grow_inputs(evolution)(layer, jnp.asarray(dropped), key))
    slope = np.abs(np.asarray(layer.gradient))
    outside = np.flatnonzero(np.asarray(inactive))
    added = outside[np.argsort(-slope[outside].max(1))[:2]]
    free = (~mask | dropped) & (np.asarray(kept) | np.isin(np.arange(D), added))[:, None]
    assert grown.sum() == dropped.sum() and not (grown & ~free).any()
    assert slope[grown].min() >= slope[free & ~grown].max()


def data() -> Batch:
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    x = rng.normal(size=(N, D))
    x[:, [1, 4]] += 2 * (2 * y[:, None] - 1)
    return Batch(jnp.asarray(x, jnp.float32), jnp.asarray(y), jnp.ones(N))


@pytest.mark.slow
def test_numbers_of_inputs_and_connections_over_a_run() -> None:
    options = {"hidden": (H, H), "epsilon": EPSILON, "learning_rate": 0.05}
    method = fsjax.methods.neurofs(K, input_fraction=0.4, **options)
    everything = data()
    rows = Rows(*everything)
    arrays = Arrays(rows, *(Rows(*(leaf[:0] for leaf in rows)),) * 2)
    start = jax.jit(lambda seed: init_state(method, SPEC, seed, everything, jnp.ones(D, bool)))
    state = start(np.uint32(1))
    epoch = jax.jit(functools.partial(train_epoch, method))
    active = [active_of(state)]
    counts = [layer["kernel"].sum() for layer in state.masks.values()]
    assert int(counts[0]) == round(EPSILON * (D + H))
    young, exchanged = np.zeros(D, bool), 0
    for _ in range(EPOCHS):
        state, metrics = epoch(state, arrays)
        now = active_of(state)
        if now.sum() > K + 0.4 * D:  # Inputs still leave, but none that was just added.
            assert not (young & ~now).any()
        assert int(metrics["train/num_active"]) == active[-1].sum()
        young = now & ~active[-1]
        exchanged += young.sum()
        active.append(now)
        room = int(now.sum()) * H
        of_layers = [int(layer["kernel"].sum()) for layer in state.masks.values()]
        assert of_layers[0] == min(int(counts[0]), room) and of_layers[1:] == counts[1:]
        for name, mask in state.masks.items():
            assert not np.asarray(state.params[name]["kernel"])[~np.asarray(mask["kernel"])].any()
    sizes = [int(a.sum()) for a in active]
    assert sizes[:3] == [D, D, D] and sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == K + 0.4 * D and sizes[8] > sizes[-1]
    assert exchanged > 3
    scores = np.asarray(method.select(state).scores)
    assert ((scores > 0) == active[-1]).all()
    assert set(np.argsort(-scores)[:2]) == {1, 4}


def active_of(state: TrainState) -> np.ndarray:
    return np.asarray(state.masks["layer_0"]["kernel"]).any(1)
