"""The layers of a kernel: matrices ``(..., inputs, outputs)``, whatever its own axes are.

Rules, structures and distributions are written for kernels whose last two axes are inputs and
outputs. Kernels of attention have several axes of inputs or of outputs, those of a scan over
layers have an axis of layers, and those of Equinox have outputs first. Each is cut and turned here
once, at the border, and put back together after a change.
"""

from __future__ import annotations

import dataclasses
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from fsjax.errors import ConfigError
from fsjax.sparsity.axis_roles import ROLES, ParameterAxes
from fsjax.sparsity.masks import Where, is_kernel, matches, named_leaves
from fsjax.sparsity.structures import Structure
from fsjax.sparsity.trees import is_output_first, leaves_by_name, with_leaves
from fsjax.typing import PyTree

#: By path pattern, what :func:`fsjax.sparsity.axes` says of a parameter, or the role of each of
#: its axes, for example ``{"*/query/kernel": ("in", "out", "out")}``.
AxesByPath = Mapping[str, ParameterAxes | Sequence[str]]

#: Axes of attention kernels of Flax, by the name of the module.
_ATTENTION = {
    "query": ("in", "out", "out"),
    "key": ("in", "out", "out"),
    "value": ("in", "out", "out"),
    "out": ("in", "in", "out"),
}


@dataclasses.dataclass(frozen=True)
class KernelAxes:
    """The roles of the axes of one kernel.

    Attributes:
      roles: of each axis, one of ``"in"``, ``"out"``, ``"spatial"``, ``"stack"``.
      known: whether the roles come from the program, the user or the name of the kernel. Those of
        other kernels of three axes are a guess: spatial, inputs, outputs.
    """

    roles: tuple[str, ...]
    known: bool = True

    def layers(self, kernel: Any) -> list[Any]:
        """The layers ``(positions..., I, O)`` of the kernel, or of an array in its shape.

        Of JAX or NumPy, as the kernel is.
        """
        shape = jnp.shape(kernel)
        turned, of_layer = kernel.transpose(self._order()), self.layer_shape(shape)
        if not self._axes("stack"):
            return [turned.reshape(of_layer)]
        return list(turned.reshape((self._stacked(shape), *of_layer)))

    def kernel(self, layers: Sequence[Array], shape: Sequence[int]) -> Array:
        """The inverse of :meth:`layers`, for a kernel of the given shape."""
        order = self._order()
        inverse = sorted(range(len(order)), key=order.__getitem__)
        whole = jnp.stack(layers) if self._axes("stack") else layers[0]
        return whole.reshape([shape[axis] for axis in order]).transpose(inverse)

    def layer_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of one layer of a kernel of the given shape."""
        positions = [shape[axis] for axis in self._axes("spatial")]
        sides = (math.prod(shape[axis] for axis in self._axes(role)) for role in ("in", "out"))
        return (*positions, *sides)

    def names(self, path: str, shape: Sequence[int]) -> list[str]:
        """What the layers of a kernel are called: its path, with a number if there are several."""
        if not self._axes("stack"):
            return [path]
        return [f"{path}[{number}]" for number in range(self._stacked(shape))]

    def _axes(self, role: str) -> list[int]:
        return [axis for axis, other in enumerate(self.roles) if other == role]

    def _order(self) -> tuple[int, ...]:
        return tuple(
            axis for role in ("stack", "spatial", "in", "out") for axis in self._axes(role)
        )

    def _stacked(self, shape: Sequence[int]) -> int:
        return math.prod(shape[axis] for axis in self._axes("stack"))


def kernel_axes(
    params: PyTree,
    where: Where = is_kernel,
    axes: AxesByPath | None = None,
    output_first: bool | None = None,
) -> dict[str, KernelAxes]:
    """The roles of the axes of each masked parameter, by path, in the order of the leaves.

    Where ``axes`` has nothing on a parameter, its name and shape decide. Kernels of ``query``,
    ``key``, ``value`` and ``out`` with three axes (four, if they are stacked) are those of
    attention in Flax. A ``bias`` beside a kernel (``b`` beside ``w`` in Haiku) tells stacked
    layers, which have one each, from positions, several axes of outputs from one, and outputs
    before inputs (a transposed kernel of a convolution) unless there are as many; a ``kernel`` that
    does not fit it is not known. Others are ``(..., inputs, outputs)``, or with ``output_first``
    ``(outputs, inputs, ...)``.

    Args:
      params: arrays.
      where: which parameters are masked. By default, and with ``axes`` from
        :func:`fsjax.sparsity.axes`, those that the network uses as kernels, whatever their names.
      axes: roles by path pattern; the first pattern that matches applies.
      output_first: as for :func:`fsjax.sparsity.sparse`.

    Raises:
      ConfigError: if roles do not fit a parameter, or if one is chosen that is not a kernel.
    """
    first = is_output_first(params) if output_first is None else output_first
    shapes = {path: jnp.shape(leaf) for path, leaf in leaves_by_name(params).items()}
    used = {path for path in shapes if getattr(entry_of(path, axes), "use", "") == "kernel"}
    leaves = named_leaves(params, where, used)
    kernels: dict[str, KernelAxes] = {}
    for path, leaf in leaves.items():
        entry = entry_of(path, axes)
        if isinstance(entry, ParameterAxes) and entry.use != "kernel":
            if where is is_kernel:
                continue
            raise ConfigError(
                f"{path} is not a kernel of this network, but {_described(entry)}; leave it out "
                "with the path filter `where`"
            )
        if entry is None:
            kernels[path] = _by_name(path, shapes, first)
        else:
            roles = entry.roles if isinstance(entry, ParameterAxes) else tuple(entry)
            kernels[path] = KernelAxes(_checked(path, roles, jnp.shape(leaf)))
    if not kernels:
        raise ConfigError(f"the network uses none of {', '.join(leaves)} as a kernel")
    return kernels


def entry_of(path: str, axes: AxesByPath | None) -> ParameterAxes | Sequence[str] | None:
    """What is said of a parameter; the first pattern that matches applies."""
    return next((entry for at, entry in (axes or {}).items() if matches(path, at)), None)


def to_layers(tree: PyTree, kernels: Mapping[str, KernelAxes]) -> OrderedDict[str, Array]:
    """The layers of the kernels in a tree, by name, in the order of the kernels.

    Arrays of another rank than their kernel, and those that a tree does not have, are left as
    they are and out.
    """
    leaves, layers = leaves_by_name(tree), OrderedDict[str, Array]()
    for path, axes in kernels.items():
        if path not in leaves:
            continue
        leaf = leaves[path]
        fits = jnp.ndim(leaf) == len(axes.roles)
        names = axes.names(path, jnp.shape(leaf) if fits else [1] * len(axes.roles))
        layers.update(zip(names, axes.layers(leaf) if fits else [leaf] * len(names), strict=True))
    return layers


def from_layers(
    layers: Mapping[str, Array], kernels: Mapping[str, KernelAxes], tree: PyTree
) -> PyTree:
    """The tree with its kernels replaced by those that the layers make up."""
    shapes = {path: jnp.shape(leaf) for path, leaf in leaves_by_name(tree).items()}
    return with_leaves(
        tree,
        {
            path: axes.kernel(
                [layers[name] for name in axes.names(path, shapes[path])], shapes[path]
            )
            for path, axes in kernels.items()
        },
    )


def check_known(kernels: Mapping[str, KernelAxes], structure: Structure | None) -> None:
    """Checks that inputs and outputs are known where a structure looks at them.

    Raises:
      ConfigError: naming a kernel of three axes that may be a convolution, a stack or a projection,
        or one that does not fit the bias beside it.
    """
    if structure is None or not structure.needs_axes:
        return
    for path, axes in kernels.items():
        if not axes.known:
            raise ConfigError(
                f"{path} has {len(axes.roles)} axes, and {structure} needs to know which are "
                "inputs and outputs; pass axes=sparsity.axes(apply, params, x), or for example "
                f"axes={{{path!r}: {(*['stack'] * (len(axes.roles) - 2), 'in', 'out')}}}"
            )


def _described(axes: ParameterAxes) -> str:
    reason = f" ({axes.reason})" if axes.reason else ""
    return f"used otherwise: {axes.use}{reason}"


def _by_name(path: str, shapes: Mapping[str, tuple[int, ...]], output_first: bool) -> KernelAxes:
    """The rule for parameters on which nothing is said."""
    shape = shapes[path]
    if len(shape) < 2:  # A vector that a path filter chose; it has no inputs.
        return KernelAxes(("out",) * len(shape))
    if output_first:
        positions = ["spatial"] * (len(shape) - 2)
        return KernelAxes(("out", "in", *positions), known=len(shape) != 3)
    value = "/value" if path.endswith("/value") else ""
    *modules, name = path.removesuffix(value).split("/")
    attention = _ATTENTION.get(modules[-1] if modules else "")
    if name == "kernel" and attention is not None and len(shape) in (3, 4):
        return KernelAxes((*["stack"] * (len(shape) - 3), *attention))
    ends = ("bias", "b") if name == "w" else ("bias",)  # In Haiku, b is beside w.
    beside = ("/".join([*modules, end]) + value for end in ends)
    bias = next((shapes[path] for path in beside if path in shapes), None)
    *positions, _, _ = ["spatial"] * len(shape)
    usual, turned = (*positions, "in", "out"), (*positions, "out", "in")
    fits = {roles for roles in _possible(len(shape)) if _bias_shape(roles, shape) == bias}
    is_own = name == "kernel" and bias is not None  # Of another name, the bias may be another's.
    if name in ("kernel", "w") and not fits and _bias_shape(turned, shape) == bias:
        fits = {turned}
    if len(fits) == 1:
        return KernelAxes(fits.pop())
    return KernelAxes(usual, known=len(shape) != 3 and (usual in fits or not is_own))


def _possible(ndim: int) -> list[tuple[str, ...]]:
    """The roles that a kernel of Flax may have: stacked or not, with positions or more outputs."""
    return [
        ("stack",) * stacked + rest
        for stacked in range(ndim - 1)
        for rest in {
            ("spatial",) * (ndim - 2 - stacked) + ("in", "out"),
            *(("in",) * n + ("out",) * (ndim - stacked - n) for n in range(1, ndim - stacked - 1)),
        }
    ]


def _bias_shape(roles: tuple[str, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the bias beside a kernel: an entry for each output of each stacked layer."""
    pairs = zip(roles, shape, strict=True)
    return tuple(size for role, size in pairs if role in ("stack", "out"))


def _checked(path: str, roles: Sequence[str], shape: Sequence[int]) -> tuple[str, ...]:
    """The roles, with those of axes of length 1 that nothing tells apart as positions."""
    if len(roles) != len(shape):
        raise ConfigError(
            f"axes of {path}: {len(roles)} roles for the shape {tuple(shape)}; give one per axis"
        )
    known = tuple("spatial" if role == "one" else role for role in roles)
    for role in known:
        if role not in ROLES:
            raise ConfigError(
                f"axes of {path}: {role!r} is not a role; choose from {', '.join(ROLES)}"
            )
    if "in" not in known or "out" not in known:
        raise ConfigError(f"axes of {path}: {known} needs at least one 'in' and one 'out'")
    return known
