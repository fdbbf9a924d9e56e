"""Checks of arguments against their annotations, and the annotations with ranges themselves."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import json
import math
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import jax
import numpy as np
import optax

from fsjax.arguments.user_functions import check_optimizer, check_schedule, is_function, text_of
from fsjax.errors import ConfigError, check_choice, check_flag, check_whole, is_number, nearest


@dataclasses.dataclass(frozen=True)
class Within:
    """A range of numbers.

    Attributes:
      least, above: the lower bound, inclusive or exclusive; set at most one of them.
      most, below: the upper bound, inclusive or exclusive; set at most one of them.
    """

    least: float = -math.inf
    above: float = -math.inf
    most: float = math.inf
    below: float = math.inf

    def contains(self, value: float) -> bool:
        """Whether a number is in the range; NaN and infinity never are."""
        return self.least <= value <= self.most and self.above < value < self.below

    def __str__(self) -> str:
        words = ("from", "above", "to", "to below")
        bounds = zip(words, dataclasses.astuple(self), strict=True)
        return " ".join(f"{word} {bound:g}" for word, bound in bounds if math.isfinite(bound))


#: Marks a float that is part of the compiled program, such as a density.
STATIC = "static"

#: Marks the weight of a loss term that is left out of the program if the weight is 0; see
#: :func:`is_used`.
TERM = "term"

#: Marks a sequence that must not be empty.
FILLED = "filled"

#: ``step -> learning rate``, where ``step`` is int32 and starts at 0. ``Positive | Schedule`` is a
#: rate that only Optax uses; the method computes nothing with it.
Schedule = optax.Schedule

#: An Optax gradient transformation, or a function of the :class:`fsjax.Spec` that returns one.
#: ``Literal["sgd", "adam"] | Optimizer`` allows one of these names, or an optimiser.
Optimizer = optax.GradientTransformation | Callable[[Any], optax.GradientTransformation]

Positive = Annotated[float, Within(above=0)]
NonNegative = Annotated[float, Within(least=0)]
Share = Annotated[float, Within(least=0, most=1)]
Rate = Annotated[float, Within(least=0, below=1)]
Fraction = Annotated[float, Within(above=0, most=1)]
Count = Annotated[int, Within(least=1)]
Whole = Annotated[int, Within(least=0)]
Widths = Sequence[int]
Layers = Annotated[Sequence[int], FILLED]


@dataclasses.dataclass(frozen=True)
class Kind:
    """A parsed annotation.

    Attributes:
      base: ``bool``, ``int``, ``float``, ``str``, ``Literal``, ``Sequence``, or ``None`` for a type
        that is not checked.
      optional: whether ``None`` is allowed.
      choices: the values of a ``Literal``.
      marks: the metadata of ``Annotated``: ranges and marks.
      function: ``schedule`` or ``optimizer`` if a :data:`Schedule` or an :data:`Optimizer` is
        allowed instead of the value, else empty.
    """

    base: Any
    optional: bool = False
    choices: tuple[Any, ...] = ()
    marks: tuple[Any, ...] = ()
    function: Literal["", "schedule", "optimizer"] = ""

    @property
    def traced(self) -> bool:
        """Whether values are inputs of the compiled program and not part of it."""
        return self.base is float and STATIC not in self.marks

    @functools.cached_property
    def within(self) -> Within:
        """The range of a number."""
        return next((mark for mark in self.marks if isinstance(mark, Within)), Within())


#: Members of a union that allow a function instead of the value.
_FUNCTIONS = (Schedule, *get_args(Optimizer))


def kind_of(annotation: Any) -> Kind:
    """Parses an annotation."""
    if get_origin(annotation) in (Union, types.UnionType):
        members = get_args(annotation)
        values = [member for member in members if member not in _FUNCTIONS]
        function: Literal["", "schedule", "optimizer"] = ""
        if len(values) < len(members):
            function = "schedule" if Schedule in members else "optimizer"
        optional = type(None) in values
        values = [value for value in values if value is not type(None)]
        if len(values) != 1:
            return Kind(None)
        return dataclasses.replace(kind_of(values[0]), optional=optional, function=function)
    if get_origin(annotation) is Annotated:
        inner = kind_of(annotation.__origin__)
        return dataclasses.replace(inner, marks=inner.marks + annotation.__metadata__)
    if get_origin(annotation) is Literal:
        return Kind(Literal, choices=get_args(annotation))
    if get_origin(annotation) in (Sequence, tuple) and int in get_args(annotation):
        return Kind(Sequence)
    return Kind(annotation if annotation in (bool, int, float, str) else None)


def kinds_of(function: Callable[..., Any]) -> dict[str, Kind]:
    """Parses the annotations of a function or a dataclass, by argument."""
    hints = get_type_hints(function, include_extras=True)
    return {name: kind_of(hint) for name, hint in hints.items() if name != "return"}


def checked(name: str, value: Any, kind: Kind) -> Any:
    """Checks a value and returns it in plain Python types.

    Args:
      value: the value. Lists become tuples; tracers pass, because they were checked before.

    Raises:
      ConfigError: for a value of the wrong type or out of its range.
    """
    if isinstance(value, jax.core.Tracer):
        return value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None and kind.optional:
        return None
    if kind.function and is_function(value):
        check = check_schedule if kind.function == "schedule" else check_optimizer
        return check(name, value)
    if kind.base is bool:
        return check_flag(name, value)
    if kind.base is Literal:
        if kind.function == "optimizer" and not isinstance(value, str):
            raise ConfigError(
                f"{name}={value!r}; give {' or '.join(map(repr, kind.choices))}, an Optax "
                "transformation, or a function of the Spec that returns one"
            )
        check_choice(name, value, kind.choices)
        return value
    if kind.base is Sequence:
        return _widths(name, value, filled=FILLED in kind.marks)
    if kind.base in (int, float):
        return _number(name, value, kind)
    if kind.base is str and not isinstance(value, str):
        raise ConfigError(f"{name}={value!r}; give text")
    return _frozen(value)


def type_text(kind: Kind) -> str:
    """The type without its range, as stubs and signatures show it."""
    if kind.base is Literal:
        text = f"Literal[{', '.join(map(json.dumps, kind.choices))}]"
    elif kind.base is Sequence:
        text = "Sequence[int]"
    else:
        text = "Any" if kind.base is None else kind.base.__name__
    text += f" | {kind.function.title()}" if kind.function else ""
    return f"{text} | None" if kind.optional else text


def check(annotation: Any, **values: Any) -> None:
    """Checks keyword values against one annotation; tracers pass.

    Raises:
      ConfigError: for the first value of the wrong type or out of the range.
    """
    for name, value in values.items():
        checked(name, value, kind_of(annotation))


def _number(name: str, value: Any, kind: Kind) -> Any:
    within, none = kind.within, ", or None" if kind.optional else ""
    if kind.base is int:
        if within == Within(least=within.least) and not none and math.isfinite(within.least):
            return check_whole(name, value, int(within.least))
        if not is_number(value) or value != value // 1 or not within.contains(value):
            allowed = f"a whole number {within}".rstrip()
            raise ConfigError(f"{name}={value!r}; choose {allowed}{none}")
        return int(value)
    if not is_number(value) or not math.isfinite(value):
        if is_function(value):
            raise ConfigError(
                f"{name} is the function {text_of(value)}, but the method needs a number; choose a "
                f"finite number{none}"
            )
        raise ConfigError(f"{name}={value!r}; choose a finite number{none}")
    if not within.contains(value):
        raise ConfigError(f"{name}={value}; choose a value {within}{none}")
    return float(value)


def _widths(name: str, value: Any, filled: bool) -> tuple[int, ...]:
    if not isinstance(value, list | tuple | np.ndarray):
        raise ConfigError(f"{name}={value!r}; give a tuple of widths, such as (64, 20)")
    if filled and not len(value):
        raise ConfigError(f"{name} is empty; give the width of at least one layer")
    return tuple(check_whole(f"a width of {name}", width) for width in value)


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def is_used(weight: Any) -> bool:
    """Whether a term of the loss is computed: a :data:`TERM` weight of exactly 0 omits it."""
    return isinstance(weight, jax.core.Tracer) or weight != 0


def is_traced(value: Any, kind: Kind) -> bool:
    """Whether a checked value is an input of the compiled program and not part of it."""
    if value is None or is_function(value):
        return False
    return kind.traced and not (TERM in kind.marks and value == 0)


def known(*values: Any) -> bool:
    """Whether no value is a tracer, so that a builder can compare the values in Python."""
    return not any(isinstance(value, jax.core.Tracer) for value in values)


def checked_arguments(
    label: str,
    parameters: Mapping[str, inspect.Parameter],
    kinds: Mapping[str, Kind],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    """Checks the arguments of a builder and returns all of them, including defaults.

    Args:
      label: the name of the builder in messages, such as ``fsjax.methods.stg``.

    Raises:
      TypeError: for unknown or missing arguments.
      ConfigError: for a value of the wrong type or out of its range.
    """
    for name in kwargs:
        if name not in parameters:
            raise TypeError(f"{label} has no argument {name!r}: {nearest(name, parameters)}")
    try:
        bound = inspect.Signature(list(parameters.values())).bind(*args, **kwargs)
    except TypeError as error:
        short, last = label.rpartition(".")[2], next(reversed(list(parameters)), None)
        advice = f"; give arguments by name, as in {short}({last}=...)" if last else ""
        raise TypeError(f"{label}: {error}{advice}") from None
    bound.apply_defaults()
    return {name: checked(name, value, kinds[name]) for name, value in bound.arguments.items()}


def imported(what: str, name: str) -> Callable[..., Any]:
    """Imports the function ``module:function``; the working directory is searched too.

    Args:
      what: the word for it in messages, ``method`` or ``task``.
      name: module and function.

    Raises:
      ConfigError: if there is no such module or function.
    """
    module, _, function = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise ConfigError(
            f"{what} {name!r}: there is no module {error.name!r}; looked in the current folder and "
            "on PYTHONPATH"
        ) from None
    except AttributeError:
        raise ConfigError(f"{what} {name!r}: {module} has no function {function!r}") from None
