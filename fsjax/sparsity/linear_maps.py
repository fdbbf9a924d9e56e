"""Finds and replaces the linear maps of a function: products of inputs and a parameter.

Networks of Flax, Equinox and Haiku are traced to the same operations of JAX. :func:`linear_maps`
finds those that multiply inputs by a parameter, and :func:`evaluate_maps` computes the function
with other code in their place. Pruned layers can thus be summarised, calibrated and compressed
without changes to the network.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.sparsity.program import ProgramReader, trace
from fsjax.sparsity.trees import leaves_by_name
from fsjax.typing import PyTree

#: Operations that only change the type or the order of axes of an array; weights are tracked
#: through them.
_PASSED = ("convert_element_type", "copy", "copy_p", "reduce_precision", "transpose")


@dataclasses.dataclass(frozen=True)
class LinearMap:
    """One use of a parameter as weights.

    Attributes:
      path: path of the parameter, for example ``"Dense_0/kernel"``.
      kind: ``"matrix"`` or ``"convolution"``.
      rows: number of vectors that are multiplied: examples, times output positions of a
        convolution.
      inputs, outputs: lengths of these vectors before and after. For a convolution: the entries
        of a patch (kernel positions times input channels), and the output channels.
      order: permutation of the axes of the parameter that puts those of the inputs first.
      options: parameters of JAX's convolution; empty for a matrix.
    """

    path: str
    kind: str
    rows: int
    inputs: int
    outputs: int
    order: tuple[int, ...]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    def matrix(self, weight: Array) -> Array:
        """The parameter, or its mask, as a matrix ``(inputs, outputs)``; JAX or NumPy."""
        return weight.transpose(self.order).reshape(self.inputs, self.outputs)

    def weight(self, matrix: Array, shape: Sequence[int]) -> Array:
        """The parameter, in its own shape, from the matrix; inverse of :meth:`matrix`."""
        inverse = np.argsort(self.order)
        return matrix.reshape([shape[axis] for axis in self.order]).transpose(inverse)

    def patches(self, inputs: Array) -> Array:
        """The vectors ``(rows, inputs)`` that are multiplied: the rows, or the patches."""
        if self.kind == "matrix":
            return inputs
        options = self.options
        lhs, rhs, out = options["dimension_numbers"]
        spatial = rhs[2:]
        patches = jax.lax.conv_general_dilated_patches(
            inputs,
            filter_shape=[options["rhs_shape"][axis] for axis in spatial],
            window_strides=options["window_strides"],
            padding=options["padding"],
            lhs_dilation=options["lhs_dilation"],
            rhs_dilation=options["rhs_dilation"],
            dimension_numbers=jax.lax.ConvDimensionNumbers(lhs, tuple(range(len(rhs))), out),
        )
        channels = options["rhs_shape"][rhs[1]]
        by_channel = jnp.moveaxis(patches, out[1], -1).reshape(self.rows, channels, -1)
        return by_channel.swapaxes(1, 2).reshape(self.rows, self.inputs)


#: ``(map, inputs, weight) -> outputs``, the code for one linear map. For a matrix, it gets
#: ``(rows, inputs)`` and ``(inputs, outputs)`` and returns ``(rows, outputs)``; for a convolution,
#: it gets and returns the arrays of the network. On ``None``, JAX computes the map as usual.
Handler = Callable[[LinearMap, Array, Array | None], Array | None]


@dataclasses.dataclass
class _Kernel:
    """A parameter that is tracked up to the operation that uses it."""

    path: str
    value: Array | None
    order: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: Any


def linear_maps(function: Callable, params: PyTree, *inputs: PyTree) -> list[LinearMap]:
    """The linear maps of ``function(params, *inputs)``, in the order in which they are used.

    Args:
      function: for example ``model.apply``; it may be jitted. Weights that it passes into loops, or
        changes before it uses them, are not found.
      params: arrays, or their shapes.
      *inputs: arrays, or shapes like ``jax.ShapeDtypeStruct((1, 784), jnp.float32)``.
    """
    maps: list[LinearMap] = []

    def note(linear: LinearMap, rows: Array, weight: Array | None) -> None:
        maps.append(linear)

    jax.eval_shape(lambda p, x: evaluate_maps(function, note, p, *x), params, inputs)
    return maps


def evaluate_maps(function: Callable, handler: Handler, params: PyTree, *inputs: PyTree) -> PyTree:
    """Computes ``function(params, *inputs)`` with a handler for its linear maps.

    Args:
      function, params, *inputs: as in :func:`linear_maps`.
      handler: the code for each linear map.
    """
    return evaluator(function, params, *inputs)(handler, params, *inputs)


def evaluator(function: Callable, params: PyTree, *inputs: PyTree) -> Callable[..., PyTree]:
    """Traces a function once, for many calls of :func:`evaluate_maps` with arrays of these shapes.

    Returns:
      ``(handler, params, *inputs) -> outputs``. Leaves of ``params`` may be ``None`` if the handler
      computes their linear maps without them.
    """
    traced = trace(function, params, *inputs)

    def call(handler: Handler, weights: PyTree, *arrays: PyTree) -> PyTree:
        values = leaves_by_name(weights, none=True)
        kernels = [
            _Kernel(path, values[path], tuple(range(len(leaf.shape))), leaf.shape, leaf.dtype)
            for path, leaf in traced.params.items()
        ]
        outputs = _Evaluator(handler).run(traced.program, [*kernels, *jax.tree.leaves(arrays)])
        return jax.tree.unflatten(traced.outputs, map(_array, outputs))

    return call


@dataclasses.dataclass
class _Evaluator(ProgramReader[Any]):
    """Computes a program on arrays, some of which are :class:`_Kernel`."""

    handler: Handler

    def constant(self, array: Any) -> Any:
        return array

    def apply(self, equation: Any, operands: list[Any]) -> list[Any]:
        name = equation.primitive.name
        kernels = [i for i, operand in enumerate(operands) if isinstance(operand, _Kernel)]
        if len(kernels) == 1 and name in _PASSED:
            return [_passed(equation, operands[kernels[0]])]
        if len(kernels) == 1 and name == "dot_general":
            result = _matrix(equation, self.handler, operands, kernels[0])
            if result is not None:
                return [result]
        if kernels == [1] and name == "conv_general_dilated":
            result = _convolution(equation, self.handler, operands)
            if result is not None:
                return [result]
        options = equation.primitive.get_bind_params(equation.params)
        result = equation.primitive.bind(*map(_array, operands), **options)
        return list(result) if equation.primitive.multiple_results else [result]


def _array(value: Any) -> Any:
    if not isinstance(value, _Kernel):
        return value
    if value.value is None:
        raise NotImplementedError(
            f"the function also uses {value.path} outside of linear maps; pass its weights as an "
            "array, not None"
        )
    return value.value


def _passed(equation: Any, kernel: _Kernel) -> _Kernel:
    order, value = kernel.order, kernel.value
    shape, dtype = equation.outvars[0].aval.shape, equation.outvars[0].aval.dtype
    if equation.primitive.name == "transpose":
        permutation = equation.params["permutation"]
        order = tuple(order[axis] for axis in permutation)
        value = None if value is None else value.transpose(permutation)
    return _Kernel(kernel.path, None if value is None else value.astype(dtype), order, shape, dtype)


def _matrix(equation: Any, handler: Handler, operands: list[Any], position: int) -> Array | None:
    """The product of rows and a kernel, in either order; ``None`` if JAX should compute it."""
    contracted, batched = equation.params["dimension_numbers"]
    kernel, rows = operands[position], operands[1 - position]
    if batched[0] or not contracted[position] or len(contracted[position]) == len(kernel.shape):
        return None
    free = [axis for axis in range(len(kernel.shape)) if axis not in contracted[position]]
    axes = (*contracted[position], *free)
    inputs = math.prod(kernel.shape[axis] for axis in contracted[position])
    outputs = math.prod(kernel.shape[axis] for axis in free)
    row_axes = [axis for axis in range(rows.ndim) if axis not in contracted[1 - position]]
    vectors = rows.transpose((*row_axes, *contracted[1 - position])).reshape(-1, inputs)
    linear = LinearMap(
        kernel.path,
        "matrix",
        vectors.shape[0],
        inputs,
        outputs,
        tuple(kernel.order[axis] for axis in axes),
    )
    matrix = kernel.value
    if matrix is not None:
        matrix = matrix.transpose(axes).reshape(inputs, outputs)
    result = handler(linear, vectors, matrix)
    if result is None:
        return None
    aval = equation.outvars[0].aval
    row_shape = [rows.shape[axis] for axis in row_axes]
    result = result.astype(aval.dtype).reshape(*row_shape, *(kernel.shape[axis] for axis in free))
    if position == 1:
        return result
    number = len(row_axes)
    return result.transpose((*range(number, result.ndim), *range(number)))


def _convolution(equation: Any, handler: Handler, operands: list[Any]) -> Array | None:
    options, kernel = equation.params, operands[1]
    if options["feature_group_count"] != 1 or options["batch_group_count"] != 1:
        return None
    numbers = options["dimension_numbers"]
    output, channels, *spatial = numbers.rhs_spec
    shape = kernel.shape
    result_shape = equation.outvars[0].aval.shape
    linear = LinearMap(
        kernel.path,
        "convolution",
        math.prod(result_shape) // shape[output],
        math.prod(shape) // shape[output],
        shape[output],
        tuple(kernel.order[axis] for axis in (*spatial, channels, output)),
        {
            "dimension_numbers": numbers,
            "window_strides": options["window_strides"],
            "padding": options["padding"],
            "lhs_dilation": options["lhs_dilation"],
            "rhs_dilation": options["rhs_dilation"],
            "rhs_shape": shape,
            "lhs_shape": operands[0].shape,
        },
    )
    result = handler(linear, operands[0], kernel.value)
    return None if result is None else result.astype(equation.outvars[0].aval.dtype)
