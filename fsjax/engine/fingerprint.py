"""What tells one method from another across processes: names and settings, or the code itself."""

from __future__ import annotations

import hashlib
import types
from typing import Any

import jax
import numpy as np

from fsjax.method import Method
from fsjax.registry import is_as_built


def fingerprint(method: Method) -> str:
    """Text that is equal for equal methods, in any process.

    Of a registered method it is where it was registered, with its settings. One that was put
    together by hand, or changed after it was built, is known by the code of its functions and by
    what they refer to.
    """
    if is_as_built(method):
        build = method.about.source.structure.build
        return f"{build.__module__}:{build.__qualname__} {method.about.settings!r}"
    about = method.about._replace(source=None)
    return hashlib.sha256(_substance((about, *method[1:]), 0).encode()).hexdigest()


def _substance(value: Any, depth: int) -> str:
    """A description of what a value does; of a function its code and what it closes over."""
    if depth > 12:  # things that refer to themselves
        return type(value).__name__
    if isinstance(value, types.FunctionType):
        cells = [_contents(cell) for cell in value.__closure__ or ()]
        used = (value.__defaults__, value.__kwdefaults__, cells)
        return _substance(value.__code__, depth + 1) + _substance(used, depth + 1)
    if isinstance(value, types.CodeType):
        return repr((value.co_code, value.co_names)) + _substance(value.co_consts, depth + 1)
    if isinstance(value, dict):
        pairs = sorted(value.items(), key=lambda pair: str(pair[0]))
        return _substance(pairs, depth + 1)
    if isinstance(value, list | tuple):
        return "[" + ",".join(_substance(one, depth + 1) for one in value) + "]"
    if isinstance(value, np.ndarray | jax.Array):
        host = np.ascontiguousarray(value)
        return f"{host.dtype}{host.shape}{hashlib.sha256(host.tobytes()).hexdigest()}"
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    return getattr(value, "__qualname__", type(value).__qualname__)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
