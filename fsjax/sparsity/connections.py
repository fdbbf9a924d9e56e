"""The connections of a layer without a matrix, for networks whose matrices exceed the memory.

No array here has an entry for every pair of neurons. Connections are in the order of their flat
positions in the matrix, so rules break ties as they do for masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
from flax import struct
from jax import Array
from jax.experimental.sparse import BCSR

#: Smallest batch for which JAX's CSR product (Eigen on CPUs) is faster than a scatter.
MIN_CSR_BATCH = 8

#: Largest number of products of activations that are computed at once, so that they stay in the
#: cache.
_MAX_PRODUCTS = 2**16

#: The connections of a piece are a multiple of this: then their sums do not depend on its size.
_MULTIPLE = 32

#: Largest number of connections that are computed at once whatever the batch.
_MAX_UNSPLIT = 256

#: Largest number of products of weights and activations that a scatter holds in memory.
_MAX_HELD = 2**24


class Index(NamedTuple):
    """What products with large batches need in addition to the connections.

    Attributes:
      order: ``(n,)`` int32, permutation that sorts the connections by output neuron.
      rows: ``(n,)`` int32, their input neurons in this order.
      from_inputs, to_outputs: ``(I + 1,)`` and ``(O + 1,)`` int32, where the connections of each
        neuron begin.
    """

    order: Array
    rows: Array
    from_inputs: Array
    to_outputs: Array


class Connections(struct.PyTreeNode):
    """The n connections of a layer from I inputs to O outputs; their weights are ``(n,)``.

    Attributes:
      rows: ``(n,)`` int32 input neurons, ascending.
      columns: ``(n,)`` int32 output neurons, ascending for each input neuron.
      grown: int32 number of connections grown so far. Only differences are used, so it may wrap.
      index: the index of :func:`indexed`, or ``()``.
      shape: ``(I, O)``.
    """

    rows: Array
    columns: Array
    grown: Array
    index: Index | tuple[()]
    shape: tuple[int, int] = struct.field(pytree_node=False)

    @property
    def size(self) -> int:
        """Number of pairs of neurons, ``I * O``."""
        return math.prod(self.shape)


def connected(rows: Array, columns: Array, shape: tuple[int, int]) -> Connections:
    """Connections from sorted ``(n,)`` rows and columns, without an index."""
    return Connections(rows, columns, jnp.zeros((), jnp.int32), (), shape)


def indexed(connections: Connections, on: bool = True) -> Connections:
    """The connections with an index for products with large batches, or without if not ``on``."""
    if not on:
        return connections.replace(index=())
    rows, columns = connections.rows, connections.columns
    places = jnp.arange(columns.size, dtype=jnp.int32)
    by_output, order = jax.lax.sort((columns, places), num_keys=1)
    starts = [
        jnp.searchsorted(of, jnp.arange(number + 1, dtype=jnp.int32)).astype(jnp.int32)
        for of, number in zip((rows, by_output), connections.shape, strict=True)
    ]
    return connections.replace(index=Index(order, rows[order], *starts))


def dense(values: Array, connections: Connections) -> Array:
    """The matrix ``(I, O)`` with the values ``(n,)`` at the connections and 0 elsewhere."""
    empty = jnp.zeros(connections.shape, values.dtype)
    return empty.at[connections.rows, connections.columns].set(values)


def of_inputs(values: Array, connections: Connections) -> Array:
    """Sums ``(I,)`` of values ``(n,)`` over the connections of each input neuron."""
    total = jnp.zeros(connections.shape[0], values.dtype)
    return total.at[connections.rows].add(values, indices_are_sorted=True)


def by_connections(function: Callable, *trees: object) -> object:
    """``jax.tree.map`` over trees of masks, with :class:`Connections` as leaves."""
    return jax.tree.map(function, *trees, is_leaf=is_connections)


def layer_masks(masks: object) -> list[Any]:
    """The masks of the layers in a tree of masks, with :class:`Connections` as leaves."""
    return jax.tree.leaves(masks, is_leaf=is_connections)


def without_index(masks: object) -> object:
    """Masks without indices, as they are stored, exported and compared."""
    return by_connections(
        lambda leaf: indexed(leaf, False) if is_connections(leaf) else leaf, masks
    )


def indexed_like(masks: object, like: object) -> object:
    """Masks of S seeds, ``(S, n)``, with an index wherever ``like`` has one."""

    def index_leaf(leaf: object, other: object) -> object:
        wanted = is_connections(other) and other.index != ()
        return jax.vmap(indexed)(leaf) if wanted and is_connections(leaf) else leaf

    return by_connections(index_leaf, masks, like)


def is_connections(node: object) -> TypeGuard[Connections]:
    """Whether a node of a tree of masks is :class:`Connections`."""
    return isinstance(node, Connections)


@jax.custom_vjp
def connected_dot(values: Array, connections: Connections, x: Array) -> Array:
    """The product of a layer with activations, neurons first: ``(I, B) -> (O, B)``.

    Equal to ``dense(values, connections).T @ x`` up to floating-point reassociation.
    """
    index, outputs = connections.index, connections.shape[1]
    if isinstance(index, Index) and x.shape[1] >= MIN_CSR_BATCH:
        return _csr_dot(values[index.order], index.rows, index.to_outputs, x)
    return _scatter_dot(values, connections.rows, connections.columns, outputs, x)


def _forward(values: Array, connections: Connections, x: Array) -> tuple[Array, tuple]:
    return connected_dot(values, connections, x), (values, connections, x)


def _backward(saved: tuple, grad: Array) -> tuple[Array, None, Array]:
    values, connections, x = saved
    rows, columns, index = connections.rows, connections.columns, connections.index
    if isinstance(index, Index) and x.shape[1] >= MIN_CSR_BATCH:
        to_x = _csr_dot(values, columns, index.from_inputs, grad)
    else:
        to_x = _scatter_dot(values, columns, rows, x.shape[0], grad)
    return products(x, grad, rows, columns), None, to_x


connected_dot.defvjp(_forward, _backward)


def products(x: Array, y: Array, rows: Array, columns: Array) -> Array:
    """Entries ``(n,)`` of ``x @ y.T`` at rows and columns, for x ``(I, B)`` and y ``(O, B)``."""
    if x.shape[1] < MIN_CSR_BATCH:
        parts = (x[:, i][rows] * y[:, i][columns] for i in range(x.shape[1]))
        return sum(parts, jnp.zeros(rows.shape, x.dtype))
    # The sum over the batch is a product with ones: several times faster on CPUs.
    ones = jnp.ones(x.shape[1], x.dtype)
    if rows.size <= _MAX_UNSPLIT:
        return (x[rows] * y[columns]) @ ones
    pieces = -(-rows.size * x.shape[1] // _MAX_PRODUCTS)
    size = -(-rows.size // (pieces * _MULTIPLE)) * _MULTIPLE
    pieces = -(-rows.size // size)
    fill = (0, pieces * size - rows.size)
    places = [jnp.pad(where, fill).reshape(pieces, size) for where in (rows, columns)]
    values = jax.lax.map(lambda at: (x[at[0]] * y[at[1]]) @ ones, tuple(places))
    return values.reshape(-1)[: rows.size]


def _scatter_dot(values: Array, start: Array, end: Array, size: int, x: Array) -> Array:
    """Sums ``(size, B)`` of ``values x[start]`` at ``end``, for ``(J, B)``."""

    def product_with(x: Array) -> Array:
        return jnp.zeros((size, x.shape[1]), x.dtype).at[end].add(values[:, None] * x[start])

    batch = x.shape[1]
    # A batch of symbolic size, in an exported program, is not split.
    if not isinstance(batch, int) or batch * values.size <= _MAX_HELD:
        return product_with(x)
    part = max(1, _MAX_HELD // values.size)
    parts = -(-batch // part)
    x = jnp.pad(x, ((0, 0), (0, parts * part - batch))).reshape(-1, parts, part)
    sums = jax.lax.map(product_with, jnp.moveaxis(x, 1, 0))
    return jnp.moveaxis(sums, 0, 1).reshape(size, -1)[:, :batch]


@jax.custom_batching.sequential_vmap
def _csr_dot(values: Array, columns: Array, starts: Array, x: Array) -> Array:
    """CSR matrix times ``(J, B)``.

    Sequential under vmap, because JAX computes products of batched BCSR matrices by scatters.
    """
    shape = (starts.size - 1, x.shape[0])
    matrix = BCSR((values, columns, starts), shape=shape, indices_sorted=True, unique_indices=True)
    return matrix @ x
