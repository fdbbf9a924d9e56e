"""The training loop of one seed, as pure functions: steps and epochs are loops on the device."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast, overload

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from fsjax import tasks
from fsjax.engine.mesh import split_rows
from fsjax.method import Batch, Method, PyTree, Snapshot, Spec, TrainingRows, TrainState
from fsjax.optimizers import for_run
from fsjax.sparsity.connections import is_connections, of_inputs
from fsjax.tables.scaled import DeviceTable, HostTable
from fsjax.tables.sparse_rows import SparseRows, dense, is_sparse, map_rows

#: Rows that are evaluated at once.
EVALUATION_ROWS = 1024

#: The largest number of epochs in one call of the compiled program.
MAX_EPOCHS_PER_CALL = 64

#: The parts of the rows on which each epoch is evaluated, in this order.
EVALUATED = ("valid", "test")

#: Epochs after which the connections of the input neurons are counted; 0 is before training.
CONNECTION_EPOCHS = (0, 1, 5, 10)


#: Arrays on the device, or NumPy arrays on the host.
AnyArray = Array | np.ndarray

#: The types of the inputs of rows, and of their other arrays.
X = TypeVar("X", covariant=True)
Y = TypeVar("Y", covariant=True)


class Rows(NamedTuple, Generic[X, Y]):
    """Scaled rows, on the host or in compiled code.

    Attributes:
      x: ``(N, D)`` float32, or the rows of a sparse table or of a table on disk.
      y: ``(N,)`` classes or ``(N, C)`` numbers; not used for reconstruction.
      weight: ``(N,)`` float32, 0 for the padding rows at the end.
    """

    x: X
    y: Y
    weight: Y


HostRows = Rows[HostTable, np.ndarray]
DeviceRows = Rows[DeviceTable, Array]

#: Rows in memory, the input of compiled epochs.
MemoryRows = Rows[Array | SparseRows, Array]

R = TypeVar("R", bound=Rows, covariant=True)


class Arrays(NamedTuple, Generic[R]):
    """The rows of a run; validation and test rows may be empty.

    The test rows are only for the metrics that are recorded after each epoch, and empty if none
    are.
    """

    train: R
    valid: R
    test: R


@overload
def as_batch(task: str, rows: Rows[Array, Array]) -> Batch[Array]: ...


@overload
def as_batch(task: str, rows: DeviceRows) -> TrainingRows: ...


def as_batch(task: str, rows: DeviceRows) -> TrainingRows:
    """All rows as one batch; for reconstruction the targets are the inputs."""
    # Rows on disk raise an error when they are read, so methods need not know about them.
    x = cast("Array | SparseRows", rows.x)
    return Batch(x, rows.y if tasks.TABLE[task].supervised else x, rows.weight)


def key_of(words: Array) -> Array:
    """The PRNG key of a seed from the words in ``TrainState.key``.

    The generator is threefry, because others share streams over vmapped seeds.
    """
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def optimizer_of(method: Method, spec: Spec) -> optax.GradientTransformation:
    """The method's optimiser for a run."""
    return for_run(method.optimizer, spec)


def keeps_snapshot(method: Method, spec: Spec) -> bool:
    """Whether an epoch other than the last may be kept."""
    return callable(method.keep) or spec.best_by != "last"


def init_state(
    method: Method, spec: Spec, seed: Array, data: TrainingRows, mask: Array
) -> TrainState:
    """The state of one seed before its first step.

    Args:
      method: the method.
      spec: static facts about the run.
      seed: scalar uint32.
      data: all training rows.
      mask: ``(D,)`` bool, columns that may be selected, or ``(G,)`` groups.
    """
    key_train, key_init = jax.random.split(jax.random.key(seed, impl="threefry2x32"))
    state = method.init(key_init, spec, data).replace(feature_mask=mask)
    state = state.replace(key=jax.random.key_data(key_train))
    if method.loss is not None:
        tx = optimizer_of(method, spec)
        state = state.replace(opt_state=tx.init(state.params))
    if keeps_snapshot(method, spec):
        best = state.best._replace(params=state.params, masks=state.masks, extra=state.extra)
        state = state.replace(best=best)
    counts = input_connections(state)
    if counts is None:
        return state
    trace = jnp.zeros((len(CONNECTION_EPOCHS), *counts.shape))
    return state.replace(trace=trace.at[0].set(counts))


def at_kept(method: Method, state: TrainState) -> TrainState:
    """The state with the parameters, masks and extras of the kept epoch restored."""
    if not keeps_snapshot(method, state.spec):
        return state
    best = state.best
    return state.replace(params=best.params, masks=best.masks, extra=best.extra)


def train_step(
    method: Method, state: TrainState, batch: Batch[Array], key: Array
) -> tuple[TrainState, dict[str, Array]]:
    """One optimiser step and the method's ``after_step``.

    Returns:
      The new state, and the values to record by name: the ``loss`` and ``method.record``.
    """
    key_loss, key_after = jax.random.split(key)
    (loss, aux), grads = jax.value_and_grad(method.training_loss, has_aux=True)(
        state.params, state, batch, key_loss
    )
    tx = optimizer_of(method, state.spec)
    updates, opt_state = tx.update(grads, state.opt_state, state.params)
    state = state.replace(
        params=optax.apply_updates(state.params, updates),
        opt_state=opt_state,
        step=state.step + 1,
    )
    recorded = {"loss": loss} | {name: aux[name] for name in method.record}
    return method.after_step(state, grads, aux, batch, key_after), recorded


def train_steps(
    method: Method,
    state: TrainState,
    key: Array,
    numbers: Array,
    batch_of: Callable[..., Batch[Array]],
    *slots: Array,
) -> tuple[TrainState, dict[str, Array]]:
    """Scans :func:`train_step` over several steps.

    Args:
      method, state: the method and its state.
      key: the key for the steps of the epoch.
      numbers: ``(steps,)`` int32, the numbers of the steps in the epoch, from 0.
      batch_of: maps the entries of ``slots`` for a step to its batch.
      slots: arrays ``(steps, ...)``.

    Returns:
      The new state, and the recorded values, ``(steps,)`` by name.
    """

    def step(carry: TrainState, inputs: tuple[Array, ...]) -> tuple[TrainState, dict[str, Array]]:
        number, *slot = inputs
        return train_step(method, carry, batch_of(*slot), jax.random.fold_in(key, number))

    return jax.lax.scan(step, state, (numbers, *slots))


def predict_rows(method: Method, state: TrainState, x: Array | SparseRows) -> Array:
    """Outputs ``(N, C)`` for any number of rows, computed in parts."""
    return map_rows(lambda part: method.predictor(state, part), x, EVALUATION_ROWS)


def row_metrics(spec: Spec, outputs: Array, y: Array) -> dict[str, Array]:
    """``tasks.row_metrics`` ``(B,)`` by name, with the loss of the run."""
    metrics = tasks.row_metrics(spec.task, outputs, y)
    if spec.loss is not None:
        loss, weight = spec.loss, jnp.ones(1)
        by_row = jax.vmap(lambda output, target: loss(output[None], target[None], weight))
        metrics["loss"] = by_row(outputs, y)
    return metrics


def outputs_of_part(method: Method, state: TrainState, x: Array) -> Array | dict[str, Array]:
    """Outputs ``(B, C)`` for some rows, or :func:`row_metrics` if the rows are their own target.

    Sparse rows and rows on disk are never in memory together, so their metrics are computed by row.
    """
    outputs = method.predictor(state, x)
    return (
        outputs if tasks.TABLE[state.spec.task].supervised else row_metrics(state.spec, outputs, x)
    )


def outputs_of(
    method: Method, state: TrainState, x: Array | SparseRows
) -> Array | dict[str, Array]:
    """Outputs ``(N, C)`` for all rows; for sparse rows as :func:`outputs_of_part`."""
    if is_sparse(x):
        return map_rows(lambda part: outputs_of_part(method, state, part), x, EVALUATION_ROWS)
    return predict_rows(method, state, x)


def mean_of_rows(values: dict[str, Array], weight: Array) -> dict[str, Array]:
    """Metrics of all rows from those of each row, ``(N,)`` by name."""
    return {
        name: tasks.weighted_mean(jnp.where(weight > 0, of_rows, 0.0), weight)
        for name, of_rows in values.items()
    }


def evaluate(method: Method, state: TrainState, rows: MemoryRows) -> dict[str, Array]:
    """``tasks.metrics`` of at least one row, for the discrete selection.

    Returns:
      Scalars by name, including ``loss``; with ``best_by='auc'`` also ``auc``, the area under the
      ROC curve of the second class.
    """
    return evaluate_outputs(method, state, outputs_of(method, state, rows.x), rows)


def evaluate_outputs(
    method: Method, state: TrainState, outputs: Array | dict[str, Array], rows: DeviceRows
) -> dict[str, Array]:
    """:func:`evaluate`, given the result of :func:`outputs_of`."""
    del method
    if isinstance(outputs, dict):
        return mean_of_rows(outputs, rows.weight)
    task = state.spec.task
    # The outputs of padding rows may have any value, even NaN.
    outputs = jnp.where(rows.weight[:, None] > 0, outputs, 0.0)
    y = dense(as_batch(task, rows).y)
    metrics = tasks.metrics(task, outputs, y, rows.weight)
    if state.spec.loss is not None:
        metrics["loss"] = state.spec.loss(outputs, y, rows.weight)
    if state.spec.best_by == "auc" and "auc" not in metrics:
        margins = outputs[:, 1] - outputs[:, 0]
        metrics["auc"] = tasks.roc_auc(margins, rows.y, rows.weight)
    return metrics


def batch_indices(spec: Spec, key: Array, num_real: Array) -> tuple[Array, Array]:
    """The rows of every batch of the next epoch; only the first ``num_real`` rows are not padding.

    Each row has random bits of its own, so the order does not depend on the amount of padding.

    Returns:
      ``(steps, B)`` int32 row indices, and ``(steps, B)`` float32, 0 where an index is padding of
      the last batch and 1 elsewhere.
    """
    visits = jnp.arange(spec.num_rows * spec.repeats, dtype=jnp.int32)
    if spec.shuffle:
        bits = jax.random.bits(key, visits.shape) >> 1
        visits = jnp.argsort(jnp.where(visits < num_real * spec.repeats, bits, jnp.uint32(2**31)))
    slots = jnp.arange(spec.steps_per_epoch * spec.batch_size)
    shape = (spec.steps_per_epoch, spec.batch_size)
    real = (slots < num_real * spec.repeats).astype(jnp.float32)
    rows = visits[jnp.minimum(slots, visits.size - 1)] % num_real
    return rows.reshape(shape), real.reshape(shape)


class Feed(Protocol):
    """The source of the rows of an epoch, which also runs the parts of the epoch.

    For rows in memory an epoch is one compiled program (:class:`InMemory`). For rows on disk each
    part is a program that the host calls as rows arrive (:mod:`fsjax.engine.streamed`).
    """

    @property
    def arrays(self) -> Arrays[Any]:
        """The rows of the run."""

    def inspect(self, part: Callable[..., Any], state: TrainState, *args: Any) -> Any:
        """Runs ``part(method, state, *args)``, which does not change the state."""

    def advance(self, part: Callable[..., Any], state: TrainState, *args: Any) -> Any:
        """Runs ``part(method, state, *args)``, which returns the next state and some values.

        The memory of ``state`` may be reused.
        """

    def steps(
        self, state: TrainState, key_order: Array, key_steps: Array
    ) -> tuple[TrainState, dict[str, Array]]:
        """Runs the optimiser steps of an epoch; returns the state and the recorded values."""

    def evaluate(self, state: TrainState, rows: Rows[Any, Any]) -> dict[str, Array]:
        """Runs :func:`evaluate` for the validation or the test rows."""


@dataclasses.dataclass(frozen=True)
class InMemory:
    """The :class:`Feed` of rows in memory."""

    method: Method
    arrays: Arrays[MemoryRows]

    def inspect(self, part: Callable[..., Any], state: TrainState, *args: Any) -> Any:
        """As in :class:`Feed`."""
        return part(self.method, state, *args)

    advance = inspect

    def steps(
        self, state: TrainState, key_order: Array, key_steps: Array
    ) -> tuple[TrainState, dict[str, Array]]:
        """As in :class:`Feed`; the steps are a loop on the device."""
        spec, everything = state.spec, as_batch(state.spec.task, self.arrays.train)
        if whole_table(spec):
            # The batch is the whole table: nothing is gathered, and the order does not matter.
            batch = split_rows(everything.take(slice(None)))
            return train_step(self.method, state, batch, jax.random.fold_in(key_steps, 0))
        num_real = jnp.sum(everything.weight > 0, dtype=jnp.int32)
        slots = batch_indices(spec, key_order, num_real)

        def batch_of(rows: Array, real: Array) -> Batch[Array]:
            batch = everything.take(rows)
            return split_rows(batch._replace(weight=batch.weight * real))

        numbers = jnp.arange(spec.steps_per_epoch)
        return train_steps(self.method, state, key_steps, numbers, batch_of, *slots)

    def evaluate(self, state: TrainState, rows: MemoryRows) -> dict[str, Array]:
        """As in :class:`Feed`."""
        return evaluate(self.method, state, rows)


def train_epoch(
    method: Method, state: TrainState, arrays: Arrays[MemoryRows]
) -> tuple[TrainState, dict[str, Array]]:
    """:func:`run_epoch` for rows in memory."""
    return run_epoch(InMemory(method, arrays), state)


def run_epoch(feed: Feed, state: TrainState) -> tuple[TrainState, dict[str, Array]]:
    """One epoch: all its steps, validation, the best snapshot and ``after_epoch``.

    Returns:
      The new state and scalars named ``split/metric``.
    """
    (key_order, key_steps, key_after), masks_before = feed.inspect(begin_epoch, state)
    state, recorded = feed.steps(state, key_order, key_steps)
    state, metrics = feed.advance(end_steps, state, recorded)
    for name in EVALUATED:
        rows = getattr(feed.arrays, name)
        if rows.x.shape[0]:
            of_split = feed.evaluate(state, rows)
            metrics |= {f"{name}/{metric}": value for metric, value in of_split.items()}
    everything = as_batch(state.spec.task, feed.arrays.train)
    return feed.advance(end_epoch, state, everything, metrics, masks_before, key_after)


def begin_epoch(method: Method, state: TrainState) -> tuple[tuple[Array, ...], PyTree]:
    """The three keys of the next epoch (:func:`epoch_keys`), and the masks before it."""
    del method
    return tuple(epoch_keys(state.key, state.epoch)), state.masks


def epoch_keys(words: Array, epoch: Array) -> Array:
    """``(3,)`` keys of an epoch: for the order of the rows, the steps, and ``after_epoch``.

    ``words`` are the words of the seed's key, as in :func:`key_of`.
    """
    return jax.random.split(jax.random.fold_in(key_of(words), epoch), 3)


def end_steps(
    method: Method, state: TrainState, recorded: dict[str, Array]
) -> tuple[TrainState, dict[str, Array]]:
    """The state after the steps of an epoch, and the training metrics.

    ``recorded`` holds the values that :func:`train_step` recorded, ``(steps,)`` by name.
    """
    metrics = {f"train/{name}": value for name, value in method.monitor(state).items()}
    metrics |= {f"train/{name}": jnp.mean(values) for name, values in recorded.items()}
    return state.replace(epoch=state.epoch + 1), metrics


def end_epoch(
    method: Method,
    state: TrainState,
    everything: TrainingRows,
    metrics: dict[str, Array],
    masks_before: PyTree,
    key_after: Array,
) -> tuple[TrainState, dict[str, Array]]:
    """The end of an epoch after validation: best snapshot, ``after_epoch``, early stopping."""
    state = _keep_best(method, state, metrics)
    state = method.after_epoch(state, everything, key_after)
    if state.spec.early_stopping is not None:
        waited = state.epoch - state.best.epoch
        state = state.replace(done=state.done | (waited >= state.spec.early_stopping))
    metrics |= _topology_metrics(masks_before, state.masks)
    return _count_connections(state), metrics


def whole_table(spec: Spec) -> bool:
    """Whether an epoch has one batch of all rows, including padding."""
    return spec.batch_size == spec.num_rows and spec.steps_per_epoch == 1 and spec.repeats == 1


def _keep_best(method: Method, state: TrainState, metrics: dict[str, Array]) -> TrainState:
    best_by = state.spec.best_by
    if best_by in ("accuracy", "auc"):
        value = -metrics[f"valid/{best_by}"]
    else:
        value = metrics.get("valid/loss", metrics["train/loss"])
    state = state.replace(value=value)
    kept = ((), (), ())
    if keeps_snapshot(method, state.spec):
        kept = (state.params, state.masks, state.extra)
    if callable(method.keep):
        value = method.keep(state)
    # NaN counts as the worst value. Without validation rows, and until a value is finite, the
    # newest epoch counts as the best, so that an untrained network is never kept.
    value = jnp.where(value < jnp.inf, value, jnp.inf).astype(jnp.float32)
    judged = "valid/loss" in metrics or callable(method.keep)
    better = (value < state.best.value) | jnp.isinf(state.best.value)
    better = better if judged else jnp.ones((), bool)
    newest = Snapshot(*kept, value, state.epoch)
    # cond copies the snapshot as a whole; jnp.where would compile code for every leaf.
    best = jax.lax.cond(better, lambda: newest, lambda: state.best)
    return state.replace(best=best)


def _topology_metrics(before: PyTree, after: PyTree) -> dict[str, Array]:
    """Sparsity in [0, 1], and the percentage of connections that are new in this epoch."""
    leaves = (jax.tree.leaves(masks, is_leaf=is_connections) for masks in (before, after))
    active: Array | float = 0.0
    grown: Array | float = 0.0
    size = 0.0
    for old, new in zip(*leaves, strict=True):
        if is_connections(new):
            active += new.rows.size
            grown += (new.grown - old.grown).astype(jnp.float32)
        elif new.ndim >= 2:
            active += jnp.sum(new, dtype=jnp.float32)
            grown += jnp.sum(new & ~old, dtype=jnp.float32)
        else:
            continue
        size += new.size
    if not size:
        return {}
    return {
        "train/sparsity": jnp.asarray(1.0 - active / size),
        "train/topology_change": jnp.asarray(100.0 * grown / active),
    }


def input_connections(state: TrainState) -> Array | None:
    """``(D,)`` float32, active connections of each input neuron; ``None`` without such masks."""
    columns = state.spec.num_columns
    leaves = jax.tree.leaves(state.masks, is_leaf=is_connections)
    masks = [leaf for leaf in leaves if len(leaf.shape) == 2]
    if not masks or masks[0].shape[0] != columns:
        return None
    if is_connections(masks[0]):
        return of_inputs(jnp.ones(masks[0].rows.shape), masks[0])
    return jnp.sum(masks[0], axis=1, dtype=jnp.float32)


def _count_connections(state: TrainState) -> TrainState:
    if isinstance(state.trace, tuple):
        return state
    counts = input_connections(state)
    if counts is None:
        return state
    is_counted = (jnp.asarray(CONNECTION_EPOCHS) == state.epoch)[:, None]
    return state.replace(trace=jnp.where(is_counted, counts, state.trace))


def train_epochs(
    method: Method, state: TrainState, arrays: Arrays[MemoryRows], num_epochs: Array
) -> tuple[TrainState, dict[str, Array]]:
    """Trains one seed for ``num_epochs`` epochs, from 0 to :data:`MAX_EPOCHS_PER_CALL`.

    The number is traced, so that calls of different lengths share one program.

    Returns:
      The new state, and arrays ``(MAX_EPOCHS_PER_CALL,)`` by name with one value per trained
      epoch, followed by zeros; fewer than ``num_epochs`` are trained if the seed is done.
    """
    # With jit the epoch is traced only once, for both the shapes and the loop.
    epoch = jax.jit(functools.partial(train_epoch, method), inline=True)
    shapes = jax.eval_shape(epoch, state, arrays)[1]
    history = {
        name: jnp.zeros((MAX_EPOCHS_PER_CALL, *shape.shape), shape.dtype)
        for name, shape in shapes.items()
    }

    def is_unfinished(carry: tuple) -> Array:
        i, state, _ = carry
        return (i < num_epochs) & ~state.done

    def body(carry: tuple) -> tuple:
        i, state, history = carry
        state, metrics = epoch(state, arrays)
        history = {name: values.at[i].set(metrics[name]) for name, values in history.items()}
        return i + 1, state, history

    _, state, history = jax.lax.while_loop(
        is_unfinished, body, (jnp.zeros((), jnp.int32), state, history)
    )
    return state, history
