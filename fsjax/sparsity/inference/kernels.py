"""Forms of a pruned kernel for inference; each multiplies rows as the dense matrix does.

A form is made from a matrix ``(I, O)`` and its mask by :func:`kernel_forms`. Padding is an input 0
with the weight 0, so that every form gives the dense product up to the order of the sums.
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

#: Rows from which the inputs of each output are summed one by one, as all at once do not fit the
#: caches.
_SUMMED_APART = 8


#: Inputs of an output up to which the terms of one row are written out one by one.
_UNROLLED = 64


class KernelForm(Protocol):
    """A kernel in one form; a pytree of its arrays."""

    def multiply(self, rows: Array) -> Array:
        """``(R, I)`` rows times the matrix, ``(R, O)``."""
        ...


class Dense(struct.PyTreeNode):
    """The matrix ``(I, O)``."""

    matrix: Array

    def multiply(self, rows: Array) -> Array:
        """``(R, I)`` rows times the matrix, ``(R, O)``."""
        return rows @ self.matrix.astype(rows.dtype)


class Shrunk(struct.PyTreeNode):
    """The matrix without inputs and outputs that have no connection.

    Attributes:
      matrix: ``(i, o)``.
      inputs, outputs: ``(i,)`` and ``(o,)`` int32, which these are.
      width: O.
    """

    matrix: Array
    inputs: Array
    outputs: Array
    width: int = struct.field(pytree_node=False)

    def multiply(self, rows: Array) -> Array:
        """``(R, I)`` rows times the matrix, ``(R, O)``."""
        if self.matrix.shape[0] < rows.shape[1]:
            rows = rows[:, self.inputs]
        product = rows @ self.matrix.astype(rows.dtype)
        if self.matrix.shape[1] == self.width:
            return product
        return jnp.zeros((rows.shape[0], self.width), rows.dtype).at[:, self.outputs].set(product)


class ByInputs(struct.PyTreeNode):
    """The inputs of each output, as many for all (constant fan-in, or padded).

    Attributes:
      inputs: ``(k, O)`` int32.
      weights: ``(k, O)``.
    """

    inputs: Array
    weights: Array

    def multiply(self, rows: Array) -> Array:
        """``(R, I)`` rows times the matrix, ``(R, O)``."""
        weights = self.weights.astype(rows.dtype)
        if rows.shape[0] < _SUMMED_APART:
            # One row after the other, as XLA is slow at a gather from several.
            return jnp.stack([self._multiply_row(row, weights) for row in rows])
        by_input = rows.T

        def add(total: Array, place: tuple[Array, Array]) -> tuple[Array, None]:
            inputs, weight = place
            at_inputs = by_input.at[inputs].get(mode="promise_in_bounds")
            return total + at_inputs * weight[:, None], None

        empty = jnp.zeros((weights.shape[1], rows.shape[0]), rows.dtype)
        return jax.lax.scan(add, empty, (self.inputs, weights))[0].T

    def _multiply_row(self, row: Array, weights: Array) -> Array:
        """``(I,)`` times the matrix, ``(O,)``."""
        if len(weights) > _UNROLLED:
            return jnp.sum(row.at[self.inputs].get(mode="promise_in_bounds") * weights, axis=0)
        # Term by term, XLA computes all in one loop over the outputs.
        terms = zip(self.inputs, weights, strict=True)
        return sum(row.at[i].get(mode="promise_in_bounds") * w for i, w in terms)


class ByConnections(struct.PyTreeNode):
    """The connections by output, in the compressed rows of JAX (on CPUs a product of Eigen)."""

    transposed: BCSR

    def multiply(self, rows: Array) -> Array:
        """``(R, I)`` rows times the matrix, ``(R, O)``."""
        return (self.transposed @ rows.T).T


class ByTiles(struct.PyTreeNode):
    """The tiles of each strip of outputs, as many for all.

    Attributes:
      inputs: ``(O / w, k)`` int32, the strips of inputs.
      tiles: ``(O / w, k, h, w)``.
    """

    inputs: Array
    tiles: Array

    def multiply(self, rows: Array) -> Array:
        """``(R, I)`` rows times the matrix, ``(R, O)``."""
        strips = rows.reshape(rows.shape[0], -1, self.tiles.shape[2])
        product = jnp.einsum("roki,okij->roj", strips[:, self.inputs], self.tiles)
        return product.reshape(rows.shape[0], -1).astype(rows.dtype)


class DenseConvolution(struct.PyTreeNode):
    """A kernel of a convolution as it is."""

    kernel: Array

    def convolve(self, linear: LinearMap, inputs: Array) -> Array:
        """The convolution of inputs in the layout that the network uses."""
        return _convolve(linear, inputs, self.kernel)


class ShrunkConvolution(struct.PyTreeNode):
    """A kernel without the channels that have no connection.

    Attributes:
      kernel: in the network's layout.
      inputs, outputs: int32, the channels that are left.
      width: all output channels.
    """

    kernel: Array
    inputs: Array
    outputs: Array
    width: int = struct.field(pytree_node=False)

    def convolve(self, linear: LinearMap, inputs: Array) -> Array:
        """The convolution of inputs in the layout that the network uses."""
        lhs, _, out = linear.options["dimension_numbers"]
        left = jnp.take(inputs, self.inputs, axis=lhs[1])
        product = jnp.moveaxis(_convolve(linear, left, self.kernel), out[1], -1)
        whole = jnp.zeros((*product.shape[:-1], self.width), product.dtype)
        return jnp.moveaxis(whole.at[..., self.outputs].set(product), -1, out[1])


def kernel_forms(
    matrix: np.ndarray, mask: np.ndarray, portable: bool = False
) -> dict[str, KernelForm]:
    """The forms of a matrix ``(I, O)`` that may pay, by name; the first is ``"dense"``.

    Args:
      matrix: 0 where the mask is false.
      mask: bool.
      portable: whether forms that only some backends compute are left out, for ``jax.export``.
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
    """The forms of a kernel of a convolution that may pay, by name; the first is ``"dense"``."""
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


def _int32(places: np.ndarray) -> Array:
    return jnp.asarray(places, jnp.int32)


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
    number = int(active.sum(1).max())
    order = np.argsort(~active, axis=1, kind="stable")[:, :number]
    there = np.take_along_axis(active, order, 1)
    tiles = np.take_along_axis(cut_into_tiles(matrix, *tile), order[..., None, None], 1)
    tiles = np.where(there[..., None, None], tiles, 0).astype(matrix.dtype)
    return ByTiles(_int32(np.where(there, order, 0)), jnp.asarray(tiles))
