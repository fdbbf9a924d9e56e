"""Saving of a fitted result: one ``.npz`` file of arrays and JSON, without code.

The file has the name and the settings of the method, from which the method is built again, and
nothing that can be derived from the rest. The state of the optimiser is left out: a loaded result
predicts, scores and selects, but training resumes only from the checkpoints of :func:`fsjax.fit`.
For a user's functions, such as schedules, optimisers and losses, the file has the name; in a loaded
result they are :class:`fsjax.arguments.user_functions.Missing`, which cannot be trained.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fsjax.arguments.user_functions import is_function, text_of
from fsjax.engine.environment.jax_settings import own_settings
from fsjax.engine.result import FitResult
from fsjax.engine.rows import Arrays, Rows
from fsjax.engine.seeds import finish_seeds, init_seeds
from fsjax.errors import ConfigError, DataError
from fsjax.method import Method, Spec, TrainState
from fsjax.methods import METHODS
from fsjax.registry import registration_of, structure_of
from fsjax.storage.npz import write
from fsjax.storage.trees import by_path, from_paths
from fsjax.tables.splits import Split
from fsjax.tasks import TABLE

#: ``kind`` of the header of a :class:`fsjax.FitResult`.
RESULT = "result"

#: The prefix of the arrays of the states.
STATES = "states/"

#: The attributes that are stored in the header unchanged.
_PLAIN = "dataset num_features seeds cost unit_names runs judged_on".split()


def save(result: FitResult, path: str | Path) -> None:
    """Write a result to one file, atomically.

    Args:
      result: of a method that is registered in ``fsjax.methods.METHODS``. For a registered task,
        the file has its name and arguments.
      path: the file; no suffix is added. Missing folders are created.

    Raises:
      ConfigError: for anything but a result, and for a method that is not registered or was changed
        after it was built.
      OSError: if the file cannot be written.

    Examples:
      >>> result = fsjax.fit(method, data, num_features=2, num_epochs=1)
      >>> fsjax.save(result, "result.npz")
      >>> again = fsjax.load("result.npz")
      >>> header, arrays = fsjax.storage.results.pack(result)  # the same in memory
      >>> again = fsjax.storage.results.unpack(header, arrays)
    """
    if not isinstance(result, FitResult):
        raise ConfigError(
            f"fsjax.save takes the result of fsjax.fit, not {type(result).__name__}; save an "
            "estimator with its own method save(path)"
        )
    write(path, *pack(result))


def pack(result: FitResult) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Convert a result, of S seeds and a registered method, to a header and arrays.

    Returns:
      A header that JSON can hold, with ``kind``, and the arrays by name. Attributes that cannot be
      derived from the states keep their names, ``(S, ...)`` each; different scalers and splits are
      ``scalers/0/shift``, ``splits/0/train`` and so on; leaves of the states have the prefix
      ``states/`` before their path.

    Raises:
      ConfigError: for a method that is not registered or was changed after it was built, and for
        states that are not those of the method.
    """
    method, states = result.method, result.states
    described = _described(method)
    leaves = by_path(states, STATES)
    try:
        from_paths(state_template(method, states.spec, len(result.seeds)), leaves, STATES)
    except DataError as error:
        raise ConfigError(f"the states of the result do not fit its method: {error}") from error
    scalers, scaler_of = _distinct(result.scalers)
    splits, split_of = _distinct(result.splits)
    spec = states.spec._asdict().items()
    header = {
        "kind": RESULT,
        "method": described,
        # The code of a task comes from the package that reads the file.
        "spec": {name: _stored(value) for name, value in spec if name != "registered_task"},
        **{name: getattr(result, name) for name in _PLAIN},
        "metrics": list(result.metrics),
        "history": list(result.history),
        "scalers": scaler_of,
        "splits": split_of,
    }
    arrays: dict[str, Any] = {
        "ranking": result.ranking,
        "scores": result.scores,
        "constant_columns": result.constant_columns,
        "metrics": dict(result.metrics),
        "history": dict(result.history),
        "scalers": scalers,
        # Integers also if a user's part is an empty list, which NumPy converts to floats.
        "splits": [Split(*(np.asarray(part, np.int32) for part in split)) for split in splits],
    }
    if result.gates is not None:
        arrays["gates"] = result.gates
    arrays = jax.tree.map(np.asarray, arrays)
    return json.loads(json.dumps(header, default=_plain)), by_path(arrays) | leaves


def _described(method: Method) -> dict[str, Any]:
    """The entry of a method in the header; ConfigError if it could not be built from that."""
    name = method.name
    advice = (
        "a file holds a method's name and settings, but never its code; "
        "save result.selected and result.scores with numpy.save instead"
    )
    if name not in METHODS:
        raise ConfigError(f"the method {name!r} is not registered (fsjax.register), and {advice}")
    registration = registration_of(method)
    if registration is None:
        raise ConfigError(f"the method {name!r} was changed after it was built, and {advice}")
    settings = {setting: _stored(value) for setting, value in method.about.settings}
    return {"name": name, "origin": registration.origin, "settings": settings}


def _stored(value: Any) -> Any:
    """A setting that JSON can hold: for functions, their name."""
    return {"function": text_of(value)} if is_function(value) else value


def _plain(value: Any) -> Any:
    """Convert a value that JSON cannot hold, or raise ConfigError."""
    if isinstance(value, np.generic):
        return value.item()
    raise ConfigError(
        f"{value!r} has the type {type(value).__name__}; only numbers, text, None and tuples of "
        "these can be saved"
    )


@own_settings()
def state_template(method: Method, spec: Spec, num_seeds: int) -> TrainState:
    """Shapes and types of saved states, without computing them."""
    structure, values = structure_of(method)
    traced = spec._replace(loss=None)  # because the loss may be missing

    def shape(*sizes: int, dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, dtype)

    n, per_seed = spec.num_rows, shape(num_seeds)
    entry = TABLE[spec.task]
    y = shape(n, *entry.target.row(spec.num_outputs), dtype=entry.target.dtype)
    arrays = Arrays(*[Rows(shape(n, spec.num_columns), y, shape(n))] * 3)
    states = jax.eval_shape(
        functools.partial(init_seeds.function, structure=structure, spec=traced),
        shape(num_seeds, dtype=np.uint32),
        dict.fromkeys(values, per_seed),
        shape(num_seeds, spec.num_units, dtype=bool),
        arrays,
    )
    finish = functools.partial(finish_seeds.function, structure=structure)
    threshold = method.search and per_seed
    return jax.eval_shape(finish, states, arrays, None, threshold).states.replace(spec=spec)


def _distinct(items: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """The different objects among the items, and for each item the index of its object."""
    numbers: dict[int, int] = {}
    which = [numbers.setdefault(id(item), len(numbers)) for item in items]
    return list({id(item): item for item in items}.values()), which
