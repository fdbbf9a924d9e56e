"""The training loop of one seed: steps and epochs as loops on the device, pure functions only."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from fsjax import tasks
from fsjax.method import Array, Batch, Method, Snapshot, TrainState

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
    """

    x_train: Array
    y_train: Array
    weight: Array
    x_valid: Array
    y_valid: Array


def targets(task: str, x: Array, y: Array) -> Array:
    """What the outputs are compared with: the inputs for reconstruction, else the labels."""
    return x if task == "reconstruction" else y


def train_step(
    method: Method, state: TrainState, batch: Batch, key: Array
) -> tuple[TrainState, Array]:
    """One optimiser step and the method's ``after_step``; returns the new state and the loss."""
    key_loss, key_after = jax.random.split(key)
    (loss, aux), grads = jax.value_and_grad(method.loss, has_aux=True)(
        state.params, state, batch, key_loss
    )
    updates, opt_state = method.optimizer.update(grads, state.opt_state, state.params)
    state = state.replace(
        params=optax.apply_updates(state.params, updates),
        opt_state=opt_state,
        step=state.step + 1,
    )
    return method.after_step(state, grads, aux, batch, key_after), loss


def evaluate(method: Method, state: TrainState, x: Array, y: Array) -> dict[str, Array]:
    """Means over the rows of ``tasks.row_metrics`` for the discrete selection.

    Args:
      method: gives ``predict``.
      state: the state of one seed.
      x: ``(N, D)`` scaled rows, N at least 1.
      y: ``(N,)`` or ``(N, C)``.

    Returns:
      Scalars by name, ``loss`` among them.
    """
    task = state.spec.task

    def row(pair: tuple[Array, Array]) -> dict[str, Array]:
        x_row, y_row = pair
        outputs = method.predict(state, x_row[None])
        metrics = tasks.row_metrics(task, outputs, targets(task, x_row, y_row)[None])
        return {name: values[0] for name, values in metrics.items()}

    return jax.tree.map(jnp.mean, jax.lax.map(row, (x, y), batch_size=EVALUATION_ROWS))


def batch_indices(state: TrainState, key: Array) -> tuple[Array, Array]:
    """Rows of every batch of the coming epoch.

    Returns:
      ``(steps, B)`` int32 row indices and ``(steps, B)`` float32, 0 where an index only fills up
      the last batch and 1 elsewhere.
    """
    spec = state.spec
    n, size = spec.num_samples, spec.steps_per_epoch * spec.batch_size
    order = jax.random.permutation(key, n) if spec.shuffle else jnp.arange(n)
    slots = jnp.arange(size)
    shape = (spec.steps_per_epoch, spec.batch_size)
    real = (slots < n).astype(jnp.float32)
    return order[slots % n].reshape(shape), real.reshape(shape)


def train_epoch(
    method: Method, state: TrainState, arrays: Arrays
) -> tuple[TrainState, dict[str, Array]]:
    """One epoch: all its steps, ``after_epoch``, validation and the best snapshot.

    Returns:
      The new state and scalars named ``split/metric``.
    """
    spec = state.spec
    key_order, key_steps, key_after = jax.random.split(
        jax.random.fold_in(state.key, state.epoch), 3
    )
    indices, real = batch_indices(state, key_order)

    def step(carry: TrainState, batch_of: tuple[Array, Array, Array]) -> tuple[TrainState, Array]:
        number, rows, filled = batch_of
        x = arrays.x_train[rows]
        y = targets(spec.task, x, arrays.y_train[rows])
        batch = Batch(x, y, arrays.weight[rows] * filled)
        return train_step(method, carry, batch, jax.random.fold_in(key_steps, number))

    numbers = jnp.arange(spec.steps_per_epoch)
    state, losses = jax.lax.scan(step, state, (numbers, indices, real))

    everything = Batch(
        arrays.x_train,
        targets(spec.task, arrays.x_train, arrays.y_train),
        arrays.weight,
    )
    metrics = {f"train/{name}": value for name, value in method.monitor(state).items()}
    metrics["train/loss"] = jnp.mean(losses)
    state = method.after_epoch(state.replace(epoch=state.epoch + 1), everything, key_after)

    if arrays.x_valid.shape[0]:
        validation = evaluate(method, state, arrays.x_valid, arrays.y_valid)
        metrics |= {f"valid/{name}": value for name, value in validation.items()}
        # A NaN never compares as smaller, so it counts as the worst.
        better, loss = validation["loss"] < state.best.loss, validation["loss"]
    else:
        better, loss = jnp.ones((), bool), metrics["train/loss"]
    newest = Snapshot(state.params, state.masks, state.extra, loss, state.epoch)
    best = jax.tree.map(lambda new, old: jnp.where(better, new, old), newest, state.best)
    return state.replace(best=best), metrics


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
      The new state and arrays ``(MAX_EPOCHS_PER_CALL,)`` by name, of which the first
      ``num_epochs`` entries are filled.
    """
    shapes = jax.eval_shape(lambda: train_epoch(method, state, arrays)[1])
    history = {
        name: jnp.zeros((MAX_EPOCHS_PER_CALL, *shape.shape), shape.dtype)
        for name, shape in shapes.items()
    }

    def body(i: Array, carry: tuple) -> tuple:
        state, history = carry
        state, metrics = train_epoch(method, state, arrays)
        history = {name: values.at[i].set(metrics[name]) for name, values in history.items()}
        return state, history

    return jax.lax.fori_loop(0, num_epochs, body, (state, history))
