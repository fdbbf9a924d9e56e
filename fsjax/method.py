"""The interface of the library: read this file first.

A :class:`Method` is a named tuple of pure functions, as a gradient transformation is in Optax, and
one engine runs every method. Everything that changes during training is in one pytree, the
:class:`TrainState`, so a run can be jitted, vmapped over seeds, saved, resumed and compared.

For each seed, the engine (``fsjax/engine``) runs this loop, where ``data`` holds all training
rows::

    state = method.init(key, spec, data)
    for each epoch:
        for each batch:
            (loss, aux), grads = value_and_grad(method.loss)(state.params, state, batch, key)
            state = state after a step of method.optimizer
            state = method.after_step(state, grads, aux, batch, key)
        state.best = a snapshot, if this epoch is the best so far by method.keep
        state = method.after_epoch(state, data, key)
        stop if state.done
    state = method.finish(state of the kept epoch, data, key)
    selection = method.select(state)  # the scores of all columns; the best K are selected
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from flax import struct

from fsjax import tasks
from fsjax.arguments.user_functions import text_of
from fsjax.errors import ConfigError
from fsjax.tables.sparse_rows import SparseRows
from fsjax.tasks import TASKS
from fsjax.typing import PyTree

Array = jax.Array

#: ``(params, state, batch, key) -> (scalar, aux)``.
TrainingLoss = Callable[[Any, "TrainState", "Batch[Array]", Array], tuple[Array, dict[str, Any]]]

#: ``(state, x[B, D]) -> outputs[B, C]``.
Predict = Callable[["TrainState", Array], Array]

#: ``(outputs[B, C], y, weight[B]) -> scalar``: :func:`fsjax.tasks.loss` without the task's name.
Loss = Callable[[Array, Array, Array], Array]


#: Criteria for the best epoch: the validation loss, the validation accuracy or (for two classes)
#: the area under the ROC curve; ``last`` keeps the last epoch.
BEST_BY = ("loss", "accuracy", "auc", "last")


class Spec(NamedTuple):
    """Static facts about a run: shapes, task and length. Hashable, and known before compilation.

    Attributes:
      num_columns: D, the number of input columns.
      num_outputs: C, which depends on the task: the number of classes, targets, labels or counts;
        D for reconstruction; 1 for survival.
      task: a name in :data:`fsjax.tasks.TABLE`; for a registered task it includes the arguments.
      num_rows: rows of the training arrays. The last ones may be padding with weight 0, so that
        tables of similar length share a program.
      batch_size: B, rows per step.
      num_epochs: epochs of the whole run; schedules are relative to it.
      steps_per_epoch: optimiser steps in one epoch, at least 1.
      shuffle: whether the training rows are shuffled in every epoch.
      best_by: the criterion for the best epoch, one of :data:`BEST_BY`.
      repeats: how often an epoch visits each training row.
      image_shape: ``(H, W)`` or ``(H, W, channels)`` if each row is an image, else ``None``.
      image_order: ``C`` if a row holds the pixels line by line, ``F`` if column by column.
      groups: the group of each column if columns are selected in groups
        (:mod:`fsjax.tables.groups`), else ``None``.
      early_stopping: a seed is done after this many epochs without improvement; ``None`` for
        never.
      loss: replaces the loss of the task, unless ``None``; methods call :meth:`loss_of`.
      registered_task: the task itself if it is registered, so that programs of another task with
        the same name are not reused; ``None`` for built-in tasks.
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
    registered_task: tasks.Task | None = None

    def loss_of(self, outputs: Array, y: Array, weight: Array) -> Array:
        """The loss of a batch: :attr:`loss` if the run has one, otherwise the loss of the task.

        Args:
          outputs: ``(B, C)`` outputs of the network.
          y: targets as in :class:`Batch`.
          weight: ``(B,)`` non-negative, not all 0; rows of weight 0 do not count.

        Returns:
          Scalar.
        """
        if self.loss is not None:
            return self.loss(outputs, y, weight)
        return tasks.loss(self.task, outputs, y, weight)

    @property
    def num_units(self) -> int:
        """The number of units to select from: G groups, or D columns without groups."""
        return self.num_columns if self.groups is None else max(self.groups) + 1


#: The type of the rows in a :class:`Batch`.
RowArray = TypeVar("RowArray", bound=Array | SparseRows, covariant=True)


class Batch(NamedTuple, Generic[RowArray]):
    """The rows of one training step, or all training rows.

    For type checkers, the rows of one step are ``Batch[Array]``, all rows :data:`TrainingRows`.

    Attributes:
      x: ``(B, D)`` scaled inputs. All training rows of a sparse table are
        :class:`fsjax.tables.sparse_rows.SparseRows`; ``x[rows]`` is then a dense array.
      y: targets: ``(B,)`` integer classes; ``(B, C)`` numbers, labels or counts; for survival
        ``(B, 2)``, the rank in time and the event; for reconstruction the inputs, ``(B, D)``.
      weight: ``(B,)`` non-negative weights; 0 for padding rows.
    """

    x: RowArray
    y: RowArray
    weight: Array

    def take(self, rows: Array | slice) -> Batch[Array]:
        """The rows with the ``(B,)`` indices, or of a slice; always dense."""
        x = self.x[rows]
        return Batch(x, x if self.y is self.x else self.y[rows], self.weight[rows])


#: All training rows: the ``data`` of ``init``, ``after_epoch`` and ``finish``.
TrainingRows = Batch[Array | SparseRows]


class Snapshot(NamedTuple):
    """The best epoch so far.

    Attributes:
      params, masks, extra: copies of the fields of :class:`TrainState`; ``()`` if the last epoch
        is kept anyway.
      value: scalar, the value of ``Method.keep``; ``inf`` until one was finite.
      epoch: scalar int32, the number of the epoch, from 1; 0 before the first.

    Examples:
      >>> result = fsjax.fit(method, data, num_features=2, num_epochs=2)
      >>> print(result.states.best.epoch)  # of each seed
    """

    params: PyTree
    masks: PyTree
    extra: PyTree
    value: Array
    epoch: Array


class TrainState(struct.PyTreeNode):
    """Everything that changes during training, as one pytree.

    These are the shapes for one seed; with S seeds, each leaf is ``(S, ...)``.

    Attributes:
      key: ``(2,)`` uint32 words of the seed's PRNG key. It is never consumed, only folded with the
        epoch and the step, so that a resumed run repeats an uninterrupted one.
      step: int32, optimiser steps done.
      epoch: int32, epochs done.
      params: trainable arrays.
      masks: boolean arrays with the structure of ``params`` (all true where nothing is masked), or
        ``()`` for methods that mask no parameters.
      opt_state: state of ``Method.optimizer``.
      hyper: float32 scalars, the method's float arguments by name. They are traced, so changing
        their values does not recompile.
      feature_mask: ``(D,)`` bool, true for columns that may be selected: those that are not
        constant in the training rows. ``(G,)`` for groups.
      extra: other arrays of the method (importances, smoothed masks, ...).
      log: like ``extra``, but not restored from the snapshot of the best epoch; for example the
        epoch at which each column was removed.
      best: snapshot of the best epoch so far.
      value: scalar float32, the criterion of the newest epoch, lower is better: the validation
        loss, or minus the accuracy or AUC; the training loss if there are no validation rows.
      done: bool, whether training of this seed is complete; its later epochs are skipped.
      trace: ``(T, D)`` float32, the number of connections of each input neuron at T epochs, for
        networks with a mask on their input layer, else ``()``. Not restored from a snapshot.
      spec: static facts about the run.
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
    """Creates the state before the first step, for ``Method.init`` to return.

    Args:
      spec: static facts about the run.
      params: initial parameters; ``()`` for methods that train nothing.
      masks: boolean tree with the structure of ``params``, or ``()``.
      extra: further arrays of the method.
      log: further arrays that are not restored from the snapshot of the best epoch.

    Returns:
      A :class:`TrainState`. The engine fills in its key, optimiser state, hyperparameters and
      feature mask.
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
    """The result of a method for one seed: how important each column (or group) is.

    Attributes:
      scores: ``(D,)`` importance, larger is better.
      picks: ``(K,)`` columns, 0 to D - 1, that the method selected, possibly repeated; ``None``
        if the selection is the top K by score.
      gates: ``(D,)`` in [0, 1] for methods that open and close their inputs, else ``None``.
    """

    scores: Array
    picks: Array | None = None
    gates: Array | None = None


class Search(NamedTuple):
    """How to search for exactly K open gates (BinMask, section 3.2).

    Attributes:
      parameter: name of the float argument to search over; a larger value closes more gates.
      close: ``(state, threshold) -> state``: sets the gates below the threshold to 0, so that the
        network no longer sees their columns.

    Examples:
      >>> def close(state, gates):  # gates: bool (D,), of which the others are closed for good
      ...     return state.replace(feature_mask=state.feature_mask & gates)
      >>> # the penalty that decides how many gates are open
      >>> search = fsjax.Search("strength", close)
    """

    parameter: str
    close: Callable[[TrainState, Array], TrainState]


class Phase(NamedTuple):
    """A part of the training that the selection of a method needs.

    Before training, there is a warning if a run has fewer epochs; after training, if the kept epoch
    lies before the phase, for example because of a time limit. Messages continue "training ends
    before ..." by :attr:`name`.

    Attributes:
      name: what happens in the phase, as a clause: ``"the path begins"``.
      epochs: number of epochs with which a run reaches it for certain.
      without: what is selected without it: ``"columns are ranked by their initial weights"``.
      instead: settings that reach it sooner, or an empty text: ``"a smaller dense_epochs"``.
      soonest: number of epochs below which no run reaches it; ``None`` for ``epochs``.
      recorded: name of a value of ``Method.monitor`` that is above 0 once it has begun; ``None``
        if it begins in the epoch ``epochs``.
      kept: whether the kept epoch has to reach it, and not only the run.

    Examples:
      >>> path = fsjax.Phase("the path begins", epochs=1001, without="dense weights rank columns")
      >>> print(path.epochs)  # runs of fewer epochs are warned of
    """

    name: str
    epochs: int
    without: str
    instead: str = ""
    soonest: int | None = None
    recorded: str | None = None
    kept: bool = True


class About(NamedTuple):
    """Facts about a method.

    Attributes:
      name: name of the method; registration sets it.
      tasks: the built-in tasks that the method supports; the first is the default. A method whose
        loss calls ``Spec.loss_of`` or ``fsjax.tasks.loss`` also supports registered tasks that
        resemble one of these.
      num_features: K, if the method is built for a fixed number of columns, else ``None``.
      takes_groups: whether the method can select groups of columns (``Spec.groups``).
      gates: whether ``select`` returns gates.
      validates: whether the method itself reads ``TrainState.value``, and therefore needs
        validation rows even if it keeps its last epoch.
      sparse: whether the table may be sparse: the method reads ``data.x`` only by ``data.x[rows]``
        or ``data.take(rows)``, or not at all.
      merges_copies: whether a row of weight c has the effect of c copies in ``loss`` and
        ``after_step``, so that batches larger than the table may hold each of its rows once.
      flops: floating-point operations of training per connection and row; usually 2 forward and
        4 backward.
      weights: ``params -> params``, only those that are connections of the network; ``None`` for
        all of them.
      settings: the arguments by name, hashable; registration sets them.
      source: how a registered builder made the method; ``None`` if it was made by hand.
    """

    name: str = ""
    tasks: tuple[str, ...] = TASKS
    num_features: int | None = None
    takes_groups: bool = False
    gates: bool = False
    validates: bool = False
    sparse: bool = False
    merges_copies: bool = False
    flops: float = 6.0
    weights: Callable[[PyTree], PyTree] | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    source: Any = None


def _same_state(state: TrainState, *_: Any) -> TrainState:
    return state


def _no_phases(spec: Spec) -> tuple[Phase, ...]:
    del spec
    return ()


class Method(NamedTuple):
    """A feature selection or sparse training method: pure functions and an optimiser.

    Attributes:
      about: facts about the method.
      init: ``(key, spec, data) -> TrainState``: creates the first state by :func:`create_state`;
        called once per seed, with all training rows.
      select: ``(state) -> Selection``: the importance of each column, and the method's own picks
        or gates, if any.
      loss: ``(params, state, batch, key) -> (scalar, aux)``; differentiated by ``params``.
        ``None`` for filters, which train nothing.
      optimizer: an Optax gradient transformation or, for schedules that depend on the length of
        the run, a function of the :class:`Spec` that returns one. ``None`` for filters.
      predict: ``(state, x[B, D]) -> outputs[B, C]``, with the discrete selection and without
        noise; ``None`` for methods that do not predict.
      after_step: ``(state, grads, aux, batch, key) -> state``, after each optimiser step: for
        example projections and topology updates.
      after_epoch: ``(state, data, key) -> state``, after the validation of each epoch, so that
        validation sees the network as it was trained. May set ``state.done``.
      finish: ``(state, data, key) -> state``, once, on the state of the kept epoch; for example to
        compute importances over the training rows.
      keep: the default criterion for the best epoch: one of :data:`BEST_BY`, or a function
        ``(state) -> value`` of the state after validation; the lowest value wins. Use ``last`` for
        methods that select or prune during training, where early epochs would win otherwise.
        Until a value is finite (it may be ``inf`` during a warm-up, or NaN) the newest epoch is
        kept, and the patience of early stopping is not used up.
      monitor: ``(state) -> {name: scalar}``: further values to record after each epoch.
      record: names of scalars in the ``aux`` of ``loss``, whose means over the steps of each epoch
        are recorded too.
      search: how to search for exactly K open gates, or ``None``.
      phases: the parts of the training that the selection needs, in their order, for a run of this
        :class:`Spec`: a path, a warm-up, changes of the topology. It is called on the host.
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
    phases: Callable[[Spec], tuple[Phase, ...]] = _no_phases

    @property
    def name(self) -> str:
        """``about.name``."""
        return self.about.name

    @property
    def training_loss(self) -> TrainingLoss:
        """``loss``, which is not ``None``; ConfigError for a filter."""
        if self.loss is None:
            raise ConfigError(f"{self.name} is a filter and has no training loss")
        return self.loss

    @property
    def predictor(self) -> Predict:
        """``predict``, which is not ``None``; ConfigError for a method that only selects."""
        if self.predict is None:
            raise ConfigError(f"{self.name} only selects columns; it does not predict")
        return self.predict

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={text_of(value)}" for name, value in self.about.settings)
        return f"{self.about.name}({settings})"


def for_run(optimizer: Any, spec: Any) -> optax.GradientTransformation:
    """The optimiser of a run: the transformation itself, or the one a function of the Spec returns.

    Raises:
      ConfigError: if the function does not return an Optax transformation.
    """
    if isinstance(optimizer, optax.GradientTransformation):
        return optimizer
    transformation = optimizer(spec)
    if not isinstance(transformation, optax.GradientTransformation):
        raise ConfigError(
            f"the optimizer {text_of(optimizer)} returns a {type(transformation).__name__}; a "
            "function of the Spec must return an Optax transformation, such as optax.adam(1e-3)"
        )
    return transformation
