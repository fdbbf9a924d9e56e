"""One change of the topology: a drop rule removes connections, a grow rule adds as many.

This driver changes the connections of every method of dynamic sparse training: once an epoch,
after each step, or inside an optimiser (:func:`fsjax.sparsity.sparse`). Without a grow rule the
connections become fewer; :func:`pruned` leaves given numbers of them.

Whatever a rule (``rules.py``) returns, a layer keeps exactly its number of connections:

- Equal scores go by position, the lowest first. Scores are compared in float32; infinities are
  ordered like other numbers, and NaN counts as the lowest score.
- Only active connections are dropped, and only missing ones (or those just dropped) are grown;
  what a rule says of others is ignored.
- Of a choice to grow that is too large, those with the lowest positions are taken; one that is too
  small is filled up with the missing connections of the lowest positions.
- Another shape or type is a ConfigError while the program is traced, before it runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.errors import ConfigError
from fsjax.sparsity.kth import count_true, largest, preferred, smallest
from fsjax.sparsity.masks import Scope
from fsjax.sparsity.rules import DropRule, GrowRule, Layer, Rule, as_rule, as_rules
from fsjax.sparsity.structures import Layout, Structure, highest, lowest, unstructured
from fsjax.sparsity.trees import split
from fsjax.typing import PyTree


def choose_dropped(rule: DropRule, layer: Layer, fraction: Array | float, key: Array) -> Array:
    """The connections that a drop rule removes: bool, all of them active.

    Args:
      rule: drop rule.
      layer: weights, mask and what the rule needs.
      fraction: share of the active connections, in [0, 1], for rules that return scores.
      key: PRNG key.

    Raises:
      ConfigError: if the rule returns another shape or type than it may.
    """
    picks = _answer("drop", as_rule(rule), layer, fraction, key)
    if picks.dtype == bool:
        return picks & layer.mask
    return smallest(picks, number_to_drop(layer.mask, fraction), layer.mask)


def choose_grown(rule: GrowRule, layer: Layer, dropped: Array, key: Array) -> Array:
    """The connections that a grow rule adds: bool, as many as were dropped, none of them kept.

    They are fewer only where the rule is marked by :func:`may_shrink`.

    Args:
      rule: grow rule.
      layer: weights, mask and what the rule needs, before anything was dropped.
      dropped: bool, all of them active.
      key: PRNG key.

    Raises:
      ConfigError: if the rule returns another shape or type than it may.
    """
    grow = as_rule(rule)
    picks = _answer("grow", grow, layer, dropped, key)
    free, wanted = ~layer.mask | dropped, count_true(dropped)
    if picks.dtype == bool:
        return preferred(picks, wanted, free & picks if grow.may_shrink else free)
    return largest(picks, wanted, free)


def _answer(
    kind: str, rule: Rule, layer: Layer, fraction_or_dropped: Array | float, key: Array
) -> Array:
    """What a rule returns, as an array of a shape and type that a rule may return."""
    picks: Any = rule(layer, fraction_or_dropped, key)
    subject, shape = f"the {kind} rule {rule.name}", layer.weight.shape
    allowed = (
        f"floating point or uint32 (scores) or bool (a choice) in the shape {shape} of layer.weight"
    )
    if not isinstance(picks, jax.Array | np.ndarray):
        raise ConfigError(f"{subject} returns {type(picks).__name__}; return an array, {allowed}")
    if not (picks.dtype in (bool, jnp.uint32) or jnp.issubdtype(picks.dtype, jnp.floating)):
        raise ConfigError(f"{subject} returns {picks.dtype}; return {allowed}")
    if picks.shape != shape:
        raise ConfigError(f"{subject} returns the shape {picks.shape}; return {allowed}")
    return jnp.asarray(picks)


class Rewired(NamedTuple):
    """Outcome of :func:`rewire`, bool arrays in the shape of the weight.

    Attributes:
      mask: the new active connections, exactly as many as before; fewer without a grow rule, or
        with one that is marked by :func:`may_shrink`.
      new: those that were not active before; a dropped connection that is grown again at once
        is not new, and keeps its weight and moments.
    """

    mask: Array
    new: Array


def rewire(
    layer: Layer,
    drop: DropRule | None,
    grow: GrowRule | None,
    fraction: Array | float,
    key: Array,
    structure: Structure | None = None,
) -> Rewired:
    """Drops a fraction of the connections of a layer and grows as many, whatever the rules return.

    With a structure, the units with the lowest scores in the whole layer go, and each group gets
    as many as it lost, so that the number of active units of each group stays.

    Args:
      layer: weights, mask and what the rules need.
      drop: drop rule; ``None`` keeps the connections.
      grow: grow rule; ``None`` only drops.
      fraction: share of the active connections to drop, in [0, 1]; may be traced.
      key: PRNG key.
      structure: which connections come and go together; ``None`` is each by itself. Its rules
        return scores.

    Raises:
      ConfigError: if a rule returns neither scores nor a choice in the shape of the weights, or a
        choice where a structure needs scores.
    """
    rules = as_rules(drop, grow)
    if rules.drop is None:
        return Rewired(layer.mask, jnp.zeros_like(layer.mask))
    key_drop, key_grow = jax.random.split(key)
    if structure is not None:
        keys = (key_drop, key_grow)
        mask = _rewired_units(layer, rules.drop, rules.grow, fraction, keys, structure)
        return Rewired(mask, mask & ~layer.mask)
    dropped = choose_dropped(rules.drop, layer, fraction, key_drop)
    mask = layer.mask & ~dropped
    if rules.grow is not None:
        mask |= choose_grown(rules.grow, layer, dropped, key_grow)
    return Rewired(mask, mask & ~layer.mask)


def _rewired_units(
    layer: Layer,
    drop: Rule,
    grow: Rule | None,
    fraction: Array | float,
    keys: tuple[Array, Array],
    structure: Structure,
) -> Array:
    """:func:`rewire` of the units of a structure; the new mask."""
    layout = structure.layout(layer.weight.shape)
    active = layout.active(layer.mask)
    scores = layout.scores(scores_of(drop, layer, fraction, keys[0], structure))
    number = number_to_drop(active, fraction)
    dropped = smallest(scores.reshape(-1), number, active.reshape(-1)).reshape(active.shape)
    kept = active & ~dropped
    if grow is None:
        return layout.mask(kept, layer.mask.shape)
    lost = layout.mask(dropped, layer.mask.shape)
    answer = _answer("grow", grow, layer, lost, keys[1])
    _check_scores(answer, "grow", grow, structure)
    of_group = jnp.sum(dropped, axis=1, dtype=jnp.int32)
    grown = highest(layout.scores(answer), of_group, ~kept)
    return layout.mask(kept | grown, layer.mask.shape)


def scores_of(
    rule: Rule, layer: Layer, fraction: Array | float, key: Array, structure: Structure | None
) -> Array:
    """The scores of a drop rule, in the shape of the weights.

    Raises:
      ConfigError: if it returns a choice.
    """
    answer = _answer("drop", rule, layer, fraction, key)
    _check_scores(answer, "drop", rule, structure)
    return answer


def _check_scores(answer: Array, kind: str, rule: Rule, structure: Structure | None) -> None:
    if answer.dtype == bool:
        subject = "pruning" if structure is None else f"the structure {structure}"
        raise ConfigError(
            f"the {kind} rule {rule.name} chooses connections, and {subject} needs scores; "
            f"take another rule, such as {kind}.{'magnitude' if kind == 'drop' else 'random'}"
        )


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


class Changed(NamedTuple):
    """Outcome of :meth:`fsjax.sparsity.Recipe.change`, trees in the structure of the parameters.

    Attributes:
      params: 0 at inactive connections, the initial value at new ones.
      masks: bool.
      kept: bool, connections that were active and still are; true for leaves without a mask.
    """

    params: PyTree
    masks: PyTree
    kept: PyTree


def cond_with_key(
    condition: Array, then: Callable[[Array], Any], otherwise: Callable[[Array], Any], key: Array
) -> Any:
    """``lax.cond`` between two functions of a PRNG key."""
    # Plain words, as the check of key reuse refuses keys in a cond of batched predicate.
    words, impl = jax.random.key_data(key), jax.random.key_impl(key)

    def branch(function: Callable[[Array], Any]) -> Callable[[], Any]:
        return lambda: function(jax.random.wrap_key_data(words, impl=impl))

    return jax.lax.cond(condition, branch(then), branch(otherwise))


@functools.partial(jax.jit, inline=True)
def number_to_drop(mask: Array, fraction: Array | float) -> Array:
    """The whole part of ``fraction`` of the active connections, int32."""
    active = count_true(mask)
    # A small lift, as 0.3 x 10 is a little below 3 in float32.
    return jnp.floor(fraction * active.astype(jnp.float32) + 1e-3).astype(jnp.int32)
