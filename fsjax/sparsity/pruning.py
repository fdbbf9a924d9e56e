"""Pruning: of each layer, or of all together, the connections with the highest scores stay."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.kth import smallest
from fsjax.sparsity.masks import Scope
from fsjax.sparsity.rules import Layer, Rule
from fsjax.sparsity.structures import Layout, Structure, lowest, unstructured
from fsjax.sparsity.topology import scores_of
from fsjax.sparsity.trees import split


def pruned(
    layers: Mapping[str, Layer],
    rule: Rule,
    counts: Mapping[str, Array | int],
    key: Array,
    structure: Structure | None = None,
    scope: Scope = "layer",
) -> dict[str, Array]:
    """Returns masks of the connections with the highest scores.

    Args:
      layers: by path; inactive connections stay inactive.
      rule: drop rule that returns scores.
      counts: how many units of each group of a layer are left, at most as many as are active; may
        be traced. With ``scope="global"`` only their sum matters.
      key: PRNG key; each layer folds in its number.
      structure: which connections go together; ``None`` is each by itself.
      scope: ``"layer"``, or ``"global"`` (without a structure), where layers may lose more or
        fewer than ``counts`` says; but layers whose scores are all 0, which do not rank them, keep
        their own count, or all that they have, of the largest weights and gradients.

    Returns:
      Bool masks by path. Ties go by position, the lowest first.

    Raises:
      ConfigError: if the rule returns a choice in place of scores.
    """
    if scope == "global":
        return _pruned_together(layers, rule, counts, key)
    masks = {}
    for name, layer in layers.items():
        layout = (structure or unstructured()).layout(layer.weight.shape)
        scores = _scores(rule, layer, key, structure)
        masks[name] = _without_lowest(layout, scores, layer.mask, counts[name])
    return masks


# Outside of jit, it compiles as a whole, not operation by operation.
@functools.partial(jax.jit, static_argnums=0, inline=True)
def _without_lowest(layout: Layout, scores: Array, mask: Array, count: Array | int) -> Array:
    """The mask without the active units of the lowest scores, with ``count`` left per group."""
    active = layout.active(mask)
    surplus = jnp.sum(active, axis=1, dtype=jnp.int32) - count
    left = active & ~lowest(layout.scores(scores), jnp.maximum(surplus, 0), active)
    return layout.mask(left, mask.shape)


def _pruned_together(
    layers: Mapping[str, Layer], rule: Rule, counts: Mapping[str, Array | int], key: Array
) -> dict[str, Array]:
    scores = {
        name: _scores(rule, layer, key, None).astype(jnp.float32) for name, layer in layers.items()
    }
    # A head that starts at 0, and the layers behind it, whose gradients are 0, cannot be ranked.
    for name, layer in layers.items():
        is_ranked = jnp.any(layer.mask & (scores[name] != 0))
        own = _scores_for_own_count(layer, counts[name])
        scores[name] = jnp.where(is_ranked, scores[name], own)
    masks = {name: layer.mask for name, layer in layers.items()}
    active, together = (
        jnp.concatenate([leaf.reshape(-1) for leaf in leaves.values()])
        for leaves in (masks, scores)
    )
    number = jnp.sum(active, dtype=jnp.int32) - sum(counts.values())
    return split(active & ~smallest(together, jnp.maximum(number, 0), active), masks)


def _scores_for_own_count(layer: Layer, count: Array | int) -> Array:
    """Scores above those of any other layer for ``count`` connections, and below for the rest."""
    # The largest stay: the sum of |weight| and |gradient| differs where one of the two is 0.
    size = jnp.abs(layer.weight) + (0 if layer.gradient is None else jnp.abs(layer.gradient))
    surplus = jnp.sum(layer.mask, dtype=jnp.int32) - count
    rest = smallest(size, jnp.maximum(surplus, 0), layer.mask)
    lowest_by_size = -jnp.finfo(jnp.float32).max / (1 + size.astype(jnp.float32))
    return jnp.where(rest, lowest_by_size, jnp.inf)


def _scores(rule: Rule, layer: Layer, key: Array, structure: Structure | None) -> Array:
    return scores_of(rule, layer, 1.0, jax.random.fold_in(key, layer.number), structure)
