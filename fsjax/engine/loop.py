"""The training loop of one seed: steps and epochs as loops on the device, pure functions only."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from fsjax import tasks
from fsjax.method import (
    CONNECTION_EPOCHS,
    Array,
    Batch,
    Method,
    PyTree,
    Snapshot,
    Spec,
    TrainState,
)

#: Rows that are evaluated at once.
EVALUATION_ROWS = 1024

#: Most epochs in one call of the compiled program.
MAX_EPOCHS_PER_CALL = 64


class Arrays(NamedTuple):
    """Scaled rows on the device.

    Attributes:
      x_train, y_train: ``(N, D)`` and ``(N,)`` or ``(N, C)``.
      weight: ``(N,)`` weights of the training rows.
      x_valid, y_valid: validation rows; may be empty.
      x_test, y_test: test rows, to be recorded after each epoch; empty where that is not wanted.
      weight_valid: ``(N,)`` weights of the validation rows; ``None`` where all count the same.
    """

    x_train: Array
    y_train: Array
    weight: Array
    x_valid: Array
    y_valid: Array
    x_test: Array
    y_test: Array
    weight_valid: Array | None = None


def targets(task: str, x: Array, y: Array) -> Array:
    """What the outputs are compared with: the inputs for reconstruction, else the labels."""
    return x if task == "reconstruction" else y


def optimizer_of(method: Method, spec: Spec) -> optax.GradientTransformation:
    """The method's optimiser for a run."""
    given = method.optimizer
    return given if isinstance(given, optax.GradientTransformation) else given(spec)


def train_step(
    method: Method, state: TrainState, batch: Batch, key: Array
) -> tuple[TrainState, Array]:
    """One optimiser step and the method's ``after_step``; returns the new state and the loss."""
    key_loss, key_after = jax.random.split(key)
    (loss, aux), grads = jax.value_and_grad(method.loss, has_aux=True)(
        state.params, state, batch, key_loss
    )
    updates, opt_state = optimizer_of(method, state.spec).update(
        grads, state.opt_state, state.params
    )
    state = state.replace(
        params=optax.apply_updates(state.params, updates),
        opt_state=opt_state,
        step=state.step + 1,
    )
    return method.after_step(state, grads, aux, batch, key_after), loss


def evaluate(
    method: Method, state: TrainState, x: Array, y: Array, weight: Array | None = None
) -> dict[str, Array]:
    """Means over the rows of ``tasks.row_metrics`` for the discrete selection.

    With ``best_by='auc'`` the area under the ROC curve of the second class is among them.

    Args:
      method: gives ``predict``.
      state: the state of one seed.
      x: ``(N, D)`` scaled rows, N at least 1.
      y: ``(N,)`` or ``(N, C)``.
      weight: ``(N,)`` weights of the rows; ``None`` where all count the same.

    Returns:
      Scalars by name, ``loss`` among them.
    """
    task = state.spec.task

    def rows(part: tuple[Array, Array]) -> dict[str, Array]:
        x_part, y_part = part
        outputs = method.predict(state, x_part)
        metrics = tasks.row_metrics(task, outputs, targets(task, x_part, y_part))
        if state.spec.best_by == "auc":
            metrics["auc"] = outputs[:, 1] - outputs[:, 0]
        return metrics

    chunks, rest = divmod(x.shape[0], EVALUATION_ROWS)
    found = []
    if chunks:
        whole = jax.tree.map(
            lambda leaf: leaf[: chunks * EVALUATION_ROWS].reshape(
                chunks, EVALUATION_ROWS, *leaf.shape[1:]
            ),
            (x, y),
        )
        found.append(jax.tree.map(jnp.ravel, jax.lax.map(rows, whole)))
    if rest:
        found.append(rows((x[-rest:], y[-rest:])))
    values = {name: jnp.concatenate([f[name] for f in found]) for name in found[0]}
    margins = values.pop("auc", None)
    mean = jnp.mean if weight is None else partial(tasks.weighted_mean, weight=weight)
    metrics = {name: mean(of_rows) for name, of_rows in values.items()}
    return metrics if margins is None else {**metrics, "auc": tasks.roc_auc(margins, y, weight)}


def batch_indices(state: TrainState, key: Array) -> tuple[Array, Array]:
    """Rows of every batch of the coming epoch.

    Returns:
      ``(steps, B)`` int32 row indices and ``(steps, B)`` float32, 0 where an index only fills up
      the last batch and 1 elsewhere.
    """
    spec = state.spec
    n, size = spec.num_samples * spec.repeats, spec.steps_per_epoch * spec.batch_size
    order = jax.random.permutation(key, n) if spec.shuffle else jnp.arange(n)
    slots = jnp.arange(size)
    shape = (spec.steps_per_epoch, spec.batch_size)
    real = (slots < n).astype(jnp.float32)
    return order[slots % n].reshape(shape) % spec.num_samples, real.reshape(shape)


def train_epoch(
    method: Method, state: TrainState, arrays: Arrays
) -> tuple[TrainState, dict[str, Array]]:
    """One epoch: all its steps, validation, the best snapshot and ``after_epoch``.

    Returns:
      The new state and scalars named ``split/metric``.
    """
    spec = state.spec
    key_order, key_steps, key_after = jax.random.split(
        jax.random.fold_in(state.key, state.epoch), 3
    )
    everything = Batch(
        arrays.x_train,
        targets(spec.task, arrays.x_train, arrays.y_train),
        arrays.weight,
    )
    state = _count_connections(method, _start(method, state, everything))
    masks_before = state.masks
    state, losses = _steps(method, state, arrays, everything, key_order, key_steps)

    metrics = {f"train/{name}": value for name, value in method.monitor(state).items()}
    metrics["train/loss"] = jnp.mean(losses)
    state = state.replace(epoch=state.epoch + 1)
    for name, x, y, weight in (
        ("valid", arrays.x_valid, arrays.y_valid, arrays.weight_valid),
        ("test", arrays.x_test, arrays.y_test, None),
    ):
        if x.shape[0]:
            found = evaluate(method, state, x, y, weight)
            metrics |= {f"{name}/{metric}": value for metric, value in found.items()}
    state = _keep_best(method.expand(state), metrics)
    state = method.after_epoch(state, everything, key_after)
    metrics |= _topology_metrics(masks_before, state.masks)
    return _count_connections(method, state), metrics


def _steps(
    method: Method,
    state: TrainState,
    arrays: Arrays,
    everything: Batch,
    key_order: Array,
    key_steps: Array,
) -> tuple[TrainState, Array]:
    """The optimiser steps of an epoch, in the method's cheaper form; their losses."""
    spec, state = state.spec, method.compress(state)
    if spec.batch_size == spec.num_samples and not spec.shuffle and spec.steps_per_epoch == 1:
        # The whole table is the batch: nothing to gather.
        return train_step(method, state, everything, jax.random.fold_in(key_steps, 0))
    indices, real = batch_indices(state, key_order)

    def step(carry: TrainState, batch_of: tuple[Array, Array, Array]) -> tuple[TrainState, Array]:
        number, rows, filled = batch_of
        x = arrays.x_train[rows]
        y = targets(spec.task, x, arrays.y_train[rows])
        batch = Batch(x, y, arrays.weight[rows] * filled)
        return train_step(method, carry, batch, jax.random.fold_in(key_steps, number))

    return jax.lax.scan(step, state, (jnp.arange(spec.steps_per_epoch), indices, real))


def _start(method: Method, state: TrainState, everything: Batch) -> TrainState:
    if method.start is None:
        return state
    # Epochs are numbered far below this, so no other key is like it.
    key = jax.random.fold_in(state.key, jnp.uint32(2**32 - 1))
    return jax.lax.cond(
        state.epoch == 0, lambda: method.start(state, everything, key), lambda: state
    )


def _keep_best(state: TrainState, metrics: dict[str, Array]) -> TrainState:
    if "valid/loss" not in metrics:
        # Without validation rows the newest is the best.
        better, value = jnp.ones((), bool), metrics["train/loss"]
    else:
        best_by = state.spec.best_by
        larger_is_better = best_by in ("accuracy", "auc")
        value = -metrics[f"valid/{best_by}"] if larger_is_better else metrics["valid/loss"]
        # A NaN never compares as smaller, so it counts as the worst.
        better = value < state.best.value
    kept = ((), (), ())
    if state.spec.best_by != "last":
        kept = (state.params, state.masks, state.extra)
    newest = Snapshot(*kept, value, state.epoch)
    best = jax.tree.map(lambda new, old: jnp.where(better, new, old), newest, state.best)
    return state.replace(best=best, value=value)


def _topology_metrics(before: PyTree, after: PyTree) -> dict[str, Array]:
    """Sparsity in [0, 1], and the percentage of the connections that are new in this epoch."""
    pairs = [
        (old, new)
        for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
        if new.ndim >= 2
    ]
    if not pairs:
        return {}
    active = sum(jnp.sum(new, dtype=jnp.float32) for _, new in pairs)
    grown = sum(jnp.sum(new & ~old, dtype=jnp.float32) for old, new in pairs)
    size = sum(new.size for _, new in pairs)
    return {"train/sparsity": 1.0 - active / size, "train/topology_change": 100.0 * grown / active}


def _count_connections(method: Method, state: TrainState) -> TrainState:
    if method.input_connections is None:
        return state
    now = (jnp.asarray(CONNECTION_EPOCHS) == state.epoch)[:, None]
    counts = method.input_connections(state).astype(jnp.float32)
    return state.replace(trace=jnp.where(now, counts, state.trace))


def train_epochs(
    method: Method, state: TrainState, arrays: Arrays, num_epochs: Array
) -> tuple[TrainState, dict[str, Array]]:
    """Several epochs of one seed.

    Args:
      method: the method.
      state: the seed's state.
      arrays: its data.
      num_epochs: scalar int32, 0 to :data:`MAX_EPOCHS_PER_CALL`; traced, so that calls of
        different lengths share one program.

    Returns:
      The new state and arrays ``(MAX_EPOCHS_PER_CALL,)`` by name, of which as many entries are
      filled as epochs were trained: ``num_epochs``, or fewer where the method finished.
    """
    shapes = jax.eval_shape(lambda: train_epoch(method, state, arrays)[1])
    history = {
        name: jnp.zeros((MAX_EPOCHS_PER_CALL, *shape.shape), shape.dtype)
        for name, shape in shapes.items()
    }

    def more(carry: tuple) -> Array:
        i, state, _ = carry
        wanted = i < num_epochs
        return wanted if method.finished is None else wanted & ~method.finished(state)

    def body(carry: tuple) -> tuple:
        i, state, history = carry
        state, metrics = train_epoch(method, state, arrays)
        history = {name: values.at[i].set(metrics[name]) for name, values in history.items()}
        return i + 1, state, history

    _, state, history = jax.lax.while_loop(more, body, (jnp.zeros((), jnp.int32), state, history))
    return state, history
