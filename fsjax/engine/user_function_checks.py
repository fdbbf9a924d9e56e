"""Checks of the user's parts of a run: a loss, a registered task, and the names to record."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from fsjax.errors import ConfigError
from fsjax.method import Batch, Loss, Method, TrainState
from fsjax.tasks import TABLE
from fsjax.tasks.registry import watched
from fsjax.user_functions import check_hashable, text_of

#: Names that the engine records for every method, or for methods with masks.
RESERVED = ("loss", "sparsity", "topology_change")


def check_loss(loss: Loss | None) -> Loss | None:
    """Checks the user's loss and returns it; ConfigError unless it is a hashable function."""
    if loss is None:
        return None
    if not callable(loss):
        raise ConfigError(
            f"loss={loss!r}; give a function (outputs, y, weight) -> scalar, or None for the loss "
            "of the task"
        )
    check_hashable("loss", loss)
    return loss


def check_custom(method: Method, state: TrainState, batch: Batch[jax.Array]) -> None:
    """Traces the method's loss if the run has its own loss, a registered task, or names to record.

    Args:
      method: the method; its functions check what they return.
      state, batch: shapes of a state and of the batch of one step.

    Raises:
      ConfigError: for a loss that does not return a scalar or that the method never calls; for a
        registered task whose loss the method never calls; and for names in ``Method.record`` that
        are taken, or are not scalars in ``aux``.
    """
    if TABLE[state.spec.task].like:
        _check_trains_task(method, state, batch)
    if state.spec.loss is None and not method.record:
        return
    if method.loss is None:
        raise ConfigError(f"{method.name} trains nothing; leave loss out")
    if not isinstance(method.record, tuple):
        raise ConfigError(f"record={method.record!r}; give a tuple of names, as in ('penalty',)")
    aux = _check_trains_loss(method, state, batch)
    monitored = jax.eval_shape(method.monitor, state)
    _check_record(method, aux, {*RESERVED, *monitored})


def _check_trains_task(method: Method, state: TrainState, batch: Batch[jax.Array]) -> None:
    """Raises ConfigError unless the loss of the method calls that of a registered task."""
    spec, taken = state.spec, " or ".join(method.about.tasks)
    if method.loss is None:
        raise ConfigError(
            f"{method.name} trains nothing, so the loss of the task {spec.task} would have no "
            f"effect; choose a method that trains a network, or the task {taken}"
        )
    with watched(spec.task) as (name, calls):
        _aux_of(method, state.replace(spec=spec._replace(task=name)), batch)
    if not calls:
        raise ConfigError(
            f"{method.name} has a loss of its own, so the loss of the task {spec.task} would have "
            f"no effect; choose another method, or the task {taken}"
        )


def _check_trains_loss(
    method: Method, state: TrainState, batch: Batch[jax.Array]
) -> dict[str, Any]:
    """The ``aux`` of the method's loss; ConfigError unless that calls the loss of the run."""
    spec = state.spec
    loss = spec.loss
    if loss is None:
        return _aux_of(method, state, batch)
    calls: list[tuple[int, ...]] = []

    def counted(outputs: Any, y: Any, weight: Any) -> Any:
        value = loss(outputs, y, weight)
        calls.append(np.shape(value))
        if calls[-1] != ():
            raise ConfigError(
                f"{label} returns an array of shape {calls[-1]}; return the mean over the rows, as "
                "by fsjax.tasks.weighted_mean(values, weight)"
            )
        return value

    label = f"loss={text_of(loss)}"
    aux = _aux_of(method, state.replace(spec=spec._replace(loss=counted)), batch)
    if not calls:
        raise ConfigError(
            f"{label} would have no effect, because {method.name} never calls state.spec.loss_of("
            "outputs, y, weight), the loss of the run; leave loss out, or choose a method that "
            "minimises the loss of the task"
        )
    return aux


def _aux_of(method: Method, state: TrainState, batch: Batch[jax.Array]) -> dict[str, Any]:
    """The shapes of the ``aux`` of a step; nothing is computed."""

    def aux(state: TrainState, batch: Batch[jax.Array], key: jax.Array) -> dict[str, Any]:
        return method.training_loss(state.params, state, batch, key)[1]

    key = jax.eval_shape(lambda: jax.random.key(0, impl="threefry2x32"))
    return jax.eval_shape(aux, state, batch, key)


def _check_record(method: Method, aux: Any, taken: set[str]) -> None:
    for name in method.record:
        if name in taken:
            raise ConfigError(
                f"record={method.record!r}, but {method.name} records {name!r} already; choose "
                "another name"
            )
        shape = getattr(aux.get(name), "shape", None)
        if shape != ():
            what = f"has the shape {shape}" if shape else "is not a scalar"
            what = what if name in aux else "is missing"
            raise ConfigError(
                f"record={method.record!r}, but {name!r} {what} in the aux of {method.name}'s "
                f"loss, which has {sorted(aux)}; record scalars of aux"
            )
