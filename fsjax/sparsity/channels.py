"""Finds the channels of a network: entries of parameters' axes that can only be removed together.

Every entry of every axis of a parameter has a number, and the program is followed as in
:mod:`fsjax.sparsity.axis_roles`. Operations unite the numbers of entries that meet: a sum of two
branches those of their channels, a product of activations and weights those of the axis that is
summed over. Entries of inputs, outputs, and of axes whose length an operation depends on, cannot
be removed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fsjax.sparsity.channel_groups import Channels, EntryNumbers, Labels, is_removable
from fsjax.sparsity.program import COMPARISONS, ELEMENTWISE, UNARY, LoopReader, trace
from fsjax.typing import PyTree


@dataclasses.dataclass(frozen=True, eq=False)
class ChannelValue:
    """An array of the program.

    Attributes:
      axes: labels of each axis.
      kind: ``"weights"`` if it is made of parameters and constants, and 0 wherever the parameters
        are; ``"constant"`` if it is made of them otherwise; or ``"input"``.
    """

    axes: tuple[Labels, ...]
    kind: str


#: Operations of one array that keep 0 as it is.
_KEEPS_ZERO = frozenset(
    "convert_element_type copy copy_p reduce_precision neg sign abs expm1 log1p tanh sqrt cbrt "
    "square sin erf floor ceil round rev stop_gradient real imag conj".split()
)

_BOTH, _EQUAL = "of two activations", "with equal numbers"
_INFINITE = "it is divided by, or a power or logarithm of it taken, and would be 0"


class ChannelReader(LoopReader[ChannelValue]):
    """Unites the entries of axes that meet in a program."""

    def __init__(self) -> None:
        self.numbers = EntryNumbers()

    def fixed_value(self, shape: Sequence[int], reason: str, kind: str = "input") -> ChannelValue:
        return ChannelValue(tuple(self.numbers.fixed_axis(size, reason) for size in shape), kind)

    def constant(self, array: Any) -> ChannelValue:
        kind = "constant" if np.size(array) != 1 or np.any(np.asarray(array)) else "weights"
        return self.fixed_value(np.shape(array), "it meets an array of a given length", kind)

    def fix(self, value: ChannelValue, reason: str, axes: Sequence[int] | None = None) -> None:
        for axis in range(len(value.axes)) if axes is None else axes:
            self.numbers.fix(value.axes[axis], reason)

    def meet(self, labels: Labels, other: Labels) -> Labels:
        """The labels of two axes that meet entry by entry."""
        if labels is None or other is None:
            return labels if other is None else other
        self.numbers.unite(labels, other)
        # The first of two that cannot be removed, for loops to come to an end.
        return labels if is_removable(labels) or not is_removable(other) else other

    def apply(self, equation: Any, operands: list[ChannelValue]) -> list[ChannelValue]:
        looped = self.loop(equation, operands)
        if looped is not None:
            return looped
        name = equation.primitive.name
        if name in _RULES:
            outcome = _RULES[name](self, equation, operands)
            return outcome if isinstance(outcome, list) else [outcome] * len(equation.outvars)
        if name == "optimization_barrier":
            return operands
        if name in UNARY:
            return [self._unary(equation, operands[0])]
        if name in ELEMENTWISE or name in COMPARISONS:
            return [self._elementwise(name, operands)]
        return self._unknown(equation, operands)

    def join(self, value: ChannelValue, other: ChannelValue) -> ChannelValue:
        axes = tuple(map(self.meet, value.axes, other.axes))
        kind = _joined_kind([value, other])
        same = all(a is b for a, b in zip(axes, value.axes, strict=True)) and kind == value.kind
        return value if same else ChannelValue(axes, kind)

    def entry(self, value: ChannelValue) -> ChannelValue:
        self.fix(value, "it counts the passes of a loop", [0])
        return ChannelValue(value.axes[1:], value.kind)

    def collected(self, value: ChannelValue, passes: int) -> ChannelValue:
        axis = self.numbers.fixed_axis(passes, "it counts the passes of a loop")
        return ChannelValue((axis, *value.axes), value.kind)

    def _unknown(self, equation: Any, operands: Sequence[ChannelValue]) -> list[ChannelValue]:
        reason = f"the operation {equation.primitive.name} needs its length"
        for operand in operands:
            self.fix(operand, reason)
        return [self.fixed_value(variable.aval.shape, reason) for variable in equation.outvars]

    def _unary(self, equation: Any, value: ChannelValue) -> ChannelValue:
        name = equation.primitive.name
        keeps = name in _KEEPS_ZERO or (name == "integer_pow" and equation.params["y"] > 0)
        if value.kind == "weights" and (name in ("log", "rsqrt", "integer_pow") and not keeps):
            self.fix(value, _INFINITE)
        kind = "constant" if value.kind == "weights" and not keeps else value.kind
        return ChannelValue(value.axes, kind)

    def _elementwise(self, name: str, operands: Sequence[ChannelValue]) -> ChannelValue:
        rank = max(len(operand.axes) for operand in operands)
        for operand in {"div": operands[1:], "pow": operands[:1]}.get(name, []):
            if operand.kind == "weights":
                self.fix(operand, _INFINITE)
        axes: list[Labels] = [None] * rank
        for operand in operands:
            if operand.axes:
                axes = list(map(self.meet, axes, operand.axes))
        if any(operand.kind == "input" for operand in operands):
            return ChannelValue(tuple(axes), "input")
        removable = [i for i, labels in enumerate(axes) if is_removable(labels)]

        def vanishes(operand: ChannelValue) -> bool:
            covers = not operand.axes or all(operand.axes[i] is not None for i in removable)
            return operand.kind == "weights" and (covers or not removable)

        if name == "mul":
            stays_zero = any(operand.axes and vanishes(operand) for operand in operands)
        elif name == "div":
            stays_zero = vanishes(operands[0]) and operands[1].kind == "constant"
        elif name == "select_n":
            stays_zero = all(map(vanishes, operands[1:]))
        else:
            keeps = name in ("add", "add_any", "sub", "max", "min", "complex")
            stays_zero = keeps and all(map(vanishes, operands))
        return ChannelValue(tuple(axes), "weights" if stays_zero else "constant")

    def _dot(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        contracted, batched = equation.params["dimension_numbers"]
        batch = [
            self.meet(operands[0].axes[i], operands[1].axes[j])
            for i, j in zip(*batched, strict=True)
        ]
        for pair in zip(*contracted, strict=True):
            self._sum_over(operands, [operands[side].axes[axis] for side, axis in enumerate(pair)])
        free: list[Labels] = []
        for side, operand in enumerate(operands):
            shared = {*contracted[side], *batched[side]}
            rest = [labels for axis, labels in enumerate(operand.axes) if axis not in shared]
            if operand.kind != "input":
                self._note(self.numbers.outputs, rest)
            free += rest
        kinds = {operand.kind for operand in operands}
        kind = "weights" if kinds == {"weights"} else "input" if "input" in kinds else "constant"
        return ChannelValue((*batch, *free), kind)

    def _sum_over(self, operands: Sequence[ChannelValue], axes: Sequence[Labels]) -> None:
        """An axis along which weights are multiplied with what they are applied to."""
        pairs = list(zip(operands, axes, strict=True))
        weights = [labels for o, labels in pairs if o.kind == "weights" and labels is not None]
        if not weights or any(o.kind != "weights" and labels is None for o, labels in pairs):
            equal = any(labels is None for labels in axes)
            for labels in axes:
                self.numbers.fix(labels, f"a product {_EQUAL if equal else _BOTH} sums over it")
            return
        self.meet(axes[0], axes[1])
        # Of a product of two weights, as in layers of low rank, the second reads the first.
        self._note(self.numbers.inputs, weights[-1:])
        self._note(self.numbers.outputs, weights[:-1])

    def _note(self, notes: set[int], axes: Sequence[Labels]) -> None:
        for labels in axes:
            notes.update([] if labels is None else labels[labels >= 0].tolist())

    def _convolution(
        self, equation: Any, operands: list[ChannelValue]
    ) -> ChannelValue | list[ChannelValue]:
        options, (image, kernel) = equation.params, operands
        numbers, groups = options["dimension_numbers"], options["feature_group_count"]
        if kernel.kind == "input" or options["batch_group_count"] != 1:
            return self._unknown(equation, operands)
        channels, (output, inputs, *spatial) = numbers.lhs_spec[1], numbers.rhs_spec
        for value, window in ((image, numbers.lhs_spec[2:]), (kernel, spatial)):
            self.fix(value, "it is an axis of positions", window)
        read, written = image.axes[channels], kernel.axes[output]
        if groups == 1:
            self._sum_over([image, kernel], [read, kernel.axes[inputs]])
            self._note(self.numbers.outputs, [written])
        else:
            self.fix(kernel, "it is an axis within groups of a convolution", [inputs])
            if read is None or written is None:
                self.numbers.fix(written, "a convolution reads equal channels")
            else:
                first = read.reshape(groups, -1)[:, 0]
                self.numbers.unite(read, first.repeat(len(read) // groups))
                self.numbers.unite(written, first.repeat(len(written) // groups))
        shape = equation.outvars[0].aval.shape
        result = list(self.fixed_value(shape, "it is an axis of positions").axes)
        result[numbers.out_spec[0]] = image.axes[numbers.lhs_spec[0]]
        result[numbers.out_spec[1]] = written
        return ChannelValue(tuple(result), "input")

    def _reshape(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        value, old = operands[0], equation.invars[0].aval.shape
        result: list[Labels] = []
        for before, after in _blocks(old, equation.params["new_sizes"]):
            sizes = [old[axis] for axis in before]
            result += self.numbers.reshaped([value.axes[axis] for axis in before], sizes, after)
        return ChannelValue(tuple(result), value.kind)

    def _cut(
        self, equation: Any, value: ChannelValue, parts: Sequence[slice | None]
    ) -> ChannelValue:
        """Parts of axes; ``None`` where which part is taken depends on the inputs."""
        result: list[Labels] = []
        shape = equation.outvars[0].aval.shape
        for labels, part, before, after in zip(
            value.axes, parts, equation.invars[0].aval.shape, shape, strict=True
        ):
            if before == after:
                result.append(labels)
            elif labels is None or part is None or after == 1:
                self.numbers.fix(labels, "single entries of it are taken")
                result.append(self.numbers.fixed_axis(after, "single entries of it are taken"))
            else:
                result.append(labels[part])
        return ChannelValue(tuple(result), value.kind)

    def _slice(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        options = equation.params
        strides = options["strides"] or [1] * len(options["start_indices"])
        limits = zip(options["start_indices"], options["limit_indices"], strides, strict=True)
        return self._cut(equation, operands[0], [slice(*limit) for limit in limits])

    def _dynamic_slice(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        value = self._cut(equation, operands[0], [None] * len(operands[0].axes))
        is_chosen = any(index.kind == "input" for index in operands[1:])
        return ChannelValue(value.axes, "input" if is_chosen else value.kind)

    def _gather(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        table, indices = operands
        numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
        shape, result = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
        absent = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
        looked_up = [a for a in range(len(shape)) if a in absent or sizes[a] < shape[a]]
        self.fix(table, "entries of it are looked up", looked_up)
        self.fix(indices, "it is an axis of indices")
        axes = list(self.fixed_value(result, "it is an axis of looked up entries").axes)
        present = [axis for axis in range(len(shape)) if axis not in absent]
        for place, axis in zip(numbers.offset_dims, present, strict=True):
            if axis not in looked_up:
                axes[place] = table.axes[axis]
        return ChannelValue(tuple(axes), "input" if indices.kind == "input" else table.kind)

    def _concatenate(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        axis, reason = equation.params["dimension"], "it is joined with equal entries"
        axes = list(operands[0].axes)
        for operand in operands[1:]:
            axes = list(map(self.meet, axes[:axis], operand.axes[:axis])) + [
                None,
                *map(self.meet, axes[axis + 1 :], operand.axes[axis + 1 :]),
            ]
        parts = []
        for operand, variable in zip(operands, equation.invars, strict=True):
            labels, size = operand.axes[axis], variable.aval.shape[axis]
            if labels is None:
                labels = self.numbers.fixed(size, reason)
            parts.append(labels)
        axes[axis] = np.concatenate(parts)
        return ChannelValue(tuple(axes), _joined_kind(operands, axis))

    def _pad(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        value, reason = operands[0], "it is padded"
        axes: list[Labels] = []
        for labels, (low, high, interior), after in zip(
            value.axes,
            equation.params["padding_config"],
            equation.outvars[0].aval.shape,
            strict=True,
        ):
            if (low, high, interior) == (0, 0, 0):
                axes.append(labels)
            elif labels is None or interior or min(low, high) < 0:
                self.numbers.fix(labels, reason)
                axes.append(self.numbers.fixed_axis(after, reason))
            else:
                ends = [self.numbers.fixed(count, reason) for count in (low, high)]
                axes.append(np.concatenate([ends[0], labels, ends[1]]))
        kinds = {value.kind, operands[1].kind}
        kind = value.kind if kinds == {"weights"} or value.kind == "input" else "constant"
        return ChannelValue(tuple(axes), kind)

    def _reduce(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        reduced = equation.params["axes"]
        for operand in operands:
            self.fix(operand, f"a norm or mean goes over it ({equation.primitive.name})", reduced)
        axes = tuple(labels for i, labels in enumerate(operands[0].axes) if i not in reduced)
        kind = operands[0].kind
        is_index = equation.primitive.name.startswith("arg")
        return ChannelValue(axes, "constant" if kind == "weights" and is_index else kind)

    def _along(self, equation: Any, operands: list[ChannelValue]) -> list[ChannelValue]:
        """Sorts and cumulative sums."""
        options, shape = equation.params, equation.outvars[0].aval.shape
        axis = options.get("dimension", options.get("axis", len(shape) - 1))
        reason = f"{equation.primitive.name} goes along it"
        axes: list[Labels] = [None] * len(shape)
        for operand in operands:
            self.fix(operand, reason, [axis])
            rest = [labels for i, labels in enumerate(operand.axes) if i != axis]
            others = [labels for i, labels in enumerate(axes) if i != axis]
            axes = list(map(self.meet, others, rest))
            axes.insert(axis, None)
        axes[axis] = self.numbers.fixed_axis(shape[axis], reason)
        return [ChannelValue(tuple(axes), "input")] * len(equation.outvars)

    def _window(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        """Pooling."""
        options = equation.params
        reason = "it is an axis of positions"
        axes = list(self.fixed_value(equation.outvars[0].aval.shape, reason).axes)
        windows = zip(
            options["window_dimensions"], options["window_strides"], options["padding"], strict=True
        )
        for axis, window in enumerate(windows):
            if window == (1, 1, (0, 0)):
                axes[axis] = operands[0].axes[axis]
            else:
                self.fix(operands[0], reason, [axis])
        return ChannelValue(tuple(axes), "input")

    def _transpose(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        value = operands[0]
        order = equation.params["permutation"]
        return ChannelValue(tuple(value.axes[axis] for axis in order), value.kind)

    def _broadcast(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        shape, places = equation.params["shape"], equation.params["broadcast_dimensions"]
        axes: list[Labels] = [None] * len(shape)
        for place, labels in zip(places, operands[0].axes, strict=True):
            axes[place] = labels
        return ChannelValue(tuple(axes), operands[0].kind)

    def _tile(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        repeats = equation.params["reps"]
        axes = tuple(
            None if labels is None else np.tile(labels, count)
            for labels, count in zip(operands[0].axes, repeats, strict=True)
        )
        return ChannelValue(axes, operands[0].kind)

    def _squeeze(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        value = operands[0]
        squeezed = {axis % len(value.axes) for axis in equation.params["dimensions"]}
        axes = tuple(labels for axis, labels in enumerate(value.axes) if axis not in squeezed)
        return ChannelValue(axes, value.kind)

    def _reverse(self, equation: Any, operands: list[ChannelValue]) -> ChannelValue:
        value, turned = operands[0], equation.params["dimensions"]
        axes = tuple(
            labels[::-1] if labels is not None and axis in turned else labels
            for axis, labels in enumerate(value.axes)
        )
        return ChannelValue(axes, value.kind)

    def _iota(self, equation: Any, _: list[ChannelValue]) -> ChannelValue:
        shape, axis = equation.params["shape"], equation.params["dimension"]
        axes: list[Labels] = [None] * len(shape)
        axes[axis] = self.numbers.fixed_axis(shape[axis], "it meets an array of a given length")
        return ChannelValue(tuple(axes), "constant")


def channel_groups(function: Callable, params: PyTree, *inputs: PyTree) -> Channels:
    """Reads from the program of a network which channels can be removed from it.

    Args:
      function, params, *inputs: as for :func:`fsjax.sparsity.axes`.
    """
    traced = trace(function, params, *inputs)
    reader = ChannelReader()
    axes = {
        (path, axis): reader.numbers.new(size)
        for path, leaf in traced.params.items()
        for axis, size in enumerate(leaf.shape)
        if size > 1
    }
    weights = [
        ChannelValue(tuple(axes.get((path, axis)) for axis in range(len(leaf.shape))), "weights")
        for path, leaf in traced.params.items()
    ]
    rows = [reader.fixed_value(x.shape, "it is an axis of the inputs") for x in traced.inputs]
    for output in reader.run(traced.program, [*weights, *rows]):
        reader.fix(output, "it is an axis of the outputs")
    return reader.numbers.groups(axes)


def _joined_kind(values: Sequence[ChannelValue], axis: int | None = None) -> str:
    """The kind of an array that consists of several, next to one another along an axis.

    Of weights it is 0 where an entry is removed only if all have their own numbers for it.
    """
    kinds = {value.kind for value in values}
    if "input" in kinds:
        return "input"
    spread = {
        tuple(labels is None for k, labels in enumerate(value.axes) if k != axis)
        for value in values
    }
    return "weights" if kinds == {"weights"} and len(spread) == 1 else "constant"


def _blocks(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The smallest parts of a reshape: axes of the old shape, and sizes of the new one."""
    blocks: list[tuple[list[int], list[int]]] = []
    before, after = list(range(len(old))), list(new)
    while before or after:
        axes = [before.pop(0)] if before else []
        sizes = [after.pop(0)] if after else []
        while math.prod(old[axis] for axis in axes) != math.prod(sizes):
            if math.prod(old[axis] for axis in axes) < math.prod(sizes):
                axes.append(before.pop(0))
            else:
                sizes.append(after.pop(0))
        blocks.append((axes, sizes))
    return blocks


#: What becomes of labels in single operations.
_RULES: dict[
    str, Callable[[ChannelReader, Any, list[ChannelValue]], ChannelValue | list[ChannelValue]]
] = {
    "dot_general": ChannelReader._dot,
    "conv_general_dilated": ChannelReader._convolution,
    "reshape": ChannelReader._reshape,
    "slice": ChannelReader._slice,
    "dynamic_slice": ChannelReader._dynamic_slice,
    "gather": ChannelReader._gather,
    "concatenate": ChannelReader._concatenate,
    "pad": ChannelReader._pad,
    "transpose": ChannelReader._transpose,
    "broadcast_in_dim": ChannelReader._broadcast,
    "tile": ChannelReader._tile,
    "squeeze": ChannelReader._squeeze,
    "rev": ChannelReader._reverse,
    "iota": ChannelReader._iota,
    **dict.fromkeys(
        "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or argmax argmin".split(),
        ChannelReader._reduce,
    ),
    **dict.fromkeys("sort cumsum cumprod cummax cummin cumlogsumexp".split(), ChannelReader._along),
    **dict.fromkeys(
        "reduce_window_max reduce_window_min reduce_window_sum".split(), ChannelReader._window
    ),
}
