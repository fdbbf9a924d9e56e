"""Lottery tickets: nested masks of the largest trained weights, and early values.

Covers ``fsjax.sparsity.lottery``.
"""

from __future__ import annotations

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_ids

from fsjax import sparsity
from fsjax.errors import ConfigError

RNG = np.random.default_rng(0)
EARLY = {
    "first": {"bias": jnp.ones(8), "kernel": jnp.asarray(RNG.normal(size=(12, 8)), jnp.float32)},
    "second": {"kernel": jnp.asarray(RNG.normal(size=(8, 4)), jnp.float32)},
}
MOVES = jax.tree.map(lambda leaf: jnp.asarray(RNG.normal(size=leaf.shape), jnp.float32), EARLY)


@jax.jit
def train(params: Any, masks: Any) -> Any:
    """Another network each time it has other masks, with some weights that become 0."""
    moved = jax.tree.map(lambda p, m: p + m * masks["first"]["kernel"].mean(), params, MOVES)
    small = jax.tree.map(lambda p: jnp.where(jnp.abs(p) < 0.1, 0, p), moved)
    return sparsity.apply_masks(small, masks)


@slow_ids("global")
@pytest.mark.parametrize("scope", ["layer", "global"])
def test_each_round_keeps_the_largest_trained_weights_at_their_early_values(scope: Any) -> None:
    densities = [0.8, 0.5, 0.1]
    masks = jax.tree.map(lambda leaf: np.ones(leaf.shape, bool), EARLY)
    counts = {0.8: (77, 26), 0.5: (48, 16), 0.1: (10, 3)}
    tickets = sparsity.lottery_tickets(train, EARLY, densities, scope=scope)
    for density, ticket in zip(densities, tickets, strict=True):
        trained = train(sparsity.apply_masks(EARLY, masks), masks)
        sizes, new = (
            [np.asarray(tree[name]["kernel"]).ravel() for name in EARLY]
            for tree in (jax.tree.map(jnp.abs, trained), ticket.masks)
        )
        before = [np.asarray(masks[name]["kernel"]).ravel() for name in EARLY]
        if scope == "global":
            sizes, new, before = ([np.concatenate(parts)] for parts in (sizes, new, before))
        expected = (sum(counts[density]),) if scope == "global" else counts[density]
        assert tuple(mask.sum() for mask in new) == expected
        for size, mask, old in zip(sizes, new, before, strict=True):
            assert not (mask & ~old).any()
            assert size[mask].min() >= size[old & ~mask].max()
        chex.assert_trees_all_equal(ticket.params, sparsity.apply_masks(EARLY, ticket.masks))
        assert np.asarray(ticket.masks["first"]["bias"]).all()
        masks = ticket.masks


def test_a_round_runs_when_its_ticket_is_asked_for() -> None:
    calls: list[Any] = []

    def noted(params: Any, masks: Any) -> Any:
        calls.append(masks)
        return train(params, masks)

    tickets = sparsity.lottery_tickets(noted, EARLY, [0.5, 0.2], structure=sparsity.fan_in())
    assert not calls
    mask = next(tickets).masks["first"]["kernel"]
    assert len(calls) == 1 and (np.asarray(mask).sum(0) == 6).all()


def test_mistakes_are_named() -> None:
    for densities, message in (
        ([0.5, 0.5], r"densities=\[0.5, 0.5\] do not decrease"),
        ([1.5], "density=1.5"),
    ):
        with pytest.raises(ConfigError, match=message):
            sparsity.lottery_tickets(train, EARLY, densities)
    dense = sparsity.lottery_tickets(lambda params, masks: MOVES, EARLY, [0.5, 0.2])
    next(dense)
    with pytest.raises(ConfigError, match="first/kernel with weights that are not 0 at inactive"):
        next(dense)
    nan_params = jax.tree.map(lambda leaf: leaf * jnp.nan, EARLY)
    with pytest.raises(ConfigError, match="first/bias with numbers that are not finite"):
        next(sparsity.lottery_tickets(lambda params, masks: nan_params, EARLY, [0.5]))
    with pytest.raises(ConfigError, match="sets schedule itself"):
        sparsity.lottery_tickets(train, {}, [0.5], schedule=sparsity.one_shot(3))
