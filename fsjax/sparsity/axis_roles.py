"""Reads from a network's own program which axes of its parameters are inputs and outputs.

The program is traced, as JAX would compile it, and each parameter is followed through it to the
operations that use it: products with activations, convolutions, sums, lookups. Names play no
part, so that modules of Flax, Equinox and Haiku, stacked layers of a scan and kernels of an einsum
are all read alike.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fsjax.sparsity.program import COMPARISONS, ELEMENTWISE, UNARY, LoopReader, trace
from fsjax.typing import PyTree

#: What an axis of a kernel is: of inputs, of outputs, of positions of a convolution's window, or
#: of layers that are stacked, each with a kernel of its own.
ROLES = ("in", "out", "spatial", "stack")


@dataclasses.dataclass(frozen=True)
class ParameterAxes:
    """What a parameter is used for.

    Attributes:
      use: ``"kernel"`` if it multiplies activations along its inputs; ``"elementwise"`` if it is
        added to or multiplied with them entry by entry (biases, scales, positions); ``"lookup"``
        if rows of it are looked up (embeddings); ``"unused"``; or ``"other"``.
      roles: for a kernel, the role of each axis, one of :data:`ROLES`, or ``"one"`` for an axis of
        length 1 that no operation tells apart; else empty.
      reason: for ``"other"``, why it cannot be read.
    """

    use: str
    roles: tuple[str, ...] = ()
    reason: str = ""


class _Factor(NamedTuple):
    """A part of an axis of a parameter, of length ``size``."""

    path: str
    axis: int
    size: int


#: For each axis of a value, the axes of parameters that it runs along, from the slowest.
_View = tuple[tuple[_Factor, ...], ...]


class _Tracked(NamedTuple):
    """A value made of parameters alone: their names, and one view for each that has its axes."""

    views: tuple[_View, ...]
    paths: frozenset[str]


#: A value: made of parameters, or whether it depends on the inputs of the network.
_Value = _Tracked | bool


def axes(function: Callable, params: PyTree, *inputs: PyTree) -> dict[str, ParameterAxes]:
    """What each parameter of ``function(params, *inputs)`` is used for, and the role of its axes.

    Args:
      function: for example ``model.apply`` of Flax.
      params: arrays, or their shapes.
      *inputs: arrays, or shapes like ``jax.ShapeDtypeStruct((1, 784), jnp.float32)``.

    Returns:
      By the name of the path of each parameter. Parameters that are used in several ways which
      disagree, or by operations that are not known, are ``"other"``, with the reason.

    Examples:
      >>> kernels = {"query": jnp.ones((32, 4, 8)), "scale": jnp.ones((3, 32))}
      >>> def apply(params, x):
      ...     return jnp.einsum("bi,ihd->bhd", x * params["scale"][0], params["query"])
      >>> axes = sparsity.axes(apply, kernels, jnp.ones((5, 32)))  # a sparsity.ParameterAxes each
      >>> print(axes["query"].roles, axes["scale"].use)
      ('in', 'out', 'out') elementwise
    """
    traced = trace(function, params, *inputs)
    reader = _UseRecorder()
    tracked = [_parameter(path, leaf.shape) for path, leaf in traced.params.items()]
    outputs = reader.run(traced.program, [*tracked, *[True] * len(traced.inputs)])
    for output in outputs:
        reader.used(output, "elementwise")
    return {path: reader.outcome(path, leaf.shape) for path, leaf in traced.params.items()}


def _parameter(path: str, shape: Sequence[int]) -> _Tracked:
    view = tuple(
        (_Factor(path, axis, size),) if size != 1 else () for axis, size in enumerate(shape)
    )
    return _Tracked((view,), frozenset([path]))


@dataclasses.dataclass
class _UseRecorder(LoopReader[_Value]):
    """Follows parameters through a program and notes how they are used.

    Attributes:
      roles: the roles that uses gave to the axes of each parameter.
      uses: the other uses of each parameter, with reasons.
      indexed: axes of which a single entry was taken at a time.
      without_outputs: parameters in products with activations that sum over all but stacked axes.
    """

    roles: dict[str, dict[int, set[str]]] = dataclasses.field(default_factory=dict)
    uses: dict[str, dict[str, str]] = dataclasses.field(default_factory=dict)
    indexed: dict[str, set[int]] = dataclasses.field(default_factory=dict)
    without_outputs: set[str] = dataclasses.field(default_factory=set)

    def give(self, value: _Value, dimensions: Sequence[int], role: str) -> None:
        """Gives a role to the axes of parameters along some dimensions of a value."""
        for view in value.views if isinstance(value, _Tracked) else ():
            for factor in (factor for dim in dimensions for factor in view[dim]):
                self.roles.setdefault(factor.path, {}).setdefault(factor.axis, set()).add(role)

    def used(self, value: _Value, use: str, reason: str = "") -> None:
        """Notes a use of all parameters in a value other than as a kernel."""
        for path in value.paths if isinstance(value, _Tracked) else ():
            self.uses.setdefault(path, {})[use] = reason

    def outcome(self, path: str, shape: Sequence[int]) -> ParameterAxes:
        """What the notes say of a parameter."""
        roles, uses = self.roles.get(path, {}), self.uses.get(path, {})
        if "other" in uses:
            return ParameterAxes("other", reason=uses["other"])
        if not any(of_axis - {"stack"} for of_axis in roles.values()):
            known = (use for use in ("lookup", "elementwise") if use in uses)
            return ParameterAxes(next(known, "unused"))
        if "lookup" in uses:
            reason = "its rows are looked up, and it multiplies activations too"
            return ParameterAxes("other", reason=reason)
        read = []
        for axis in range(len(shape)):
            of_axis = roles.get(axis, set())
            if not of_axis and axis in self.indexed.get(path, set()):
                of_axis = {"stack"}
            if len(of_axis) > 1:
                several = " and ".join(f"`{role}`" for role in sorted(of_axis))
                return ParameterAxes("other", reason=f"axis {axis} is used as {several}")
            read.append(next(iter(of_axis), ""))
        is_lost = any(not role and size > 1 for role, size in zip(read, shape, strict=True))
        if path in self.without_outputs and (is_lost or {*read} == {"stack", "in"}):
            return ParameterAxes("other", reason="its products with inputs have no axis of outputs")
        completed = [
            role or "one" * (size == 1) for role, size in zip(_completed(read), shape, strict=True)
        ]
        if "in" not in completed and len(shape) == 1:
            return ParameterAxes("elementwise")
        if "" in completed:
            reason = f"axis {completed.index('')} is lost track of"
            return ParameterAxes("other", reason=reason)
        return ParameterAxes("kernel", tuple(completed))

    def constant(self, array: Any) -> _Value:
        return False

    def apply(self, equation: Any, operands: list[_Value]) -> list[_Value]:
        name, outputs = equation.primitive.name, len(equation.outvars)
        looped = self.loop(equation, operands)
        if looped is not None:
            return looped
        if not any(isinstance(operand, _Tracked) for operand in operands):
            return [any(operands)] * outputs
        if name in _RULES:
            return [_RULES[name](self, equation, operands)] * outputs
        if name in UNARY:
            return operands if name == "optimization_barrier" else [operands[0]] * outputs
        if name in COMPARISONS:
            for operand in operands:
                self.used(operand, "elementwise")
            return [any(operand is True for operand in operands)]
        if name in ELEMENTWISE:
            return [self._elementwise(operands)] * outputs
        for operand in operands:
            self.used(operand, "other", f"the operation {name} uses it")
        return [True] * outputs

    def _elementwise(self, operands: Sequence[_Value]) -> _Value:
        """Parameters among themselves stay parameters; with activations they are used up."""
        if any(operand is True for operand in operands):
            for operand in operands:
                self.used(operand, "elementwise")
            return True
        tracked = [operand for operand in operands if isinstance(operand, _Tracked)]
        rank = max(len(view) for operand in tracked for view in operand.views)
        views = dict.fromkeys(
            view for operand in tracked for view in operand.views if len(view) == rank
        )
        return _Tracked(tuple(views), _all_paths(tracked))

    def _dot(self, equation: Any, operands: list[_Value]) -> _Value:
        contracted, batched = equation.params["dimension_numbers"]
        free = [
            [
                axis
                for axis in range(len(atom.aval.shape))
                if axis not in (*contracted[side], *batched[side])
            ]
            for side, atom in enumerate(equation.invars)
        ]
        left, right = operands
        if isinstance(left, _Tracked) and isinstance(right, _Tracked):
            return _Tracked(
                tuple(
                    (
                        *(a[i] + b[j] for i, j in zip(*batched, strict=True)),
                        *(a[i] for i in free[0]),
                        *(b[j] for j in free[1]),
                    )
                    for a in left.views
                    for b in right.views
                ),
                left.paths | right.paths,
            )
        side = 0 if isinstance(left, _Tracked) else 1
        if not contracted[side]:
            self.used(operands[side], "elementwise")
            return True
        # Factors whose axes are all summed among parameters have no role, but are used.
        self.used(operands[side], "elementwise")
        self.give(operands[side], contracted[side], "in")
        self.give(operands[side], batched[side], "stack")
        self.give(operands[side], free[side], "out")
        value = operands[side]
        assert isinstance(value, _Tracked)  # apply() reads no other products
        if not any(view[axis] for view in value.views for axis in free[side]):
            self.without_outputs |= value.paths
        return True

    def _convolution(self, equation: Any, operands: list[_Value]) -> _Value:
        if isinstance(operands[0], _Tracked):
            self.used(operands[0], "other", "it is the input of a convolution")
        output, channels, *spatial = equation.params["dimension_numbers"].rhs_spec
        self.used(operands[1], "elementwise")
        self.give(operands[1], [channels], "in")
        self.give(operands[1], [output], "out")
        self.give(operands[1], spatial, "spatial")
        return True

    def _gather(self, equation: Any, operands: list[_Value]) -> _Value:
        table, indices = operands[0], operands[1]
        if not isinstance(table, _Tracked) or indices is not False:
            self.used(table, "lookup")
            return True
        numbers = equation.params["dimension_numbers"]
        sizes, shape = equation.params["slice_sizes"], equation.invars[0].aval.shape
        taken = [axis for axis in range(len(shape)) if sizes[axis] < shape[axis]]
        self._index(table, taken)
        kept = [
            axis
            for axis in range(len(shape))
            if axis not in (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        ]
        rank = len(equation.outvars[0].aval.shape)

        def rows(view: _View) -> _View:
            dims = (() if axis in taken else view[axis] for axis in kept)
            return _placed(dict(zip(numbers.offset_dims, dims, strict=True)), rank)

        return _mapped(table, rows)

    def _dynamic_slice(self, equation: Any, operands: list[_Value]) -> _Value:
        table, shape = operands[0], equation.invars[0].aval.shape
        if not isinstance(table, _Tracked):
            return True
        if any(operand is True for operand in operands[1:]):
            self.used(table, "lookup")
            return True
        sizes = equation.params["slice_sizes"]
        taken = [axis for axis in range(len(shape)) if sizes[axis] < shape[axis]]
        self._index(table, taken)
        return _mapped(
            table,
            lambda view: tuple(() if axis in taken else dim for axis, dim in enumerate(view)),
        )

    def _index(self, table: _Tracked, dimensions: Sequence[int]) -> None:
        for view in table.views:
            for factor in (factor for dim in dimensions for factor in view[dim]):
                self.indexed.setdefault(factor.path, set()).add(factor.axis)

    def _reshape(self, equation: Any, operands: list[_Value]) -> _Value:
        value, shape = operands[0], equation.params["new_sizes"]
        old = equation.invars[0].aval.shape
        assert isinstance(value, _Tracked)
        views = []
        for view in value.views:
            cut = _regrouped(view, old, shape)
            if cut is None:
                self.used(value, "other", f"it is reshaped from {old} to {shape}")
                return True
            views.append(cut)
        return value._replace(views=tuple(views))

    def _joined_along(self, equation: Any, operands: list[_Value]) -> _Value:
        """A concatenation, or padding, of parameters among themselves."""
        length = equation.outvars[0].aval.shape
        axis = equation.params.get("dimension")
        changed = range(len(length)) if axis is None else [axis]

        def stretched(view: _View) -> _View:
            return tuple(
                (dim[0]._replace(size=length[i]),) if i in changed and len(dim) == 1 else dim
                for i, dim in enumerate(view)
            )

        return _mapped(self._elementwise(operands), stretched)

    def _slice(self, equation: Any, operands: list[_Value]) -> _Value:
        """A part of each axis; one entry at a time is how unrolled layers take theirs."""
        value = operands[0]
        old, new = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
        if not isinstance(value, _Tracked):
            return value
        self._index(value, [i for i in range(len(old)) if new[i] == 1 < old[i]])

        def cut(view: _View) -> _View:
            return tuple(
                dim if before == after else _shortened(dim, after)
                for dim, before, after in zip(view, old, new, strict=True)
            )

        return _mapped(value, cut)

    def entry(self, value: _Value) -> _Value:
        """A layer of those that a scan runs through; the first axis counts them."""
        self.give(value, [0], "stack")
        return _mapped(value, lambda view: view[1:])

    def collected(self, value: _Value, passes: int) -> _Value:
        self.used(value, "elementwise")
        return True

    def join(self, value: _Value, other: _Value) -> _Value:
        if value is True or other is True:
            return True
        if isinstance(value, _Tracked) and isinstance(other, _Tracked):
            views = dict.fromkeys((*value.views, *other.views))
            return _Tracked(tuple(views), value.paths | other.paths)
        return value if isinstance(value, _Tracked) else other


def _all_paths(values: Sequence[_Tracked]) -> frozenset[str]:
    return frozenset().union(*(value.paths for value in values))


def _placed(dims: dict[int, tuple[_Factor, ...]], rank: int) -> _View:
    return tuple(dims.get(axis, ()) for axis in range(rank))


def _completed(roles: list[str]) -> list[str]:
    """Gives an axis without a role the one that a kernel still lacks (a factor of a product)."""
    known = {role for role in roles if role in ("in", "out")}
    if len(known) != 1:
        return roles
    missing = "out" if known == {"in"} else "in"
    return [role or missing for role in roles]


def _regrouped(view: _View, old: Sequence[int], new: Sequence[int]) -> _View | None:
    """The view after a reshape; ``None`` where an axis is cut at no multiple of its parts."""
    parts: list[tuple[_Factor | None, int]] = []
    for dim, length in zip(view, old, strict=True):
        parts += [(factor, factor.size) for factor in dim]
        rest = length // math.prod(factor.size for factor in dim)
        parts += [(None, rest)] if rest > 1 else []
    dims: list[tuple[_Factor, ...]] = []
    for length in new:
        taken: list[_Factor] = []
        while length > 1:
            if not parts:
                return None
            factor, size = parts.pop(0)
            part = math.gcd(size, length)
            if part in (1, 0) or (part < size and part != length):
                return None
            if part < size:
                rest = size // part
                parts.insert(0, (factor and factor._replace(size=rest), rest))
            if factor is not None:
                taken.append(factor._replace(size=part))
            length //= part
        dims.append(tuple(taken))
    return tuple(dims)


def _transposed(_: _UseRecorder, equation: Any, operands: list[_Value]) -> _Value:
    order = equation.params["permutation"]
    return _mapped(operands[0], lambda view: tuple(view[axis] for axis in order))


def _broadcast(_: _UseRecorder, equation: Any, operands: list[_Value]) -> _Value:
    places, rank = equation.params["broadcast_dimensions"], len(equation.params["shape"])
    return _mapped(operands[0], lambda view: _placed(dict(zip(places, view, strict=True)), rank))


def _squeezed(_: _UseRecorder, equation: Any, operands: list[_Value]) -> _Value:
    gone = {axis % len(equation.invars[0].aval.shape) for axis in equation.params["dimensions"]}
    return _mapped(
        operands[0], lambda view: tuple(dim for axis, dim in enumerate(view) if axis not in gone)
    )


def _reduced(_: _UseRecorder, equation: Any, operands: list[_Value]) -> _Value:
    gone = set(equation.params["axes"])
    return _mapped(
        operands[0], lambda view: tuple(dim for axis, dim in enumerate(view) if axis not in gone)
    )


def _shortened(dim: tuple[_Factor, ...], length: int) -> tuple[_Factor, ...]:
    """The parts of an axis of which ``length`` entries are left."""
    if length == 1 or not dim:
        return ()
    rest = math.prod(factor.size for factor in dim[1:])
    if length % rest == 0:
        return (dim[0]._replace(size=length // rest), *dim[1:])
    return ()


def _tiled(_: _UseRecorder, equation: Any, operands: list[_Value]) -> _Value:
    reps = equation.params["reps"]
    return _mapped(
        operands[0],
        lambda view: tuple(dim * (n == 1) for dim, n in zip(view, reps, strict=True)),
    )


def _mapped(value: _Value, change: Callable[[_View], _View]) -> _Value:
    if not isinstance(value, _Tracked):
        return value
    return value._replace(views=tuple(change(view) for view in value.views))


#: What becomes of parameters in operations of one output.
_RULES: dict[str, Callable[[_UseRecorder, Any, list[_Value]], _Value]] = {
    "dot_general": _UseRecorder._dot,
    "conv_general_dilated": _UseRecorder._convolution,
    "gather": _UseRecorder._gather,
    "dynamic_slice": _UseRecorder._dynamic_slice,
    "reshape": _UseRecorder._reshape,
    "slice": _UseRecorder._slice,
    "concatenate": _UseRecorder._joined_along,
    "pad": _UseRecorder._joined_along,
    "transpose": _transposed,
    "broadcast_in_dim": _broadcast,
    "squeeze": _squeezed,
    "tile": _tiled,
    **dict.fromkeys(
        ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin"), _reduced
    ),
}
