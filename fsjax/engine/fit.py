"""``fit``: one method, many seeds, one compiled program."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import jax
import numpy as np

from fsjax.data.arrays import as_dataset
from fsjax.data.dataset import Dataset
from fsjax.engine.checkpoint import Checkpoints
from fsjax.engine.prepare import Prepared, prepare
from fsjax.engine.result import FitResult, choose_features, predict_seed
from fsjax.engine.seeds import choose_seed_axis
from fsjax.engine.train import Trained, train
from fsjax.errors import ConfigError, check_whole, nearest
from fsjax.evaluation import embedded_metrics
from fsjax.method import BEST_BY, CONNECTION_EPOCHS, Method, Spec, TrainState
from fsjax.tasks import TASKS


def fit(
    method: Method,
    data: Dataset | tuple[np.ndarray, np.ndarray | None],
    *,
    seeds: Sequence[int] = (0,),
    task: str | None = None,
    num_features: int | None = None,
    num_epochs: int = 200,
    batch_size: int = 64,
    shuffle: bool = True,
    drop_last: bool = False,
    split: str = "paper",
    split_per_seed: bool = False,
    scaling: str = "paper",
    valid_fraction: float | None = None,
    noise_std: float = 0.0,
    best_by: str = "loss",
    record_test: bool = False,
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
      task: ``classification``, ``reconstruction`` (y is not used) or ``regression``; by default
        the first that the method is for.
      num_features: K; by default the method's own.
      num_epochs: epochs to train, at least 1.
      batch_size: rows per step, at least 1; at most all training rows are taken.
      shuffle: whether each epoch visits the rows in a new order.
      drop_last: whether the incomplete last batch of an epoch is left out.
      split: a protocol of ``fsjax.data.make_split``; ``paper`` is that of the data set's paper.
      split_per_seed: whether each seed draws its own split; the papers share one.
      scaling: a kind of ``fsjax.data.fit_scaler``; ``paper`` is that of the data set's paper.
      valid_fraction: share, in [0, 1), of the training rows that validates; ``None`` takes that
        of the split protocol.
      noise_std: standard deviation of Gaussian noise that is added to the scaled training rows
        once (WAST, appendix G), at least 0.
      best_by: what tells the epoch whose state is kept: the lowest validation ``loss``, the
        highest validation ``accuracy``, or ``last`` for the last epoch.
      record_test: whether the test metrics are recorded after each epoch, for learning curves;
        nothing is chosen by them.
      seed_axis: ``vmap``, ``map``, ``shard``, or ``auto`` to choose by the device. The results
        of a seed are the same on each up to floating-point reassociation.
      progress: whether to show a progress bar.
      checkpoint_dir: where to keep checkpoints; a run that finds its own continues from them,
        bit for bit as if it had not stopped. ``None`` keeps none.
      checkpoint_every: epochs between checkpoints.
      before_training: called once when all was checked and before anything is trained.

    Returns:
      The result, at the best epoch (the last one where the split has no validation rows).

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for settings that do not fit.
      NonFiniteLossError: if the training loss leaves the finite numbers.
    """
    task = _task(method, task)
    dataset = data if isinstance(data, Dataset) else as_dataset(*data, task=task)
    num_epochs = check_whole("num_epochs", num_epochs)
    batch_size = check_whole("batch_size", batch_size)
    checkpoint_every = check_whole("checkpoint_every", checkpoint_every)
    k = _number_to_select(method, num_features)
    axis = choose_seed_axis(seed_axis, len(seeds))
    _check_best_by(best_by, task)
    prepared = prepare(
        dataset,
        task=task,
        num_features=k,
        seeds=seeds,
        split=split,
        split_per_seed=split_per_seed,
        scaling=scaling,
        valid_fraction=valid_fraction,
        noise_std=noise_std,
        record_test=record_test,
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
        best_by=best_by if len(prepared.splits[0].valid) else "last",
    )
    seeds = tuple(int(s) for s in seeds)
    checkpoints = None
    if checkpoint_dir is not None:
        identity = _identity(method, dataset, spec, seeds, prepared)
        checkpoints = Checkpoints(checkpoint_dir, identity)
    if before_training is not None:
        before_training()
    trained = train(
        method,
        spec,
        seeds,
        prepared,
        axis=axis,
        progress=progress,
        checkpoints=checkpoints,
        checkpoint_every=checkpoint_every,
    )
    return _result(method, dataset, spec, seeds, k, prepared, trained)


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


def _task(method: Method, task: str | None) -> str:
    if task is None:
        return method.tasks[0]
    if task not in TASKS:
        raise ConfigError(f"task={task!r}: {nearest(task, TASKS)}")
    if task not in method.tasks:
        raise ConfigError(
            f"{method.name} is for the task {' or '.join(method.tasks)}, not for {task}; "
            "labels may still be in the data"
        )
    return task


def _check_best_by(best_by: str, task: str) -> None:
    if best_by not in BEST_BY:
        raise ConfigError(f"best_by={best_by!r}: {nearest(best_by, BEST_BY)}")
    if best_by == "accuracy" and task != "classification":
        raise ConfigError(f"best_by='accuracy' needs classes, but the task is {task}; use 'loss'")


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


def _result(
    method: Method,
    dataset: Dataset,
    spec: Spec,
    seeds: tuple[int, ...],
    k: int,
    prepared: Prepared,
    trained: Trained,
) -> FitResult:
    states, history = jax.vmap(TrainState.at_best)(trained.states), trained.history
    scores, selected = map(np.asarray, choose_features(method, k, states))
    per_seed = []
    for row, (x, y) in enumerate(zip(prepared.x_test, prepared.y_test, strict=True)):
        outputs = np.asarray(predict_seed(method, states, row, x))
        truth = x if spec.task == "reconstruction" else y
        per_seed.append(embedded_metrics(spec.task, outputs, truth))
    metrics = {name: np.array([m[name] for m in per_seed]) for name in per_seed[0]}
    best_epoch = np.asarray(states.best.epoch)
    if spec.best_by == "last":
        best_epoch = np.full(len(seeds), spec.num_epochs, np.int32)
    counted = tuple(epoch for epoch in CONNECTION_EPOCHS if epoch <= spec.num_epochs)
    connections = None
    if method.input_connections is not None:
        connections = np.asarray(states.trace)[:, : len(counted)]
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
        cost=trained.cost,
        states=states,
        scalers=prepared.scalers,
        splits=prepared.splits,
        constant_columns=np.asarray((~prepared.feature_mask).sum(axis=1)),
        connection_epochs=() if connections is None else counted,
        input_connections=connections,
    )
