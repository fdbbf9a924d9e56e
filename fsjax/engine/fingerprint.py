"""What tells methods and tasks apart, in any process: names and settings, or the code itself.

Bytecode, not source: closures, notebooks and lambdas on one line have no text of their own.
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
from fsjax.user_functions import Missing, is_function, text_of
from fsjax.version import __version__


def fingerprint(method: Method) -> str:
    """Text that is equal for equal methods, in any process.

    Of a method of the library it is its name with its settings. One that was registered elsewhere,
    put together by hand, or changed after it was built, is known by the code of its functions and
    by what they refer to.
    """
    if not is_as_built(method):
        return digest((method.about._replace(source=None), *method[1:]))
    return _built(method.about.source.structure.build, tuple(described_settings(method).items()))


def fingerprint_of_task(task: Task) -> str:
    """Likewise of a registered task; empty for a built-in one."""
    return "" if task.source is None else _built(task.source.build, task.source.settings)


def _built(build: Callable[..., Any], settings: tuple[tuple[str, Any], ...]) -> str:
    call = f"{build.__module__}:{build.__qualname__} {settings!r}"
    return call if build.__module__.startswith("fsjax.methods") else f"{call} {digest(build)}"


def digest(value: Any) -> str:
    """SHA-256 of what a value does: equal for equal functions, in any process."""
    if isinstance(value, Missing):
        return value.sha256
    return hashlib.sha256(_Substance().of(value).encode()).hexdigest()


def described_settings(method: Method) -> dict[str, Any]:
    """The settings of a method, :func:`described`."""
    return {name: described(value) for name, value in method.about.settings}


def described(value: Any) -> Any:
    """A setting such that its ``repr`` tells it from others: of functions name and digest."""
    return f"{text_of(value)} {digest(value)[:16]}" if is_function(value) else value


def versions(seed_axis: str) -> dict[str, Any]:
    """Devices, precision and versions, on which the last bits of a run depend.

    A run that is continued under others ends within rounding of the one in one piece, or, where a
    rounding tips a choice of columns, elsewhere.
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
        # The code of one version may differ, where it is worked on.
        "fsjax": f"{__version__} ({code()['fsjax'][:12]})",
    }


class _Substance:
    """Describes what values do: of functions their code and all that it refers to.

    What is met again is described by its number, as functions may refer to themselves.
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
        self.met[id(value)] = len(self.met), value  # which keeps its id
        return type(value).__qualname__ + self.of(self.parts(value))

    def parts(self, value: Any) -> Any:
        """What a function, or another object, is made of."""
        if isinstance(value, types.FunctionType):
            cells = [_contents(cell) for cell in value.__closure__ or ()]
            values = (value.__defaults__, value.__kwdefaults__, cells)
            return value.__code__, values, _globals(value, value.__code__)
        if isinstance(value, types.MethodType):
            return value.__func__, value.__self__
        if isinstance(value, functools.partial):
            return value.func, value.args, value.keywords
        if hasattr(value, "__wrapped__"):  # by jax.jit and its like
            return value.__wrapped__
        if dataclasses.is_dataclass(value):
            return {f.name: getattr(value, f.name, None) for f in dataclasses.fields(value)}
        return getattr(value, "__dict__", {})


def _globals(function: types.FunctionType, code: types.CodeType) -> dict[str, Any]:
    """What the code takes from its module: values, and functions that are written there."""
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
    except ValueError:  # not filled yet
        return None
