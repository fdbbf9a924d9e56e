"""Fingerprints that identify methods and tasks in any process, by their settings or their code.

Code is identified by its bytecode and not by its source, because closures, notebooks and several
lambdas on one line have no source of their own.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import types
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jaxlib
import numpy as np

from fsjax.distributed.same import code
from fsjax.environment.jax_settings import setting
from fsjax.method import Method
from fsjax.registry import is_as_built
from fsjax.tasks import Task
from fsjax.user_functions import is_function, text_of
from fsjax.version import __version__


def fingerprint(method: Method) -> str:
    """Text that is equal for equal methods, in any process.

    A method of the library is identified by its name and settings. A method that was registered
    elsewhere, made by hand, or changed after it was built is identified by the code of its
    functions and the values that they refer to.
    """
    if not is_as_built(method):
        return digest((method.about._replace(source=None), *method[1:]))
    return _built(method.about.source.structure.build, tuple(described_settings(method).items()))


def fingerprint_of_task(task: Task) -> str:
    """The same for a registered task; empty for a built-in one."""
    return "" if task.source is None else _built(task.source.build, task.source.settings)


def _built(build: Callable[..., Any], settings: tuple[tuple[str, Any], ...]) -> str:
    call = f"{build.__module__}:{build.__qualname__} {settings!r}"
    return call if build.__module__.startswith("fsjax.methods") else f"{call} {digest(build)}"


def digest(value: Any) -> str:
    """SHA-256 of a value, or of a function's code and the values it refers to, in any process."""
    return hashlib.sha256(_Substance().of(value).encode()).hexdigest()


def described_settings(method: Method) -> dict[str, Any]:
    """The settings of a method, each as :func:`described` returns it."""
    return {name: described(value) for name, value in method.about.settings}


def described(value: Any) -> Any:
    """A setting with a ``repr`` that identifies it: for functions, their name and digest."""
    return f"{text_of(value)} {digest(value)[:16]}" if is_function(value) else value


def versions(seed_axis: str) -> dict[str, Any]:
    """Devices, precision and versions, on which the rounding of a run depends.

    A run that is resumed under other ones differs from an uninterrupted run by rounding, or by more
    if rounding changes which columns are selected.
    """
    first = jax.devices()[0]
    return {
        "seed_axis": seed_axis,
        "platform": first.platform,
        "device": first.device_kind,
        "devices": jax.device_count(),
        "processes": jax.process_count(),
        "matmul_precision": setting("jax_default_matmul_precision"),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        # During development, the code of one version may differ.
        "fsjax": f"{__version__} ({code()['fsjax'][:12]})",
    }


class _Substance:
    """Describes values; for functions, their code and all that it refers to.

    A value that occurs again is described by a number, because functions may refer to themselves.
    """

    def __init__(self) -> None:
        self.met: dict[int, tuple[int, Any]] = {}

    def of(self, value: Any) -> str:
        """The description of one value."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return repr(value)
        if isinstance(value, np.ndarray | np.generic | jax.Array):
            host = np.ascontiguousarray(value)
            return f"{host.dtype}{host.shape}{hashlib.sha256(host.tobytes()).hexdigest()}"
        if isinstance(value, list | tuple):
            return "[" + ",".join(map(self.of, value)) + "]"
        if isinstance(value, set | frozenset):
            return "{" + ",".join(sorted(map(repr, value))) + "}"
        if isinstance(value, Mapping):
            return self.of(sorted(value.items(), key=lambda pair: str(pair[0])))
        if isinstance(value, types.CodeType):
            return self.of((value.co_code, value.co_names, value.co_consts))
        if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
            return value.__name__
        if id(value) in self.met:
            return f"#{self.met[id(value)][0]}"
        self.met[id(value)] = len(self.met), value  # keeps the value alive, and so its id unique
        return type(value).__qualname__ + self.of(self.parts(value))

    def parts(self, value: Any) -> Any:
        """The parts of a function or another object."""
        if isinstance(value, types.FunctionType):
            cells = [_contents(cell) for cell in value.__closure__ or ()]
            values = (value.__defaults__, value.__kwdefaults__, cells)
            return value.__code__, values, _globals(value, value.__code__)
        if isinstance(value, types.MethodType):
            return value.__func__, value.__self__
        if isinstance(value, functools.partial):
            return value.func, value.args, value.keywords
        if hasattr(value, "__wrapped__"):  # wrapped by jax.jit, for example
            return value.__wrapped__
        if dataclasses.is_dataclass(value):
            return {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
        return getattr(value, "__dict__", {})


def _globals(function: types.FunctionType, code: types.CodeType) -> dict[str, Any]:
    """The globals that the code uses: values, and functions of the same module."""
    names = {
        name: function.__globals__[name]
        for name in code.co_names
        if name in function.__globals__ and _is_own(function.__globals__[name], function)
    }
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            names |= _globals(function, inner)
    return names


def _is_own(value: Any, function: types.FunctionType) -> bool:
    if isinstance(value, types.FunctionType) or hasattr(value, "__wrapped__"):
        return getattr(value, "__module__", None) == function.__module__
    return not isinstance(value, types.ModuleType)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is still empty
        return None
