"""Compresses a pruned network: every layer gets the form that was measured to be fastest."""

from __future__ import annotations

import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.errors import ConfigError
from fsjax.sparsity.inference_kernels import convolution_forms, kernel_forms
from fsjax.sparsity.kernel_axes import AxesByPath, kernel_axes
from fsjax.sparsity.linear_maps import Handler, LinearMap, evaluator, linear_maps
from fsjax.sparsity.masks import apply_masks, bool_masks
from fsjax.sparsity.trees import leaves_by_name, with_leaves
from fsjax.typing import PyTree

#: A form replaces the dense kernel if it takes at most this share of the dense time.
_MAX_TIME_RATIO = 0.95

#: Seconds of one measurement.
_SECONDS = 0.01

#: Number of measurements of each form; forms alternate, so that other load affects all of them.
_ROUNDS = 10

#: Largest array in bytes that is part of the compiled program; larger ones are its arguments, each
#: of which takes a call 0.4 microseconds.
_MAX_CONSTANT_BYTES = 2**20


@dataclasses.dataclass(frozen=True)
class LayerForm:
    """The form that was chosen for one layer.

    Attributes:
      path: path of the parameter.
      form: ``"dense"``, ``"transposed"``, ``"fan-in"``, ``"connections"``, ``"shrunk"``, or tiles,
        for example ``"tiles 16x16"``.
      density: share of active connections, in (0, 1].
      milliseconds: time of one product with the rows of the example, by form; empty for a kernel
        with uses that no form serves, which stays dense.
    """

    path: str
    form: str
    density: float
    milliseconds: Mapping[str, float]


class Compressed:
    """A compressed network as a function of its inputs; works in ``jax.jit`` and ``jax.export``.

    Attributes:
      layers: the form of each layer whose mask has missing connections.
      milliseconds: time of a call of the whole network with the example, ``"dense"`` and
        ``"compressed"``.
    """

    def __init__(
        self,
        function: Callable,
        params: PyTree,
        kernels: Mapping[str, Any],
        layers: tuple[LayerForm, ...],
        milliseconds: Mapping[str, float],
    ) -> None:
        self.layers = layers
        self.milliseconds = milliseconds
        # Without kernels, this is the program of the dense network, at the same cost.
        program: Callable = function
        arguments: tuple = (params,)
        if kernels:
            program, arguments = _program(function, params, kernels)
        self._call, self._arguments = jax.jit(program), arguments
        leaves = jax.tree.leaves((with_leaves(params, dict.fromkeys(kernels)), dict(kernels)))
        self._nbytes = sum(leaf.nbytes for leaf in leaves)

    def __call__(self, *inputs: PyTree) -> PyTree:
        """The outputs of the network for inputs of any batch size."""
        return self._call(*self._arguments, *inputs)

    @property
    def nbytes(self) -> int:
        """Size of all arrays in bytes."""
        return self._nbytes

    def __str__(self) -> str:
        """A line per layer with its form and times, and the times of the whole network."""
        lines = [
            f"{layer.path}: {layer.form}, density {layer.density:.4g} ("
            + (
                ", ".join(f"{name} {ms:.3g} ms" for name, ms in layer.milliseconds.items())
                or "no form serves its uses"
            )
            + ")"
            for layer in self.layers
        ]
        dense, compressed = self.milliseconds["dense"], self.milliseconds["compressed"]
        return "\n".join(
            [*lines, f"whole network: dense {dense:.3g} ms, compressed {compressed:.3g} ms"]
        )


def compress(
    function: Callable,
    params: PyTree,
    masks: PyTree,
    *inputs: PyTree,
    portable: bool = False,
    axes: AxesByPath | None = None,
) -> Compressed:
    """Stores every pruned layer of a network in the form that is fastest on this machine.

    The forms of each layer (dense, transposed, inputs of each output, list of connections, tiles,
    matrix without dead channels) are timed with as many rows as the example has. The whole network
    is timed too, and stays dense unless it is at least 5 % faster. N:M masks are stored as the
    inputs of each output, because JAX has no N:M product. A kernel stays dense if it is used in two
    orientations, in a loop or a lookup too, or in products with a precision or type of their own.

        fast = sparsity.compress(model.apply, params, sparsity.masks_of(opt_state), x)
        fast(x), print(fast)

    Args:
      function: ``(params, *inputs) -> outputs``, for example ``model.apply`` of Flax.
      params: arrays.
      masks: bool arrays in the structure of ``params``.
      *inputs: an example with the batch size of later calls; others work, but may be slower.
      portable: whether to leave out forms that ``jax.export`` does not support.
      axes: of :func:`fsjax.sparsity.axes`, which leaves dense what the network does not use as a
        kernel; inputs and outputs are read from the function in any case.

    Returns:
      The network as a function of the inputs only, equal to the masked network up to rounding.

    Raises:
      ConfigError: if no mask has missing connections, or no parameter that has some is used as the
        weights of a linear map.

    Examples:
      >>> params = {"kernel": jax.random.normal(jax.random.key(0), (6, 4))}
      >>> masks = {"kernel": sparsity.random_mask(jax.random.key(1), (6, 4), 4)}
      >>> def apply(params, x):
      ...     return x @ params["kernel"]
      >>> params = sparsity.apply_masks(params, masks)
      >>> fast = sparsity.compress(apply, params, masks, jnp.asarray(data.X[:1]))
      >>> print(fast)  # the form of each layer, and what it takes
    """
    params, by_path = apply_masks(params, masks), leaves_by_name(bool_masks(masks))
    pruned = {path for path, mask in by_path.items() if not np.asarray(mask).all()}
    if axes is not None and pruned:
        pruned &= set(kernel_axes(params, axes=axes))
    uses, others = linear_maps(function, params, *inputs)
    maps = {linear.path: linear for linear in uses}
    others |= {u.path for u in uses if u.layout != maps[u.path].layout or not u.is_plain}
    if not pruned & set(maps):
        if not pruned:
            raise ConfigError(
                "no mask has a missing connection; pass the masks of a pruned network"
            )
        raise ConfigError(
            f"none of {', '.join(sorted(pruned))} is used as the weights of a linear map; the "
            f"linear maps of the function use {', '.join(maps) or 'no parameter'}"
        )
    weights = leaves_by_name(params)
    kernels, layers = {}, []
    for path in (path for path in maps if path in pruned):
        mask = np.asarray(by_path[path])
        if path in others:
            layers.append(LayerForm(path, "dense", float(mask.mean()), {}))
            continue
        kernel, layer = _fastest(maps[path], np.asarray(weights[path]), mask, portable)
        layers.append(layer)
        if layer.form != "dense":
            kernels[path] = kernel
    programs = {"dense": Compressed(function, params, {}, (), {})}
    if kernels:
        programs["compressed"] = Compressed(function, params, kernels, tuple(layers), {})
    rounds = _milliseconds_each(programs, *inputs)
    times = {name: min(values) for name, values in rounds.items()}
    if not kernels or not _worth(rounds["dense"], rounds["compressed"]):
        kernels, times["compressed"] = {}, times["dense"]
        layers = [dataclasses.replace(layer, form="dense") for layer in layers]
    return Compressed(function, params, kernels, tuple(layers), times)


def _fastest(
    linear: LinearMap, weight: np.ndarray, mask: np.ndarray, portable: bool
) -> tuple[Any, LayerForm]:
    """The fastest form of one kernel, and its measurements."""
    turned = linear.matrix if linear.kind == "matrix" else linear.window
    arrays = linear.converted(jnp.asarray(weight)), jnp.asarray(mask)
    kernel, active = (np.asarray(turned(array)) for array in arrays)
    if linear.kind == "matrix":
        forms: Mapping[str, Any] = kernel_forms(kernel, active, portable)
        shape: tuple[int, ...] = (linear.rows, linear.inputs)
    else:
        forms = convolution_forms(linear, kernel, active)
        shape = linear.options["lhs_shape"]
    call = jax.jit(functools.partial(_apply, linear))
    calls = {name: functools.partial(call, form) for name, form in forms.items()}
    rounds = _milliseconds_each(calls, jnp.ones(shape, kernel.dtype))
    times = {name: min(values) for name, values in rounds.items()}
    name = min(times, key=times.__getitem__)
    if times[name] > _MAX_TIME_RATIO * times["dense"]:
        name = "dense"
    return forms[name], LayerForm(linear.path, name, float(mask.mean()), times)


def _worth(dense: Sequence[float], compressed: Sequence[float]) -> bool:
    """Whether the compressed network is faster, both at best and in most rounds."""
    in_rounds = statistics.median(b / a for a, b in zip(dense, compressed, strict=True))
    return max(in_rounds, min(compressed) / min(dense)) <= _MAX_TIME_RATIO


def _milliseconds_each(calls: Mapping[str, Callable], *arguments: Any) -> dict[str, list[float]]:
    """The times of each call in alternating rounds."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            times[name].append(_milliseconds(call, *arguments))
    return times


def _milliseconds(function: Callable, *arguments: Any) -> float:
    """The shortest time of one call, without compilation."""
    jax.block_until_ready(function(*arguments))
    shortest, end = np.inf, time.perf_counter() + _SECONDS
    while shortest == np.inf or time.perf_counter() < end:
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        shortest = min(shortest, time.perf_counter() - start)
    return 1000 * shortest


def _program(
    function: Callable, params: PyTree, kernels: Mapping[str, Any]
) -> tuple[Callable[..., PyTree], tuple[list[Array]]]:
    """``(large, *inputs) -> outputs`` with kernels in place of weights, and its large arrays."""
    # The function is traced with the shapes of the weights, which are no longer stored.
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), params)
    leaves, structure = jax.tree.flatten(
        (with_leaves(params, dict.fromkeys(kernels)), dict(kernels))
    )
    large = [leaf for leaf in leaves if leaf.nbytes > _MAX_CONSTANT_BYTES]
    built_in = [None if leaf.nbytes > _MAX_CONSTANT_BYTES else leaf for leaf in leaves]

    def program(large: list[Array], *inputs: PyTree) -> PyTree:
        # Without the barrier, XLA would cut the constants at compile time into hundreds of pieces,
        # and each piece costs time in a call.
        constants, rest = jax.lax.optimization_barrier(built_in), iter(large)
        arrays = [next(rest) if leaf is None else leaf for leaf in constants]
        weights, forms = jax.tree.unflatten(structure, arrays)
        return evaluator(function, shapes, *inputs)(_by_kernels(forms), weights, *inputs)

    return program, (large,)


def _by_kernels(kernels: Mapping[str, Any]) -> Handler:
    def handle(linear: LinearMap, inputs: Array, weight: Array | None) -> Array | None:
        return _apply(linear, kernels[linear.path], inputs) if linear.path in kernels else None

    return handle


def _apply(linear: LinearMap, kernel: Any, inputs: Array) -> Array:
    """The linear map with a kernel in one of its forms."""
    return kernel.multiply(inputs) if linear.kind == "matrix" else kernel.convolve(linear, inputs)
