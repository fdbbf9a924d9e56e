"""Checks of a method before training: its functions are traced, and nothing is computed.

The messages use the terms of :mod:`fsjax.method`: the name of the function, what it returns, and
what it should return. ``fsjax.plan`` runs these checks, and therefore ``fsjax.fit`` and
``fsjax.testing.check_method`` too.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import flax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from fsjax.arguments.user_functions import check_optimizer, is_function
from fsjax.engine import program_files
from fsjax.engine.environment.jax_settings import own_settings
from fsjax.engine.loop import end_epoch, end_steps, init_state, train_step
from fsjax.engine.prepare import Prepared
from fsjax.engine.rows import DeviceRows, as_batch, has_own_rows
from fsjax.engine.user_function_checks import check_custom, recorded_names
from fsjax.errors import ConfigError, FsjaxError, check_choice
from fsjax.method import (
    BEST_BY,
    Batch,
    Method,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
)
from fsjax.registry import structure_of

#: Folders whose files do not belong to the author of the method.
_LIBRARIES = (
    *(str(Path(inspect.getfile(package)).parent) for package in (jax, flax, optax)),
    str(Path(__file__).parents[1]),
)

#: The errors of JAX if Python code needs the value of a traced array.
_NEEDS_VALUE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)

#: The fields that a method with a loss must have, with advice.
_NEEDED = {
    "optimizer": "an Optax transformation, such as optax.adam(1e-3)",
    "predict": "a function (state, x[B, D]) -> outputs[B, C], which validation needs",
}

#: The fields that are functions in every method.
_FUNCTIONS = ("init", "select", "after_step", "after_epoch", "finish", "monitor", "phases")


def _name(method: Method) -> str:
    """The name of a method in messages; one that is not registered may have none."""
    return method.name or "the method"


def check_fields(method: Method) -> None:
    """Checks the fields of a method that need no tracing.

    Raises:
      ConfigError: if ``About.tasks`` is no tuple of names; if ``keep`` is neither a function nor
        one of :data:`fsjax.method.BEST_BY`; if another field is no function; or if there is a loss
        without predictions or without an Optax transformation.
    """
    tasks = method.about.tasks
    if not (isinstance(tasks, tuple | list) and tasks):
        raise ConfigError(f"{_name(method)}: tasks={tasks!r}; give a tuple, ('classification',)")
    for field in _FUNCTIONS:
        if not callable(getattr(method, field)):
            value = getattr(method, field)
            raise ConfigError(f"{_name(method)}: {field}={value!r}; give a function")
    if not callable(method.keep):
        check_choice(f"{_name(method)}: keep", method.keep, BEST_BY)
    if method.loss is None:
        return
    for field, advice in _NEEDED.items():
        if getattr(method, field) is None:
            raise ConfigError(f"{_name(method)} has a loss but no {field}; give {advice}")
    if not is_function(method.optimizer):
        raise ConfigError(
            f"{_name(method)}: optimizer={method.optimizer!r}; give {_NEEDED['optimizer']}"
        )
    check_optimizer("optimizer", method.optimizer)


@own_settings()
def check_functions(method: Method, spec: Spec, prepared: Prepared, on_disk: bool) -> None:
    """Traces the functions of a method as the engine calls them.

    Args:
      prepared: the data; only its shapes and types are used.
      on_disk: whether its rows are on disk.

    Raises:
      ConfigError: if a function returns other types or shapes than :mod:`fsjax.method` defines; if
        it branches in Python on a traced value; or if its loss does not use that of a registered
        task.
    """
    first_axis = 1 if has_own_rows(prepared.arrays) else 0
    rows: DeviceRows = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[first_axis:], leaf.dtype),
        prepared.arrays.train,
    )
    leaves, tree = jax.tree.flatten(as_batch(spec.task, rows))
    shapes = tuple((leaf.shape, np.dtype(leaf.dtype)) for leaf in leaves)
    validated = bool(prepared.arrays.valid.x.shape[-2])
    try:
        _check_traced(method, spec, tree, shapes, validated, on_disk)
    except FsjaxError as error:
        # JAX adds a note on its hidden frames, which does not help the author.
        error.__notes__ = []
        raise


# Folds of a cross-validation plan the same run several times.
@functools.lru_cache(maxsize=64)
def _check_traced(
    method: Method,
    spec: Spec,
    tree: Any,
    shapes: tuple[tuple[tuple[int, ...], np.dtype], ...],
    validated: bool,
    on_disk: bool,
) -> None:
    structure, hyper = structure_of(method)
    shape_text = str((tree, shapes, validated, on_disk))
    checked = program_files.path_of("checked", structure, spec, shape_text)
    if checked is not None and checked.exists():
        return
    size, scalar = spec.batch_size, jnp.zeros(())

    def run(values: dict[str, Array], data: TrainingRows, usable: Array) -> None:
        with _in_terms_of(_name(method), "the builder"):
            bound = _watched(structure.bind(values), spec)
        new_key = functools.partial(jax.random.key, 0, impl="threefry2x32")
        state = init_state(bound, spec, jnp.uint32(0), data, usable).replace(hyper=values)
        bound.select(bound.finish(state, data, new_key()))
        if bound.predict is not None:
            bound.predictor(state, jnp.zeros((2, spec.num_columns)))
        y = jnp.zeros((size, *data.y.shape[1:]), data.y.dtype)
        batch = Batch(jnp.zeros((size, spec.num_columns)), y, jnp.zeros(size))
        check_custom(bound, state, batch, new_key)
        # Tracing a step takes a tenth of a first fit. It is skipped for the library's own methods,
        # which have tests, unless a table is on disk, where a method might read all rows at once.
        if bound.loss is None or (structure.in_library and not on_disk):
            return
        after, _ = train_step(bound, state, batch, new_key())
        _check_same_types(_name(bound), "a step", state, after)
        end_steps(bound, state, {"loss": jnp.zeros(1)})
        names = (f"valid/{name}" for name in ("loss", "accuracy", "auc") if validated)
        metrics = dict.fromkeys(("train/loss", *names), scalar)
        end_epoch(bound, state, data, metrics, state.masks, new_key())

    data = tree.unflatten(jax.ShapeDtypeStruct(*leaf) for leaf in shapes)
    usable = jax.ShapeDtypeStruct((spec.num_units,), bool)
    # One trace, because each trace builds the method again.
    jax.eval_shape(run, dict.fromkeys(hyper, scalar), data, usable)
    if checked is not None:
        program_files.write(checked, None)


@contextmanager
def _in_terms_of(name: str, function: str) -> Iterator[None]:
    """Adds the name of the failing function; explains errors of JAX about traced values."""
    try:
        yield
    except FsjaxError:
        raise
    except _NEEDS_VALUE as error:
        raise ConfigError(
            f"{name}: {function} needs the value of a traced array in Python"
            f"{_place(error)}; use jnp.where or jax.lax.cond, or mark a float argument that "
            "shapes the program with fsjax.arguments.STATIC"
        ) from error
    except Exception as error:
        error.add_note(f"The error was raised in {function} of the method {name}.")
        raise


def _place(error: Exception) -> str:
    """The author's line that caused the error, in brackets; empty if it is not found."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_LIBRARIES):
            return f" ({Path(frame.filename).name}, line {frame.lineno}: {frame.line})"
    return ""


def _watched(method: Method, spec: Spec) -> Method:
    """The method with functions that check what they return."""

    def checking(field: str, check: Callable[..., None]) -> Callable[..., Any]:
        function = getattr(method, field)

        def checked(*args: Any) -> Any:
            with _in_terms_of(_name(method), field):
                returned = function(*args)
            check(_name(method), field, spec, args, returned)
            return returned

        return checked

    changes: dict[str, Any] = {
        field: checking(field, check)
        for field, check in _CHECKS.items()
        if callable(getattr(method, field))
    }
    return method._replace(**changes)


def _kind(value: Any) -> str:
    """A description of a value for messages."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"an array of shape {tuple(value.shape)}"
    return f"a value of type {type(value).__name__}"


def _check_state(name: str, field: str, spec: Spec, args: tuple, state: Any) -> None:
    if not isinstance(state, TrainState):
        call = "fsjax.create_state(spec, params)" if field == "init" else "state.replace(...)"
        raise ConfigError(f"{name}: {field} returns {_kind(state)}; return a TrainState, by {call}")


def _check_next_state(name: str, field: str, spec: Spec, args: tuple, state: Any) -> None:
    _check_state(name, field, spec, args, state)
    _check_same_types(name, field, args[0], state)


def _check_same_types(name: str, function: str, before: TrainState, after: TrainState) -> None:
    """Raises ConfigError unless all arrays keep shape and type, as JAX's loops require."""
    old, new = (
        {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(state)}
        for state in (before, after)
    )
    for place in sorted(old.keys() ^ new.keys()):
        does = "drops" if place in old else "adds"
        raise ConfigError(f"{name}: {function} {does} state{place}; create all arrays in init")
    for place, leaf in old.items():
        other = new[place]
        if leaf.shape != other.shape or leaf.dtype != other.dtype:
            raise ConfigError(
                f"{name}: {function} changes state{place} from {leaf.dtype}{list(leaf.shape)} to "
                f"{other.dtype}{list(other.shape)}; keep its shape and type"
            )


def _check_loss(name: str, field: str, spec: Spec, args: tuple, returned: Any) -> None:
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise ConfigError(
            f"{name}: loss returns {_kind(returned)}; return a pair (loss, aux), where aux is a "
            "dictionary for after_step, {} if it needs nothing"
        )
    if jnp.shape(returned[0]) != ():
        raise ConfigError(
            f"{name}: loss returns {_kind(returned[0])} and aux; return a scalar, the weighted "
            "mean over the rows of the batch (fsjax.tasks.loss)"
        )


def _check_outputs(name: str, field: str, spec: Spec, args: tuple, outputs: Any) -> None:
    wanted = (args[1].shape[0], spec.num_outputs)
    if jnp.shape(outputs) != wanted:
        raise ConfigError(
            f"{name}: predict returns {_kind(outputs)} for {wanted[0]} rows; return an array of "
            f"shape {wanted}, with spec.num_outputs={spec.num_outputs} columns"
        )


def _check_selection(name: str, field: str, spec: Spec, args: tuple, selection: Any) -> None:
    if not isinstance(selection, Selection):
        raise ConfigError(
            f"{name}: select returns {_kind(selection)}; return fsjax.Selection(scores)"
        )
    units = spec.num_units
    fields = ("scores",) if selection.gates is None else ("scores", "gates")
    for what in fields:
        values = getattr(selection, what)
        if jnp.shape(values) != (units,) or not jnp.issubdtype(values.dtype, jnp.floating):
            raise ConfigError(
                f"{name}: select returns {what} that are {_kind(values)} and dtype "
                f"{getattr(values, 'dtype', None)}; return a float for each of the {units} "
                f"{'columns' if spec.groups is None else 'groups'}"
            )
    picks = selection.picks
    if picks is not None and (
        len(picks.shape) != 1 or not jnp.issubdtype(picks.dtype, jnp.integer)
    ):
        raise ConfigError(
            f"{name}: select returns picks that are {_kind(picks)} and dtype {picks.dtype}; "
            "return the integer indices of K columns, of shape (K,)"
        )


def _check_monitored(name: str, field: str, spec: Spec, args: tuple, values: Any) -> None:
    if not isinstance(values, dict) or any(jnp.shape(value) != () for value in values.values()):
        raise ConfigError(
            f"{name}: monitor returns {_kind(values)}; return a dictionary of scalars"
        )
    for taken in values.keys() & recorded_names(args[0]):
        raise ConfigError(
            f"{name}: monitor returns {taken!r}, which the engine records; choose another name"
        )


def _check_value(name: str, field: str, spec: Spec, args: tuple, value: Any) -> None:
    if jnp.shape(value) != ():
        raise ConfigError(
            f"{name}: keep returns {_kind(value)}; return a scalar, which is lower for a better "
            "epoch"
        )


#: What checks the values that the functions of a method return, by field.
_CHECKS: dict[str, Callable[..., None]] = {
    "init": _check_state,
    "select": _check_selection,
    "finish": _check_state,
    "after_step": _check_next_state,
    "after_epoch": _check_next_state,
    "monitor": _check_monitored,
    "loss": _check_loss,
    "predict": _check_outputs,
    "keep": _check_value,
}
