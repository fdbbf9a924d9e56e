"""Follows a program in which some parameters are 0, and tells which of its values are equal.

Values that are computed alike have the same number, and what is added to 0 keeps its own. So a
residual block is found: with its parameters at 0 it returns what it was given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from fsjax.sparsity.program import LoopReader, Traced

#: Bits of what a value depends on, below those of the parameters: inputs; arrays that a loop over
#: stacked parameters takes apart with them, such as the numbers of the layers; and values of the
#: stream, except through sums with zeros.
INPUTS, OF_PASSES, STREAM = 1, 2, 4
_NUM_BITS = 3


class Value(NamedTuple):
    """An array of the program.

    Attributes:
      number: equal for equal arrays; 0 for zeros.
      sources: bits of what it depends on.
    """

    number: int
    sources: int


class StackedLoop(NamedTuple):
    """A loop over entries of parameters.

    Attributes:
      params: numbers of the parameters that it takes apart along their first axis.
      length: number of passes.
      has_outputs: whether it collects an array with an entry for each pass.
      is_identity: whether each pass returns what it was given.
    """

    params: tuple[int, ...]
    length: int
    has_outputs: bool
    is_identity: bool


#: Operations that return their operand.
_SAME = frozenset("copy copy_p stop_gradient name sharding_constraint optimization_barrier".split())

#: Operations that return 0 if all of their operands are 0, or the first one is and the others say
#: where to read.
_KEEPS_ZERO = frozenset(
    "convert_element_type reduce_precision neg sign abs expm1 log1p tanh sqrt cbrt square sin erf "
    "floor ceil round real imag conj rev broadcast_in_dim reshape transpose squeeze expand_dims "
    "slice split tile concatenate pad reduce_sum reduce_max reduce_min reduce_window_sum cumsum "
    "cummax cummin max min add add_any sub complex".split()
)
_READS_ZERO = frozenset("dynamic_slice gather".split())

#: Operations that are not finite if their last operand is 0.
_INFINITE_AT_ZERO = frozenset("div log rsqrt integer_pow".split())

#: Operations that return 0 if one of their operands is 0 and the others are finite.
_PRODUCTS = frozenset("mul dot_general conv_general_dilated".split())


class ZeroedReader(LoopReader[Value]):
    """Follows a program whose parameters are 0 where ``zeroed`` says so.

    Attributes:
      loops: over entries of parameters, by the identity of their operation and the parameters.
      uses: for each parameter, the operations that it is an operand of.
      meetings: for each parameter, numbers of the values of inputs that it or a function of it
        meets, apart from values that depend on the parameter themselves.
      unchanged: numbers of values of inputs to which zeros of inputs were added.
    """

    def __init__(
        self, traced: Traced, zeroed: Collection[int] = (), stream: Collection[int] = ()
    ) -> None:
        self.loops: dict[tuple, StackedLoop] = {}
        self.uses: dict[int, set[tuple]] = defaultdict(set)
        self.meetings: dict[int, dict[int, int]] = defaultdict(dict)
        self.unchanged: set[int] = set()
        self._stream = set(stream)
        self._zeroed = set(zeroed)
        self._numbers: dict[Any, int] = {}
        self._within: list[int] = []
        self._maxima: dict[int, set[int]] = {}
        self._infinite: set[int] = set()
        num_params = len(traced.params)
        self._params = {self._number(("parameter", i)): i for i in range(num_params)}
        self.outputs = self.run(
            traced.program,
            [
                Value(0 if i in self._zeroed else self._number(("parameter", i)), source(i))
                for i in range(num_params)
            ]
            + [self._input(i) for i in range(len(traced.inputs))],
        )

    def _input(self, place: int) -> Value:
        number = self._number(("input", place))
        return Value(number, INPUTS | STREAM * (number in self._stream))

    @property
    def sources(self) -> int:
        """Bits of what the outputs depend on."""
        return _all_sources(self.outputs)

    def constant(self, array: Any) -> Value:
        if np.size(array) != 1 or not jnp.issubdtype(jnp.result_type(array), np.number):
            return Value(self._number(("array", id(array))), 0)
        number = np.asarray(array).item()
        number = "nan" if number != number else number  # As in jnp.var; it does not equal itself.
        return Value(self._number(("constant", number, np.shape(array))) if number else 0, 0)

    def join(self, value: Value, other: Value) -> Value:
        if value.number == other.number:
            return Value(value.number, value.sources | other.sources)
        sources = value.sources | other.sources
        first = self._numbers.get(("first", value.number), value.number)
        number = self._number(("joined", tuple(self._within), first, sources))
        self._numbers["first", number] = first
        return Value(number, sources)

    def entry(self, value: Value) -> Value:
        return self._of("entry", (), [value])

    def collected(self, value: Value, passes: int) -> Value:
        return self._of("collected", passes, [value])

    def apply(self, equation: Any, operands: list[Value]) -> list[Value]:
        name = equation.primitive.name
        for operand in operands:
            param = self._params.get(operand.number)
            if param is not None:
                self.uses[param].add((id(equation), frozenset(self._stacked(equation, operands))))
        if name in ("scan", "while", "cond"):
            return self._loop(equation, operands)
        self._note_meetings(operands)
        if name in _SAME or not equation.outvars:
            return operands[: len(equation.outvars)]
        simple = self._simplified(name, equation, operands)
        if simple is not None:
            return [simple] * len(equation.outvars)
        key = (_key(equation.params), equation.outvars[0].aval.shape)
        result = self._of(name, key, operands)
        if name == "max":
            self._maxima.setdefault(result.number, set()).update(o.number for o in operands)
        return [
            result if place == 0 else self._of(name, (*key, place), operands)
            for place in range(len(equation.outvars))
        ]

    def _loop(self, equation: Any, operands: list[Value]) -> list[Value]:
        options, fixed = equation.params, 0
        stacked = self._stacked(equation, operands)
        if equation.primitive.name == "scan":
            fixed = options["num_consts"] + options["num_carry"]
            taken_apart = operands[fixed:]
            marked = [
                v if self._is_param(v) else Value(v.number, v.sources | OF_PASSES)
                for v in taken_apart
            ]
            operands = [*operands[:fixed], *(marked if stacked else taken_apart)]
        self._within.append(id(equation))
        results = self.loop(equation, operands) or []
        self._within.pop()
        if stacked:
            carry = operands[options["num_consts"] : fixed]
            pairs = zip(carry, results, strict=False)
            key = id(equation), frozenset(stacked)
            earlier = self.loops.get(key)
            self.loops[key] = StackedLoop(
                stacked,
                options["length"],
                len(results) > len(carry),
                all(before.number == after.number for before, after in pairs)
                and (earlier is None or earlier.is_identity),
            )
        return results

    def _stacked(self, equation: Any, operands: Sequence[Value]) -> tuple[int, ...]:
        """The parameters that an operation takes apart along their first axis, if it is a scan."""
        if equation.primitive.name != "scan":
            return ()
        fixed = equation.params["num_consts"] + equation.params["num_carry"]
        return tuple(_bits(v.sources)[0] for v in operands[fixed:] if self._is_param(v))

    def _is_param(self, value: Value) -> bool:
        """Whether a value is a parameter; of zeroed ones, also one that is made of it."""
        return value.number in self._params or (
            value.number == 0 and value.sources in map(source, self._zeroed)
        )

    def _simplified(self, name: str, equation: Any, operands: Sequence[Value]) -> Value | None:
        """The value of an operation with zeros, or of one that changes nothing."""
        numbers = [operand.number for operand in operands]
        shape = equation.outvars[0].aval.shape
        if name in _PRODUCTS and 0 in numbers and not self._infinite.intersection(numbers):
            return Value(0, _all_sources(operands))
        if name in _KEEPS_ZERO and not any(numbers):
            return Value(0, _all_sources(operands))
        if name in _READS_ZERO or (name == "div" and numbers[1] != 0):
            return Value(0, _all_sources(operands)) if numbers[0] == 0 else None
        if name == "integer_pow" and equation.params["y"] > 0 and numbers[0] == 0:
            return Value(0, operands[0].sources)
        if name == "select_n" and len(set(numbers[1:])) == 1 and len(numbers) > 1:
            same = all(variable.aval.shape == shape for variable in equation.invars[1:])
            return Value(numbers[1], operands[1].sources) if same else None
        for place, variable in enumerate(equation.invars):
            if (
                variable.aval.shape != shape
                or variable.aval.dtype != equation.outvars[0].aval.dtype
            ):
                continue
            rest = numbers[:place] + numbers[place + 1 :]
            is_sum = name in ("add", "add_any") or (name == "sub" and place == 0)
            if is_sum and not any(rest):
                if all(value.sources & INPUTS for value in operands):
                    self.unchanged.add(numbers[place])
                    return Value(numbers[place], operands[place].sources & ~STREAM)
                return operands[place]
            if name == "max" and rest and rest[0] in self._maxima.get(numbers[place], ()):
                return operands[place]
        return None

    def _note_meetings(self, operands: Sequence[Value]) -> None:
        """Where functions of parameters alone meet values that depend on inputs."""
        weights = [v for v in operands if v.sources and not v.sources & INPUTS]
        others = [v for v in operands if v.sources & INPUTS and v.number]
        for value in weights if others else ():
            for param in _bits(value.sources):
                self.meetings[param].update(
                    (v.number, v.sources) for v in others if not v.sources & source(param)
                )

    def _of(self, name: str, key: Any, operands: Sequence[Value]) -> Value:
        """The value of an operation that nothing more is known of."""
        numbers = tuple(operand.number for operand in operands)
        if name in ("entry", "collected") and not any(numbers):
            return Value(0, _all_sources(operands))
        number = self._number((name, key, numbers))
        is_of_zero = name in _INFINITE_AT_ZERO and numbers[-1] == 0
        if is_of_zero or self._infinite.intersection(numbers):
            self._infinite.add(number)
        return Value(number, _all_sources(operands) | STREAM * (number in self._stream))

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers) + 1)


def source(param: int) -> int:
    """The bit of a parameter."""
    return 1 << (param + _NUM_BITS)


def _bits(sources: int) -> list[int]:
    """The parameters among what a value depends on."""
    return [place for place, bit in enumerate(bin(sources)[:1:-1][_NUM_BITS:]) if bit == "1"]


def _all_sources(values: Sequence[Value]) -> int:
    result = 0
    for value in values:
        result |= value.sources
    return result


def _key(options: dict[str, Any]) -> Any:
    """The options of an operation, to tell equal ones; those that cannot be hashed equal none."""
    key = tuple(sorted(options.items(), key=lambda item: item[0]))
    try:
        hash(key)
    except TypeError:
        return object()
    return key
