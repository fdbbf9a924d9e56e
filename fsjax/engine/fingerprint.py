"""Identities of methods and tasks in any process: their builder by module and name, its arguments.

Functions are identified in the same way; a run with one that has no such name is never resumed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jaxlib

from fsjax import __version__
from fsjax.arguments.user_functions import is_function, is_importable, text_of
from fsjax.engine.distributed.same import code
from fsjax.engine.environment.jax_settings import setting
from fsjax.method import Loss, Method
from fsjax.registry import is_as_built
from fsjax.tasks import TABLE


def fingerprint(method: Method) -> str:
    """Text that is equal in any process for methods of the same builder and arguments."""
    settings = tuple((name, described(value)) for name, value in method.about.settings)
    if not is_as_built(method):
        return f"{method.name} {settings!r}"
    return _call(method.about.source.structure.build, settings)


def fingerprint_of_task(task: str) -> str:
    """The same for the name of a registered task; empty for a built-in one."""
    source = TABLE[task].source
    return "" if source is None else _call(source.build, source.settings)


def _call(build: Callable[..., Any], settings: tuple[tuple[str, Any], ...]) -> str:
    return f"{build.__module__}:{build.__qualname__} {settings!r}"


def described(value: Any) -> Any:
    """A setting with a ``repr`` that is the same in any process."""
    return text_of(value) if is_function(value) else value


def unidentified(method: Method, task_name: str, loss: Loss | None) -> list[str]:
    """The parts of a run, as text, that another process cannot find by a module and a name."""
    source, task = method.about.source, TABLE[task_name].source
    parts = [
        f"{name}={text_of(value)}"
        for name, value in (*method.about.settings, ("loss", loss))
        if is_function(value) and not is_importable(value)
    ]
    if not is_as_built(method) or not is_importable(source.structure.build):
        parts.append(f"the method {method.name}")
    if task is not None and not is_importable(task.build):
        parts.append(f"the task {task_name}")
    return parts


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
