"""The host's part of training: calls the compiled epochs, records, saves, stops on failure."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from fsjax.engine.checkpoint import Checkpoints
from fsjax.engine.loop import MAX_EPOCHS_PER_CALL, Arrays
from fsjax.engine.programs import Program, program
from fsjax.engine.progress import check_finite, describe, likely_causes, progress_bar
from fsjax.engine.seeds import init_seeds, padded_seeds, place_seeds, take_rows, train_seeds
from fsjax.method import About, Spec, TrainState
from fsjax.metrics.cost import count_connections, training_flops
from fsjax.registry import Fixed, Structure

#: Seconds of work between two looks of the host: often enough for a progress bar.
SECONDS_PER_CALL = 1.0


class Job(NamedTuple):
    """One training of S rows, each a seed with its own hyperparameters.

    Attributes:
      structure: of the method.
      about: facts about the method.
      trains: whether there is anything to train: filters do not.
      spec: static facts of the run.
      axis: ``vmap``, ``map`` or ``shard``.
      seeds: the S seeds; may repeat, where ``hyper`` tells rows apart.
      hyper: values of the traced arguments, ``(S,)`` by name.
      feature_mask: ``(S, D)`` bool.
      arrays: scaled rows, shared or with a leading axis.
      own_arrays: which of the two.
      num_rows: training rows that do not fill up, times the visits of an epoch.
      idle: ``(S,)`` bool, rows that are not trained at all and only fill up.
      progress: whether to show a progress bar.
      checkpoints: where to save and restore; ``None`` does neither.
      checkpoint_every: epochs between checkpoints.
    """

    structure: Structure | Fixed
    about: About
    trains: bool
    spec: Spec
    axis: str
    seeds: Sequence[int]
    hyper: Mapping[str, np.ndarray]
    feature_mask: np.ndarray
    arrays: Arrays
    own_arrays: bool
    num_rows: int
    idle: np.ndarray
    progress: bool = False
    checkpoints: Checkpoints | None = None
    checkpoint_every: int = 20


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


def initial_states(job: Job) -> TrainState:
    """Stacked states before the first step, ``(S, ...)``."""
    seeds = np.asarray(job.seeds, np.uint32)
    args = (seeds, dict(job.hyper), job.feature_mask, job.arrays)
    static = (job.structure, job.spec, job.own_arrays)
    return program(init_seeds, static, args, once=True).call(*args)


def train(job: Job) -> Trained:
    """Trains all rows for ``spec.num_epochs`` epochs, from the newest checkpoint if there is one.

    Raises:
      NonFiniteLossError: if the training loss leaves the finite numbers.
      ConfigError: if the checkpoints are those of another run.
    """
    started = time.perf_counter()
    states = initial_states(job)
    if not job.trains:
        cost = _cost(job, states, 0) | {"compile_seconds": time.perf_counter() - started}
        return Trained(states, {}, cost | {"train_seconds": 0.0, "trained_epochs": 0})
    training = _Training(job, states)
    compile_seconds = time.perf_counter() - started
    started, resumed_at = time.perf_counter(), training.done
    with progress_bar(job.about.name, job.spec.num_epochs, training.done, job.progress) as bar:
        while not training.ended:
            count = training.advance()
            bar.set_postfix_str(describe(job.spec.task, training.history), refresh=False)
            bar.update(count)
    states = training.unpadded()
    cost = _cost(job, states, training.done) | {
        "compile_seconds": compile_seconds,
        "train_seconds": time.perf_counter() - started,
        "trained_epochs": training.done - resumed_at,
    }
    return Trained(states, training.history, cost)


class _Training:
    """Calls of one compiled program until all epochs are done."""

    def __init__(self, job: Job, states: TrainState) -> None:
        self.job, self.real = job, len(job.seeds)
        # A sharded axis repeats the last row until every device has the same number.
        self.rows = np.minimum(np.arange(padded_seeds(job.axis, self.real)), self.real - 1)
        arrays = take_rows(job.arrays, self.rows) if job.own_arrays else job.arrays
        self.arrays = jax.device_put(arrays)
        works = ~np.asarray(job.idle)[self.rows]
        # The rows that only fill up the devices need not train either.
        self.works = (works & (np.arange(len(self.rows)) < self.real)).astype(np.int32)
        self.states = self.padded(states)
        self.program = self._program()
        names = sorted(self.program.out[1])
        self.done, self.history = 0, {name: np.zeros((self.real, 0), np.float32) for name in names}
        if job.checkpoints is not None:
            restored = job.checkpoints.restore(self.unpadded(), names)
            if restored is not None:
                self.done, states, self.history = restored
                self.states = self.padded(states)
        self.ended = self.done >= job.spec.num_epochs
        rates = job.hyper.get("learning_rate", [0.0])
        self.hints = likely_causes(job.arrays.train.x, float(np.max(rates)))
        self.epochs = 1

    def _program(self) -> Program:
        static = (self.job.structure, self.job.axis, self.job.own_arrays)
        args = (self.states, self.arrays, self.works)
        return program(train_seeds, static, args, donate=(0,))

    def padded(self, states: TrainState) -> TrainState:
        """The states on the devices."""
        if len(self.rows) > self.real:
            states = take_rows(states, self.rows)
        return place_seeds(self.job.axis, states)

    def unpadded(self) -> TrainState:
        """The states of the S rows."""
        if len(self.rows) == self.real:
            return self.states
        return take_rows(self.states, np.arange(self.real))

    def advance(self) -> int:
        """Some more epochs, of which it returns the number."""
        job, called = self.job, time.perf_counter()
        to_checkpoint = job.checkpoint_every - self.done % job.checkpoint_every
        epochs = min(self.epochs, job.spec.num_epochs - self.done, MAX_EPOCHS_PER_CALL)
        if job.checkpoints is not None:
            epochs = min(epochs, to_checkpoint)
        states, recorded = self.program.call(self.states, self.arrays, epochs * self.works)
        # As they came in: arrays without entries lose their layout on the way.
        self.states = place_seeds(job.axis, states)
        trained = np.asarray(self.states.epoch)[: self.real] - self.done
        # Fewer than asked for where the seeds are done.
        count = min(max(int(trained.max()), 0), epochs)
        self._record(recorded, trained, count)
        self.done += count
        self.ended = self.done == job.spec.num_epochs or count < epochs
        if job.checkpoints is not None and count and (epochs == to_checkpoint or self.ended):
            job.checkpoints.save(self.done, self.unpadded(), self.history)
        seconds = time.perf_counter() - called
        self.epochs = max(1, math.floor(SECONDS_PER_CALL * epochs / seconds))
        return count

    def _record(self, recorded: Mapping[str, Any], trained: np.ndarray, count: int) -> None:
        new = {name: np.asarray(values)[: self.real, :count] for name, values in recorded.items()}
        ran = np.arange(count) < trained[:, None]
        check_finite(new, ran, self.done + 1, self.job.seeds, self.hints)
        self.history = {
            name: np.concatenate([self.history[name], np.where(ran, values, np.nan)], axis=1)
            for name, values in new.items()
        }


def _cost(job: Job, states: TrainState, epochs: int) -> dict[str, float]:
    first = jax.tree.map(lambda leaf: np.asarray(leaf[0]), (states.params, states.masks))
    weights = first[0] if job.about.weights is None else job.about.weights(first[0])
    # Masks tell, whatever the form of the weights that they are over.
    connections = count_connections(*((weights,) if first[1] == () else (first[1], first[1])))
    flops = training_flops(connections, job.num_rows, epochs, job.about.flops)
    return {"params": connections, "train_flops": flops}
