"""What the parts of a result can be: files that say otherwise are refused, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from fsjax.data.scaling import Scaler
from fsjax.data.splits import Split
from fsjax.engine.prepare import check_seeds
from fsjax.errors import ConfigError, DataError, check_choice, check_whole, nearest
from fsjax.functions import Missing
from fsjax.groups import check_groups
from fsjax.method import BEST_BY, About, Spec
from fsjax.tables.scaled import filled_length
from fsjax.tasks import BUILDERS, TABLE, TASKS, get_task
from fsjax.tasks.registry import resembled

#: Of what a result is made of a run for each.
RUNS = ("seed", "half")

#: The largest number of epochs, rows or steps.
_MOST = 2**31 - 1

_COUNTS = tuple(
    "num_columns num_outputs num_rows batch_size num_epochs steps_per_epoch repeats".split()
)


def check_spec(spec: Spec, about: About) -> None:
    """DataError unless a method could have been trained with such a spec."""
    try:
        for name in _COUNTS:
            _check_count(f"the spec's {name}", getattr(spec, name))
        if spec.early_stopping is not None:
            _check_count("the spec's early_stopping", spec.early_stopping)
        _check_task(spec.task, about)
        check_choice("the spec's best_by", spec.best_by, BEST_BY)
        check_choice("the spec's image_order", spec.image_order, ("C", "F"))
        check_groups(spec.groups, spec.num_columns)
    except ConfigError as error:
        raise DataError(str(error)) from None
    if type(spec.shuffle) is not bool:
        raise DataError(f"the spec's shuffle is {spec.shuffle!r}; expected true or false")
    if not isinstance(spec.loss, Missing | None):
        raise DataError(f"the spec's loss is {spec.loss!r}; expected the name of a function")
    shape = spec.image_shape
    if shape is not None:
        whole = isinstance(shape, tuple) and all(type(size) is int and size > 0 for size in shape)
        if not whole or len(shape) not in (2, 3) or math.prod(shape) != spec.num_columns:
            raise DataError(
                f"the spec's image_shape is {shape!r}, which is no grid of its {spec.num_columns} "
                "columns"
            )
    entry = TABLE[spec.task]
    fits = spec.num_outputs >= 2 if entry.classes else spec.num_outputs >= 1
    if resembled(spec.task) == "survival":
        fits = spec.num_outputs == 1
    if not entry.supervised:
        fits = spec.num_outputs == spec.num_columns
    if not fits:
        raise DataError(
            f"the spec has num_outputs={spec.num_outputs} for the task {spec.task} and "
            f"{spec.num_columns} columns"
        )


def _check_task(task: Any, about: About) -> None:
    """ConfigError unless the task is built-in, or registered already, and the method is for it.

    No file imports a module, or an entry point.
    """
    if not isinstance(task, str) or task.partition("(")[0] not in (*TASKS, *BUILDERS):
        raise ConfigError(
            f"the spec's task={task!r}: {nearest(str(task), TASKS)}, or import the module that "
            "registers it first (a file never does that by itself)"
        )
    try:
        name = get_task(task).name
    except Exception as error:  # of functions that get values from elsewhere
        raise ConfigError(f"the spec's task={task!r} cannot be made: {error}") from error
    if name != task:
        raise ConfigError(f"the spec's task={task!r} is called {name!r}")
    check_choice("the spec's task", resembled(task), about.tasks)


def _check_count(label: str, value: Any) -> None:
    if type(value) is not int or check_whole(label, value) > _MOST:
        raise ConfigError(f"{label}={value!r}; choose a whole number from 1 to {_MOST}")


def check_header(fields: Mapping[str, Any], spec: Spec) -> None:
    """DataError unless what a result tells beside its arrays can be."""
    try:
        check_seeds(fields["seeds"])
        check_choice("runs", fields["runs"], RUNS)
    except ConfigError as error:
        raise DataError(str(error)) from None
    if fields["task"] != spec.task:
        raise DataError(f"the header's task is {fields['task']!r}, and {spec.task!r} in its spec")
    if fields["num_features"] > spec.num_units:
        raise DataError(
            f"the header's num_features={fields['num_features']}, but there are {spec.num_units}"
        )
    counted = fields["connection_epochs"]
    if list(counted) != sorted(set(counted)) or any(
        not 0 <= epoch <= spec.num_epochs for epoch in counted
    ):
        raise DataError(
            f"the header's connection_epochs {counted} are not ascending numbers from 0 to "
            f"{spec.num_epochs}"
        )
    for name, value in fields["cost"].items():
        if not 0 <= value < math.inf:
            raise DataError(f"the header's cost {name!r} is {value}; expected a number from 0")


def check_arrays(arrays: Mapping[str, np.ndarray | None], spec: Spec) -> None:
    """DataError unless the arrays of a result, by the names of its attributes, can be."""
    units, ranking = spec.num_units, arrays["ranking"]
    if not np.array_equal(
        np.sort(ranking, axis=1), np.broadcast_to(np.arange(units), ranking.shape)
    ):
        raise DataError(f"the array 'ranking' is no order of the {units} columns for every seed")
    if not np.array_equal(arrays["selected"], ranking[:, : arrays["selected"].shape[1]]):
        raise DataError("the array 'selected' is not what comes first in 'ranking'")
    if np.isnan(arrays["scores"]).any():
        raise DataError("the array 'scores' holds NaN")
    _check_within("best_epoch", arrays["best_epoch"], 0, spec.num_epochs)
    _check_within("constant_columns", arrays["constant_columns"], 0, spec.num_columns)
    if arrays.get("gates") is not None:
        _check_within("gates", arrays["gates"], 0, 1)
    if arrays.get("input_connections") is not None:
        _check_within("input_connections", arrays["input_connections"], 0, np.finfo(np.float32).max)


def check_recorded(
    metrics: Mapping[str, np.ndarray], history: Mapping[str, np.ndarray], num_epochs: int
) -> None:
    """DataError unless shares and percentages are such, and all series are as long.

    What was not recorded is NaN.
    """
    for values, prefix in ((metrics, "metrics/"), (history, "history/")):
        for name, found in values.items():
            most = _most(name)
            if most is not None:
                known = found[~np.isnan(found)] if found.dtype.kind == "f" else found
                _check_within(prefix + name, known, 0, most)
    lengths = {len(found[0]) for found in history.values() if len(found)}
    if len(lengths) > 1 or any(length > num_epochs for length in lengths):
        raise DataError(
            f"the arrays of the history have {sorted(lengths)} epochs; expected as many each, at "
            f"most {num_epochs}"
        )


def _check_within(name: str, values: np.ndarray, least: float, most: float) -> None:
    # NaN is in no range.
    bad = ~((values >= least) & (values <= most))
    if bad.any():
        raise DataError(
            f"the array {name!r} holds {values[bad].flat[0]}; expected numbers from {least} to "
            f"{most:g}"
        )


def _most(name: str) -> float | None:
    """The upper end of what a metric can be, where it has one, and 0 is the lower."""
    last = name.rpartition("/")[2]
    if last.endswith(("accuracy", "percentage")) or last == "topology_change":
        # Up to rounding.
        return 100.001
    return 1.001 if last in ("sparsity", "auc", "concordance_index") else None


def check_scaler(scaler: Scaler, name: str) -> None:
    """DataError for a scaler that is not finite, or turns columns around."""
    if not all(np.isfinite(part).all() for part in scaler):
        raise DataError(f"the arrays of {name!r} hold NaN or infinite values")
    if (scaler.scale < 0).any():
        raise DataError(f"the array '{name}/scale' holds negative numbers")


def check_split(split: Split, spec: Spec, name: str) -> None:
    """DataError for rows that are in two parts, or are not as many as the spec says."""
    rows = np.concatenate(split)
    if rows.size and rows.min() < 0 or len(np.unique(rows)) < len(rows):
        raise DataError(f"the arrays of {name!r} hold a row twice, or one below 0")
    if filled_length(len(split.train)) != spec.num_rows or not len(split.train):
        raise DataError(
            f"the array '{name}/train' has {len(split.train)} rows, which does not fit the spec's "
            f"num_rows={spec.num_rows}"
        )


def check_states(params: Any, hyper: Mapping[str, Any]) -> None:
    """DataError for parameters of a network, or float arguments of a method, that are NaN."""
    for name, tree in (("params", params), ("hyper", hyper)):
        for leaf in jax.tree.leaves(tree):
            if np.issubdtype(leaf.dtype, np.floating) and np.isnan(leaf).any():
                raise DataError(f"the arrays 'states/{name}' hold NaN")


def check_classes(classes: np.ndarray, num_outputs: int) -> None:
    """DataError unless there is one label, in ascending order, for each output of a network."""
    if classes.ndim != 1 or len(classes) != num_outputs:
        raise DataError(
            f"the array 'classes_' has the shape {classes.shape}, but the network has "
            f"{num_outputs} classes"
        )
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise DataError("the array 'classes_' holds NaN or infinite labels")
    if not np.array_equal(np.unique(classes), classes):
        raise DataError("the array 'classes_' is not in ascending order, or has a label twice")


def check_names(names: Sequence[Any], num_columns: int) -> None:
    """DataError unless there is a name of its own for each column."""
    if np.ndim(names) != 1 or len(names) != num_columns or len(set(names)) < num_columns:
        raise DataError(
            f"the array 'feature_names_in_' does not hold {num_columns} different names"
        )
