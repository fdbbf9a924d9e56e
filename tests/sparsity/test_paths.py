"""Path scores compared with a count of single paths, and the rules that grow by them."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from fsjax import sparsity
from fsjax.sparsity import drop, grow, path_scores
from fsjax.sparsity.rules import Layer
from fsjax.sparsity.topology import choose_dropped, choose_grown, rewire

RNG = np.random.default_rng(0)
MASKS = [RNG.random((7, 5)) < density for density in (0.25, 0.4, 0.6)]


def counted(mask: np.ndarray) -> np.ndarray:
    """Scores from sets of neighbours, for one pair of neurons after another."""
    above = [set(np.flatnonzero(line)) for line in mask]
    below = [set(np.flatnonzero(line)) for line in mask.T]
    scores = np.zeros(mask.shape)
    for i, o in itertools.product(*map(range, mask.shape)):
        for z in below[o]:  # i - ... - z - o
            if shared := above[i] & above[z]:
                scores[i, o] += (1 + len(shared)) / (1 + len(above[z] - shared - {o}))
        for z in above[i]:  # i - z - ... - o
            if shared := below[o] & below[z]:
                scores[i, o] += (1 + len(shared)) / (1 + len(below[z] - shared - {i}))
    return scores


@pytest.mark.parametrize("mask", MASKS)
def test_scores_of_missing_connections(mask: np.ndarray) -> None:
    scores = np.asarray(jax.jit(path_scores)(mask))
    np.testing.assert_allclose(scores[~mask], counted(mask)[~mask], rtol=1e-5)
    assert scores[~mask].any()


def test_scores_follow_the_neurons() -> None:
    rows, columns = RNG.permutation(7), RNG.permutation(5)
    scores = jax.jit(path_scores)(MASKS[1])
    again = jax.jit(path_scores)(MASKS[1][rows][:, columns])
    np.testing.assert_allclose(again, np.asarray(scores)[rows][:, columns], rtol=1e-5)


def layer_of(mask: np.ndarray) -> Layer:
    weight = np.where(mask, RNG.normal(size=mask.shape), 0).astype(np.float32)
    return Layer(jnp.asarray(weight), jnp.asarray(mask))


def test_the_best_scores_are_grown() -> None:
    layer, key = layer_of(MASKS[1]), jax.random.key(0)
    fraction = jnp.float32(0.4)
    rewired = jax.jit(
        lambda layer, key: rewire(layer, drop.magnitude, grow.short_paths, fraction, key)
    )(layer, key)
    dropped = jax.jit(lambda layer, key: choose_dropped(drop.magnitude, layer, fraction, key))(
        layer, key
    )
    left = np.asarray(layer.mask & ~dropped)
    picked, scores = np.asarray(rewired.mask) & ~left, counted(left)
    assert picked.sum() == int(0.4 * MASKS[1].sum() + 1e-3)
    best = np.sort(scores[~left])[::-1][: picked.sum()]
    np.testing.assert_allclose(np.sort(scores[picked])[::-1], best, rtol=1e-3)
    assert best[0] > scores[~left].min()


def test_ties_are_not_by_position() -> None:
    # Every input has two outputs, and shares each of them with one other input.
    ring = np.eye(8, dtype=bool) | np.roll(np.eye(8, dtype=bool), 1, axis=1)
    layer = layer_of(ring)
    dropped = np.zeros(ring.shape, bool)
    dropped[3, 3] = True
    choose = jax.jit(functools.partial(choose_grown, grow.short_paths, layer, dropped))
    grown = {np.asarray(choose(jax.random.key(seed))).tobytes() for seed in range(8)}
    assert len(grown) > 3


def test_without_any_path_the_choice_is_random() -> None:
    mask = np.zeros((6, 6), bool)
    mask[np.arange(6), np.arange(6)] = True
    layer = layer_of(mask)
    drawn = np.zeros((6, 6))
    dropped = layer.mask & (layer.weight > 0)
    choose = jax.jit(functools.partial(choose_grown, grow.short_paths, layer, dropped))
    for seed in range(40):
        drawn += np.asarray(choose(jax.random.key(seed)))
    assert (drawn > 0).sum() > 20


def test_samples_are_drawn_by_their_scores() -> None:
    mask = MASKS[1].copy()
    dropped = np.zeros_like(mask)
    dropped[tuple(np.argwhere(mask)[0])] = True
    layer = layer_of(mask)
    keys = jax.random.split(jax.random.key(0), 4000)
    rule = functools.partial(choose_grown, grow.sampled_short_paths, layer, jnp.asarray(dropped))
    draws = jax.jit(jax.vmap(rule))(keys)
    left = mask & ~dropped
    scores = np.where(left, 0, counted(left))
    assert np.asarray(draws).sum() == 4000
    share = np.asarray(draws).mean(0)
    np.testing.assert_allclose(share, scores / scores.sum(), atol=0.03)
    assert share.max() > 3 * share[(scores > 0)].min()


def test_kernels_of_convolutions_and_the_recipe() -> None:
    params = {"kernel": jax.random.normal(jax.random.key(1), (3, 3, 2, 8))}
    recipe = sparsity.cht(0.3, every=1, grow=grow.sampled_short_paths)
    tx = sparsity.sparse(optax.sgd(0.1), recipe, jax.random.key(2))
    state = tx.init(params)
    params = sparsity.mask_params(params, state)
    grads = jax.tree.map(jnp.ones_like, params)
    step = jax.jit(tx.update)
    for _ in range(3):
        before = sparsity.masks_of(state)["kernel"]
        updates, state = step(grads, state, params)
        params = optax.apply_updates(params, updates)
        after = sparsity.masks_of(state)["kernel"]
        assert int(before.sum()) == int(after.sum()) and (before != after).any()
    assert not np.asarray(params["kernel"])[~np.asarray(after)].any()
