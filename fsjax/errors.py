"""Errors whose message is meant for the user: what was given, what is allowed, what to do."""

import difflib
import functools
import inspect
import numbers
import re
from collections.abc import Callable, Collection, Iterable
from typing import ParamSpec, TypeGuard, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: What moves the cursor, colours, or turns the direction of text: all but the line end and the tab.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Text with its control characters escaped, as in ``\x1b[31mred``.

    Names of columns and labels come from files, which could tell a terminal anything.
    """
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


class FsjaxError(ValueError):
    """Base of every error that fsjax raises about what it was given."""

    def __str__(self) -> str:
        return printable(super().__str__())


class DataError(FsjaxError):
    """The data cannot be used: a missing or broken file, wrong columns, missing values."""


class ConfigError(FsjaxError):
    """A setting cannot be used: an unknown name, a value out of its range."""


class NonFiniteLossError(FsjaxError):
    """The training loss became NaN or infinite."""


def nearest(name: str, allowed: Iterable[str]) -> str:
    """Text that helps with a mistyped name.

    ``"did you mean 'isolet'?"`` when one of the ``allowed`` names is close (letter case ignored),
    and otherwise ``"allowed: 'arcene', 'coil20', ..."`` with every name in the given order.
    """
    names = [str(item) for item in allowed]
    by_lower = {item.lower(): item for item in names}
    close = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.6)
    if close:
        return f"did you mean {by_lower[close[0]]!r}?"
    if not names:
        return "there is none to choose from"
    return "allowed: " + ", ".join(map(repr, names))


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a real number; truth values are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_choice(label: str, value: object, allowed: Collection[str]) -> None:
    """ConfigError, with the nearest name or all of them, unless a value is one of the names."""
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(f"{label}={value!r}: {nearest(str(value), allowed)}")


def check_names(subject: str, names: Iterable[str], allowed: Collection[str]) -> None:
    """ConfigError, beginning with ``subject``, for the first name that is not allowed."""
    for name in names:
        if name not in allowed:
            raise ConfigError(f"{subject} {name!r}: {nearest(name, allowed)}")


def suggests_names(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function answer an unknown keyword with a TypeError that has the nearest name."""
    parameters = inspect.signature(function).parameters
    further = inspect.Parameter.VAR_KEYWORD
    names = [name for name, parameter in parameters.items() if parameter.kind is not further]

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs:
            if name not in parameters:
                raise TypeError(f"unknown argument {name!r}: {nearest(name, names)}")
        return function(*args, **kwargs)

    return checked


def unknown_attribute(module: str, name: str, public: Iterable[str]) -> AttributeError:
    """The error of a module's ``__getattr__``, with the nearest of its public names, if any."""
    message = f"module {module!r} has no attribute {name!r}"
    close = nearest(name, public)
    # All names are more than a message should hold.
    return AttributeError(f"{message}; {close}" if close.startswith("did") else message)


def check_flag(label: str, value: object) -> bool:
    """A truth value, NumPy's too, as a bool; ConfigError for anything else."""
    import numpy as np  # slow to import, and not needed for the command line's own mistakes

    if not isinstance(value, bool | np.bool_):
        raise ConfigError(f"{label}={value!r}; choose True or False")
    return bool(value)


def check_whole(label: str, value: object, least: int = 1, most: int | None = None) -> int:
    """A whole number from ``least`` to ``most``, as an int; else ConfigError, which says ``label``.

    ``3.0`` counts as 3, ``True`` does not count.
    """
    if not is_number(value) or value != value // 1 or value < least:
        raise ConfigError(f"{label}={value!r}; choose a whole number, at least {least}")
    if most is not None and value > most:
        raise ConfigError(f"{label}={value!r}; choose a whole number, at most {most}")
    return int(value)


def check_num_features(num_features: int, D: int) -> None:
    """ConfigError unless the number of columns to select is whole and from 1 to ``D``, all of X."""
    if (
        type(num_features) is bool
        or not isinstance(num_features, numbers.Integral)
        or num_features < 1
    ):
        raise ConfigError(f"num_features={num_features!r}; choose a whole number from 1 to {D}")
    if num_features > D:
        raise ConfigError(f"num_features={num_features} but X has {D} columns; choose at most {D}")
