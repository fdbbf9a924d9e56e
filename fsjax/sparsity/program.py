"""Traces functions to programs, and follows values of any kind through them.

A reader says what becomes of its values in single operations; calls, remat, rules of derivatives
and loops are entered here.
"""

from __future__ import annotations

import abc
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Var

from fsjax.sparsity.trees import leaves_by_name
from fsjax.typing import PyTree

Value = TypeVar("Value")

#: Operations that only wrap another function, with the parameter that holds it.
_CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
}

#: Operations that are read as several others.
_MADE_OF: dict[str, Callable] = {
    "stack": lambda *x, axis: jnp.concatenate([jnp.expand_dims(a, axis) for a in x], axis),
    "unstack": lambda x, axis: [
        jax.lax.index_in_dim(x, i, axis, False) for i in range(x.shape[axis])
    ],
    "split": lambda x, sizes, axis: [
        jax.lax.slice_in_dim(x, end - size, end, axis=axis)
        for size, end in zip(sizes, itertools.accumulate(sizes), strict=True)
    ],
}

#: Operations entry by entry that involve several arrays.
ELEMENTWISE = frozenset(
    "add add_any sub mul div rem max min pow atan2 select_n and or xor nextafter clamp "
    "complex".split()
)

#: Comparisons.
COMPARISONS = frozenset("eq ne lt le gt ge is_finite".split())

#: Operations that keep the axes of a single array.
UNARY = frozenset(
    "convert_element_type copy copy_p reduce_precision neg sign abs exp exp2 log log1p expm1 tanh "
    "logistic sqrt rsqrt cbrt square integer_pow sin cos tan asin acos atan sinh cosh asinh acosh "
    "atanh erf erfc erf_inv lgamma digamma floor ceil round not rev "
    "stop_gradient optimization_barrier real imag conj cumsum".split()
)


class Traced(NamedTuple):
    """A program of a function of parameters and inputs.

    Attributes:
      program: its arguments are the leaves of the parameters, then those of the inputs.
      params: the shapes and types of the parameters, by path.
      inputs: the shapes and types of the leaves of the inputs.
      outputs: the structure of the outputs.
    """

    program: ClosedJaxpr
    params: dict[str, Any]
    inputs: list[Any]
    outputs: Any


def trace(function: Callable, params: PyTree, *inputs: PyTree) -> Traced:
    """Traces ``function(params, *inputs)`` for arrays, or their shapes."""
    shapes = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(jnp.shape(leaf), jnp.result_type(leaf)), (params, inputs)
    )
    program, outputs = jax.make_jaxpr(lambda p, x: function(p, *x), return_shape=True)(*shapes)
    structure = jax.tree.structure(outputs)
    return Traced(program, leaves_by_name(shapes[0]), jax.tree.leaves(shapes[1]), structure)


class ProgramReader(abc.ABC, Generic[Value]):
    """Follows values through a program and the functions that it calls."""

    @abc.abstractmethod
    def constant(self, array: Any) -> Value:
        """The value of an array that is part of the program."""

    @abc.abstractmethod
    def apply(self, equation: Any, operands: list[Value]) -> list[Value]:
        """The outputs of one operation, a ``JaxprEqn`` of JAX."""

    def run(self, program: ClosedJaxpr | Jaxpr, arguments: Sequence[Value]) -> list[Value]:
        """The outputs of a program."""
        closed = program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program, ())
        jaxpr: Jaxpr = closed.jaxpr
        values: dict[Var, Value] = {}

        def read(atom: Any) -> Value:
            return self.constant(atom.val) if isinstance(atom, Literal) else values[atom]

        values.update(zip(jaxpr.constvars, map(self.constant, closed.consts), strict=True))
        values.update(zip(jaxpr.invars, arguments, strict=True))
        for equation in jaxpr.eqns:
            operands = [read(atom) for atom in equation.invars]
            name = equation.primitive.name
            function = equation.params.get(_CALLS.get(name, ""))
            if name in _MADE_OF:
                whole = functools.partial(_MADE_OF[name], **equation.params)
                function = jax.make_jaxpr(whole)(*(atom.aval for atom in equation.invars))
            outputs = (
                self.apply(equation, operands) if function is None else self.run(function, operands)
            )
            values.update(zip(equation.outvars, outputs, strict=True))
        return [read(atom) for atom in jaxpr.outvars]


class LoopReader(ProgramReader[Value]):
    """A reader of values that say the same of every pass of a loop, which it follows to its end."""

    @abc.abstractmethod
    def join(self, value: Value, other: Value) -> Value:
        """A value that may be either of two."""

    @abc.abstractmethod
    def entry(self, value: Value) -> Value:
        """One entry of an array that a scan takes apart along its first axis."""

    @abc.abstractmethod
    def collected(self, value: Value, passes: int) -> Value:
        """The array that a scan makes of its passes."""

    def loop(self, equation: Any, operands: list[Value]) -> list[Value] | None:
        """The outputs of a scan, a while loop or a condition; ``None`` for other operations."""
        name, options = equation.primitive.name, equation.params
        if name == "scan":
            constants = operands[: options["num_consts"]]
            rest = operands[options["num_consts"] :]
            carry, scanned = rest[: options["num_carry"]], rest[options["num_carry"] :]
            entries = [self.entry(value) for value in scanned]
            carry, outputs = self._carried(options["jaxpr"], constants, carry, entries)
            stacked = [self.collected(value, options["length"]) for value in outputs[len(carry) :]]
            return [*carry, *stacked]
        if name == "while":
            of_condition = operands[: options["cond_nconsts"]]
            rest = operands[options["cond_nconsts"] :]
            constants, carry = rest[: options["body_nconsts"]], rest[options["body_nconsts"] :]
            carry, _ = self._carried(options["body_jaxpr"], constants, carry, [])
            self.run(options["cond_jaxpr"], [*of_condition, *carry])
            return carry
        if name == "cond":
            branches = [self.run(branch, operands[1:]) for branch in options["branches"]]
            joined = branches[0]
            for other in branches[1:]:
                joined = [self.join(a, b) for a, b in zip(joined, other, strict=True)]
            return joined
        return None

    def _carried(
        self,
        body: ClosedJaxpr,
        constants: Sequence[Value],
        carry: Sequence[Value],
        entries: Sequence[Value],
    ) -> tuple[list[Value], list[Value]]:
        """What a loop carries in any of its passes, and all outputs of the last pass followed."""
        while True:
            outputs = self.run(body, [*constants, *carry, *entries])
            joined = [self.join(*pair) for pair in zip(carry, outputs[: len(carry)], strict=True)]
            if _same(joined, carry):
                return joined, outputs
            carry = joined


def _same(values: Sequence[Any], others: Sequence[Any]) -> bool:
    return all(
        value is other or value == other for value, other in zip(values, others, strict=True)
    )
