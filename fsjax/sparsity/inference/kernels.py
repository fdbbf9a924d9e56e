"""Forms in which a pruned kernel can be stored for inference, with the product of each.

:func:`kernel_forms` creates the forms of a matrix ``(I, O)`` and its mask. Padding is the input 0
with the weight 0, so every form gives the dense product up to the order of summation.
"""

from __future__ import annotations

from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array
from jax.experimental.sparse import BCSR

from fsjax.sparsity.linear_maps import LinearMap
from fsjax.sparsity.tiles import MOST_PADDED, cut_into_tiles, tile_of

#: Number of rows from which the inputs of each output are added one at a time; the terms of all
#: inputs would not fit the caches.
_SUMMED_APART = 8

#: Largest fan-in for which the terms of one row are unrolled.
_UNROLLED = 64


class KernelForm(Protocol):
    """A kernel in one form; a pytree of arrays."""

    def multiply(self, rows: Array) -> Array:
        """``(R, I)`` rows times the matrix, ``(R, O)``."""
        ...


class Dense(struct.PyTreeNode):
    """The matrix ``(I, O)``."""

    matrix: Array

    def multiply(self, rows: Array) -> Array:
        return rows @ self.matrix.astype(rows.dtype)


class Shrunk(struct.PyTreeNode):
    """The matrix without the inputs and outputs that have no connection.

    Attributes:
      matrix: ``(i, o)``, the remaining rows and columns.
      inputs, outputs: ``(i,)`` and ``(o,)`` int32, their positions in the full matrix.
      width: O, the number of all outputs.
    """

    matrix: Array
    inputs: Array
    outputs: Array
    width: int = struct.field(pytree_node=False)

    def multiply(self, rows: Array) -> Array:
        if self.matrix.shape[0] < rows.shape[1]:
            rows = rows[:, self.inputs]
        product = rows @ self.matrix.astype(rows.dtype)
        if self.matrix.shape[1] == self.width:
            return product
        return jnp.zeros((rows.shape[0], self.width), rows.dtype).at[:, self.outputs].set(product)


class ByInputs(struct.PyTreeNode):
    """The inputs of each output, k for all outputs (constant fan-in, or padded).

    Attributes:
      inputs: ``(k, O)`` int32, positions of the inputs.
      weights: ``(k, O)``.
    """

    inputs: Array
    weights: Array

    def multiply(self, rows: Array) -> Array:
        weights = self.weights.astype(rows.dtype)
        if rows.shape[0] < _SUMMED_APART:
            # One row at a time, because XLA is slow at gathering from several rows.
            return jnp.stack([self._multiply_row(row, weights) for row in rows])
        by_input = rows.T

        def add(total: Array, term: tuple[Array, Array]) -> tuple[Array, None]:
            inputs, weight = term
            at_inputs = by_input.at[inputs].get(mode="promise_in_bounds")
            return total + at_inputs * weight[:, None], None

        empty = jnp.zeros((weights.shape[1], rows.shape[0]), rows.dtype)
        return jax.lax.scan(add, empty, (self.inputs, weights))[0].T

    def _multiply_row(self, row: Array, weights: Array) -> Array:
        """``(I,)`` times the matrix, ``(O,)``."""
        if len(weights) > _UNROLLED:
            return jnp.sum(row.at[self.inputs].get(mode="promise_in_bounds") * weights, axis=0)
        # XLA fuses unrolled terms into one loop over the outputs.
        terms = zip(self.inputs, weights, strict=True)
        return sum(row.at[i].get(mode="promise_in_bounds") * w for i, w in terms)


class ByConnections(struct.PyTreeNode):
    """The connections in JAX's BCSR format, one compressed row per output (Eigen on CPUs)."""

    transposed: BCSR

    def multiply(self, rows: Array) -> Array:
        return (self.transposed @ rows.T).T


class ByTiles(struct.PyTreeNode):
    """Tiles of h inputs by w outputs, k for each strip of w outputs.

    Attributes:
      inputs: ``(O / w, k)`` int32, the strip of h inputs of each tile.
      tiles: ``(O / w, k, h, w)`` weights.
    """

    inputs: Array
    tiles: Array

    def multiply(self, rows: Array) -> Array:
        strips = rows.reshape(rows.shape[0], -1, self.tiles.shape[2])
        product = jnp.einsum("roki,okij->roj", strips[:, self.inputs], self.tiles)
        return product.reshape(rows.shape[0], -1).astype(rows.dtype)


class DenseConvolution(struct.PyTreeNode):
    """The kernel of a convolution, unchanged."""

    kernel: Array

    def convolve(self, linear: LinearMap, inputs: Array) -> Array:
        """The convolution of inputs in the layout that the network uses."""
        return _convolve(linear, inputs, self.kernel)


class ShrunkConvolution(struct.PyTreeNode):
    """The kernel of a convolution without the channels that have no connection.

    Attributes:
      kernel: the remaining weights in the layout of the network.
      inputs, outputs: int32, the remaining channels.
      width: number of all output channels.
    """

    kernel: Array
    inputs: Array
    outputs: Array
    width: int = struct.field(pytree_node=False)

    def convolve(self, linear: LinearMap, inputs: Array) -> Array:
        lhs, _, out = linear.options["dimension_numbers"]
        remaining = jnp.take(inputs, self.inputs, axis=lhs[1])
        product = jnp.moveaxis(_convolve(linear, remaining, self.kernel), out[1], -1)
        outputs = jnp.zeros((*product.shape[:-1], self.width), product.dtype)
        return jnp.moveaxis(outputs.at[..., self.outputs].set(product), -1, out[1])


def kernel_forms(
    matrix: np.ndarray, mask: np.ndarray, portable: bool = False
) -> dict[str, KernelForm]:
    """The forms of a matrix that may be faster than the dense one, by name; ``"dense"`` is first.

    Args:
      matrix: ``(I, O)``, 0 where the mask is false.
      mask: bool ``(I, O)``.
      portable: whether to leave out forms that only some backends support, for ``jax.export``.
    """
    forms: dict[str, KernelForm] = {"dense": Dense(jnp.asarray(matrix))}
    inputs, outputs = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if len(inputs) < mask.shape[0] or len(outputs) < mask.shape[1]:
        small = matrix[np.ix_(inputs, outputs)]
        forms["shrunk"] = Shrunk(jnp.asarray(small), _int32(inputs), _int32(outputs), mask.shape[1])
    fan_in = int(mask.sum(0).max(initial=0))
    if 0 < fan_in <= MOST_PADDED * mask.shape[0]:
        forms["fan-in"] = _by_inputs(matrix, mask, fan_in)
        if not portable:
            forms["connections"] = _by_connections(matrix, mask)
    tile = tile_of(mask)
    if tile is not None:
        forms[f"tiles {tile[0]}x{tile[1]}"] = _by_tiles(matrix, mask, tile)
    return forms


def convolution_forms(
    linear: LinearMap, kernel: np.ndarray, mask: np.ndarray
) -> dict[str, DenseConvolution | ShrunkConvolution]:
    """The forms of the kernel of a convolution, by name; ``"dense"`` is first."""
    forms: dict[str, DenseConvolution | ShrunkConvolution] = {
        "dense": DenseConvolution(jnp.asarray(kernel))
    }
    rhs = linear.options["dimension_numbers"].rhs_spec
    alive = np.moveaxis(mask, (rhs[1], rhs[0]), (0, 1)).reshape(
        mask.shape[rhs[1]], mask.shape[rhs[0]], -1
    )
    inputs, outputs = (np.flatnonzero(alive.any((axis, 2))) for axis in (1, 0))
    if len(inputs) < alive.shape[0] or len(outputs) < alive.shape[1]:
        small = np.take(np.take(kernel, inputs, axis=rhs[1]), outputs, axis=rhs[0])
        forms["shrunk"] = ShrunkConvolution(
            jnp.asarray(small), _int32(inputs), _int32(outputs), alive.shape[1]
        )
    return forms


def _convolve(linear: LinearMap, inputs: Array, kernel: Array) -> Array:
    options = linear.options
    return jax.lax.conv_general_dilated(
        inputs,
        kernel.astype(inputs.dtype),
        window_strides=options["window_strides"],
        padding=options["padding"],
        lhs_dilation=options["lhs_dilation"],
        rhs_dilation=options["rhs_dilation"],
        dimension_numbers=options["dimension_numbers"],
    )


def _int32(positions: np.ndarray) -> Array:
    return jnp.asarray(positions, jnp.int32)


def _by_inputs(matrix: np.ndarray, mask: np.ndarray, fan_in: int) -> ByInputs:
    # A stable sort puts the connections of each output first, in order.
    order = np.argsort(~mask, axis=0, kind="stable")[:fan_in]
    active = np.take_along_axis(mask, order, 0)
    weights = np.where(active, np.take_along_axis(matrix, order, 0), 0)
    inputs = np.where(active, order, 0)
    return ByInputs(_int32(inputs), jnp.asarray(weights.astype(matrix.dtype)))


def _by_connections(matrix: np.ndarray, mask: np.ndarray) -> ByConnections:
    outputs, inputs = np.nonzero(mask.T)
    starts = np.concatenate([[0], np.cumsum(mask.sum(0))])
    arrays = (jnp.asarray(matrix[inputs, outputs]), _int32(inputs), _int32(starts))
    return ByConnections(BCSR(arrays, shape=mask.T.shape))


def _by_tiles(matrix: np.ndarray, mask: np.ndarray, tile: tuple[int, int]) -> ByTiles:
    active = cut_into_tiles(mask, *tile).any((2, 3))
    tiles_per_strip = int(active.sum(1).max())
    order = np.argsort(~active, axis=1, kind="stable")[:, :tiles_per_strip]
    is_tile = np.take_along_axis(active, order, 1)
    tiles = np.take_along_axis(cut_into_tiles(matrix, *tile), order[..., None, None], 1)
    tiles = np.where(is_tile[..., None, None], tiles, 0).astype(matrix.dtype)
    return ByTiles(_int32(np.where(is_tile, order, 0)), jnp.asarray(tiles))
