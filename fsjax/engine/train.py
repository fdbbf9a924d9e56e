"""The host's part of training: calls the compiled epochs, records, saves, stops on failure."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fsjax.engine.checkpoint import Checkpoints
from fsjax.engine.loop import MAX_EPOCHS_PER_CALL
from fsjax.engine.prepare import Prepared
from fsjax.engine.progress import check_finite, describe, likely_causes, progress_bar
from fsjax.engine.seeds import padded_seeds, place_seeds, take_seeds, train_seeds
from fsjax.method import CONNECTION_EPOCHS, Method, Spec, TrainState
from fsjax.metrics.cost import count_connections, training_flops

#: Seconds of work between two looks of the host: often enough for a progress bar.
SECONDS_PER_CALL = 1.0


class Trained(NamedTuple):
    """Outcome of :func:`train`.

    Attributes:
      states: stacked states ``(S, ...)`` after the last epoch.
      history: recorded values by ``split/metric`` name, ``(S, E)`` each; NaN in the epochs after
        the end of a seed that finished earlier than others.
      cost: see ``FitResult.cost``.
    """

    states: TrainState
    history: dict[str, np.ndarray]
    cost: dict[str, float]


def init_states(
    method: Method, spec: Spec, seeds: Sequence[int], feature_mask: np.ndarray
) -> TrainState:
    """Stacked initial states, ``(S, ...)``, one for each seed.

    Args:
      method: gives ``init``.
      spec: static facts of the run.
      seeds: the seeds.
      feature_mask: ``(S, D)`` bool.
    """

    return _init_states(method, spec, jnp.asarray(seeds, jnp.uint32), jnp.asarray(feature_mask))


@partial(jax.jit, static_argnames=("method", "spec"))
def _init_states(
    method: Method, spec: Spec, seeds: jax.Array, feature_mask: jax.Array
) -> TrainState:
    def one(pair: tuple[jax.Array, jax.Array]) -> TrainState:
        # Threefry by name: other generators do not give vmapped seeds their own streams.
        key = jax.random.key(pair[0], impl="threefry2x32")
        state = method.init(key, spec).replace(feature_mask=pair[1])
        if method.input_connections is not None:
            state = state.replace(trace=jnp.zeros((len(CONNECTION_EPOCHS), spec.num_features)))
        return state

    # One seed after another: the same bits whether a seed runs alone or with others.
    return jax.lax.map(one, (seeds, feature_mask))


def train(
    method: Method,
    spec: Spec,
    seeds: Sequence[int],
    prepared: Prepared,
    *,
    axis: str,
    progress: bool,
    checkpoints: Checkpoints | None,
    checkpoint_every: int,
    hyper: Mapping[str, Sequence[float]] | None = None,
    idle: Sequence[bool] | None = None,
) -> Trained:
    """Trains all seeds for ``spec.num_epochs`` epochs, from the newest checkpoint if there is one.

    Args:
      method: the method.
      spec: static facts of the run.
      seeds: the S seeds; may repeat, where ``hyper`` tells runs apart.
      prepared: their data.
      axis: ``vmap``, ``map`` or ``shard``.
      progress: whether to show a progress bar.
      checkpoints: where to save and restore; ``None`` does neither.
      checkpoint_every: epochs between checkpoints.
      hyper: values of traced hyperparameters, ``(S,)`` by name, in place of the method's own.
      idle: ``(S,)``, true for seeds that are not trained at all and only fill a row.

    Raises:
      NonFiniteLossError: if the training loss leaves the finite numbers.
      ConfigError: if the checkpoints are those of another run.
    """
    real = len(seeds)
    # A sharded axis repeats the last seed until every device has the same number.
    rows = np.minimum(np.arange(padded_seeds(axis, real)), real - 1)
    arrays = jax.tree.map(
        lambda leaf: jnp.asarray(leaf[rows] if prepared.own_arrays else leaf), prepared.arrays
    )

    def pad(states: TrainState) -> TrainState:
        return place_seeds(axis, states if len(rows) == real else take_seeds(states, rows))

    def unpad(states: TrainState) -> TrainState:
        return states if len(rows) == real else take_seeds(states, rows[:real])

    works = 1 - np.asarray(idle if idle is not None else np.zeros(real), np.int32)[rows]
    # The rows that only fill up the devices need not train either.
    works *= np.arange(len(rows)) < real

    def call(states: TrainState, epochs: int) -> tuple[TrainState, dict[str, jax.Array]]:
        return train_seeds(
            method, axis, prepared.own_arrays, states, arrays, jnp.asarray(epochs * works)
        )

    started = time.perf_counter()
    states = init_states(method, spec, seeds, prepared.feature_mask)
    values = {name: jnp.asarray(given, jnp.float32) for name, given in (hyper or {}).items()}
    states = pad(states.replace(hyper={**states.hyper, **values}))
    # No epochs: compiles, and gives the names of what is recorded.
    states, recorded = jax.block_until_ready(call(states, 0))
    compile_seconds = time.perf_counter() - started

    done, history = 0, {name: np.zeros((real, 0), np.float32) for name in sorted(recorded)}
    if checkpoints is not None:
        restored = checkpoints.restore(unpad(states), sorted(recorded))
        if restored is not None:
            done, states, history = restored
            states = pad(states)
    hints = likely_causes(prepared.arrays.x_train, _learning_rate(states))

    started, epochs, resumed_at = time.perf_counter(), 1, done
    with progress_bar(method.name, spec.num_epochs, done, progress) as bar:
        while done < spec.num_epochs:
            to_checkpoint = checkpoint_every - done % checkpoint_every
            epochs = min(epochs, spec.num_epochs - done, MAX_EPOCHS_PER_CALL)
            if checkpoints is not None:
                epochs = min(epochs, to_checkpoint)
            called = time.perf_counter()
            states, recorded = call(states, epochs)
            trained = np.asarray(states.epoch)[:real] - done
            # Fewer than asked for where the method finished.
            count = min(max(int(trained.max()), 0), epochs)
            new = {name: np.asarray(values)[:real, :count] for name, values in recorded.items()}
            ran = np.arange(count) < trained[:, None]
            check_finite(new, ran, done + 1, seeds, hints)
            history = {
                name: np.concatenate([history[name], np.where(ran, values, np.nan)], axis=1)
                for name, values in new.items()
            }
            done += count
            ended = done == spec.num_epochs or count < epochs
            bar.set_postfix_str(describe(spec.task, history), refresh=False)
            bar.update(count)
            if checkpoints is not None and count and (epochs == to_checkpoint or ended):
                checkpoints.save(done, unpad(states), history)
            if ended:
                break
            seconds = time.perf_counter() - called
            epochs = max(1, math.floor(SECONDS_PER_CALL * epochs / seconds))
    # Latent values and probabilities of masks are no connections.
    weights = getattr(states.params, "weights", states.params)
    connections = count_connections(*jax.tree.map(lambda x: x[0], (weights, states.masks)))
    cost = {
        "params": connections,
        "train_flops": training_flops(connections, spec.num_samples * spec.repeats, done),
        "train_seconds": time.perf_counter() - started,
        "trained_epochs": done - resumed_at,
        "compile_seconds": compile_seconds,
    }
    return Trained(unpad(states), history, cost)


def _learning_rate(states: TrainState) -> float | None:
    rates = getattr(states.opt_state, "hyperparams", {}).get("learning_rate")
    return None if rates is None else float(np.max(rates))
