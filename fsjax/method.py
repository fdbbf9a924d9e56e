"""The interface of the library: read this file first.

A method is a value made of pure functions, and one engine runs every method, as Optax does with
gradient transformations. All that changes during training lives in one pytree, the
:class:`TrainState`, so that a run can be jitted, vmapped over seeds, saved, resumed and compared.

The engine (``fsjax/engine``) does, for each seed, with ``data`` all training rows::

    state = method.init(key, spec, data)
    for each epoch:
        for each batch:
            (loss, aux), grads = value_and_grad(method.loss)(state.params, state, batch, key)
            state = optimiser step with method.optimizer
            state = method.after_step(state, grads, aux, batch, key)
        keep a snapshot if method.keep says that this epoch is the best so far
        state = method.after_epoch(state, data, key)
        stop if state.done
    state = method.finish(the state of the kept epoch, data, key)
    method.select(state): the scores of all columns, from which K are selected
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from flax import struct

from fsjax import tasks
from fsjax.errors import ConfigError
from fsjax.tables.sparse_rows import SparseRows
from fsjax.tasks import TASKS
from fsjax.typing import PyTree
from fsjax.user_functions import text_of

Array = jax.Array

#: ``(params, state, batch, key) -> (scalar, aux)``.
TrainingLoss = Callable[[Any, "TrainState", "Batch[Array]", Array], tuple[Array, dict[str, Any]]]

#: ``(state, x[B, D]) -> outputs[B, C]``.
Predict = Callable[["TrainState", Array], Array]

#: ``(outputs (B, C), y, weight (B,)) -> scalar``, as :func:`fsjax.tasks.loss` without the task.
Loss = Callable[[Array, Array, Array], Array]


#: What may tell the best epoch: the validation loss, accuracy or (two classes) area under the ROC
#: curve, or being the last.
BEST_BY = ("loss", "accuracy", "auc", "last")


class Spec(NamedTuple):
    """Static facts of a run: shapes, task and length. Hashable, known before compilation.

    Attributes:
      num_columns: D, the number of input columns.
      num_outputs: C, as the task has it: classes, D for reconstruction, the number of targets,
        labels or counts, 1 for survival.
      task: a name in :data:`fsjax.tasks.TABLE`; of a registered task with its arguments.
      num_rows: rows of the training arrays. Some of the last may only fill up, with weight 0, so
        that tables of nearly the same length share a program.
      batch_size: B, rows per step.
      num_epochs: epochs of the whole run; schedules are relative to it.
      steps_per_epoch: optimiser steps in one epoch, at least 1.
      shuffle: whether the training rows get a new order in every epoch.
      best_by: what the epochs are judged by, one of :data:`BEST_BY`.
      repeats: times that an epoch visits every training row.
      image_shape: ``(H, W)`` or ``(H, W, channels)`` where a row is an image, else ``None``.
      image_order: ``C`` where rows hold pixels line by line, ``F`` column by column.
      groups: the group of each column, where columns are chosen together (:mod:`fsjax.groups`).
      early_stopping: epochs without a better one after which a seed is done, or ``None``.
      loss: what takes the place of the task's loss, or ``None``; methods call :meth:`loss_of`.
      task_code: what the functions of a registered task do, in short, so that neither programs nor
        checkpoints of another one are taken for it; empty for built-in tasks.
    """

    num_columns: int
    num_outputs: int
    task: str
    num_rows: int
    batch_size: int
    num_epochs: int
    steps_per_epoch: int
    shuffle: bool = True
    best_by: str = "loss"
    repeats: int = 1
    image_shape: tuple[int, ...] | None = None
    image_order: str = "C"
    groups: tuple[int, ...] | None = None
    early_stopping: int | None = None
    loss: Loss | None = None
    task_code: str = ""

    def loss_of(self, outputs: Array, y: Array, weight: Array) -> Array:
        """The loss of some rows, a scalar: the task's, unless the run has one of its own.

        Args:
          outputs: ``(B, C)``.
          y: as in :class:`Batch`.
          weight: ``(B,)`` non-negative, not all 0; rows of weight 0 do not count.
        """
        if self.loss is not None:
            return self.loss(outputs, y, weight)
        return tasks.loss(self.task, outputs, y, weight)

    @property
    def num_units(self) -> int:
        """How many there are to choose from: groups, or D columns."""
        return self.num_columns if self.groups is None else max(self.groups) + 1


#: What holds the rows of a :class:`Batch`.
RowArray = TypeVar("RowArray", bound=Array | SparseRows, covariant=True)


class Batch(NamedTuple, Generic[RowArray]):
    """Rows of one step, or all training rows.

    To type checkers ``Batch[Array]`` are rows of one step, and :data:`TrainingRows` all of them.

    Attributes:
      x: ``(B, D)`` scaled inputs. All training rows of a sparse table are
        :class:`fsjax.tables.sparse_rows.SparseRows`, of which ``x[rows]`` is dense.
      y: targets: ``(B,)`` integer classes; ``(B, C)`` numbers, labels or counts; for survival
        ``(B, 2)``, place in time and event; for reconstruction ``(B, D)``, the inputs themselves.
      weight: ``(B,)`` non-negative weights; 0 for rows that only fill up.
    """

    x: RowArray
    y: RowArray
    weight: Array

    def take(self, rows: Array | slice) -> Batch[Array]:
        """Some of the rows, by ``(B,)`` numbers or a slice; dense in any case."""
        x = self.x[rows]
        return Batch(x, x if self.y is self.x else self.y[rows], self.weight[rows])


#: All training rows: what ``init``, ``after_epoch`` and ``finish`` get.
TrainingRows = Batch[Array | SparseRows]


class Snapshot(NamedTuple):
    """The best epoch so far.

    Attributes:
      params, masks, extra: copies of the fields of :class:`TrainState`; ``()`` where the last
        state is kept anyway.
      value: scalar, what ``Method.keep`` said of it; ``inf`` as long as that was not finite.
      epoch: scalar int32, its number, from 1; 0 before the first.
    """

    params: PyTree
    masks: PyTree
    extra: PyTree
    value: Array
    epoch: Array


class TrainState(struct.PyTreeNode):
    """All that changes during training, as one pytree; over seeds, leaves are ``(S, ...)``.

    Attributes:
      key: ``(2,)`` uint32 words of the seed's PRNG key; never consumed, only folded with the epoch
        and the step, so that a resumed run repeats an uninterrupted one.
      step: int32, optimiser steps done.
      epoch: int32, epochs done.
      params: trainable arrays.
      masks: boolean arrays in the structure of ``params`` (all true where nothing is masked), or
        ``()`` for methods that mask no parameter.
      opt_state: state of ``Method.optimizer``.
      hyper: float32 scalars, the method's float arguments by name: traced, so that other values
        do not recompile.
      feature_mask: ``(D,)`` bool: columns that may be selected. Columns that are constant in the
        training rows are false. ``(G,)`` where groups are chosen.
      extra: whatever else the method carries (importances, smoothed masks, ...).
      log: what the method carries beside ``extra`` and no snapshot takes back, such as the epoch at
        which each column left.
      best: the best epoch so far.
      value: scalar float32, what the newest epoch was judged by: the validation loss, or minus the
        accuracy or AUC; the training loss where there are no validation rows.
      done: bool, whether the seed has no more to learn; its later epochs are skipped.
      trace: ``(T, D)`` float32 connections of the input neurons at some epochs, for networks with
        masks on their input layer, or ``()``; no snapshot takes it back.
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
    log: PyTree
    best: Snapshot
    value: Array
    done: Array
    trace: PyTree
    spec: Spec = struct.field(pytree_node=False)


def create_state(
    spec: Spec, params: PyTree, *, masks: PyTree = (), extra: PyTree = (), log: PyTree = ()
) -> TrainState:
    """What ``Method.init`` returns: the state before the first step.

    Args:
      spec: static facts of the run.
      params: initial parameters; ``()`` for methods that train nothing.
      masks: boolean tree with the structure of ``params``, or ``()``.
      extra: further arrays of the method.
      log: further arrays that no snapshot takes back.

    Returns:
      A :class:`TrainState` to which the engine adds the rest: keys, the state of the optimiser,
      hyperparameters, the columns that may be selected.
    """
    zero = jnp.zeros((), jnp.int32)
    worst = jnp.full((), jnp.inf, jnp.float32)
    return TrainState(
        key=jnp.zeros((2,), jnp.uint32),
        step=zero,
        epoch=zero,
        params=params,
        masks=masks,
        opt_state=(),
        hyper={},
        feature_mask=jnp.ones((spec.num_units,), bool),
        extra=extra,
        log=log,
        best=Snapshot((), (), (), worst, zero),
        value=worst,
        done=jnp.zeros((), bool),
        trace=(),
        spec=spec,
    )


class Selection(NamedTuple):
    """What a method says about the columns (or groups).

    Attributes:
      scores: ``(D,)`` importance, larger is better.
      picks: ``(K,)`` columns that the method chose itself, possibly with duplicates; ``None``
        where the selection is the top K of the scores.
      gates: ``(D,)`` in [0, 1] for methods that open and close the inputs, else ``None``.
    """

    scores: Array
    picks: Array | None = None
    gates: Array | None = None


class Search(NamedTuple):
    """How to get exactly K open gates (BinMask, section 3.2).

    Attributes:
      parameter: the float argument that closes gates as it grows.
      close: ``(state, threshold) -> state`` whose gates below the threshold are 0, and whose
        network does not see their columns.
    """

    parameter: str
    close: Callable[[TrainState, Array], TrainState]


class About(NamedTuple):
    """Facts about a method.

    Attributes:
      name: what it is called; of registered methods, their own.
      tasks: the built-in tasks that the method is for; the first is its default. It takes
        registered tasks that resemble one of them if its loss is made of ``fsjax.tasks.loss``.
      num_features: K, where the method fixes it; ``None`` otherwise.
      takes_groups: whether it chooses groups of columns where ``Spec.groups`` has them.
      gates: whether ``select`` gives gates.
      validates: whether the method looks at ``TrainState.value`` itself, and so wants validation
        rows although it keeps its last epoch.
      sparse: whether the method takes the rows of ``data.x`` by ``data.x[rows]`` or
        ``data.take(rows)`` only, or does not look at it, so that the table may be sparse.
      flops: floating-point operations of training for each connection and row: 2 forward and 4
        backward as a rule.
      weights: from the parameters to those that are connections of the network; all by default.
      settings: the arguments by name, hashable.
      source: how it was built, where a registered builder did so.
    """

    name: str = ""
    tasks: tuple[str, ...] = TASKS
    num_features: int | None = None
    takes_groups: bool = False
    gates: bool = False
    validates: bool = False
    sparse: bool = False
    flops: float = 6.0
    weights: Callable[[PyTree], PyTree] | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    source: Any = None


def _same_state(state: TrainState, *_: Any) -> TrainState:
    return state


class Method(NamedTuple):
    """A feature selection or sparse training method: pure functions and an optimiser.

    Attributes:
      about: facts.
      init: ``(key, spec, data) -> TrainState`` (:func:`create_state`), once per seed; sees all
        training rows.
      select: ``(state) -> Selection``: the importance of each column, and the method's own picks
        or gates.
      loss: ``(params, state, batch, key) -> (scalar, aux)``; differentiated by ``params``.
        ``None`` for filters, which train nothing.
      optimizer: an Optax transformation of the gradients, or a function of the :class:`Spec` that
        gives one, for schedules. ``None`` for filters.
      predict: ``(state, x[B, D]) -> outputs[B, C]`` with the discrete selection and no noise, or
        ``None``.
      after_step: ``(state, grads, aux, batch, key) -> state``: projections, per-step updates.
      after_epoch: ``(state, data, key) -> state``; called after validation, so that what is
        validated is what was trained. May set ``state.done``.
      finish: ``(state, data, key) -> state``, once, on the state that is kept: importances over
        the training rows are made here.
      keep: what tells the best epoch unless the user says so: one of :data:`BEST_BY` (``last`` for
        methods that select or prune as they go, whose early epochs would win otherwise), or a
        function ``(state) -> value`` of the state after validation, of which the lowest wins.
        The newest epoch is kept as long as no value was finite (``inf`` during a warm-up, NaN),
        and patience counts from the first that was.
      monitor: ``(state) -> {name: scalar}``: further values to record after each epoch.
      record: names of scalars in the ``aux`` of ``loss``; their means over the steps of an epoch
        are recorded too.
      search: how to find the strength that keeps exactly K gates open, or ``None``.
    """

    about: About
    init: Callable[[Array, Spec, TrainingRows], TrainState]
    select: Callable[[TrainState], Selection]
    loss: TrainingLoss | None = None
    optimizer: (
        optax.GradientTransformation | Callable[[Spec], optax.GradientTransformation] | None
    ) = None
    predict: Predict | None = None
    after_step: Callable[[TrainState, PyTree, dict, Batch[Array], Array], TrainState] = _same_state
    after_epoch: Callable[[TrainState, TrainingRows, Array], TrainState] = _same_state
    finish: Callable[[TrainState, TrainingRows, Array], TrainState] = _same_state
    keep: str | Callable[[TrainState], Array] = "loss"
    monitor: Callable[[TrainState], dict[str, Array]] = lambda state: {}
    search: Search | None = None
    record: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """``about.name``."""
        return self.about.name

    @property
    def training_loss(self) -> TrainingLoss:
        """``loss`` of a method that trains; ConfigError for a filter."""
        if self.loss is None:
            raise ConfigError(f"{self.name} is a filter: it has no loss to train by")
        return self.loss

    @property
    def predictor(self) -> Predict:
        """``predict`` of a method that predicts; ConfigError for one that only selects."""
        if self.predict is None:
            raise ConfigError(f"{self.name} selects columns and does not predict")
        return self.predict

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={text_of(value)}" for name, value in self.about.settings)
        return f"{self.about.name}({settings})"
