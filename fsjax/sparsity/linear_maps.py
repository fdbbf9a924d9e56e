"""Finds and replaces the linear maps of a function: products of inputs and a parameter.

Networks of Flax, Equinox and Haiku are traced to the same operations of JAX. :func:`linear_maps`
finds those that multiply inputs by a parameter, and :func:`evaluator` computes the function with
other code in their place. Pruned layers can thus be summarised, calibrated and compressed without
changes to the network.
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
      conversions: operations of JAX, with their parameters, that change the type of the parameter.
      options: parameters of JAX's convolution; empty for a matrix.
      is_plain: whether the product is in the type of both operands, at JAX's default precision.
    """

    path: str
    kind: str
    rows: int
    inputs: int
    outputs: int
    order: tuple[int, ...]
    conversions: tuple[tuple[Any, Mapping[str, Any]], ...] = ()
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    is_plain: bool = True

    @property
    def layout(self) -> LinearMap:
        """What uses of a parameter have in common that the same array of weights serves."""
        numbers = {"axes": self.options.get("dimension_numbers")}
        return dataclasses.replace(self, rows=0, options=numbers)

    def converted(self, weight: Array) -> Array:
        """The parameter in the types that the function gives it."""
        for operation, options in self.conversions:
            weight = operation.bind(weight, **options)
        return weight

    def window(self, weight: Array) -> Array:
        """The parameter, or its mask, as the convolution takes it; JAX or NumPy."""
        output, channels, *spatial = self.options["dimension_numbers"].rhs_spec
        return weight.transpose(self.order).transpose(np.argsort((*spatial, channels, output)))

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
    conversions: tuple[tuple[Any, Mapping[str, Any]], ...] = ()


def linear_maps(
    function: Callable, params: PyTree, *inputs: PyTree
) -> tuple[list[LinearMap], set[str]]:
    """The linear maps of ``function(params, *inputs)``, in the order in which they are used.

    Args:
      function: for example ``model.apply``; it may be jitted. Weights that it passes into loops, or
        changes before it uses them, are not found.
      params: arrays, or their shapes.
      *inputs: arrays, or shapes like ``jax.ShapeDtypeStruct((1, 784), jnp.float32)``.

    Returns:
      The maps, and the paths of the parameters that other operations use.
    """
    maps: list[LinearMap] = []
    others: set[str] = set()

    def note(linear: LinearMap, rows: Array, weight: Array | None) -> None:
        maps.append(linear)

    def run(params: PyTree, inputs: PyTree) -> PyTree:
        return evaluator(function, params, *inputs, others=others)(note, params, *inputs)

    jax.eval_shape(run, params, inputs)
    return maps, others


def evaluator(
    function: Callable, params: PyTree, *inputs: PyTree, others: set[str] | None = None
) -> Callable[..., PyTree]:
    """Traces a function once, to compute it with other code for its linear maps.

    Args:
      function, params, *inputs: as in :func:`linear_maps`.
      others: gets the paths of the parameters that other operations use.

    Returns:
      ``(handler, params, *inputs) -> outputs``. Leaves of ``params`` may be ``None`` if the handler
      computes their linear maps without them.
    """
    traced = trace(function, params, *inputs)

    def call(handler: Handler, weights: PyTree, *arrays: PyTree) -> PyTree:
        values = leaves_by_name(weights, none=True)
        kernels = [
            _Kernel(path, values[path], tuple(range(len(leaf.shape))), leaf.shape)
            for path, leaf in traced.params.items()
        ]
        reader = _Evaluator(handler, set() if others is None else others)
        outputs = reader.run(traced.program, [*kernels, *jax.tree.leaves(arrays)])
        return jax.tree.unflatten(traced.outputs, reader.arrays(outputs))

    return call


@dataclasses.dataclass
class _Evaluator(ProgramReader[Any]):
    """Computes a program on arrays, some of which are :class:`_Kernel`."""

    handler: Handler
    others: set[str]

    def constant(self, array: Any) -> Any:
        return array

    def apply(self, equation: Any, operands: list[Any]) -> list[Any]:
        name = equation.primitive.name
        kernels = [i for i, operand in enumerate(operands) if isinstance(operand, _Kernel)]
        if len(kernels) == 1 and name in _PASSED:
            return [_passed(equation, operands[kernels[0]])]
        result = None
        if len(kernels) == 1 and name == "dot_general":
            result = _matrix(equation, self.handler, operands, kernels[0])
        if kernels == [1] and name == "conv_general_dilated":
            result = _convolution(equation, self.handler, operands)
        return [result] if result is not None else _bound(equation, self.arrays(operands))

    def arrays(self, values: Sequence[Any]) -> list[Any]:
        """The arrays of values that are used outside of linear maps."""
        self.others.update(value.path for value in values if isinstance(value, _Kernel))
        return list(map(_array, values))


def _bound(equation: Any, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of an operation, as JAX computes them."""
    options = equation.primitive.get_bind_params(equation.params)
    result = equation.primitive.bind(*arrays, **options)
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
    order, conversions = kernel.order, kernel.conversions
    if equation.primitive.name == "transpose":
        order = tuple(order[axis] for axis in equation.params["permutation"])
    else:
        conversions = (*conversions, (equation.primitive, equation.params))
    value = None if kernel.value is None else _bound(equation, [kernel.value])[0]
    return _Kernel(kernel.path, value, order, equation.outvars[0].aval.shape, conversions)


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
        kernel.conversions,
        is_plain=_is_plain(equation),
    )
    matrix = kernel.value
    if matrix is not None:
        matrix = matrix.transpose(axes).reshape(inputs, outputs)
    result = handler(linear, vectors, matrix)
    if result is None:
        return _bound(equation, [*map(_array, operands)])[0]
    aval = equation.outvars[0].aval
    row_shape = [rows.shape[axis] for axis in row_axes]
    result = result.astype(aval.dtype).reshape(*row_shape, *(kernel.shape[axis] for axis in free))
    if position == 1:
        return result
    number = len(row_axes)
    return result.transpose((*range(number, result.ndim), *range(number)))


def _is_plain(equation: Any) -> bool:
    types = {atom.aval.dtype for atom in (*equation.invars, *equation.outvars)}
    return len(types) == 1 and equation.params["precision"] is None


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
        kernel.conversions,
        {
            "dimension_numbers": numbers,
            "window_strides": options["window_strides"],
            "padding": options["padding"],
            "lhs_dilation": options["lhs_dilation"],
            "rhs_dilation": options["rhs_dilation"],
            "rhs_shape": shape,
            "lhs_shape": operands[0].shape,
        },
        _is_plain(equation),
    )
    result = handler(linear, operands[0], kernel.value)
    if result is None:
        return _bound(equation, [*map(_array, operands)])[0]
    return result.astype(equation.outvars[0].aval.dtype)


def multiplications(
    function: Callable, params: PyTree, *inputs: PyTree
) -> tuple[dict[str, int], set[str]]:
    """How many products of its entries and activations a call computes, by path of the parameter.

    Zeros that a transposed convolution puts between its inputs do not count. The second result has
    the paths of parameters of which the number is not known. Arguments as in :func:`linear_maps`.
    """
    traced = trace(function, params, *inputs)
    counter = _Counter()
    counter.run(traced.program, [*traced.params, *[True] * len(traced.inputs)])
    return counter.products, counter.unknown


@dataclasses.dataclass
class _Counter(ProgramReader[str | bool]):
    """Follows parameters, as their paths, and whether other values depend on the inputs.

    Attributes:
      products: the numbers of multiplications, by path.
      unknown: the paths of parameters with uses that are not counted.
      passes: how often the operations that are read are computed.
    """

    products: dict[str, int] = dataclasses.field(default_factory=dict)
    unknown: set[str] = dataclasses.field(default_factory=set)
    passes: int = 1

    def constant(self, array: Any) -> bool:
        return False

    def apply(self, equation: Any, operands: list[str | bool]) -> list[str | bool]:
        name = equation.primitive.name
        if name == "scan":
            return self._scan(equation, operands)
        paths = [value for value in operands if isinstance(value, str)]
        if len(operands) == 1 and name in (*_PASSED, *_RESHAPED):
            return operands
        with_inputs = any(value is True for value in operands)
        if len(paths) == 1 and with_inputs and name in ("dot_general", "conv_general_dilated"):
            before = self.products.get(paths[0], 0)
            self.products[paths[0]] = before + self.passes * _products(equation)
        elif not (with_inputs and name in _NO_PRODUCTS):
            self.unknown.update(paths)
        return [with_inputs] * len(equation.outvars)

    def _scan(self, equation: Any, operands: list[str | bool]) -> list[str | bool]:
        options, start = equation.params, equation.params["num_consts"]
        end, before = start + options["num_carry"], self.passes
        carried = zip(operands[start:end], equation.invars[start:end], strict=True)
        # The number of the pass does not depend on the inputs.
        carry = [v is True or jnp.issubdtype(atom.aval.dtype, jnp.inexact) for v, atom in carried]
        self.passes *= options["length"]
        outputs = self.run(options["jaxpr"], [*operands[:start], *carry, *operands[end:]])
        self.passes = before
        lost = (*operands[start:end], *outputs)
        self.unknown.update(value for value in lost if isinstance(value, str))
        return [True] * len(outputs)


def _products(equation: Any) -> int:
    """How many multiplications a product of matrices or a convolution computes."""
    numbers, result = equation.params["dimension_numbers"], equation.outvars[0].aval.shape
    first, second = (atom.aval.shape for atom in equation.invars)
    if equation.primitive.name == "dot_general":
        return math.prod(result) * math.prod(first[axis] for axis in numbers[0][0])
    dilation = equation.params["lhs_dilation"]
    places = zip(numbers.lhs_spec[2:], numbers.out_spec[2:], dilation, strict=True)
    positions = math.prod(first[i] if spread > 1 else result[j] for i, j, spread in places)
    return result[numbers.out_spec[0]] * positions * math.prod(second)


#: Operations that keep the entries of a parameter, in other places.
_RESHAPED = ("rev", "reshape", "squeeze", "broadcast_in_dim", "tile")

#: Operations that put rows of parameters beside or in place of activations.
_NO_PRODUCTS = ("concatenate", "gather", "dynamic_slice")
