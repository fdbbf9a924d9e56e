"""Pruning: removes the connections with the lowest scores down to the scheduled number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.sparsity.kth import smallest
from fsjax.sparsity.structures import Structure, lowest, unstructured
from fsjax.sparsity.topology import Layer, Rule, scores_of
from fsjax.sparsity.trees import split

#: Whether connections compete within their layer, or with those of all layers.
Scope = Literal["layer", "global"]


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
        fewer than ``counts`` says.

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
        scores = layout.scores(_scores(rule, layer, key, structure))
        active = layout.active(layer.mask)
        surplus = jnp.sum(active, axis=1, dtype=jnp.int32) - counts[name]
        left = active & ~lowest(scores, jnp.maximum(surplus, 0), active)
        masks[name] = layout.mask(left, layer.mask.shape)
    return masks


def _pruned_together(
    layers: Mapping[str, Layer], rule: Rule, counts: Mapping[str, Array | int], key: Array
) -> dict[str, Array]:
    scores = [
        _scores(rule, layer, key, None).astype(jnp.float32).reshape(-1) for layer in layers.values()
    ]
    active = jnp.concatenate([layer.mask.reshape(-1) for layer in layers.values()])
    number = jnp.sum(active, dtype=jnp.int32) - sum(counts[name] for name in layers)
    left = active & ~smallest(jnp.concatenate(scores), jnp.maximum(number, 0), active)
    return split(left, {name: layer.mask for name, layer in layers.items()})


def _scores(rule: Rule, layer: Layer, key: Array, structure: Structure | None) -> Array:
    return scores_of(rule, layer, 1.0, jax.random.fold_in(key, layer.number), structure)
