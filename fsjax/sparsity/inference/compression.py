"""The function of a pruned network with every layer in the form that was measured fastest."""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.errors import ConfigError
from fsjax.sparsity.inference.kernels import convolution_forms, kernel_forms
from fsjax.sparsity.linear_maps import Handler, LinearMap, evaluator, linear_maps
from fsjax.sparsity.masks import apply_masks
from fsjax.sparsity.trees import leaves_by_name, with_leaves
from fsjax.typing import PyTree

#: A form replaces the dense kernel if it takes at most this share of its time.
_WORTH = 0.95

#: Seconds that the calls of one form are timed for.
_SECONDS = 0.05

#: Times that the whole network is measured in each form.
_ROUNDS = 3


@dataclasses.dataclass(frozen=True)
class LayerForm:
    """What was chosen for one layer.

    Attributes:
      path: of the parameter.
      form: its name, such as ``"dense"``, ``"fan-in"``, ``"connections"``, ``"tiles 16x16"`` or
        ``"shrunk"``.
      density: share of active connections.
      milliseconds: of one product with the rows of the example, by form.
    """

    path: str
    form: str
    density: float
    milliseconds: Mapping[str, float]


class Compressed:
    """A function of inputs, made by :func:`compress`; also inside ``jax.jit`` and ``jax.export``.

    Attributes:
      layers: what was chosen for each layer whose mask lacks connections.
      milliseconds: of the whole function with the example's inputs: ``"dense"``, ``"compressed"``.
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
        self._kernels = dict(kernels)
        # The function is traced with the shapes of weights that are no longer here.
        self._shapes = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), params
        )
        self._params = with_leaves(params, dict.fromkeys(kernels, None))
        # Without other kernels it is the program of the dense network, and costs what that does.
        self._arguments = (self._params, self._kernels) if kernels else (self._params,)
        self._call = jax.jit(_compute(function, self._shapes) if kernels else function)

    def __call__(self, *inputs: PyTree) -> PyTree:
        """The outputs of the network for inputs of any batch size."""
        return self._call(*self._arguments, *inputs)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        leaves = jax.tree.leaves((self._params, self._kernels))
        return sum(leaf.nbytes for leaf in leaves)

    def __str__(self) -> str:
        """A table of the layers, and the time of the whole."""
        lines = [
            f"{layer.path}: {layer.form}, density {layer.density:.4g} ("
            + ", ".join(f"{name} {ms:.3g} ms" for name, ms in layer.milliseconds.items())
            + ")"
            for layer in self.layers
        ]
        dense, compressed = self.milliseconds["dense"], self.milliseconds["compressed"]
        return "\n".join([*lines, f"whole network: dense {dense:.3g} ms, now {compressed:.3g} ms"])


def compress(
    function: Callable, params: PyTree, masks: PyTree, *inputs: PyTree, portable: bool = False
) -> Compressed:
    """Puts every pruned layer of a network into the form that is fastest on this machine.

    The forms of each layer (dense, the inputs of each output, connections, tiles, a matrix without
    dead channels) are timed with as many rows as the example has, and so is the whole: where the
    dense network is faster, it is kept. N:M masks become a form by inputs, as JAX has no product
    for them.

        fast = sparsity.compress(model.apply, params, sparsity.masks_of(opt_state), x)
        fast(x), print(fast)

    Args:
      function: ``(params, *inputs) -> outputs``, such as ``model.apply`` of Flax.
      params: arrays.
      masks: bool in their structure.
      *inputs: an example of the batch size that counts.
      portable: whether forms that ``jax.export`` refuses are left out.

    Returns:
      The network as a function of the inputs alone, equal to the masked one up to rounding.

    Raises:
      ConfigError: if no parameter with missing connections is used as the weights of a linear map.
    """
    params = apply_masks(params, masks)
    by_path = leaves_by_name(masks)
    pruned = {path for path, mask in by_path.items() if not np.asarray(mask).all()}
    maps = {linear.path: linear for linear in linear_maps(function, params, *inputs)}
    if not pruned & set(maps):
        raise ConfigError(
            f"none of {', '.join(sorted(pruned)) or 'the masks'} "
            + ("is used as the weights of a linear map" if pruned else "lacks a connection")
            + f"; the function uses {', '.join(maps) or 'no parameter in one'}"
        )
    weights = leaves_by_name(params)
    kernels, layers = {}, []
    for path in (path for path in maps if path in pruned):
        mask = np.asarray(by_path[path])
        kernel, layer = _fastest(maps[path], np.asarray(weights[path]), mask, portable)
        layers.append(layer)
        if layer.form != "dense":
            kernels[path] = kernel
    dense = functools.partial(jax.jit(function), params)
    compressed = Compressed(function, params, kernels, tuple(layers), {}) if kernels else dense
    dense_ms = compressed_ms = math.inf
    for _ in range(_ROUNDS):  # In turn, so that a busy moment of the machine affects both.
        dense_ms = min(dense_ms, _milliseconds(dense, *inputs))
        compressed_ms = min(compressed_ms, _milliseconds(compressed, *inputs))
    if not kernels or compressed_ms > dense_ms:
        kernels, compressed_ms = {}, dense_ms
        layers = [dataclasses.replace(layer, form="dense") for layer in layers]
    times = {"dense": dense_ms, "compressed": compressed_ms}
    return Compressed(function, params, kernels, tuple(layers), times)


def _fastest(
    linear: LinearMap, weight: np.ndarray, mask: np.ndarray, portable: bool
) -> tuple[Any, LayerForm]:
    """The fastest form of one kernel, and what was measured."""
    if linear.kind == "matrix":
        matrix, active = (np.asarray(linear.matrix(jnp.asarray(of))) for of in (weight, mask))
        forms: Mapping[str, Any] = kernel_forms(matrix, active, portable)
        rows = jnp.ones((linear.rows, linear.inputs), weight.dtype)
        times = {
            name: _milliseconds(jax.jit(lambda f, x: f.multiply(x)), form, rows)
            for name, form in forms.items()
        }
    else:
        forms = convolution_forms(linear, weight, mask)
        example = jnp.ones(linear.options["lhs_shape"], weight.dtype)
        times = {
            name: _milliseconds(jax.jit(lambda f, x: f.convolve(linear, x)), form, example)
            for name, form in forms.items()
        }
    name = min(times, key=times.__getitem__)
    if times[name] > _WORTH * times["dense"]:
        name = "dense"
    return forms[name], LayerForm(linear.path, name, float(mask.mean()), times)


def _milliseconds(function: Callable, *arguments: Any) -> float:
    """The least time of one call, compiled before."""
    jax.block_until_ready(function(*arguments))
    least, end = np.inf, time.perf_counter() + _SECONDS
    while least == np.inf or time.perf_counter() < end:
        start = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        least = min(least, time.perf_counter() - start)
    return 1000 * least


def _compute(function: Callable, shapes: PyTree) -> Callable[..., PyTree]:
    """``(params, kernels, *inputs) -> outputs``, with kernels in place of weights."""

    def compute(params: PyTree, kernels: Mapping[str, Any], *inputs: PyTree) -> PyTree:
        return evaluator(function, shapes, *inputs)(_by_kernels(kernels), params, *inputs)

    return compute


def _by_kernels(kernels: Mapping[str, Any]) -> Handler:
    def handle(linear: LinearMap, inputs: Array, weight: Array | None) -> Array | None:
        if linear.path not in kernels:
            return None
        kernel = kernels[linear.path]
        if linear.kind == "matrix":
            return kernel.multiply(inputs)
        return kernel.convolve(linear, inputs)

    return handle
