"""``fit``: one method, many seeds, one compiled program."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from fsjax.data.dataset import Dataset
from fsjax.engine.checkpoint import Checkpoints
from fsjax.engine.loop import MAX_EPOCHS_PER_CALL
from fsjax.engine.prepare import Prepared, prepare
from fsjax.engine.progress import check_finite, describe, likely_causes, progress_bar
from fsjax.engine.result import FitResult, predict_seeds
from fsjax.engine.seeds import choose_seed_axis, padded_seeds, place_seeds, train_seeds
from fsjax.errors import ConfigError, check_whole
from fsjax.evaluation import embedded_metrics
from fsjax.method import Method, Spec, TrainState
from fsjax.selection import distinct_top_k

#: Seconds of work between two looks of the host: often enough for a progress bar.
SECONDS_PER_CALL = 1.0


def fit(
    method: Method,
    data: Dataset | tuple[np.ndarray, np.ndarray | None],
    *,
    seeds: Sequence[int] = (0,),
    task: str = "classification",
    num_features: int | None = None,
    num_epochs: int = 200,
    batch_size: int = 64,
    shuffle: bool = True,
    drop_last: bool = False,
    split: str = "paper",
    split_per_seed: bool = False,
    scaling: str = "paper",
    seed_axis: str = "auto",
    progress: bool = False,
    checkpoint_dir: str | Path | None = None,
    checkpoint_every: int = 20,
    before_training: Callable[[], None] | None = None,
) -> FitResult:
    """Trains a method once for each seed and evaluates it on the test rows.

    Args:
      method: what to train, from ``fsjax.methods``.
      data: a data set, or ``(X, y)`` with X ``(N, D)`` and y ``(N,)`` or ``None``.
      seeds: whole numbers from 0; each gives one run (initialisation, noise, order of rows).
      task: ``classification``, ``reconstruction`` (y is not used) or ``regression``.
      num_features: K; by default the method's own.
      num_epochs: epochs to train, at least 1.
      batch_size: rows per step, at least 1; at most all training rows are taken.
      shuffle: whether each epoch visits the rows in a new order.
      drop_last: whether the incomplete last batch of an epoch is left out.
      split: a protocol of ``fsjax.data.make_split``; ``paper`` is that of the data set's paper.
      split_per_seed: whether each seed draws its own split; the papers share one.
      scaling: a kind of ``fsjax.data.fit_scaler``; ``paper`` is that of the data set's paper.
      seed_axis: ``vmap``, ``map``, ``shard``, or ``auto`` to choose by the device. The results
        of a seed are the same on each up to floating-point reassociation.
      progress: whether to show a progress bar.
      checkpoint_dir: where to keep checkpoints; a run that finds its own continues from them,
        bit for bit as if it had not stopped. ``None`` keeps none.
      checkpoint_every: epochs between checkpoints.
      before_training: called once when all was checked and before anything is trained.

    Returns:
      The result, at the epoch with the lowest validation loss (the last one where the split has
      no validation rows).

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for settings that do not fit.
      NonFiniteLossError: if the training loss leaves the finite numbers.
    """
    dataset = data if isinstance(data, Dataset) else as_dataset(*data)
    for label, value in (
        ("num_epochs", num_epochs),
        ("batch_size", batch_size),
        ("checkpoint_every", checkpoint_every),
    ):
        check_whole(label, value)
    k = _number_to_select(method, num_features)
    axis = choose_seed_axis(seed_axis, len(seeds))
    prepared = prepare(
        dataset,
        task=task,
        num_features=k,
        seeds=seeds,
        split=split,
        split_per_seed=split_per_seed,
        scaling=scaling,
    )
    num_samples = len(prepared.splits[0].train)
    spec = Spec(
        num_features=dataset.num_features,
        num_outputs=prepared.num_outputs,
        task=task,
        num_samples=num_samples,
        batch_size=min(batch_size, num_samples),
        num_epochs=num_epochs,
        shuffle=shuffle,
        drop_last=drop_last,
    )
    seeds = tuple(int(s) for s in seeds)
    checkpoints = None
    if checkpoint_dir is not None:
        identity = _identity(method, dataset, spec, seeds, prepared)
        checkpoints = Checkpoints(checkpoint_dir, identity)
    if before_training is not None:
        before_training()
    states, history, cost = _train(
        method, spec, seeds, prepared, axis, progress, checkpoints, checkpoint_every
    )
    return _result(method, dataset, spec, seeds, k, prepared, states, history, cost)


def _identity(
    method: Method, dataset: Dataset, spec: Spec, seeds: tuple[int, ...], prepared: Prepared
) -> dict[str, object]:
    """What makes a run the same run: a checkpoint of another one must not be continued."""
    checksum = 0
    for leaf in prepared.arrays:
        checksum = zlib.crc32(np.ascontiguousarray(leaf), checksum)
    return {
        "method": method.name,
        **{f"method.{name}": repr(value) for name, value in method.settings},
        "dataset": dataset.name,
        "data_crc32": checksum,
        "seeds": list(seeds),
        **spec._asdict(),
    }


def as_dataset(x: np.ndarray, y: np.ndarray | None = None) -> Dataset:
    """A data set from arrays: X ``(N, D)``, y ``(N,)`` labels or targets, or ``None``.

    Labels of any kind become classes from 0 in sorted order; floating-point targets stay.
    """
    x = np.asarray(x)
    if x.ndim != 2:
        raise ConfigError(f"X has shape {x.shape}; give a table (rows, columns)")
    if y is None:
        return Dataset(name="table", X=x, y=None)
    y = np.asarray(y)
    if len(y) != len(x):
        raise ConfigError(f"X has {len(x)} rows but y has {len(y)}; give one target for each row")
    if y.dtype.kind == "f":
        return Dataset(name="table", X=x, y=y)
    classes, labels = np.unique(y, return_inverse=True)
    return Dataset(
        name="table", X=x, y=labels.astype(np.int32), class_names=tuple(map(str, classes))
    )


def _number_to_select(method: Method, num_features: int | None) -> int:
    if method.num_features is None:
        if num_features is None:
            raise ConfigError(f"{method.name} selects any number; give fit(num_features=...)")
        return num_features
    if num_features not in (None, method.num_features):
        raise ConfigError(
            f"num_features={num_features} but the method was made for {method.num_features}; "
            f"pass num_features to fsjax.methods.{method.name} only"
        )
    return method.num_features


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
        return method.init(key, spec).replace(feature_mask=pair[1])

    # One seed after another: the same bits whether a seed runs alone or with others.
    return jax.lax.map(one, (seeds, feature_mask))


@partial(jax.jit, static_argnames=("method", "k"))
def choose_features(method: Method, k: int, states: TrainState) -> tuple[jax.Array, jax.Array]:
    """Scores ``(S, D)`` and exactly k distinct columns ``(S, k)`` of stacked states."""

    def one(state: TrainState) -> tuple[jax.Array, jax.Array]:
        scores = method.score(state)
        picks = method.picks(state) if method.picks else None
        return scores, distinct_top_k(scores, k, picks, state.feature_mask)

    return jax.lax.map(one, states)


def _train(
    method: Method,
    spec: Spec,
    seeds: tuple[int, ...],
    prepared: Prepared,
    axis: str,
    progress: bool,
    checkpoints: Checkpoints | None,
    checkpoint_every: int,
) -> tuple[TrainState, dict[str, np.ndarray], dict[str, float]]:
    """Runs all epochs; returns the states of the real seeds, the history and the cost."""
    real = len(seeds)
    extra = padded_seeds(axis, real) - real
    rows = np.concatenate([np.arange(real), np.full(extra, real - 1)])
    states = init_states(method, spec, [seeds[r] for r in rows], prepared.feature_mask[rows])
    states = place_seeds(axis, states)
    arrays = jax.tree.map(
        lambda leaf: jnp.asarray(leaf[rows] if prepared.own_arrays else leaf), prepared.arrays
    )

    started = time.perf_counter()
    # No epochs: compiles, and gives the names of what is recorded.
    states, empty = train_seeds(
        method, axis, prepared.own_arrays, states, arrays, jnp.asarray(0, jnp.int32)
    )
    jax.block_until_ready(states)
    compile_seconds = time.perf_counter() - started

    done, history = 0, {name: np.zeros((real, 0), np.float32) for name in sorted(empty)}
    if checkpoints is not None:
        restored = checkpoints.restore(states, sorted(empty))
        if restored is not None:
            done, states, history = restored
            states = place_seeds(axis, states)
    hints = likely_causes(prepared.arrays.x_train, _learning_rate(states))

    started, epochs, resumed_at = time.perf_counter(), 1, done
    with progress_bar(method.name, spec.num_epochs, done, progress) as bar:
        while done < spec.num_epochs:
            to_checkpoint = checkpoint_every - done % checkpoint_every
            epochs = min(epochs, spec.num_epochs - done, MAX_EPOCHS_PER_CALL)
            if checkpoints is not None:
                epochs = min(epochs, to_checkpoint)
            call = time.perf_counter()
            states, recorded = train_seeds(
                method, axis, prepared.own_arrays, states, arrays, jnp.asarray(epochs, jnp.int32)
            )
            new = {name: np.asarray(values)[:real, :epochs] for name, values in recorded.items()}
            check_finite(new, done + 1, seeds, hints)
            history = {name: np.concatenate([history[name], new[name]], axis=1) for name in new}
            done += epochs
            bar.set_postfix_str(describe(spec.task, history), refresh=False)
            bar.update(epochs)
            if checkpoints is not None and (
                done % checkpoint_every == 0 or done == spec.num_epochs
            ):
                checkpoints.save(done, states, history)
            epochs = max(1, math.floor(SECONDS_PER_CALL * epochs / (time.perf_counter() - call)))
    num_params = sum(math.prod(leaf.shape[1:]) for leaf in jax.tree.leaves(states.params))
    cost = {
        "params": num_params,
        "train_flops": 6.0 * num_params * spec.num_samples * spec.num_epochs,
        "train_seconds": time.perf_counter() - started,
        "trained_epochs": spec.num_epochs - resumed_at,
        "compile_seconds": compile_seconds,
    }
    if extra:
        states = jax.tree.map(lambda leaf: leaf[:real], states)
    return states, history, cost


def _learning_rate(states: TrainState) -> float | None:
    rates = getattr(states.opt_state, "hyperparams", {}).get("learning_rate")
    return None if rates is None else float(np.max(rates))


def _result(
    method: Method,
    dataset: Dataset,
    spec: Spec,
    seeds: tuple[int, ...],
    k: int,
    prepared: Prepared,
    states: TrainState,
    history: dict[str, np.ndarray],
    cost: dict[str, float],
) -> FitResult:
    states = jax.vmap(TrainState.at_best)(states)

    scores, selected = map(np.asarray, choose_features(method, k, states))
    x_test = np.stack(prepared.x_test)
    outputs = np.asarray(predict_seeds(method, states, x_test))
    per_seed = [
        embedded_metrics(spec.task, out, x if spec.task == "reconstruction" else y)
        for out, x, y in zip(outputs, x_test, prepared.y_test, strict=True)
    ]
    metrics = {name: np.array([m[name] for m in per_seed]) for name in per_seed[0]}
    best_epoch = np.asarray(states.best.epoch)
    if "train/unique_percentage" in history:
        rows = np.arange(len(seeds))
        metrics["unique_percentage"] = history["train/unique_percentage"][rows, best_epoch - 1]
    return FitResult(
        method=method,
        dataset=dataset.name,
        task=spec.task,
        num_features=k,
        seeds=seeds,
        selected=selected,
        scores=scores,
        metrics=metrics,
        history=history,
        best_epoch=best_epoch,
        cost=cost,
        states=states,
        scalers=prepared.scalers,
        splits=prepared.splits,
        constant_columns=np.asarray((~prepared.feature_mask).sum(axis=1)),
    )
