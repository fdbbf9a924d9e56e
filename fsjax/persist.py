"""A fitted result as one ``.npz`` file that holds arrays and JSON, and no code.

The file keeps the method's name and settings, and the method is built again from them. What only
continued training needs, the state of the optimiser, is left out: a loaded result predicts, scores
and selects; to continue a run there are the checkpoints of :func:`fsjax.fit`. Of functions, such as
schedules, optimisers and losses of the user's own, the file keeps name and SHA-256: in the loaded
result :class:`fsjax.functions.Missing` stands in their place, with which nothing can be trained.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

import jax
import numpy as np
import optax

from fsjax import possible
from fsjax.arguments import Kind
from fsjax.container import read, write
from fsjax.data.scaling import Scaler
from fsjax.data.splits import Split
from fsjax.engine.fingerprint import digest, fingerprint_of_task
from fsjax.engine.loop import Arrays, Rows
from fsjax.engine.result import FitResult
from fsjax.engine.seeds import finish_seeds, init_seeds
from fsjax.engine.serial import by_path, from_paths
from fsjax.errors import ConfigError, DataError
from fsjax.functions import Missing, is_function, text_of
from fsjax.jax_settings import own_settings
from fsjax.method import Method, Spec, TrainState
from fsjax.methods import METHODS
from fsjax.registry import is_as_built, structure_of
from fsjax.tasks import TABLE
from fsjax.version import __version__

#: ``kind`` of the header of a :class:`fsjax.FitResult`.
RESULT = "result"

_STATES = "states/"

#: The attributes that the header holds as they are.
_TOLD = "dataset task num_features seeds cost connection_epochs unit_names runs judged_on".split()


def save(result: FitResult, path: str | Path) -> None:
    """Writes a result to one file; an older file of that name is replaced only by a whole one.

    Args:
      result: of a method that is registered in ``fsjax.methods.METHODS``. Of a registered task the
        file has the name and the arguments.
      path: the file, taken as it is given: no suffix is added. Missing folders are made.

    Raises:
      ConfigError: for anything but a result, and for a method that is not registered or was changed
        after it was built.
      OSError: if the file cannot be written.
    """
    if not isinstance(result, FitResult):
        raise ConfigError(
            f"fsjax.save takes what fsjax.fit returns, not {type(result).__name__}; an estimator "
            "is saved by its own save(path)"
        )
    write(path, *pack(result))


def load(path: str | Path, max_bytes: int | None = None) -> FitResult:
    """Reads what :func:`save` wrote; nothing in the file is executed, imported or unpickled.

    The result predicts, scores and selects as the saved one; its ``states.opt_state`` is empty.

    Args:
      path: the file.
      max_bytes: memory that its arrays may take together; half of the free memory by default.

    Raises:
      DataError: for a file that is missing, broken, of another format or a newer version, that
        would take more memory, or that does not hold what a result of a method as this package
        builds it can be.
    """
    header, arrays = read(path, max_bytes)
    try:
        return unpack(header, arrays)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def pack(result: FitResult) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Takes a result apart, of S seeds and a method of ``fsjax.methods.METHODS``.

    Returns:
      A header of what JSON knows, with ``kind``, and the arrays by name: the result's own under
      the names of its attributes, ``(S, ...)`` each, ``scalers/0/shift``, ``splits/0/train`` and
      so on for each that differs, and the leaves of the states as ``states/`` and their path.

    Raises:
      ConfigError: for a method that is not registered or was changed after it was built, and for
        states that are not those of the method.
    """
    method, states = result.method, result.states
    described = _described(method)
    leaves = by_path(states, _STATES)
    try:
        from_paths(_template(method, states.spec, len(result.seeds)), leaves, _STATES)
    except DataError as error:
        raise ConfigError(f"the states of the result do not fit its method: {error}") from error
    if np.isnan(result.scores).any():  # No file of these could be loaded.
        raise ConfigError("the scores hold NaN; save result.selected and result.scores with numpy")
    scalers, scaler_of = _distinct(result.scalers)
    splits, split_of = _distinct(result.splits)
    # Row numbers, also where a user's part is an empty list, which NumPy takes for floats.
    splits = [Split(*(np.asarray(part, np.int32) for part in split)) for split in splits]
    header = {
        "kind": RESULT,
        "method": described,
        "spec": _spec_fields(states.spec),
        **{name: getattr(result, name) for name in _TOLD},
        "metrics": list(result.metrics),
        "history": list(result.history),
        "scalers": scaler_of,
        "splits": split_of,
    }
    arrays = {
        **{name: value for name, value in vars(result).items() if isinstance(value, np.ndarray)},
        "metrics": dict(result.metrics),
        "history": dict(result.history),
        "scalers": scalers,
        "splits": splits,
    }
    arrays = by_path(jax.tree.map(np.asarray, arrays)) | leaves
    return json.loads(json.dumps(header, default=_plain)), arrays


def unpack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> FitResult:
    """Puts together what :func:`pack` took apart; the states have an empty ``opt_state``.

    Other arrays may be among those of the result, but not under ``states/``.

    Raises:
      DataError: for a header or arrays that are not those of a result, a method or setting that
        this package does not have, and arrays that are missing, of another shape or type, or hold
        what they cannot.
    """
    if header.get("kind") != RESULT:
        raise DataError(f"this is of the kind {header.get('kind')!r}, not a {RESULT}")
    seeds = _listed(header, "seeds")
    num_features = _value(header, "num_features", int)
    if not seeds or num_features < 1:
        raise DataError(f"the header has seeds={seeds} and num_features={num_features}")
    method, spec = _rebuild(header)
    rows, columns, cost = len(seeds), spec.num_columns, _value(header, "cost", dict)
    told = {
        "dataset": _value(header, "dataset", str),
        "task": _value(header, "task", str),
        "num_features": num_features,
        "seeds": seeds,
        "cost": {name: _value(cost, name, int | float) for name in cost},
        "connection_epochs": _listed(header, "connection_epochs"),
        "runs": _value({"runs": "seed", **header}, "runs", str),
    }
    possible.check_header(told, spec)
    # The arrays before the states: those of a hostile header's shapes may be huge.
    counted = len(told["connection_epochs"])
    wanted = _shapes(rows, num_features, counted, spec, method.about.gates)
    own = {name: _array(arrays, name, *one) for name, one in wanted.items()}
    possible.check_arrays(own, spec)
    scaler_of, split_of = (_listed(header, name, rows) for name in ("scalers", "splits"))
    scalers = {number: _scaler(arrays, f"scalers/{number}", columns) for number in scaler_of}
    splits = {number: _split(arrays, f"splits/{number}", spec) for number in split_of}

    def several(name: str, *shape: int) -> dict[str, np.ndarray]:
        names = _listed(header, name, kind=str)
        return {one: _array(arrays, f"{name}/{one}", shape, "biuf") for one in names}

    metrics, history = several("metrics", rows), several("history", rows, -1)
    possible.check_recorded(metrics, history, spec.num_epochs)
    unit_names = None
    if header.get("unit_names") is not None:
        unit_names = _listed(header, "unit_names", spec.num_units, kind=str)
    states = from_paths(_template_of(header, method, spec, rows), arrays, _STATES)
    possible.check_states(states.params, states.hyper)
    return FitResult(
        method=method,
        states=states,
        scalers=tuple(scalers[number] for number in scaler_of),
        splits=tuple(splits[number] for number in split_of),
        unit_names=unit_names,
        judged_on=_value({"judged_on": None, **header}, "judged_on", int | NoneType),
        metrics=metrics,
        history=history,
        **told,
        **{"gates": None, **own},
    )


def _shapes(
    rows: int, num_features: int, counted: int, spec: Spec, gates: bool
) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and kinds of dtype of the arrays that a result has."""
    units, shapes = (rows, spec.num_units), {}
    if counted:
        shapes["input_connections"] = ((rows, counted, spec.num_columns), "iuf")
    if gates:
        shapes["gates"] = (units, "f")
    return shapes | {
        "selected": ((rows, num_features), "iu"),
        "ranking": (units, "iu"),
        "scores": (units, "f"),
        "best_epoch": ((rows,), "iu"),
        "constant_columns": ((rows,), "iu"),
    }


def _described(method: Method) -> dict[str, Any]:
    """What the header says of a method that can be built again from it, or a ConfigError."""
    name = method.name
    advice = (
        "a file holds a method's name and settings, never its code; "
        "save result.selected and result.scores with numpy instead"
    )
    if name not in METHODS:
        raise ConfigError(f"the method {name!r} is not registered (fsjax.register), and {advice}")
    if not is_as_built(method):
        raise ConfigError(f"the method {name!r} was changed after it was built, and {advice}")
    origin = METHODS[name].registration.origin
    settings = {setting: _stored(value) for setting, value in method.about.settings}
    return {"name": name, "origin": origin, "settings": settings}


def _stored(value: Any) -> Any:
    """A setting as JSON knows it: of functions what they are called, and their digest."""
    if not is_function(value):
        return value
    if isinstance(value, optax.GradientTransformation) and isinstance(value.update, Missing):
        value = value.update
    return {"function": text_of(value), "sha256": digest(value)}


def _restored(name: str, value: Any) -> Any:
    """The inverse of :func:`_stored`, where of functions only a placeholder comes back."""
    if not isinstance(value, dict) or set(value) != {"function", "sha256"}:
        return value
    return Missing(name, *(_value(value, field, str) for field in ("function", "sha256")))


def _setting(name: str, value: Any, kind: Kind | None) -> Any:
    """An argument of a method from what is stored of it."""
    value = _restored(name, value)
    if isinstance(value, Missing) and kind is not None and kind.function == "optimizer":
        return value.as_optimizer()
    return value


def _spec_fields(spec: Spec) -> dict[str, Any]:
    """The fields of a spec that a file has: the code of a task is that of whoever reads it."""
    fields = spec._asdict().items()
    return {name: _stored(value) for name, value in fields if name != "task_code"}


def _plain(value: Any) -> Any:
    """What JSON does not know, as it knows it."""
    if isinstance(value, np.generic):
        return value.item()
    raise ConfigError(
        f"{value!r} is of the type {type(value).__name__}; only numbers, text, None and tuples of "
        "these can be saved"
    )


def _rebuild(header: Mapping[str, Any]) -> tuple[Method, Spec]:
    """The method, and a spec that it can have been trained with."""
    described = _value(header, "method", dict)
    name, settings = _value(described, "name", str), _value(described, "settings", dict)
    spec_fields = _value(header, "spec", dict)
    if name not in METHODS:  # It may name a module, which no file may import.
        origin = _value(described, "origin", str).partition(":")[0]
        raise DataError(
            f"the method {name!r} is not registered here; import {origin!r} first, which registers "
            "it (a file never does that by itself)"
        )
    # What a builder makes of values from elsewhere is not a closed list of errors.
    try:
        kinds = METHODS[name].registration.kinds
        method = METHODS[name](**{k: _setting(k, v, kinds.get(k)) for k, v in settings.items()})
        lists = {key: tuple(v) for key, v in spec_fields.items() if isinstance(v, list)}
        loss = _restored("loss", spec_fields.get("loss"))
        spec = Spec(**{**spec_fields, **lists, "loss": loss})
    except Exception as error:
        raise _not_built(header, error) from error
    possible.check_spec(spec, method.about)
    return method, spec._replace(task_code=fingerprint_of_task(TABLE[spec.task]))


def _template_of(
    header: Mapping[str, Any], method: Method, spec: Spec, num_seeds: int
) -> TrainState:
    try:
        return _template(method, spec, num_seeds)
    except Exception as error:
        raise _not_built(header, error) from error


def _not_built(header: Mapping[str, Any], error: Exception) -> DataError:
    return DataError(
        f"the method {header['method']['name']!r} cannot be built again: {error} (written by fsjax "
        f"{header.get('fsjax', __version__)}, this is {__version__})"
    )


@own_settings
def _template(method: Method, spec: Spec, num_seeds: int) -> TrainState:
    """Shapes and types of kept states, without any computation."""
    structure, values = structure_of(method)
    kept, spec = spec, spec._replace(loss=None)  # which may be missing

    def shape(*sizes: int, dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, dtype)

    n, of_seeds = spec.num_rows, shape(num_seeds)
    entry = TABLE[spec.task]
    y = shape(n, *entry.row(spec.num_outputs), dtype=entry.dtype)
    arrays = Arrays(*[Rows(shape(n, spec.num_columns), y, shape(n))] * 3)
    states = jax.eval_shape(
        functools.partial(init_seeds, structure, spec),
        shape(num_seeds, dtype=np.uint32),
        dict.fromkeys(values, of_seeds),
        shape(num_seeds, spec.num_units, dtype=bool),
        arrays,
    )
    finish, threshold = functools.partial(finish_seeds, structure), method.search and of_seeds
    return jax.eval_shape(finish, states, arrays, None, threshold).states.replace(spec=kept)


def _distinct(items: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """The different objects among the items, and which of them each item is."""
    numbers: dict[int, int] = {}
    which = [numbers.setdefault(id(item), len(numbers)) for item in items]
    return list({id(item): item for item in items}.values()), which


def _scaler(arrays: Mapping[str, np.ndarray], name: str, columns: int) -> Scaler:
    """One number for all columns, or one for each."""
    names = [f"{name}/{part}" for part in Scaler._fields]
    shapes = [() if np.ndim(arrays.get(part)) == 0 else (columns,) for part in names]
    found = Scaler(*(_array(arrays, *both, "f") for both in zip(names, shapes, strict=True)))
    possible.check_scaler(found, name)
    return found


def _split(arrays: Mapping[str, np.ndarray], name: str, spec: Spec) -> Split:
    found = Split(*(_array(arrays, f"{name}/{part}", (-1,), "iu") for part in Split._fields))
    possible.check_split(found, spec, name)
    return found


def _array(
    arrays: Mapping[str, np.ndarray], name: str, shape: Sequence[int], kinds: str
) -> np.ndarray:
    """An array of this shape, where -1 is any length, and one of these kinds of dtype."""
    if name not in arrays:
        raise DataError(f"the array {name!r} is missing")
    values = arrays[name]
    fits = len(shape) == values.ndim and all(
        given == wanted or wanted == -1 for given, wanted in zip(values.shape, shape, strict=True)
    )
    if not fits:
        expected = str(tuple(shape)).replace("-1", "any")
        raise DataError(f"the array {name!r} has the shape {values.shape}; expected {expected}")
    if values.dtype.kind not in kinds:
        raise DataError(f"the array {name!r} has the type {values.dtype}, which is not expected")
    return values


def _value(fields: Mapping[str, Any], name: str, kind: Any) -> Any:
    """A field of the header."""
    value = fields.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        expected = getattr(kind, "__name__", str(kind))
        raise DataError(f"the header's {name!r} is {value!r}; expected {expected}")
    return value


def _listed(
    header: Mapping[str, Any], name: str, length: int | None = None, kind: type = int
) -> tuple[Any, ...]:
    """A field of whole numbers, or of names."""
    values = _value(header, name, list)
    if not all(type(value) is kind for value in values) or length not in (None, len(values)):
        count = "" if length is None else f"{length} "
        expected = count + ("whole numbers" if kind is int else "names")
        raise DataError(f"the header's {name!r} is {values!r}; expected {expected}")
    return tuple(values)
