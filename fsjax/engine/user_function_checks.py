"""Checks of the user's parts of a run: a loss, a registered task, and the names to record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from fsjax.arguments.user_functions import check_hashable, text_of
from fsjax.errors import ConfigError
from fsjax.method import Batch, Loss, Method, Spec, TrainState
from fsjax.sparsity.connections import layer_masks
from fsjax.tasks import TABLE
from fsjax.tasks.registry import watched


def recorded_names(state: TrainState) -> frozenset[str]:
    """Names that the engine records itself; a method without masks may take those of masks."""
    layers = [mask for mask in layer_masks(state.masks) if len(mask.shape) >= 2]
    return frozenset(("loss", "sparsity", "topology_change") if layers else ("loss",))


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


def check_custom(
    method: Method,
    state: TrainState,
    batch: Batch[jax.Array],
    new_key: Callable[[], jax.Array],
) -> None:
    """Traces the method's loss if the run has its own loss, a registered task, or names to record.

    Args:
      method: the method; its functions check what they return.
      state, batch: traced values of a step.
      new_key: makes a key, to be used once.

    Raises:
      ConfigError: for a loss that does not return a scalar or that the method never calls; for a
        registered task whose loss the method never calls; and for names in ``Method.record`` that
        are taken, or are not scalars in ``aux``.
    """
    spec, own = state.spec, TABLE[state.spec.task].like
    if not own and spec.loss is None and not method.record:
        return
    if method.loss is None:
        raise ConfigError(
            f"{method.name} trains nothing, so "
            + ("leave loss out" if spec.loss else f"the loss of the task {spec.task} has no effect")
        )
    if not isinstance(method.record, tuple):
        raise ConfigError(f"record={method.record!r}; give a tuple of names, as in ('penalty',)")

    def aux_of(spec: Spec) -> dict[str, Any]:
        return method.training_loss(state.params, state.replace(spec=spec), batch, new_key())[1]

    if own:
        with watched(spec.task) as (name, calls):
            aux_of(spec._replace(task=name))
        if not calls:
            raise ConfigError(
                f"{method.name} has a loss of its own, so the loss of the task {spec.task} would "
                f"have no effect; choose the task {' or '.join(method.about.tasks)}"
            )
    if spec.loss is not None:
        called: list[tuple[int, ...]] = []
        aux_of(spec._replace(loss=_counted(spec.loss, called)))
        if not called:
            raise ConfigError(
                f"loss={text_of(spec.loss)} would have no effect, because {method.name} never "
                "calls state.spec.loss_of(outputs, y, weight), the loss of the run; leave loss out"
            )
    if method.record:
        _check_record(method, aux_of(spec), {*recorded_names(state), *method.monitor(state)})


def _counted(loss: Loss, called: list[tuple[int, ...]]) -> Loss:
    """A loss that records its calls; ConfigError if it does not return a scalar."""

    def counted(outputs: Any, y: Any, weight: Any) -> Any:
        value = loss(outputs, y, weight)
        called.append(np.shape(value))
        if called[-1] != ():
            raise ConfigError(
                f"loss={text_of(loss)} returns an array of shape {called[-1]}; return the mean "
                "over the rows, as by fsjax.tasks.weighted_mean(values, weight)"
            )
        return value

    return counted


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
