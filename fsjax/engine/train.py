"""Training: initialise, then chunks of epochs on the device; each is recorded, saved, reported."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from fsjax.engine import loop, mesh
from fsjax.engine.choose import check_first_scores
from fsjax.engine.control import Progress
from fsjax.engine.distributed.exchange import agreed, is_lead
from fsjax.engine.environment.jax_settings import own_settings
from fsjax.engine.program_files import output_structure
from fsjax.engine.programs import training_work
from fsjax.engine.rows import Arrays, has_own_rows, take_rows
from fsjax.engine.run import History, Run, Trained
from fsjax.engine.seeds import init_seeds, train_seeds
from fsjax.engine.streamed import StreamedEpochs, StreamedPart
from fsjax.engine.training_checks import check_finite_losses, check_validation, warn_of_unjudged
from fsjax.errors import ConfigError
from fsjax.method import PyTree, Search, TrainState
from fsjax.sparsity.connections import indexed_like, without_index
from fsjax.sparsity.summary import count_connections, training_flops
from fsjax.storage.checkpoints import Checkpoints
from fsjax.tasks import TABLE

#: Seconds of work per call of the compiled epochs: short enough for a progress bar.
SECONDS_PER_CALL = 1.0


@own_settings()
def train(
    run: Run,
    rows: np.ndarray,
    hyper: Mapping[str, np.ndarray],
    idle: np.ndarray,
    checkpoints: Checkpoints | None,
) -> Trained:
    """Trains R runs for ``spec.num_epochs`` epochs, from the newest checkpoint if there is one.

    Args:
      run: what is trained.
      rows: ``(R,)`` places of seeds in ``run.seeds``; they may repeat with other ``hyper``.
      hyper: values of the traced arguments, ``(R,)`` by name.
      idle: ``(R,)`` bool, padding that is not trained.
      checkpoints: where to save and restore; ``None`` does neither.

    Raises:
      NonFiniteLossError: if the training loss becomes NaN or infinite, or if no epoch of a seed
        has a finite validation loss to be kept by.
      ConfigError: if the checkpoints belong to another run, or the first scores are not finite.
    """
    started = time.perf_counter()
    states = _first_states(run, rows, hyper)
    check_first_scores(run, states, rows)
    if run.method.loss is None:
        cost = _cost(run, states, 0) | {"compile_seconds": time.perf_counter() - started}
        return Trained(states, {}, cost | {"train_seconds": 0.0, "trained_epochs": 0})
    seeds = tuple(run.seeds[row] for row in rows)
    layout = mesh.Placement(run.axis, run.batch_devices, len(rows))
    states = layout.padded(states)
    epochs = _compiled_epochs(run, rows, idle, layout, states)
    done, history = 0, {name: np.zeros((len(rows), 0), np.float32) for name in epochs.names}
    if checkpoints is not None:
        restored = checkpoints.restore(layout.unpadded(states), epochs.names)
        if restored is not None:
            done, history, states = restored[0], restored[2], layout.padded(restored[1])
    compile_seconds = time.perf_counter() - started
    started, resumed_at = time.perf_counter(), done
    with tqdm(
        total=run.spec.num_epochs,
        initial=done,
        desc=run.method.name,
        unit="epoch",
        disable=not (run.progress and is_lead()),
    ) as bar:
        for chunk in chunks(run, epochs, states, done, saves=checkpoints is not None):
            states, done = chunk.states, chunk.done
            losses = chunk.metrics["train/loss"]
            check_finite_losses(run, seeds, chunk.first, losses, chunk.was_trained, states)
            history = {
                name: np.concatenate([history[name], values], axis=1)
                for name, values in chunk.metrics.items()
            }
            due = chunk.num_epochs > 0 and (chunk.at_checkpoint or chunk.is_last)
            if checkpoints is not None and due:
                checkpoints.save(done, layout.unpadded(states), history)
            bar.set_postfix_str(_newest(run, history), refresh=False)
            bar.update(chunk.num_epochs)
            if run.control.ends(_progress(run, seeds, chunk)):
                if checkpoints is not None and not (due or chunk.is_last):
                    checkpoints.save(done, layout.unpadded(states), history)
                break
    check_validation(run, seeds, history)
    states = layout.unpadded(states)
    warn_of_unjudged(run.method, states)
    cost = _cost(run, states, done) | {
        "compile_seconds": compile_seconds,
        "train_seconds": time.perf_counter() - started,
        "trained_epochs": done - resumed_at,
    }
    if isinstance(epochs.program, StreamedEpochs):
        cost["wait_seconds"] = epochs.program.waited
        # Programs for rows on disk are compiled during training, when their first rows arrive.
        cost["compile_seconds"] += epochs.program.compiled
        cost["train_seconds"] -= epochs.program.compiled
    return Trained(states, history, cost)


class Chunk(NamedTuple):
    """Some epochs of R runs.

    Attributes:
      states: the states after them, padded and on the devices.
      metrics: recorded values by ``split/metric`` name, ``(R, count)``; NaN for epochs that a run
        did not train.
      was_trained: ``(R, count)`` bool, the epochs that each run did train.
      first, done: the number of epochs before and after them.
      at_checkpoint: whether as many were requested as end at a multiple of ``checkpoint_every``.
      is_last: whether all runs are done.
    """

    states: TrainState
    metrics: History
    was_trained: np.ndarray
    first: int
    done: int
    at_checkpoint: bool
    is_last: bool

    @property
    def num_epochs(self) -> int:
        """The number of epochs; 0 if all runs were done already."""
        return self.done - self.first


def chunks(
    run: Run, epochs: _Epochs, states: TrainState, done: int, *, saves: bool
) -> Iterator[Chunk]:
    """Trains until all epochs are done, or ``run.control`` has stopped.

    A chunk takes about a second, and ends where a checkpoint or a call of the callback is due.

    Args:
      states: padded states after ``done`` epochs; their memory is reused.
      saves: whether there are checkpoints.
    """
    total, layout, pace = run.spec.num_epochs, epochs.layout, 1
    while done < total and not run.control.stopped:
        called = time.perf_counter()
        to_checkpoint = run.checkpoint_every - done % run.checkpoint_every
        wanted = min(pace, total - done, loop.MAX_EPOCHS_PER_CALL)
        if run.control.callback is not None:
            wanted = 1
        if saves:
            wanted = min(wanted, to_checkpoint)
        requested = layout.place(wanted * epochs.is_trained)
        states, recorded, reached = epochs.program(states, epochs.arrays, requested)
        # Placed again, because empty arrays lose their layout in the program.
        states = layout.place(states)
        trained = np.asarray(reached)[: layout.num_runs] - done
        # Fewer than requested if all seeds are done.
        count = min(max(int(trained.max()), 0), wanted)
        was_trained = np.arange(count) < trained[:, None]
        metrics = {
            name: np.where(was_trained, np.asarray(values)[: layout.num_runs, :count], np.nan)
            for name, values in recorded.items()
        }
        is_last = count < wanted or done + count == total
        at_checkpoint, first, done = wanted == to_checkpoint, done, done + count
        yield Chunk(states, metrics, was_trained, first, done, at_checkpoint, is_last)
        if is_last:
            return
        seconds = time.perf_counter() - called
        room = min(SECONDS_PER_CALL, max(run.control.left, 0.0))
        pace = agreed("epochs", max(1, math.floor(room * wanted / seconds)))


class _Epochs(NamedTuple):
    """The program of a training, :func:`fsjax.engine.seeds.train_seeds`, and what its calls share.

    ``names`` are those of the recorded values. ``is_trained`` is int32, 1 for each place of the
    layout whose run is trained, else 0.
    """

    program: Callable[..., tuple[TrainState, Mapping[str, Any], Any]]
    names: list[str]
    layout: mesh.Placement
    arrays: Arrays
    is_trained: np.ndarray


def _compiled_epochs(
    run: Run, rows: np.ndarray, idle: np.ndarray, layout: mesh.Placement, states: TrainState
) -> _Epochs:
    """Compiles the program of a training; ``states`` are padded, other arguments of ``train``."""
    places = layout.rows
    arrays = run.arrays_of(rows[places])
    arrays = layout.place(arrays, shared=not has_own_rows(arrays))
    # Places that only pad the devices are not trained either.
    is_trained = (~idle[places] & (np.arange(len(places)) < layout.num_runs)).astype(np.int32)
    searches = bool(run.sizes) and run.method.search is not None
    work = training_work(states.params, states.masks, run.spec, searches)
    if run.dataset.table.on_disk:
        on_disk = cast("Arrays[StreamedPart]", run.prepared.arrays)
        streamed = StreamedEpochs(run.structure, run.spec, on_disk, states, work)
        return _Epochs(streamed, streamed.names, layout, arrays, is_trained)
    compiled = train_seeds.compiled(
        *(states, arrays, layout.place(is_trained)),
        work=work,
        structure=run.structure,
        axis=run.axis,
        batch_devices=run.batch_devices,
    )
    return _Epochs(compiled, sorted(output_structure(compiled)[1]), layout, arrays, is_trained)


def _first_states(run: Run, rows: np.ndarray, hyper: Mapping[str, np.ndarray]) -> TrainState:
    """Stacked states ``(R, ...)`` before the first step; arguments as for :func:`train`."""
    numbers, arrays = np.asarray(run.seeds, np.uint32)[rows], run.arrays_of(rows)
    static = {"structure": run.structure, "spec": run.spec}
    states = init_seeds(numbers, hyper, run.usable[rows], arrays, **static)
    if run.start is None or run.method.loss is None:  # untrained scores are those of the new rows
        return states
    return _continued(states, run.start, rows, run.method.search)


def _continued(
    states: TrainState, start: TrainState, rows: np.ndarray, search: Search | None = None
) -> TrainState:
    """The first states with the parameters, masks and extras of an earlier result.

    What a search has closed is open again.
    """
    start = start.replace(extra=_without_new(start.extra, states.extra))
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
    if search is not None and isinstance(states.extra, Mapping):
        one = take_rows(start, 0)
        closed = search.close(one, jnp.float32(2.0)).extra
        for name, value in one.extra.items():
            if not jax.tree.all(jax.tree.map(np.array_equal, value, closed[name])):
                parts["extra"][name] = states.extra[name]
    return states.replace(**parts | {"masks": indexed_like(parts["masks"], states.masks)})


def _without_new(finished: PyTree, fresh: PyTree) -> PyTree:
    """The extras of a finished state without those that ``Method.finish`` added."""
    if isinstance(finished, Mapping) and isinstance(fresh, Mapping):
        return {name: value for name, value in finished.items() if name in fresh}
    return finished if jax.tree.leaves(fresh) else fresh


def _progress(run: Run, seeds: tuple[int, ...], chunk: Chunk) -> list[Progress]:
    """The argument of the callback; empty if nothing was trained."""
    if not chunk.num_epochs:
        return []
    newest = {name: values[:, -1] for name, values in chunk.metrics.items()}
    total, seconds = run.spec.num_epochs, run.control.seconds
    return [Progress(run.method.name, seeds, chunk.done, total, newest, seconds)]


def _newest(run: Run, history: History) -> str:
    """The newest validation metric or training loss, averaged over seeds, for the bar."""
    for key in (f"valid/{TABLE[run.spec.task].objective.main_metric}", "train/loss"):
        if key in history and history[key].shape[1]:
            values = history[key][:, -1]
            if np.isfinite(values).any():
                return f"{key} {np.nanmean(values):.4g}"
    return ""


def _cost(run: Run, states: TrainState, epochs: int) -> dict[str, float]:
    params, masks = jax.tree.map(lambda leaf: np.asarray(leaf)[0], (states.params, states.masks))
    about, num_rows = run.method.about, run.prepared.num_rows * run.spec.repeats
    weights = params if about.weights is None else about.weights(params)
    # Masks count the connections whether the weights are dense or a list of connections.
    connections = count_connections(weights) if masks == () else count_connections(masks, masks)
    flops = training_flops(connections, num_rows, epochs, about.flops)
    return {"params": connections, "train_flops": flops}
