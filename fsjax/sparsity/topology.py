"""One change of the topology: a drop rule takes connections away, a grow rule adds as many.

Every method of dynamic sparse training is a pair of these rules (``drop.py``, ``grow.py``). The
number of connections of a layer never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

Array = jax.Array


class Layer(NamedTuple):
    """What the rules may look at; a rule says which of the optional fields it needs.

    Attributes:
      weight: ``(..., O)`` weights, 0 where inactive.
      mask: bool of the same shape, the active connections.
      gradient: the dense gradient of the loss, also at inactive connections.
      similarity: similarity of the two neurons of every connection, in the shape of the weight.
      importance: importance of neurons, broadcastable to the weight: ``(I, 1)`` or ``(1, O)``.
      search: scalar bool, whether :func:`fsjax.sparsity.grow.switched` searches at random.
    """

    weight: Array
    mask: Array
    gradient: Array | None = None
    similarity: Array | None = None
    importance: Array | None = None
    search: Array | None = None


#: ``(layer, fraction, key) -> bool``: connections to drop, all of them active.
DropRule = Callable[[Layer, Array, Array], Array]

#: ``(layer, dropped, key) -> bool``: as many connections as were dropped, none of them kept.
GrowRule = Callable[[Layer, Array, Array], Array]


class Rewired(NamedTuple):
    """Outcome of :func:`rewire`, bool arrays in the shape of the weight.

    Attributes:
      mask: the new active connections, as many as before.
      new: those that were not active before; a dropped connection that is grown again at once
        is not new, and keeps its weight and moments.
    """

    mask: Array
    new: Array


def rewire(layer: Layer, drop: DropRule, grow: GrowRule, fraction: Array, key: Array) -> Rewired:
    """Drops a fraction of the connections of a layer and grows as many.

    Args:
      layer: weights, mask and what the rules need.
      drop: drop rule.
      grow: grow rule.
      fraction: share of the active connections to drop, in [0, 1]; may be traced.
      key: PRNG key.

    Returns:
      The new mask, with exactly as many true entries as before.
    """
    key_drop, key_grow = jax.random.split(key)
    dropped = drop(layer, fraction, key_drop)
    grown = grow(layer, dropped, key_grow)
    mask = (layer.mask & ~dropped) | grown
    return Rewired(mask, mask & ~layer.mask)


def number_to_drop(mask: Array, fraction: Array) -> Array:
    """The whole part of ``fraction`` of the active connections, int32."""
    active = jnp.sum(mask, dtype=jnp.int32)
    # A small lift, as 0.3 x 10 is a little below 3 in float32.
    return jnp.floor(fraction * active.astype(jnp.float32) + 1e-3).astype(jnp.int32)
