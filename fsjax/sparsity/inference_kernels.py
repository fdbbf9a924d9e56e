"""Forms in which a pruned kernel can be stored for inference, with the product of each.

:func:`kernel_forms` creates the forms of a matrix ``(I, O)`` and its mask. Padding is a missing
connection with its weight 0, so every form gives the dense product up to the order of summation.
"""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array
from jax.experimental.sparse import BCSR

from fsjax.sparsity.linear_maps import LinearMap
from fsjax.sparsity.structures import MAX_PADDED, cut_into_tiles, tile_of

#: Largest number of terms of one row that are unrolled, over all strips; more compile slowly.
_MAX_UNROLLED = 256

#: Largest number of strips, and smallest number of outputs of a strip. XLA still fuses 8 strips
#: into one loop per strip.
_MAX_STRIPS = 8
_MIN_WIDTH = 64


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


class Transposed(struct.PyTreeNode):
    """The matrix ``(O, I)``, for which XLA has a faster product with a single row on CPUs."""

    matrix: Array

    def multiply(self, rows: Array) -> Array:
        return rows @ self.matrix.astype(rows.dtype).T


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
    """The inputs of each output, in strips of outputs with about as many inputs.

    Attributes:
      inputs: ``(N,)`` positions of the inputs, one strip ``(k, width)`` after another.
      weights: ``(N,)``.
      outputs: ``(O,)`` positions of the outputs in the order of the strips.
      strips: k and the width of each strip; k is the largest fan-in in the strip.
    """

    inputs: Array
    weights: Array
    outputs: Array
    strips: tuple[tuple[int, int], ...] = struct.field(pytree_node=False)

    def multiply(self, rows: Array) -> Array:
        if rows.shape[0] == 1:
            return self._multiply_row(rows[0])[None]
        # One row at a time, because XLA is slow at gathering from several rows on CPUs.
        one_at_a_time = functools.partial(jax.lax.map, self._multiply_row)
        together = jax.vmap(self._multiply_row)
        return jax.lax.platform_dependent(rows, cpu=one_at_a_time, default=together)

    def _multiply_row(self, row: Array) -> Array:
        """``(I,)`` times the matrix, ``(O,)``."""
        weights, sums, start = self.weights.astype(row.dtype), [], 0
        for fan_in, width in self.strips:
            # XLA fuses unrolled terms into one loop over the outputs.
            number = fan_in if fan_in <= _MAX_UNROLLED else 1
            ends = start + fan_in * width * np.arange(number + 1) // number
            terms = (
                row.at[self.inputs[i:j]].get(mode="promise_in_bounds") * weights[i:j]
                for i, j in itertools.pairwise(ends)
            )
            sums.append(functools.reduce(operator.add, terms).reshape(-1, width).sum(0))
            start = ends[-1]
        # A scatter, because XLA would fuse a gather with the sums, and compute them repeatedly.
        return (
            jnp.zeros(len(self.outputs), row.dtype)
            .at[self.outputs]
            .set(jnp.concatenate(sums), unique_indices=True, mode="promise_in_bounds")
        )


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
    forms: dict[str, KernelForm] = {
        "dense": Dense(jnp.asarray(matrix)),
        "transposed": Transposed(jnp.asarray(matrix.T)),
    }
    inputs, outputs = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if len(inputs) < mask.shape[0] or len(outputs) < mask.shape[1]:
        small = matrix[np.ix_(inputs, outputs)]
        forms["shrunk"] = Shrunk(jnp.asarray(small), _int32(inputs), _int32(outputs), mask.shape[1])
    fan_in = int(mask.sum(0).max(initial=0))
    if 0 < fan_in <= MAX_PADDED * mask.shape[0]:
        forms["fan-in"] = _by_inputs(matrix, mask)
        # JAX has this product for other types too, but not as fast code.
        if not portable and matrix.dtype in (np.float32, np.float64):
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
    return jax.device_put(positions.astype(np.int32))


def _by_inputs(matrix: np.ndarray, mask: np.ndarray) -> ByInputs:
    fan_in = mask.sum(0)
    num_strips = min(_MAX_STRIPS, _MAX_UNROLLED // fan_in.max(), mask.shape[1] // _MIN_WIDTH)
    outputs = np.argsort(-fan_in, kind="stable")
    inputs, weights, strips = [], [], []
    for strip in np.array_split(outputs, max(1, num_strips)):
        k = max(1, fan_in[strip].max())
        # A stable sort puts the connections of each output first, in order.
        order = np.argsort(~mask[:, strip], axis=0, kind="stable")[:k]
        inputs.append(order.ravel())
        weights.append(np.take_along_axis(matrix[:, strip], order, 0).ravel())
        strips.append((int(k), len(strip)))
    # Short, to stay in the caches; unsigned, for which JAX does not handle negative positions.
    positions = np.uint16 if max(mask.shape) < 2**16 else np.uint32
    return ByInputs(
        jax.device_put(np.concatenate(inputs).astype(positions)),
        jax.device_put(np.concatenate(weights)),
        jax.device_put(outputs.astype(positions)),
        tuple(strips),
    )


def _by_connections(matrix: np.ndarray, mask: np.ndarray) -> ByConnections:
    outputs, inputs = np.nonzero(mask.T)
    starts = np.concatenate([[0], np.cumsum(mask.sum(0))])
    arrays = (jax.device_put(matrix[inputs, outputs]), _int32(inputs), _int32(starts))
    return ByConnections(BCSR(arrays, shape=mask.T.shape))


def _by_tiles(matrix: np.ndarray, mask: np.ndarray, tile: tuple[int, int]) -> ByTiles:
    active = cut_into_tiles(mask, *tile).any((2, 3))
    tiles_per_strip = int(active.sum(1).max())
    order = np.argsort(~active, axis=1, kind="stable")[:, :tiles_per_strip]
    is_tile = np.take_along_axis(active, order, 1)
    tiles = np.take_along_axis(cut_into_tiles(matrix, *tile), order[..., None, None], 1)
    tiles = np.where(is_tile[..., None, None], tiles, 0).astype(matrix.dtype)
    return ByTiles(_int32(np.where(is_tile, order, 0)), jax.device_put(tiles))
