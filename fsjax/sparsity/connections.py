"""A layer as its connections alone: for networks whose matrices would not fit anywhere.

No array here has an entry for every pair of neurons. The connections lie in the order of the flat
positions of the matrix, so that ties of the rules fall as they do for masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
from flax import struct
from jax import Array
from jax.experimental.sparse import BCSR

#: Rows of a batch from which JAX's CSR product, of Eigen on CPUs, is faster than a scatter.
CSR_BATCH = 8

#: Connections whose products are held at once, so that these stay in the cache.
_PIECE = 256

#: Products of weights and activations that a scatter holds at once.
_HELD = 2**24


class Index(NamedTuple):
    """What products with many rows at once need beside the connections.

    Attributes:
      order: ``(n,)`` int32, the connections by output neuron.
      rows: ``(n,)`` their input neurons in this order.
      from_inputs, to_outputs: ``(I + 1,)`` and ``(O + 1,)`` where those of every neuron begin.
    """

    order: Array
    rows: Array
    from_inputs: Array
    to_outputs: Array


class Connections(struct.PyTreeNode):
    """The connections of a layer ``(I, O)``: where there are weights, which are ``(n,)``.

    Attributes:
      rows: ``(n,)`` int32 input neurons, ascending.
      columns: ``(n,)`` int32 output neurons, ascending for each input neuron.
      grown: int32, how many have come since the start; differences count, so that it may wrap.
      index: see :func:`indexed`, or ``()``.
      shape: ``(I, O)``.
    """

    rows: Array
    columns: Array
    grown: Array
    index: Index | tuple[()]
    shape: tuple[int, int] = struct.field(pytree_node=False)

    @property
    def size(self) -> int:
        """Pairs of neurons, ``I O``."""
        return math.prod(self.shape)


def connected(rows: Array, columns: Array, shape: tuple[int, int]) -> Connections:
    """Connections ``(n,)`` that are given in order, without an index."""
    return Connections(rows, columns, jnp.zeros((), jnp.int32), (), shape)


def indexed(connections: Connections, on: bool = True) -> Connections:
    """With an index for products with many rows at once, or (``on`` false) without."""
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
    """The matrix ``(I, O)`` with the values ``(n,)`` in place and 0 elsewhere; for small layers."""
    empty = jnp.zeros(connections.shape, values.dtype)
    return empty.at[connections.rows, connections.columns].set(values)


def of_inputs(values: Array, connections: Connections) -> Array:
    """``(I,)`` sums of values ``(n,)`` over the connections of every input neuron."""
    total = jnp.zeros(connections.shape[0], values.dtype)
    return total.at[connections.rows].add(values, indices_are_sorted=True)


def by_connections(function: Callable, *trees: object) -> object:
    """``jax.tree.map`` over trees of masks in which :class:`Connections` count as leaves."""
    return jax.tree.map(function, *trees, is_leaf=is_connections)


def without_index(masks: object) -> object:
    """Masks as they are kept, exported and compared: the connections alone."""
    return by_connections(
        lambda leaf: indexed(leaf, False) if is_connections(leaf) else leaf, masks
    )


def indexed_like(masks: object, like: object) -> object:
    """Masks of S seeds, ``(S, n)``, with an index where others of their structure have one."""

    def one(leaf: object, other: object) -> object:
        wanted = is_connections(other) and other.index != ()
        return jax.vmap(indexed)(leaf) if wanted and is_connections(leaf) else leaf

    return by_connections(one, masks, like)


def is_connections(node: object) -> TypeGuard[Connections]:
    """Whether a node of a tree of masks is :class:`Connections`."""
    return isinstance(node, Connections)


@jax.custom_vjp
def connected_dot(values: Array, connections: Connections, x: Array) -> Array:
    """The layer on activations with the neurons first: ``(I, B) -> (O, B)``.

    The same as ``dense(values, connections).T @ x`` up to floating-point reassociation.
    """
    index, outputs = connections.index, connections.shape[1]
    if isinstance(index, Index) and x.shape[1] >= CSR_BATCH:
        return _csr_dot(values[index.order], index.rows, index.to_outputs, x)
    return _scatter_dot(values, connections.rows, connections.columns, outputs, x)


def _forward(values: Array, connections: Connections, x: Array) -> tuple[Array, tuple]:
    return connected_dot(values, connections, x), (values, connections, x)


def _backward(saved: tuple, grad: Array) -> tuple[Array, None, Array]:
    values, connections, x = saved
    rows, columns, index = connections.rows, connections.columns, connections.index
    if isinstance(index, Index) and x.shape[1] >= CSR_BATCH:
        to_x = _csr_dot(values, columns, index.from_inputs, grad)
    else:
        to_x = _scatter_dot(values, columns, rows, x.shape[0], grad)
    return products(x, grad, rows, columns), None, to_x


connected_dot.defvjp(_forward, _backward)


def products(x: Array, y: Array, rows: Array, columns: Array) -> Array:
    """``(n,)`` entries at rows and columns of ``x @ y.T``, for ``(I, B)`` and ``(O, B)``."""
    if x.shape[1] < CSR_BATCH:
        parts = (x[:, i][rows] * y[:, i][columns] for i in range(x.shape[1]))
        return sum(parts, jnp.zeros(rows.shape, x.dtype))
    # The sum over the batch as a product with ones: several times faster on CPUs.
    ones = jnp.ones(x.shape[1], x.dtype)
    pieces = -(-rows.size // _PIECE)
    if pieces < 2:
        return (x[rows] * y[columns]) @ ones
    fill = (0, pieces * _PIECE - rows.size)
    places = [jnp.pad(where, fill).reshape(pieces, _PIECE) for where in (rows, columns)]
    values = jax.lax.map(lambda at: (x[at[0]] * y[at[1]]) @ ones, tuple(places))
    return values.reshape(-1)[: rows.size]


def _scatter_dot(values: Array, start: Array, end: Array, size: int, x: Array) -> Array:
    """Sums ``(size, B)`` of ``values x[start]`` at ``end``, for ``(J, B)``."""

    def of_part(x: Array) -> Array:
        return jnp.zeros((size, x.shape[1]), x.dtype).at[end].add(values[:, None] * x[start])

    batch = x.shape[1]
    # A batch of unknown size, of an exported program, is taken as it is.
    if not isinstance(batch, int) or batch * values.size <= _HELD:
        return of_part(x)
    part = max(1, _HELD // values.size)
    parts = -(-batch // part)
    x = jnp.pad(x, ((0, 0), (0, parts * part - batch))).reshape(-1, parts, part)
    sums = jax.lax.map(of_part, jnp.moveaxis(x, 1, 0))
    return jnp.moveaxis(sums, 0, 1).reshape(size, -1)[:, :batch]


@jax.custom_batching.sequential_vmap
def _csr_dot(values: Array, columns: Array, starts: Array, x: Array) -> Array:
    """A matrix by its rows on ``(J, B)``; batches of matrices would be made of scatters."""
    shape = (starts.size - 1, x.shape[0])
    matrix = BCSR((values, columns, starts), shape=shape, indices_sorted=True, unique_indices=True)
    return matrix @ x
