"""Identities of methods, tasks and runs in any process: builders by module and name, arguments.

Functions are identified in the same way; a run with one that has no such name is never resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jaxlib
import numpy as np

from fsjax import __version__
from fsjax.arguments.user_functions import is_function, is_importable, text_of
from fsjax.engine.distributed.exchange import process_count
from fsjax.engine.distributed.same import check_same, code
from fsjax.engine.environment.jax_settings import setting
from fsjax.engine.run import Run, crc32
from fsjax.method import Loss, Method
from fsjax.registry import registration_of
from fsjax.storage.identity import Identity
from fsjax.tasks import TABLE


def fingerprint(method: Method) -> str:
    """Text that is equal in any process for methods of the same builder and arguments."""
    settings = tuple((name, described(value)) for name, value in method.about.settings)
    registration = registration_of(method)
    if registration is None:
        return f"{method.name} {settings!r}"
    return _call(registration.build, settings)


def _call(build: Callable[..., Any], settings: tuple[tuple[str, Any], ...]) -> str:
    return f"{build.__module__}:{build.__qualname__} {settings!r}"


def described(value: Any) -> Any:
    """A setting with a ``repr`` that is the same in any process."""
    return text_of(value) if is_function(value) else value


def unidentified(method: Method, task_name: str, loss: Loss | None) -> list[str]:
    """The parts of a run, as text, that another process cannot find by a module and a name."""
    registration, task = registration_of(method), TABLE[task_name].source
    parts = [
        f"{name}={text_of(value)}"
        for name, value in (*method.about.settings, ("loss", loss))
        if is_function(value) and not is_importable(value)
    ]
    if registration is None or not is_importable(registration.build):
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


def identity_of(run: Run, rows: np.ndarray, hyper: Mapping[str, Sequence[float]] = {}) -> Identity:
    """The identity of the training of some seeds; only checkpoints with the same one resume it.

    ``rows`` are their places in ``run.seeds``, and ``hyper`` values that replace the method's own.
    """
    spec, task = run.spec._asdict(), TABLE[run.spec.task].source
    del spec["registered_task"]
    start = None if run.start is None else crc32(run.start)
    return Identity(
        settings={
            **spec,
            "loss": described(run.spec.loss),
            "method": run.method.name,
            **{f"method.{n}": repr(described(v)) for n, v in run.method.about.settings},
            "hyper": dict(hyper),
            "seeds": [run.seeds[row] for row in rows],
        },
        data={
            "dataset": run.dataset.name,
            "data_crc32": run._data_crc32,
            "start_crc32": start,
        },
        code={
            "code": fingerprint(run.method),
            "task_code": "" if task is None else _call(task.build, task.settings),
        },
        versions=versions(run.axis),
    )


def check_processes(
    run: Run, rows: np.ndarray, hyper: Mapping[str, np.ndarray], idle: np.ndarray
) -> None:
    """Raises ConfigError in all processes, unless they are about to train the same run."""
    if process_count() == 1:
        return
    identity = identity_of(run, rows)
    settings = {
        **identity.settings,
        "hyper": {name: values.tolist() for name, values in hyper.items()},
        "idle": idle.tolist(),
        "sizes": run.sizes,
        "layout": (run.axis, run.batch_devices),
        "checkpoints": (run.checkpoint_dir is not None, run.checkpoint_every),
        "ends": (run.control.callback is not None, run.control.max_time),
    }
    data = identity.data, crc32((run.prepared.x_test, run.prepared.y_test))
    check_same(code=(code(), identity.code), data=data, configuration=settings)
