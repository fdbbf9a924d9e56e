"""One change of the topology: a drop rule takes connections away, a grow rule adds as many.

Every method of dynamic sparse training is a pair of these rules (``drop.py``, ``grow.py``), and
this driver changes the connections of all of them: once an epoch, after each step, or inside an
optimiser (:func:`fsjax.sparsity.sparse`). Without a grow rule the connections become fewer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.method import PyTree
from fsjax.sparsity.kth import count_true
from fsjax.sparsity.masks import Where, is_kernel, name_of, named_leaves


class Layer(NamedTuple):
    """What the rules may look at; :func:`needs` says which of the optional fields one needs.

    Attributes:
      weight: ``(..., O)`` weights, 0 where inactive.
      mask: bool of the same shape, the active connections.
      number: of the layer among those with masks, from 0 at the input.
      gradient: the dense gradient of the loss, also at inactive connections.
      similarity: similarity of the two neurons of every connection, in the shape of the weight.
      importance: importance of neurons, broadcastable to the weight: ``(I, 1)`` or ``(1, O)``.
      search: scalar bool, whether :func:`fsjax.sparsity.grow.switched` searches at random.
      state: what else a rule of one's own looks at: the train state of a method, or ``None``.
    """

    weight: Array
    mask: Array
    number: int = 0
    gradient: Array | None = None
    similarity: Array | None = None
    importance: Array | None = None
    search: Array | None = None
    state: Any = None


#: ``(layer, fraction, key) -> bool``: connections to drop, all of them active.
DropRule = Callable[[Layer, Array, Array], Array]

#: ``(layer, dropped, key) -> bool``: as many connections as were dropped, none of them kept.
GrowRule = Callable[[Layer, Array, Array], Array]


def needs(*fields: str) -> Callable[[Callable], Callable]:
    """Decorates a rule with the optional fields of :class:`Layer` that it needs."""

    def mark(rule: Callable) -> Callable:
        rule.needs = fields
        return rule

    return mark


def needs_of(*rules: Callable | None) -> set[str]:
    """The optional fields that any of the rules needs."""
    return {field for rule in rules for field in getattr(rule, "needs", ())}


class Rewired(NamedTuple):
    """Outcome of :func:`rewire`, bool arrays in the shape of the weight.

    Attributes:
      mask: the new active connections, exactly as many as before, or fewer without a grow rule.
      new: those that were not active before; a dropped connection that is grown again at once
        is not new, and keeps its weight and moments.
    """

    mask: Array
    new: Array


def rewire(
    layer: Layer, drop: DropRule, grow: GrowRule | None, fraction: Array, key: Array
) -> Rewired:
    """Drops a fraction of the connections of a layer and grows as many.

    Args:
      layer: weights, mask and what the rules need.
      drop: drop rule.
      grow: grow rule; ``None`` only drops.
      fraction: share of the active connections to drop, in [0, 1]; may be traced.
      key: PRNG key.
    """
    key_drop, key_grow = jax.random.split(key)
    dropped = drop(layer, fraction, key_drop)
    mask = layer.mask & ~dropped
    if grow is not None:
        mask |= grow(layer, dropped, key_grow)
    return Rewired(mask, mask & ~layer.mask)


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


def layers_of(
    params: PyTree,
    masks: PyTree,
    where: Where = is_kernel,
    *,
    search: Array | None = None,
    state: Any = None,
    **given: PyTree | None,
) -> dict[str, Layer]:
    """What the rules see of every masked leaf, by its path, from the input on.

    Args:
      params, masks: trees of the same structure.
      where: which leaves are masked.
      search, state: of every :class:`Layer`.
      **given: further fields of :class:`Layer`, each a tree with an array at the path of the
        masked leaves; other leaves are ignored and may be missing. Or ``None``.
    """
    weights, flat = named_leaves(params, where), _by_name(masks)
    found = {field: _by_name(tree) for field, tree in given.items()}
    return {
        name: Layer(
            weights[name],
            flat[name],
            number,
            search=search,
            state=state,
            **{field: of.get(name) for field, of in found.items()},
        )
        for number, name in enumerate(sorted(weights, key=_natural))
    }


def keep_moments(
    optimizer: optax.GradientTransformation, state: PyTree, changed: Changed
) -> PyTree:
    """The state of an optimiser where connections were kept, its initial value elsewhere."""
    fresh = optimizer.init(changed.params)
    # kept in place of every copy of the parameters, and True in place of everything else
    selected = optax.tree.map_params(
        optimizer,
        lambda leaf, keep: leaf if _is_masked_out(leaf) else keep,
        state,
        changed.kept,
        transform_non_params=lambda _: True,
        is_leaf=_is_masked_out,
    )

    def choose(keep: Array | bool, old: Array, initial: Array) -> Array:
        # Factored moments have no entry for each connection.
        if keep is True or keep.shape != old.shape:
            return old
        return jnp.where(keep, old, initial)

    return jax.tree.map(choose, selected, state, fresh)


def cond_with_key(
    condition: Array, then: Callable[[Array], Any], otherwise: Callable[[Array], Any], key: Array
) -> Any:
    """``lax.cond`` between two functions of a PRNG key."""
    # Plain words, as the check of key reuse refuses keys in a cond of batched predicate.
    words, impl = jax.random.key_data(key), jax.random.key_impl(key)

    def branch(function: Callable[[Array], Any]) -> Callable[[], Any]:
        return lambda: function(jax.random.wrap_key_data(words, impl=impl))

    return jax.lax.cond(condition, branch(then), branch(otherwise))


def number_to_drop(mask: Array, fraction: Array) -> Array:
    """The whole part of ``fraction`` of the active connections, int32."""
    active = count_true(mask)
    # A small lift, as 0.3 x 10 is a little below 3 in float32.
    return jnp.floor(fraction * active.astype(jnp.float32) + 1e-3).astype(jnp.int32)


def _by_name(tree: PyTree) -> dict[str, Array]:
    return {name_of(path): leaf for path, leaf in jax.tree.leaves_with_path(tree)}


def _natural(name: str) -> list[tuple[bool, int | str]]:
    """Sorts ``layer_2`` before ``layer_10``."""
    parts = re.split(r"(\d+)", name)
    return [(part.isdigit(), int(part) if part.isdigit() else part) for part in parts]


def _is_masked_out(node: Any) -> bool:
    return isinstance(node, optax.MaskedNode)
