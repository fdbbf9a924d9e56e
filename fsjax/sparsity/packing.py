"""Masks of one bit for each connection, in place of JAX's byte."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import struct
from jax import Array

from fsjax.typing import PyTree


class PackedMask(struct.PyTreeNode):
    """A mask as bits.

    Attributes:
      bits: ``(ceil(n / 8),)`` uint8, eight connections each, the first in the highest bit.
      shape: of the mask, of n connections.
    """

    bits: Array
    shape: tuple[int, ...] = struct.field(pytree_node=False)


def pack(masks: PyTree) -> PyTree:
    """A tree of bool arrays with a :class:`PackedMask` in place of each."""
    return jax.tree.map(lambda mask: PackedMask(jnp.packbits(mask.reshape(-1)), mask.shape), masks)


def unpack(masks: PyTree) -> PyTree:
    """The inverse of :func:`pack`; bool arrays stay."""
    return jax.tree.map(
        lambda mask: _unpacked(mask) if is_packed(mask) else mask, masks, is_leaf=is_packed
    )


def is_packed(node: object) -> bool:
    """Whether a node of a tree is a packed mask."""
    return isinstance(node, PackedMask)


def _unpacked(mask: PackedMask) -> Array:
    bits = jnp.unpackbits(mask.bits, count=math.prod(mask.shape))
    return bits.astype(bool).reshape(mask.shape)
