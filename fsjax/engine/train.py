"""The part of training on the host: runs the compiled epochs, records, saves, checks losses."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from fsjax.engine import loop, mesh, seeds
from fsjax.engine.control import Progress
from fsjax.engine.distributed.exchange import agreed, is_lead
from fsjax.engine.environment.jax_settings import own_settings
from fsjax.engine.programs import ONCE, output_structure, program, run, training_work
from fsjax.engine.rows import Arrays, has_own_rows
from fsjax.engine.run import Run
from fsjax.engine.scores import check_first_scores
from fsjax.engine.streamed import StreamedEpochs, StreamedPart
from fsjax.errors import ConfigError, NonFiniteLossError
from fsjax.method import PyTree, TrainState
from fsjax.sparsity.connections import indexed_like, without_index
from fsjax.sparsity.summary import count_connections, training_flops
from fsjax.storage.checkpoints import Checkpoints
from fsjax.tables.scaled import leaves_of
from fsjax.tasks import TABLE

#: Seconds of work per call of the compiled epochs: short enough for a progress bar.
SECONDS_PER_CALL = 1.0


class Trained(NamedTuple):
    """The outcome of :func:`train`.

    Attributes:
      states: stacked states ``(S, ...)`` after the last epoch.
      history: recorded values by ``split/metric`` name, ``(S, E)`` each; NaN after the last epoch
        of a seed that finished before the others.
      cost: see ``FitResult.cost``.
    """

    states: TrainState
    history: dict[str, np.ndarray]
    cost: dict[str, float]


@own_settings
def train(
    plan: Run,
    rows: np.ndarray,
    hyper: Mapping[str, np.ndarray],
    idle: np.ndarray,
    checkpoints: Checkpoints | None,
) -> Trained:
    """Trains R runs for ``spec.num_epochs`` epochs, from the newest checkpoint if there is one.

    Args:
      plan: the plan.
      rows: ``(R,)`` places of seeds in ``plan.seeds``; they may repeat with other ``hyper``.
      hyper: values of the traced arguments, ``(R,)`` by name.
      idle: ``(R,)`` bool, padding that is not trained.
      checkpoints: where to save and restore; ``None`` does neither.

    Raises:
      NonFiniteLossError: if the training loss becomes NaN or infinite, or if no epoch of a seed
        has a finite validation loss.
      ConfigError: if the checkpoints belong to another run, or the first scores are not finite.
    """
    started = time.perf_counter()
    states = _first_states(plan, rows, hyper)
    check_first_scores(plan, states, rows)
    if plan.method.loss is None:
        cost = _cost(plan, states, 0) | {"compile_seconds": time.perf_counter() - started}
        return Trained(states, {}, cost | {"train_seconds": 0.0, "trained_epochs": 0})
    training = _Training(plan, rows, idle, checkpoints, states)
    compile_seconds = time.perf_counter() - started
    started, resumed_at = time.perf_counter(), training.done
    with tqdm(
        total=plan.spec.num_epochs,
        initial=training.done,
        desc=plan.method.name,
        unit="epoch",
        disable=not (plan.progress and is_lead()),
    ) as bar:
        while not training.ended and not plan.control.stopped:
            count = training.advance()
            bar.set_postfix_str(training.newest(), refresh=False)
            bar.update(count)
    training.check_validation()
    states = training.unpadded()
    _warn_of_unjudged(plan, states)
    cost = _cost(plan, states, training.done) | {
        "compile_seconds": compile_seconds,
        "train_seconds": time.perf_counter() - started,
        "trained_epochs": training.done - resumed_at,
    }
    if training.streamed is not None:
        cost["wait_seconds"] = training.streamed.waited
        # Programs for rows on disk are compiled during training, when their first rows arrive.
        cost["compile_seconds"] += training.streamed.compiled
        cost["train_seconds"] -= training.streamed.compiled
    return Trained(states, training.history, cost)


def _first_states(plan: Run, rows: np.ndarray, hyper: Mapping[str, np.ndarray]) -> TrainState:
    """Stacked states ``(R, ...)`` before the first step; arguments as for :func:`train`."""
    numbers = np.asarray(plan.seeds, np.uint32)[rows]
    args = (numbers, hyper, plan.usable[rows], plan.arrays_of(rows))
    states = run(seeds.init_seeds, (plan.structure, plan.spec), args, work=ONCE)
    return states if plan.start is None else _continued(states, plan.start, rows)


class _Training:
    """A training in progress: calls one compiled program until all epochs are done."""

    def __init__(
        self,
        plan: Run,
        rows: np.ndarray,
        idle: np.ndarray,
        checkpoints: Checkpoints | None,
        states: TrainState,
    ) -> None:
        self.plan, self.checkpoints, self.real = plan, checkpoints, len(rows)
        self.seeds = [plan.seeds[row] for row in rows]
        # A sharded axis repeats the last row until every device has the same number.
        self.layout = (plan.axis, plan.batch_devices)
        places = mesh.padded_runs(plan.axis, self.real, plan.batch_devices)
        self.rows = np.minimum(np.arange(places), self.real - 1)
        arrays = plan.arrays_of(rows[self.rows])
        self.arrays = self._placed(arrays, shared=not has_own_rows(arrays))
        # Rows that only pad the devices are not trained either.
        is_trained = ~idle[self.rows] & (np.arange(len(self.rows)) < self.real)
        self.is_trained = is_trained.astype(np.int32)
        self.states = self.padded(states)
        args = (self.states, self.arrays, self._placed(self.is_trained))
        searches = bool(plan.sizes) and plan.method.search is not None
        work = training_work(states.params, states.masks, plan.spec, searches)
        static = (plan.structure, *self.layout)
        self.streamed: StreamedEpochs | None = None
        self.program: Callable[..., tuple[TrainState, Mapping[str, Any], Any]]
        if plan.dataset.table.on_disk:
            on_disk = cast("Arrays[StreamedPart]", plan.prepared.arrays)
            self.streamed = StreamedEpochs(plan.structure, plan.spec, on_disk, self.states, work)
            self.program, names = self.streamed, self.streamed.names
        else:
            compiled = program(seeds.train_seeds, static, args, donate=(0,), work=work)
            self.program, names = compiled, sorted(output_structure(compiled)[1])
        self.done, self.history = 0, {name: np.zeros((self.real, 0), np.float32) for name in names}
        if checkpoints is not None:
            restored = checkpoints.restore(states, names)
            if restored is not None:
                self.done, states, self.history = restored
                self.states = self.padded(states)
        self.ended = self.done >= plan.spec.num_epochs
        self.epochs = 1

    def padded(self, states: TrainState) -> TrainState:
        """The states on the devices, padded to the same number per device."""
        if len(self.rows) > self.real:
            states = seeds.take_rows(states, self.rows)
        return self._placed(states)

    def unpadded(self) -> TrainState:
        """The states of the R runs without padding, in every process."""
        states = mesh.gathered(self.states, self.plan.batch_devices)
        if len(self.rows) == self.real:
            return states
        return seeds.take_rows(states, np.arange(self.real))

    def _placed(self, tree: PyTree, *, shared: bool = False) -> PyTree:
        """:func:`fsjax.engine.mesh.place_runs` with the layout of this training."""
        axis, batch_devices = self.layout
        return mesh.place_runs(axis, tree, batch_devices, shared=shared)

    def _save(self, checkpoints: Checkpoints) -> None:
        checkpoints.save(self.done, self.unpadded(), self.history)

    def advance(self) -> int:
        """Trains some more epochs and returns their number."""
        plan, called = self.plan, time.perf_counter()
        to_checkpoint = plan.checkpoint_every - self.done % plan.checkpoint_every
        epochs = min(self.epochs, plan.spec.num_epochs - self.done, loop.MAX_EPOCHS_PER_CALL)
        if plan.control.callback is not None:
            epochs = 1
        if self.checkpoints is not None:
            epochs = min(epochs, to_checkpoint)
        requested = self._placed(epochs * self.is_trained)
        states, recorded, reached = self.program(self.states, self.arrays, requested)
        # Placed again, because empty arrays lose their layout in the program.
        self.states = self._placed(states)
        trained = np.asarray(reached)[: self.real] - self.done
        # Fewer than requested if all seeds are done.
        count = min(max(int(trained.max()), 0), epochs)
        self._record(recorded, trained, count)
        self.done += count
        self.ended = self.done == plan.spec.num_epochs or count < epochs
        if self.checkpoints is not None and count and (epochs == to_checkpoint or self.ended):
            self._save(self.checkpoints)
        seconds = time.perf_counter() - called
        room = min(SECONDS_PER_CALL, max(plan.control.left, 0.0))
        self.epochs = agreed("epochs", max(1, math.floor(room * epochs / seconds)))
        newest = {name: values[:, -1] for name, values in self.history.items()} if count else {}
        progress = Progress(
            plan.method.name,
            tuple(self.seeds),
            self.done,
            plan.spec.num_epochs,
            newest,
            plan.control.seconds,
        )
        if plan.control.ends([progress] if count else []) and not self.ended:
            if self.checkpoints is not None and epochs != to_checkpoint:
                self._save(self.checkpoints)
            self.ended = True
        return count

    def _record(self, recorded: Mapping[str, Any], trained: np.ndarray, count: int) -> None:
        new = {name: np.asarray(values)[: self.real, :count] for name, values in recorded.items()}
        was_trained = np.arange(count) < trained[:, None]
        self._check_finite(new["train/loss"], was_trained)
        self.history = {
            name: np.concatenate(
                [self.history[name], np.where(was_trained, values, np.nan)], axis=1
            )
            for name, values in new.items()
        }

    def _check_finite(self, losses: np.ndarray, was_trained: np.ndarray) -> None:
        """Raises NonFiniteLossError for the first non-finite loss ``(S, E)`` of a trained epoch."""
        bad = was_trained & ~np.isfinite(losses)
        if not bad.any():
            return
        epoch = int(np.argmax(bad.any(axis=0)))
        row = int(np.argmax(bad[:, epoch]))
        rows = self.plan.prepared.arrays.train.x
        largest = max(
            float(np.abs(leaf).max(initial=0.0))
            for leaf in leaves_of(rows)
            if np.issubdtype(leaf.dtype, np.floating)
        )
        hyper = mesh.gathered(self.states.hyper, self.plan.batch_devices)
        rate = float(np.max(hyper.get("learning_rate", 0.0)))
        causes = []
        if largest > 1e3:
            causes.append(
                f"the scaled inputs reach {largest:.3g}; use scaling='standard' or 'minmax'"
            )
        if rate > 1e-2:
            causes.append(f"the learning rate {rate:.3g} is high; try a tenth of it")
        causes.append("a step that was too large; lower the learning rate or raise the batch size")
        raise NonFiniteLossError(
            f"the training loss became {losses[row, epoch]} in epoch {self.done + 1 + epoch} with "
            f"seed {self.seeds[row]}. Likely cause: {'; or '.join(causes)}."
        )

    def check_validation(self) -> None:
        """Raises NonFiniteLossError for a seed without any finite validation loss."""
        if "valid/loss" not in self.history:
            return
        # Epochs that a seed did not train are NaN too, so "trained" is read from the training loss.
        trained, judged = (
            np.isfinite(self.history[f"{part}/loss"]).any(axis=1) for part in ("train", "valid")
        )
        failing = np.flatnonzero(trained & ~judged)
        if failing.size:
            raise NonFiniteLossError(
                f"the validation loss of seed {self.seeds[failing[0]]} was not finite in any "
                "epoch, so no epoch can be kept, but its training loss was finite; look for values "
                "in the validation rows that are far outside the range of the training rows, or "
                "choose the scaling 'minmax'"
            )

    def newest(self) -> str:
        """The newest validation metric or training loss, averaged over seeds, for the bar."""
        for key in (f"valid/{TABLE[self.plan.spec.task].main_metric}", "train/loss"):
            if key in self.history and self.history[key].shape[1]:
                values = self.history[key][:, -1]
                if np.isfinite(values).any():
                    return f"{key} {np.nanmean(values):.4g}"
        return ""


def _warn_of_unjudged(plan: Run, states: TrainState) -> None:
    """Warns if the method's own ``keep`` had no finite value for any epoch of a seed."""
    unjudged = np.isinf(np.asarray(states.best.value)) & (np.asarray(states.epoch) > 0)
    if callable(plan.method.keep) and unjudged.any():
        warnings.warn(
            f"keep of {plan.method.name} had no finite value for {int(unjudged.sum())} of "
            f"{unjudged.size} seeds in the {int(np.max(states.epoch))} epochs that were trained; "
            "the last epoch of these seeds is kept",
            stacklevel=6,
        )


def _continued(states: TrainState, start: TrainState, rows: np.ndarray) -> TrainState:
    """The first states with the parameters, masks and extras of an earlier result."""
    kept, fresh = (
        {"params": of.params, "masks": without_index(of.masks), "extra": of.extra}
        for of in (start, states)
    )
    shapes = {name: jax.tree.map(lambda x: x.shape[1:], fresh[name]) for name in kept}
    if any(jax.tree.map(lambda x: np.shape(x)[1:], kept[name]) != shapes[name] for name in kept):
        raise ConfigError(
            "the result to start from has parameters of other shapes; choose one with the same "
            "columns, outputs and architecture"
        )
    parts = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[rows]), kept)
    return states.replace(**parts | {"masks": indexed_like(parts["masks"], states.masks)})


def _cost(plan: Run, states: TrainState, epochs: int) -> dict[str, float]:
    params, masks = jax.tree.map(lambda leaf: np.asarray(leaf)[0], (states.params, states.masks))
    about, num_rows = plan.method.about, plan.prepared.num_rows * plan.spec.repeats
    weights = params if about.weights is None else about.weights(params)
    # Masks count the connections whether the weights are dense or a list of connections.
    connections = count_connections(weights) if masks == () else count_connections(masks, masks)
    flops = training_flops(connections, num_rows, epochs, about.flops)
    return {"params": connections, "train_flops": flops}
