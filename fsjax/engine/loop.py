"""The training loop of one seed, as pure functions: steps and epochs are loops on the device."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.engine.epoch_metrics import (
    CONNECTION_EPOCHS,
    input_connections,
    metrics_of_rows,
    record_connections,
    topology_metrics,
)
from fsjax.engine.kernels.random import generator
from fsjax.engine.mesh import split_rows
from fsjax.engine.rows import Arrays, MemoryRows, as_batch, batch_at, batch_indices, whole_table
from fsjax.method import Batch, Method, PyTree, Snapshot, Spec, TrainingRows, TrainState, for_run
from fsjax.registry import MethodStructure

#: The largest number of epochs in one call of the compiled program.
MAX_EPOCHS_PER_CALL = 64

#: The parts of the rows on which each epoch is evaluated, in this order.
EVALUATED = ("valid", "test")


def key_of(words: Array) -> Array:
    """The PRNG key of a seed from the words in ``TrainState.key``."""
    return jax.random.wrap_key_data(words, impl=generator())


def keeps_snapshot(method: Method, spec: Spec) -> bool:
    """Whether an epoch other than the last may be kept."""
    return callable(method.keep) or spec.best_by != "last"


def init_state(
    method: Method, spec: Spec, seed: Array, data: TrainingRows, mask: Array
) -> TrainState:
    """The state of one seed before its first step.

    Args:
      mask: ``(D,)`` bool, columns that may be selected, or ``(G,)`` groups.
    """
    key_train, key_init = jax.random.split(jax.random.key(seed, impl=generator()))
    state = method.init(key_init, spec, data).replace(feature_mask=mask)
    state = state.replace(key=jax.random.key_data(key_train))
    if method.loss is not None:
        tx = for_run(method.optimizer, spec)
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
    tx = for_run(method.optimizer, state.spec)
    updates, opt_state = tx.update(grads, state.opt_state, state.params)
    state = state.replace(
        params=optax.apply_updates(state.params, updates),
        opt_state=opt_state,
        step=state.step + 1,
    )
    recorded = {"loss": loss} | {name: aux[name] for name in method.record}
    return method.after_step(state, grads, aux, batch, key_after), recorded


def numbered_step(
    method: Method, key: Array, batch_of: Callable[..., Batch[Array]]
) -> Callable[[TrainState, tuple[Array, ...]], tuple[TrainState, dict[str, Array]]]:
    """:func:`train_step` for ``jax.lax.scan``: ``(state, (number, *entries)) -> (state, values)``.

    Steps of an epoch are numbered from 0 and share its key; ``batch_of(*entries)`` is the batch.
    """

    def step(state: TrainState, inputs: tuple[Array, ...]) -> tuple[TrainState, dict[str, Array]]:
        number, *entries = inputs
        return train_step(method, state, batch_of(*entries), jax.random.fold_in(key, number))

    return step


def train_epoch(
    method: Method, state: TrainState, arrays: Arrays[MemoryRows]
) -> tuple[TrainState, dict[str, Array]]:
    """One epoch: all its steps, validation, the best snapshot and ``after_epoch``.

    Returns:
      The new state and scalars named ``split/metric``.
    """
    spec, masks_before = state.spec, state.masks
    everything = as_batch(spec.task, arrays.train)
    key_order, key_steps, key_after = epoch_keys(state.key, state.epoch)
    if whole_table(spec):
        # The batch is the whole table: nothing is gathered, and the order does not matter.
        batch = split_rows(everything.take(slice(None)))
        state, recorded = train_step(method, state, batch, jax.random.fold_in(key_steps, 0))
    else:
        num_real = jnp.sum(everything.weight > 0, dtype=jnp.int32)
        slots = batch_indices(spec, key_order, num_real)

        def batch_of(rows: Array, real: Array) -> Batch[Array]:
            return split_rows(batch_at(method.about, spec, everything, rows, real))

        numbers = jnp.arange(spec.steps_per_epoch)
        step = numbered_step(method, key_steps, batch_of)
        state, recorded = jax.lax.scan(step, state, (numbers, *slots))
    state, metrics = end_steps(method, state, recorded)
    for name in EVALUATED:
        rows = getattr(arrays, name)
        if rows.x.shape[0]:
            of_split = metrics_of_rows(method, state, rows)
            metrics |= {f"{name}/{metric}": value for metric, value in of_split.items()}
    return end_epoch(method, state, everything, metrics, masks_before, key_after)


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
    metrics |= topology_metrics(masks_before, state.masks)
    return record_connections(state), metrics


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


def train_epochs(
    structure: MethodStructure,
    arrays: Arrays[MemoryRows],
    state_and_epochs: tuple[TrainState, Array],
) -> tuple[TrainState, dict[str, Array]]:
    """Trains one seed from a state for some epochs, from 0 to :data:`MAX_EPOCHS_PER_CALL`.

    Their number is traced, so that calls of different lengths share one program.

    Returns:
      The new state, and arrays ``(MAX_EPOCHS_PER_CALL,)`` by name with one value per trained
      epoch, followed by zeros; fewer epochs are trained if the seed is done.
    """
    state, num_epochs = state_and_epochs
    # With jit the epoch is traced only once, for both the shapes and the loop.
    epoch = jax.jit(functools.partial(train_epoch, structure.bind(state.hyper)), inline=True)
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
