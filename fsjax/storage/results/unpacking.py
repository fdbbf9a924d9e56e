"""Loading of a fitted result: what :mod:`fsjax.storage.results.packing` wrote, with all checks.

Nothing in a file is executed, imported or unpickled; contents that no run writes are refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal

import jax
import numpy as np

from fsjax.arguments import Kind, NonNegative, Within, check, checked, kind_of
from fsjax.engine.fingerprint import fingerprint_of_task
from fsjax.engine.prepare import check_seeds
from fsjax.engine.result import FitResult, counted_connections, kept_epochs
from fsjax.errors import ConfigError, DataError, check_choice, nearest
from fsjax.groups import checked_groups
from fsjax.method import BEST_BY, About, Method, Spec, TrainState
from fsjax.methods import METHODS
from fsjax.storage.npz import read
from fsjax.storage.results.packing import RESULT, STATES, state_template
from fsjax.storage.trees import from_paths
from fsjax.tables.scaled import filled_length
from fsjax.tables.scaling import Scaler
from fsjax.tables.splits import Split
from fsjax.tasks import BUILDERS, TABLE, TASKS, get_task
from fsjax.tasks.registry import resembled
from fsjax.user_functions import Missing
from fsjax.version import __version__

#: What the S runs of a result differ in.
RUNS = ("seed", "half")

_Size = Annotated[int, Within(least=1, most=2**31 - 1)]

#: The types and ranges of the fields of a spec that :func:`_checked_spec` does not check itself.
_SPEC = dict.fromkeys(
    "num_columns num_outputs num_rows batch_size num_epochs steps_per_epoch repeats".split(), _Size
) | {
    "early_stopping": _Size | None,
    "shuffle": bool,
    "best_by": Literal[BEST_BY],
    "image_order": Literal["C", "F"],
}

#: Upper limits of metrics, with a margin for rounding, by the last part of their names.
_MAX_VALUE = {"topology_change": 100.001} | dict.fromkeys(
    ("sparsity", "auc", "concordance_index"), 1.001
)


def load(path: str | Path, max_bytes: int | None = None) -> FitResult:
    """Read a file of :func:`fsjax.save`; nothing in it is executed, imported or unpickled.

    The result predicts, scores and selects like the saved one; its ``states.opt_state`` is empty.

    Args:
      path: the file.
      max_bytes: limit on the total size of its arrays; half of the free memory by default.

    Raises:
      DataError: for a file that is missing, damaged, too large, of another format or of a newer
        version, and for contents that cannot be the result of a method of this package.
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
      DataError: for a header that is not that of a result, a method or setting that this package
        does not have, and arrays that are missing, have another shape or type, or hold impossible
        values.
    """
    if header.get("kind") != RESULT:
        raise DataError(
            f"it holds {header.get('kind')!r}, not a {RESULT}; give a file of fsjax.save"
        )
    method, spec = _rebuild(header)
    seeds, num_features = _listed(header, "seeds"), _value(header, "num_features", int)
    cost, runs = _value(header, "cost", dict), header.get("runs", "seed")
    try:
        check_seeds(seeds)
        check_choice("runs", runs, RUNS)
        for name, value in cost.items():
            check(NonNegative, **{f"the cost {name}": value})
    except ConfigError as error:
        raise DataError(f"the header is wrong: {error}") from None
    if not 1 <= num_features <= spec.num_units:
        raise DataError(
            f"the header's num_features is {num_features}; expected a number from 1 to "
            f"{spec.num_units}"
        )
    # Before the states, whose shapes may be huge if the header is hostile.
    count = len(seeds)
    ranking = _array(arrays, "ranking", (count, spec.num_units), "iu")
    if (np.sort(ranking, axis=1) != np.arange(spec.num_units)).any():
        raise DataError(
            f"the array 'ranking' does not order the {spec.num_units} columns for each seed"
        )
    scores = _array(arrays, "scores", ranking.shape, "f")
    if np.isnan(scores).any():
        raise DataError("the array 'scores' holds NaN")
    constant = _array(arrays, "constant_columns", (count,), "iu", 0, spec.num_columns)
    gates = _array(arrays, "gates", ranking.shape, "f", 0, 1) if method.about.gates else None
    scaler_of, split_of = (_listed(header, name, count) for name in ("scalers", "splits"))
    scalers = {i: _scaler(arrays, f"scalers/{i}", spec.num_columns) for i in scaler_of}
    splits = {i: _split(arrays, f"splits/{i}", spec) for i in split_of}
    metrics = _recorded(header, arrays, "metrics", (count,))
    history = _recorded(header, arrays, "history", (count, -1))
    lengths = {values.shape[1] for values in history.values()}
    if len(lengths) > 1 or any(length > spec.num_epochs for length in lengths):
        raise DataError(
            f"the arrays of the history have {sorted(lengths)} epochs; expected the same number "
            f"for all, at most {spec.num_epochs}"
        )
    unit_names = None
    if header.get("unit_names") is not None:
        unit_names = _listed(header, "unit_names", spec.num_units, kind=str)
    states = _states(header, arrays, method, spec, count)
    counted, connections = counted_connections(states)
    if connections is not None:
        _check_within("states/trace", connections, 0, math.inf)
    return FitResult(
        method=method,
        dataset=_value(header, "dataset", str),
        task=spec.task,
        num_features=num_features,
        seeds=seeds,
        selected=ranking[:, :num_features],
        ranking=ranking,
        scores=scores,
        gates=gates,
        metrics=metrics,
        history=history,
        best_epoch=kept_epochs(method, states),
        cost=cost,
        states=states,
        scalers=tuple(scalers[i] for i in scaler_of),
        splits=tuple(splits[i] for i in split_of),
        constant_columns=constant,
        connection_epochs=counted,
        input_connections=connections,
        unit_names=unit_names,
        runs=runs,
        judged_on=_value(header, "judged_on", int | NoneType),
    )


def _restored(name: str, value: Any, kind: Kind | None = None) -> Any:
    """A stored setting as it was; functions become placeholders, optimizers by ``kind``."""
    if not isinstance(value, dict) or set(value) != {"function", "sha256"}:
        return value
    missing = Missing(name, *(_value(value, field, str) for field in ("function", "sha256")))
    return missing.as_optimizer() if kind and kind.function == "optimizer" else missing


def _rebuild(header: Mapping[str, Any]) -> tuple[Method, Spec]:
    """Build the method again, and check the spec that it was trained with."""
    described = _value(header, "method", dict)
    name, settings = _value(described, "name", str), _value(described, "settings", dict)
    fields = _value(header, "spec", dict)
    if name not in METHODS:  # The name may contain a module, but files must not import modules.
        origin = _value(described, "origin", str).partition(":")[0]
        raise DataError(
            f"the method {name!r} is not registered here; import {origin!r} first, which registers "
            "it (a file never does that by itself)"
        )
    # Values from a file may raise anything in a builder.
    try:
        kinds = METHODS[name].registration.kinds
        method = METHODS[name](**{k: _restored(k, v, kinds.get(k)) for k, v in settings.items()})
        lists = {key: tuple(v) for key, v in fields.items() if isinstance(v, list)}
        spec = Spec(**{**fields, **lists, "loss": _restored("loss", fields.get("loss"))})
    except Exception as error:
        raise _not_built(header, error) from error
    try:
        spec = _checked_spec(spec, method.about)
    except ConfigError as error:
        raise DataError(str(error)) from None
    return method, spec._replace(task_code=fingerprint_of_task(TABLE[spec.task]))


def _checked_spec(spec: Spec, about: About) -> Spec:
    """The spec, checked; ConfigError if the method cannot have been trained with it."""
    fields = spec._asdict()
    for name, annotation in _SPEC.items():
        fields[name] = checked(f"the spec's {name}", fields[name], kind_of(annotation))
    spec = Spec(**fields)
    # A file must not import a module or an entry point.
    if not isinstance(spec.task, str) or spec.task.partition("(")[0] not in (*TASKS, *BUILDERS):
        raise ConfigError(
            f"the spec's task={spec.task!r}: {nearest(str(spec.task), TASKS)}, or import the "
            "module that registers it first (a file never does that by itself)"
        )
    try:
        name = get_task(spec.task).name
    except Exception as error:  # values from a file may raise anything in a user's function
        raise ConfigError(f"the spec's task={spec.task!r} cannot be made: {error}") from error
    if name != spec.task:
        raise ConfigError(f"the spec's task={spec.task!r} should be written {name!r}")
    check_choice("the spec's task", resembled(name), about.tasks)
    checked_groups(spec.groups, spec.num_columns)
    if not isinstance(spec.loss, Missing | None):
        raise ConfigError(f"the spec's loss is {spec.loss!r}; expected the name of a function")
    shape = spec.image_shape
    if shape is not None:
        sizes = isinstance(shape, tuple) and all(type(size) is int and size > 0 for size in shape)
        if not sizes or len(shape) not in (2, 3) or math.prod(shape) != spec.num_columns:
            raise ConfigError(
                f"the spec's image_shape is {shape!r}, which is not a grid of its "
                f"{spec.num_columns} columns"
            )
    return spec


def _states(
    header: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    method: Method,
    spec: Spec,
    num_seeds: int,
) -> TrainState:
    """The states; parameters and arguments have no NaN, and epochs are within the run."""
    try:
        template = state_template(method, spec, num_seeds)
    except Exception as error:
        raise _not_built(header, error) from error
    states: TrainState = from_paths(template, arrays, STATES)
    for name, tree in (("params", states.params), ("hyper", states.hyper)):
        for leaf in jax.tree.leaves(tree):
            if np.issubdtype(leaf.dtype, np.floating) and np.isnan(leaf).any():
                raise DataError(f"the arrays 'states/{name}' hold NaN")
    for name, epochs in (("epoch", states.epoch), ("best/epoch", states.best.epoch)):
        _check_within(STATES + name, np.asarray(epochs), 0, spec.num_epochs)
    return states


def _not_built(header: Mapping[str, Any], error: Exception) -> DataError:
    return DataError(
        f"the method {header['method']['name']!r} cannot be built again: {error} (written by fsjax "
        f"{header.get('fsjax', __version__)}, this is {__version__})"
    )


def _scaler(arrays: Mapping[str, np.ndarray], name: str, columns: int) -> Scaler:
    """A scaler with finite numbers, for all columns or for each, and a scale of at least 0."""
    parts = []
    for part, least in zip(Scaler._fields, (-math.inf, 0), strict=True):
        shape = () if np.ndim(arrays.get(f"{name}/{part}", ())) == 0 else (columns,)
        parts.append(_array(arrays, f"{name}/{part}", shape, "f", least))
    return Scaler(*parts)


def _split(arrays: Mapping[str, np.ndarray], name: str, spec: Spec) -> Split:
    """A split with disjoint parts and the number of training rows of the spec."""
    split = Split(*(_array(arrays, f"{name}/{part}", (-1,), "iu") for part in Split._fields))
    rows = np.concatenate(split)
    if (rows < 0).any() or len(np.unique(rows)) < len(rows):
        raise DataError(f"the arrays of {name!r} hold repeated or negative row numbers")
    if filled_length(len(split.train)) != spec.num_rows:
        raise DataError(
            f"the array '{name}/train' has {len(split.train)} rows, which does not fit the spec's "
            f"num_rows={spec.num_rows}"
        )
    return split


def _recorded(
    header: Mapping[str, Any], arrays: Mapping[str, np.ndarray], kind: str, shape: Sequence[int]
) -> dict[str, np.ndarray]:
    """Metrics or series by name, with shares and percentages in range; NaN was not recorded."""
    recorded = {}
    for name in _listed(header, kind, kind=str):
        values = recorded[name] = _array(arrays, f"{kind}/{name}", shape, "biuf")
        last = name.rpartition("/")[2]
        most = 100.001 if last.endswith(("accuracy", "percentage")) else _MAX_VALUE.get(last)
        if most is not None:
            _check_within(f"{kind}/{name}", values[~np.isnan(values)], 0, most)
    return recorded


def _array(
    arrays: Mapping[str, np.ndarray],
    name: str,
    shape: Sequence[int],
    kinds: str,
    least: float | None = None,
    most: float = math.inf,
) -> np.ndarray:
    """An array that is checked for its shape (-1 is any length), kind of type and range."""
    if name not in arrays:
        raise DataError(f"the array {name!r} is missing")
    values = arrays[name]
    fits = len(shape) == values.ndim and all(
        size == wanted or wanted == -1 for size, wanted in zip(values.shape, shape, strict=True)
    )
    if not fits:
        expected = str(tuple(shape)).replace("-1", "any")
        raise DataError(f"the array {name!r} has the shape {values.shape}; expected {expected}")
    if values.dtype.kind not in kinds:
        raise DataError(
            f"the array {name!r} has the type {values.dtype}; expected one of the kinds {kinds!r}"
        )
    if least is not None:
        _check_within(name, values, least, most)
    return values


def _check_within(name: str, values: np.ndarray, least: float, most: float) -> None:
    bad = ~((values >= least) & (values <= most) & np.isfinite(values))
    if bad.any():
        raise DataError(
            f"the array {name!r} holds {values[bad][0]}; expected finite numbers from {least:g} to "
            f"{most:g}"
        )


def _value(fields: Mapping[str, Any], name: str, kind: Any) -> Any:
    """A field of the header, checked for its type."""
    value = fields.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        expected = getattr(kind, "__name__", str(kind))
        raise DataError(f"the header's {name!r} is {value!r}; expected {expected}")
    return value


def _listed(
    header: Mapping[str, Any], name: str, length: int | None = None, kind: type = int
) -> tuple[Any, ...]:
    """A field that is a list of whole numbers or of names, as a tuple."""
    values = _value(header, name, list)
    if not all(type(value) is kind for value in values) or length not in (None, len(values)):
        count = "" if length is None else f"{length} "
        expected = count + ("whole numbers" if kind is int else "names")
        raise DataError(f"the header's {name!r} is {values!r}; expected {expected}")
    return tuple(values)
