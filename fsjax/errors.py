"""Errors for the user, and checks of single values that raise them.

A message says what is wrong, with the value; what is allowed; and what to do.

Examples:
  >>> from fsjax import errors
  >>> print(errors.nearest("clasification", ["classification", "regression"]))
  did you mean 'classification'?
  >>> print(errors.name_some(["age", "weight"]), errors.is_number(True))
  >>> print(errors.printable("\\x1b[31mred"), errors.check_whole("rows", 3.0))
  >>> try:
  ...     errors.check_choice("task", "clasification", ["classification"])
  ... except fsjax.ConfigError as error:
  ...     print(error)
  >>> import warnings
  >>> warnings.simplefilter("ignore", errors.UnreachedPhaseWarning)  # few epochs, for a test
"""

import difflib
import functools
import inspect
import numbers
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import ParamSpec, TypeGuard, TypeVar

#: The most names that a message lists.
_MAX_NAMED = 5

P = ParamSpec("P")
R = TypeVar("R")

#: Characters that move the cursor, set colours or reverse the text direction; newline and tab are
#: allowed.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Text with its control characters escaped, as in ``\x1b[31mred``.

    Column names and labels come from files, and may contain escape sequences for the terminal.
    """
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


class FsjaxError(ValueError):
    """Base class of the errors that fsjax raises about data and settings.

    Examples:
      >>> try:
      ...     fsjax.plan(method, data, num_features=7)  # of six columns
      ... except fsjax.ConfigError as error:  # fsjax.DataError, fsjax.NonFiniteLossError
      ...     print(error)
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class DataError(FsjaxError):
    """The data cannot be used, for example because of a damaged file or missing values."""


class ConfigError(FsjaxError):
    """A setting cannot be used, for example an unknown name or a value out of its range."""


class NonFiniteLossError(FsjaxError):
    """The training loss became NaN or infinite."""


class FixedLengthWarning(UserWarning):
    """A function holds a number of channels or blocks that its parameters no longer have."""


class UnreachedPhaseWarning(UserWarning):
    """Training ends before a phase that the selection of a method needs."""


def nearest(name: str, allowed: Iterable[str]) -> str:
    """A suggestion for a mistyped name.

    It is ``"did you mean 'isolet'?"`` if one of the ``allowed`` names is similar (ignoring case),
    and otherwise ``"allowed: 'arcene', 'coil20', ..."`` with all names in the given order.
    """
    names = [str(item) for item in allowed]
    # The dashes of flags make none of them similar.
    by_lower = {item.lower().lstrip("-"): item for item in names}
    close = difflib.get_close_matches(str(name).lower().lstrip("-"), by_lower, cutoff=0.6)
    if close:
        return f"did you mean {by_lower[close[0]]!r}?"
    if not names:
        return "there is none to choose from"
    return "allowed: " + ", ".join(map(repr, names))


def name_some(names: Sequence[object]) -> str:
    """Up to five names in quotes, and the number of further ones, for a message."""
    shown = ", ".join(repr(str(name)) for name in names[:_MAX_NAMED])
    return shown + (f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else "")


def is_number(value: object) -> TypeGuard[float]:
    """Whether this is a real number; booleans are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def check_choice(label: str, value: object, allowed: Collection[str]) -> None:
    """Raises ConfigError, with a suggestion, unless the value is one of the allowed names."""
    if not isinstance(value, str) or value not in allowed:
        raise ConfigError(f"{label}={value!r}: {nearest(str(value), allowed)}")


def check_names(subject: str, names: Iterable[str], allowed: Collection[str]) -> None:
    """Raises ConfigError for the first name that is not allowed; ``subject`` starts the message."""
    for name in names:
        if name not in allowed:
            raise ConfigError(f"{subject} {name!r}: {nearest(name, allowed)}")


def suggests_names(function: Callable[P, R]) -> Callable[P, R]:
    """Makes a function raise a TypeError with the nearest name for an unknown keyword."""
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
    """The error of a module's ``__getattr__``, with a similar public name if there is one."""
    message = f"module {module!r} has no attribute {name!r}"
    close = nearest(name, public)
    # Without a similar name, the list of all names would be too long for a message.
    return AttributeError(f"{message}; {close}" if close.startswith("did") else message)


def check_flag(label: str, value: object) -> bool:
    """The boolean, possibly NumPy's, as a ``bool``; ConfigError for anything else."""
    import numpy as np  # slow to import, and not needed for the command line's own mistakes

    if not isinstance(value, bool | np.bool_):
        raise ConfigError(f"{label}={value!r}; choose True or False")
    return bool(value)


def check_whole(label: str, value: object, min_value: int = 1, max_value: int | None = None) -> int:
    """A whole number from ``min_value`` to ``max_value``, as an ``int``; ConfigError for others.

    ``3.0`` is accepted, ``True`` is not. The message starts with ``label``.
    """
    if not is_number(value) or value != value // 1 or value < min_value:
        raise ConfigError(f"{label}={value!r}; choose a whole number, at least {min_value}")
    if max_value is not None and value > max_value:
        raise ConfigError(f"{label}={value!r}; choose a whole number, at most {max_value}")
    return int(value)


def check_num_features(num_features: int, D: int) -> None:
    """Raises ConfigError unless ``num_features`` is a whole number from 1 to ``D``."""
    if (
        type(num_features) is bool
        or not isinstance(num_features, numbers.Integral)
        or num_features < 1
    ):
        raise ConfigError(f"num_features={num_features!r}; choose a whole number from 1 to {D}")
    if num_features > D:
        raise ConfigError(f"num_features={num_features} but X has {D} columns; choose at most {D}")
