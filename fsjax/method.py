"""The interface of the library: read this file first.

A method is a value made of pure functions, and one engine runs every method, as Optax does with
gradient transformations. All that changes during training lives in one pytree, the
:class:`TrainState`, so that a run can be jitted, vmapped over seeds, saved, resumed and compared.

The engine (``fsjax/engine``) does, for each seed::

    state = method.init(key, spec)
    state = method.start(state, data, key)
    for each epoch:
        for each batch:
            (loss, aux), grads = value_and_grad(method.loss)(state.params, state, batch, key)
            state = optimiser step with method.optimizer
            state = method.after_step(state, grads, aux, batch, key)
        keep the snapshot with the best validation value of method.predict
        state = method.after_epoch(state, data, key)
        stop if method.finished(state)
    method.score(state), method.picks(state): the selected features
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import struct

from fsjax.tasks import TASKS

Array = jax.Array
PyTree = Any


#: What may tell the best epoch: the validation loss, accuracy or (two classes) area under the ROC
#: curve, or being the last.
BEST_BY = ("loss", "accuracy", "auc", "last")

#: Epochs after which the connections of the input neurons are counted; 0 is before training.
CONNECTION_EPOCHS = (0, 1, 5, 10)


class Spec(NamedTuple):
    """Static facts of a run: shapes, task and length. Hashable, known before compilation.

    Attributes:
      num_features: D, the number of input columns.
      num_outputs: C classes, D for reconstruction, the number of targets for regression.
      task: ``classification``, ``reconstruction`` or ``regression``.
      num_samples: N, the number of training rows.
      batch_size: B, rows per step.
      num_epochs: epochs of the whole run; schedules are relative to it.
      shuffle: whether the training rows get a new order in every epoch.
      drop_last: whether the incomplete last batch of an epoch is left out.
      best_by: what tells the best epoch, one of :data:`BEST_BY`; ``last`` keeps the state after
        the last epoch.
      repeats: times that an epoch visits every training row.
      image_shape: ``(H, W)`` or ``(H, W, channels)`` where a row is an image, else ``None``.
      image_order: ``C`` where rows hold pixels line by line, ``F`` column by column.
      groups: the group of each column, where columns are chosen together (:mod:`fsjax.groups`).
    """

    num_features: int
    num_outputs: int
    task: str
    num_samples: int
    batch_size: int
    num_epochs: int
    shuffle: bool = True
    drop_last: bool = False
    best_by: str = "loss"
    repeats: int = 1
    image_shape: tuple[int, ...] | None = None
    image_order: str = "C"
    groups: tuple[int, ...] | None = None

    @property
    def num_units(self) -> int:
        """How many there are to choose from: groups, or D columns."""
        return self.num_features if self.groups is None else max(self.groups) + 1

    @property
    def steps_per_epoch(self) -> int:
        """Optimiser steps in one epoch, at least 1."""
        full, rest = divmod(self.num_samples * self.repeats, self.batch_size)
        return max(full if self.drop_last or rest == 0 else full + 1, 1)


class Batch(NamedTuple):
    """Rows of one step.

    Attributes:
      x: ``(B, D)`` scaled inputs.
      y: targets: ``(B,)`` integer classes, ``(B, C)`` regression targets, or, for
        reconstruction, ``(B, D)``, the inputs themselves.
      weight: ``(B,)`` non-negative weights; 0 for rows that only fill up the last batch.
    """

    x: Array
    y: Array
    weight: Array


class Snapshot(NamedTuple):
    """The best model so far, by ``Spec.best_by``.

    Attributes:
      params, masks, extra: copies of the fields of :class:`TrainState`; ``()`` where the last
        state is kept anyway.
      value: scalar, the validation loss or minus the validation accuracy; ``inf`` at first.
      epoch: scalar int32, the epoch (from 1) with the best value; 0 before the first.
    """

    params: PyTree
    masks: PyTree
    extra: PyTree
    value: Array
    epoch: Array


@struct.dataclass
class TrainState:
    """All that changes during training, as one pytree; over seeds, leaves are ``(S, ...)``.

    Attributes:
      key: the seed's PRNG key; never consumed, only folded with the epoch and the step, so that
        a resumed run repeats an uninterrupted one.
      step: int32, optimiser steps done.
      epoch: int32, epochs done.
      params: trainable arrays.
      masks: boolean arrays in the structure of ``params`` (all true where nothing is masked), or
        ``()`` for methods that mask no parameter.
      opt_state: state of ``Method.optimizer``.
      hyper: hyperparameters as float32 scalars: traced, so other values do not recompile.
      feature_mask: ``(D,)`` bool: columns that may be selected. Columns that are constant in the
        training rows are false. ``(G,)`` where groups are chosen.
      extra: whatever else the method carries (importances, smoothed masks, ...).
      best: the snapshot with the best validation value.
      value: scalar float32, what the newest epoch was judged by: the validation loss, or minus the
        accuracy or AUC; the training loss where there are no validation rows.
      trace: ``(T, D)`` float32 connections of the input neurons after each of
        :data:`CONNECTION_EPOCHS`, or ``()``; no snapshot takes it back.
      spec: static facts of the run.
    """

    key: Array
    step: Array
    epoch: Array
    params: PyTree
    masks: PyTree
    opt_state: PyTree
    hyper: Mapping[str, Array]
    feature_mask: Array
    extra: PyTree
    best: Snapshot
    value: Array
    trace: PyTree
    spec: Spec = struct.field(pytree_node=False)

    def at_best(self) -> TrainState:
        """The state with the parameters, masks and extras of the best epoch put back."""
        best = self.best
        if self.spec.best_by == "last":
            return self
        return self.replace(params=best.params, masks=best.masks, extra=best.extra)


def create_state(
    key: Array,
    spec: Spec,
    params: PyTree,
    optimizer: optax.GradientTransformation,
    *,
    hyper: Mapping[str, float] | None = None,
    masks: PyTree = (),
    extra: PyTree = (),
) -> TrainState:
    """Builds the state at step 0 from what a method's ``init`` made.

    Args:
      key: the seed's key, kept for training; use another one for the initialisation.
      spec: static facts of the run.
      params: initial parameters.
      optimizer: gives the initial optimiser state.
      hyper: hyperparameters to carry as traced scalars.
      masks: boolean tree with the structure of ``params``, or ``()``.
      extra: further arrays of the method.

    Returns:
      A :class:`TrainState` in which every column may be selected and the best loss is infinite.
    """
    zero = jnp.zeros((), jnp.int32)
    kept = ((), (), ()) if spec.best_by == "last" else (params, masks, extra)
    return TrainState(
        key=key,
        step=zero,
        epoch=zero,
        params=params,
        masks=masks,
        opt_state=optimizer.init(params),
        hyper={name: jnp.asarray(value, jnp.float32) for name, value in (hyper or {}).items()},
        feature_mask=jnp.ones((spec.num_units,), bool),
        extra=extra,
        best=Snapshot(*kept, jnp.full((), jnp.inf, jnp.float32), zero),
        value=jnp.full((), jnp.inf, jnp.float32),
        trace=(),
        spec=spec,
    )


def _same_state(state: TrainState, *_: Any) -> TrainState:
    return state


def _no_metrics(state: TrainState) -> dict[str, Array]:
    del state
    return {}


class Method(NamedTuple):
    """A feature selection or sparse training method: pure functions and an optimiser.

    Attributes:
      name: the registered name.
      init: ``(key, spec) -> TrainState``; called once per seed.
      loss: ``(params, state, batch, key) -> (scalar, aux)``; differentiated by ``params``.
      optimizer: an Optax transformation of the gradients, or a function of the :class:`Spec` that
        gives one, for schedules.
      predict: ``(state, x[B, D]) -> outputs[B, C]`` with the discrete selection and no noise.
      score: ``(state) -> scores[D]``: importance of each column, larger is better.
      after_step: ``(state, grads, aux, batch, key) -> state``: projections, per-step updates.
      after_epoch: ``(state, batch, key) -> state`` with all training rows as the batch; called
        after validation, so that what is validated is what was trained.
      compress, expand: ``(state) -> state``, inverse to each other: another form of the state in
        which ``loss`` and ``predict`` are cheaper, for the steps and the validation of an epoch.
      start: ``(state, batch, key) -> state`` with all training rows, once before the first step.
      finished: ``(state) -> bool``, looked at after every epoch: whether the seed has no more to
        learn; its later epochs are skipped.
      picks: ``(state) -> indices[K]`` where the method chooses its own features, possibly with
        duplicates; ``None`` where the selection is the top K of ``score``.
      monitor: ``(state) -> {name: scalar}``: further values to record after each epoch.
      gates: ``(state) -> gates[D]`` in [0, 1], for methods that open and close the inputs.
      search_from: first value of the hyperparameter ``strength`` in a search for the one with which
        exactly K gates stay open; ``None`` trains once, with the strength that was given.
      input_connections: ``(state) -> counts[D]``: connections of every input neuron, for methods
        with masks on their input layer.
      num_features: K, where the method fixes it; ``None`` otherwise.
      best_by: what tells the best epoch unless the user says so, one of :data:`BEST_BY`: ``last``
        for methods that select or prune as they go, whose early epochs would win otherwise.
      takes_groups: whether the method chooses groups of columns where ``Spec.groups`` has them;
        ``score``, ``picks`` and ``gates`` are then about groups.
      tasks: the tasks that the method is for; the first is its default.
      settings: the hyperparameters by name, hashable; tells this method from others of its name.
    """

    name: str
    init: Callable[[Array, Spec], TrainState]
    loss: Callable[[PyTree, TrainState, Batch, Array], tuple[Array, dict[str, Array]]]
    optimizer: optax.GradientTransformation | Callable[[Spec], optax.GradientTransformation]
    predict: Callable[[TrainState, Array], Array]
    score: Callable[[TrainState], Array]
    after_step: Callable[..., TrainState] = _same_state
    after_epoch: Callable[..., TrainState] = _same_state
    compress: Callable[[TrainState], TrainState] = _same_state
    expand: Callable[[TrainState], TrainState] = _same_state
    start: Callable[..., TrainState] | None = None
    finished: Callable[[TrainState], Array] | None = None
    picks: Callable[[TrainState], Array] | None = None
    monitor: Callable[[TrainState], dict[str, Array]] = _no_metrics
    gates: Callable[[TrainState], Array] | None = None
    search_from: float | None = None
    input_connections: Callable[[TrainState], Array] | None = None
    num_features: int | None = None
    best_by: str = "loss"
    takes_groups: bool = False
    tasks: tuple[str, ...] = TASKS
    settings: tuple[tuple[str, Any], ...] = ()

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings)
        return f"{self.name}({settings})"
