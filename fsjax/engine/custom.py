"""Checks of what the user put into a run: a loss of her own, and what the loss records."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from fsjax.engine.loop import Rows, as_batch, init_state
from fsjax.errors import ConfigError
from fsjax.functions import check_hashable, text_of
from fsjax.jax_settings import own_settings
from fsjax.method import Loss, Method, Spec
from fsjax.tasks import TABLE

#: What the engine records of the training of every method, or of those with masks.
RESERVED = ("loss", "sparsity", "topology_change")


def check_loss(loss: Loss | None) -> Loss | None:
    """ConfigError for a loss that is no function, or not hashable."""
    if loss is None:
        return None
    if not callable(loss):
        raise ConfigError(
            f"loss={loss!r}; give a function (outputs, y, weight) -> scalar, or None for the "
            "task's own loss"
        )
    check_hashable("loss", loss)
    return loss


def check_custom(method: Method, spec: Spec) -> None:
    """Traces the loss of a method, where the run or the method has something of its own there.

    Raises:
      ConfigError: for a loss that gives no scalar or that the method never calls, and for names of
        ``Method.record`` that ``aux`` does not have as scalars, or that are taken.
    """
    if spec.loss is None and not method.record:
        return
    if method.loss is None:
        raise ConfigError(f"{method.name} trains nothing; leave loss out")
    if not isinstance(method.record, tuple):
        raise ConfigError(f"record={method.record!r}; give a tuple of names, such as ('penalty',)")
    calls = []

    def counted(outputs: Any, y: Any, weight: Any) -> Any:
        value = spec.loss(outputs, y, weight)
        calls.append(np.shape(value))
        return value

    traced = spec if spec.loss is None else spec._replace(loss=counted)
    aux, monitored = _outcome(method, traced)
    if spec.loss is not None:
        told = f"loss={text_of(spec.loss)}"
        if not calls:
            raise ConfigError(
                f"{told} would change nothing: {method.name} never calls state.spec.loss_of("
                "outputs, y, weight), which is the loss of the run; leave loss out, or choose a "
                "method that minimises the loss of the task"
            )
        if any(shape != () for shape in calls):
            raise ConfigError(
                f"{told} gives an array of the shape {next(filter(None, calls))}; give the mean "
                "over the rows, as by fsjax.tasks.weighted_mean(values, weight)"
            )
    _check_record(method, aux, {*RESERVED, *monitored})


def _check_record(method: Method, aux: Any, taken: set[str]) -> None:
    for name in method.record:
        if name in taken:
            raise ConfigError(
                f"record={method.record!r}, but {method.name} records {name!r} already; choose "
                "another name"
            )
        shape = getattr(aux.get(name), "shape", None)
        if shape != ():
            what = f"has the shape {shape}" if shape else "is no scalar"
            what = what if name in aux else "is missing"
            raise ConfigError(
                f"record={method.record!r}, but {name!r} {what} in the aux of {method.name}'s "
                f"loss, where there is {sorted(aux)}; record scalars"
            )


@own_settings
def _outcome(method: Method, spec: Spec) -> tuple[dict[str, Any], dict[str, Any]]:
    """Shapes of the ``aux`` of a step, and of what is monitored; nothing is computed."""

    def shape(*sizes: int, dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, dtype)

    entry = TABLE[spec.task]

    def rows(number: int) -> Rows:
        y = shape(number, *entry.row(spec.num_outputs), dtype=entry.dtype)
        return Rows(shape(number, spec.num_columns), y, shape(number))

    def outcome(everything: Rows, some: Rows, seed: Any) -> tuple[dict, dict]:
        units = np.ones(spec.num_units, bool)
        state = init_state(method, spec, seed, as_batch(spec.task, everything), units)
        key = jax.random.key(0, impl="threefry2x32")
        _, aux = method.loss(state.params, state, as_batch(spec.task, some), key)
        return aux, method.monitor(state)

    args = (rows(spec.num_rows), rows(spec.batch_size), shape(dtype=np.uint32))
    return jax.eval_shape(outcome, *args)
