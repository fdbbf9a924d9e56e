"""Loading of a fitted result: what :mod:`fsjax.storage.results.packing` wrote.

Nothing in a file is executed, imported or unpickled; otherwise its contents are trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fsjax import __version__
from fsjax.arguments import Kind
from fsjax.arguments.user_functions import Missing
from fsjax.engine.result import FitResult, counted_connections, kept_epochs
from fsjax.errors import DataError
from fsjax.method import Method, Spec, TrainState
from fsjax.methods import METHODS
from fsjax.storage.npz import read
from fsjax.storage.results.packing import RESULT, STATES, state_template
from fsjax.storage.trees import from_paths
from fsjax.tables.scaling import Scaler
from fsjax.tables.splits import Split
from fsjax.tasks import BUILDERS, TASKS, get_task


def load(path: str | Path, max_bytes: int | None = None) -> FitResult:
    """Read a file of :func:`fsjax.save`; nothing in it is executed, imported or unpickled.

    The result predicts, scores and selects like the saved one; its ``states.opt_state`` is empty.

    Args:
      path: the file.
      max_bytes: limit on the total size of its arrays; half of the free memory by default.

    Raises:
      DataError: for a file that is missing, damaged, too large, of another format or of another
        version, and for a method, task or setting that this package does not have.
    """
    header, arrays = read(path, max_bytes)
    try:
        return unpack(header, arrays)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def unpack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FitResult:
    """The inverse of :func:`~fsjax.storage.results.pack`; the states have an empty ``opt_state``.

    Further arrays are ignored unless their names start with ``states/``.

    Raises:
      DataError: for a header that is not that of a result, and for a method, task or setting that
        this package does not have.
    """
    if header.get("kind") != RESULT:
        raise DataError(
            f"it holds {header.get('kind')!r}, not a {RESULT}; give a file of fsjax.save"
        )
    method, spec, states = _rebuilt(header, arrays)
    num_features, unit_names = header["num_features"], header.get("unit_names")
    scalers = {i: Scaler(*_fields(Scaler, arrays, f"scalers/{i}")) for i in header["scalers"]}
    splits = {i: Split(*_fields(Split, arrays, f"splits/{i}")) for i in header["splits"]}
    counted, connections = counted_connections(states)
    return FitResult(
        method=method,
        dataset=header["dataset"],
        task=spec.task,
        num_features=num_features,
        seeds=tuple(header["seeds"]),
        selected=arrays["ranking"][:, :num_features],
        ranking=arrays["ranking"],
        scores=arrays["scores"],
        gates=arrays.get("gates"),
        metrics={name: arrays[f"metrics/{name}"] for name in header["metrics"]},
        history={name: arrays[f"history/{name}"] for name in header["history"]},
        best_epoch=kept_epochs(method, states),
        cost=header["cost"],
        states=states,
        scalers=tuple(scalers[i] for i in header["scalers"]),
        splits=tuple(splits[i] for i in header["splits"]),
        constant_columns=arrays["constant_columns"],
        connection_epochs=counted,
        input_connections=connections,
        unit_names=None if unit_names is None else tuple(unit_names),
        runs=header.get("runs", "seed"),
        judged_on=header.get("judged_on"),
    )


def _rebuilt(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[Method, Spec, TrainState]:
    """The method, built again, the spec that it was trained with, and the states."""
    described, fields = header["method"], header["spec"]
    name, task = described["name"], fields["task"]
    if name not in METHODS:  # The name may contain a module, but files must not import modules.
        origin = described["origin"].partition(":")[0]
        raise DataError(
            f"the method {name!r} is not registered here; import {origin!r} first, which registers "
            "it (a file never does that by itself)"
        )
    if task.partition("(")[0] not in (*TASKS, *BUILDERS):
        raise DataError(
            f"the task {task!r} is not registered here; import the module that registers it first "
            "(a file never does that by itself)"
        )
    # Another version may have other settings, and a user's builder may raise anything.
    try:
        kinds = METHODS[name].registration.kinds
        settings = described["settings"].items()
        method = METHODS[name](**{k: _restored(k, v, kinds.get(k)) for k, v in settings})
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()
        }
        values["loss"] = _restored("loss", fields["loss"])
        entry = get_task(task)
        spec = Spec(**values, registered_task=entry if entry.source else None)
        template = state_template(method, spec, len(header["seeds"]))
        return method, spec, from_paths(template, arrays, STATES)
    except Exception as error:
        raise DataError(
            f"the method {name!r} cannot be built again: {error} (written by fsjax "
            f"{header.get('fsjax', __version__)}, this is {__version__})"
        ) from error


def _restored(name: str, value: Any, kind: Kind | None = None) -> Any:
    """A stored setting as it was; functions become placeholders, optimizers by ``kind``."""
    if not isinstance(value, dict) or "function" not in value:
        return value
    missing = Missing(name, value["function"])
    return missing.as_optimizer() if kind and kind.function == "optimizer" else missing


def _fields(
    record: type[Scaler] | type[Split], arrays: Mapping[str, np.ndarray], prefix: str
) -> list[np.ndarray]:
    return [arrays[f"{prefix}/{field}"] for field in record._fields]
