"""``fit``: one method, many seeds, one compiled program."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fsjax.data.arrays import as_dataset
from fsjax.data.checks import check_num_features
from fsjax.data.dataset import Dataset
from fsjax.data.splits import Split
from fsjax.engine.checkpoint import Checkpoints
from fsjax.engine.options import FitOptions
from fsjax.engine.prepare import Prepared, check_seeds, prepare
from fsjax.engine.result import FitResult, choose_features, predict_seed
from fsjax.engine.search import Found, gate_metrics, search_strengths, usable_gates
from fsjax.engine.seeds import choose_seed_axis
from fsjax.engine.train import Trained, train
from fsjax.errors import ConfigError, nearest
from fsjax.groups import any_column, check_groups, unit_names
from fsjax.method import BEST_BY, CONNECTION_EPOCHS, Method, Spec, TrainState
from fsjax.metrics.embedded import embedded_metrics
from fsjax.tasks import TASKS

FIT_NAMES = tuple(FitOptions.__dataclass_fields__)


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
    min_steps_per_epoch: int = 1,
    split: str | Split | Sequence[Split] = "paper",
    split_per_seed: bool = False,
    scaling: str = "paper",
    valid_fraction: float | None = None,
    noise_std: float = 0.0,
    sample_weight: np.ndarray | None = None,
    groups: Sequence[int] | None = None,
    best_by: str | None = None,
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
      min_steps_per_epoch: an epoch visits all training rows as often as it takes to have this
        many steps (BinMask, section 4.1: 30).
      split: a protocol of ``fsjax.data.make_split``; ``paper`` is that of the data set's paper. Or
        a ``fsjax.data.Split`` of your own, or one for each seed; without test rows there are no
        test metrics.
      split_per_seed: whether each seed draws its own split; the papers share one.
      scaling: a kind of ``fsjax.data.fit_scaler``; ``paper`` is that of the data set's paper.
      valid_fraction: share, in [0, 1), of the training rows that validates; ``None`` takes that
        of the split protocol.
      noise_std: standard deviation of Gaussian noise that is added to the scaled training rows
        once (WAST, appendix G), at least 0.
      sample_weight: ``(N,)`` weights above 0 of the rows in the losses of training and validation;
        each batch is divided by the sum of its own. Test metrics weigh all rows alike.
      groups: ``(D,)`` whole numbers from 0 to G - 1, the group of each column. Groups are then
        chosen as a whole: K counts them, and ``selected``, ``scores`` and what else the result
        has for columns is for groups. For the concrete selectors, BinMask (inputs), STG and
        LassoNet.
      best_by: what tells the epoch whose state is kept: the lowest validation ``loss``, the
        highest validation ``accuracy`` or (two classes) ``auc``, or ``last`` for the last epoch.
        By default what the method says: ``last`` for those that prune as they go, else ``loss``.
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
    options = {name: value for name, value in locals().items() if name in FIT_NAMES}
    return _fit(method, data, (num_features,), FitOptions(**options))[0]


def fit_sizes(
    method: Method,
    data: Dataset | tuple[np.ndarray, np.ndarray | None],
    sizes: Sequence[int],
    **options: Any,
) -> dict[int, FitResult]:
    """:func:`fit` for several numbers of columns that share what they can.

    A method that ranks the columns is trained once. One that searches for the strength that keeps
    exactly K (BinMask, STG) uses every training for each K.

    Args:
      method: what to train, made without a number of features of its own where it can be.
      data: as for :func:`fit`.
      sizes: numbers of columns, each at least 1.
      **options: those of :func:`fit`, but ``num_features``.

    Returns:
      The result for each number, in the order given.

    Raises:
      ConfigError, DataError, NonFiniteLossError: as :func:`fit`.
    """
    if not len(sizes) or "num_features" in options:
        raise ConfigError(f"sizes={tuple(sizes)}; give at least one number, and no num_features")
    for name in options:
        if name not in FIT_NAMES:
            raise ConfigError(f"fit_sizes has no {name!r}: {nearest(name, FIT_NAMES)}")
    defaults = {name: fit.__kwdefaults__[name] for name in FIT_NAMES}
    results = _fit(method, data, tuple(sizes), FitOptions(**{**defaults, **options}))
    return dict(zip(sizes, results, strict=True))


def _fit(
    method: Method,
    data: Dataset | tuple[np.ndarray, np.ndarray | None],
    sizes: Sequence[int | None],
    options: FitOptions,
) -> list[FitResult]:
    _check_method(method)
    check_seeds(options.seeds)
    task = _task(method, options.task)
    dataset = to_dataset(data, task)
    sizes = _numbers_to_select(method, sizes)
    axis = choose_seed_axis(options.seed_axis, len(options.seeds))
    best_by = method.best_by if options.best_by is None else options.best_by
    _check_best_by(best_by, task, dataset)
    groups = check_groups(options.groups, dataset.num_features)
    if groups is not None and not method.takes_groups:
        raise ConfigError(
            f"{method.name} chooses single columns; for groups take ip_cae, cae, gjsd, binmask on "
            "the inputs, stg or lassonet"
        )
    for k in sizes:
        check_num_features(k, dataset.num_features)
        if groups is not None and k > max(groups) + 1:
            raise ConfigError(f"num_features={k} but there are {max(groups) + 1} groups")
    prepared = prepare(
        dataset,
        task=task,
        num_features=max(sizes),
        seeds=options.seeds,
        split=options.split,
        split_per_seed=options.split_per_seed,
        scaling=options.scaling,
        valid_fraction=options.valid_fraction,
        noise_std=options.noise_std,
        sample_weight=options.sample_weight,
        record_test=options.record_test,
    )
    spec = make_spec(
        prepared,
        dataset,
        task=task,
        batch_size=options.batch_size,
        num_epochs=options.num_epochs,
        shuffle=options.shuffle,
        drop_last=options.drop_last,
        best_by=best_by,
        min_steps=options.min_steps_per_epoch,
    )._replace(groups=groups)
    constant = (~prepared.feature_mask).sum(axis=1)
    prepared = prepared._replace(feature_mask=any_column(prepared.feature_mask, groups))
    seeds = tuple(int(s) for s in options.seeds)
    # Fails on a network that cannot take these shapes, before anything is trained.
    jax.eval_shape(lambda: method.init(jax.random.key(0), spec))
    if options.before_training is not None:
        options.before_training()
    folder = None if options.checkpoint_dir is None else Path(options.checkpoint_dir)
    checksum = 0 if folder is None else data_checksum(prepared)

    def run(folder: Path | None, **changes: Any) -> Trained:
        checkpoints = None
        if folder is not None:
            identity = _identity(method, dataset, spec, changes.get("seeds", seeds), checksum)
            identity |= {f"hyper.{name}": list(v) for name, v in changes.get("hyper", {}).items()}
            checkpoints = Checkpoints(folder, identity)
        return train(
            method,
            spec,
            axis=axis,
            progress=options.progress,
            checkpoints=checkpoints,
            checkpoint_every=options.checkpoint_every,
            **{"seeds": seeds, "prepared": prepared, **changes},
        )

    if method.search_from is None:
        outcomes = [(run(folder), None)] * len(sizes)
    else:
        outcomes = search_strengths(method, seeds, sizes, prepared, run, folder)
    return [
        _result(method, dataset, spec, seeds, k, prepared, constant, trained, found)
        for k, (trained, found) in zip(sizes, outcomes, strict=True)
    ]


def to_dataset(data: Dataset | tuple[np.ndarray, np.ndarray | None], task: str) -> Dataset:
    """What users give as data, as a data set.

    Raises:
      ConfigError: for anything but a data set or a pair.
    """
    if isinstance(data, Dataset):
        return data
    if isinstance(data, str):
        raise ConfigError(f"the data is the name {data!r}; give fsjax.data.load({data!r})")
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise ConfigError(
            f"the data is of the type {type(data).__name__}; give a pair (X, y), where y may be "
            "None, or what fsjax.data.load returns"
        )
    return as_dataset(*data, task=task)


def _check_method(method: Method) -> None:
    if isinstance(method, Method):
        return
    given = getattr(method, "__name__", None) or (
        method if isinstance(method, str) else type(method).__name__
    )
    raise ConfigError(
        f"{given} is no method; fsjax.fit takes a method such as fsjax.methods.ip_cae(10), and "
        "then the data. Estimators of fsjax.estimators have a fit of their own"
    )


def make_spec(
    prepared: Prepared,
    dataset: Dataset,
    *,
    task: str,
    batch_size: int,
    num_epochs: int,
    shuffle: bool = True,
    drop_last: bool = False,
    best_by: str = "loss",
    min_steps: int = 1,
) -> Spec:
    """The static facts of a run on prepared data; ``min_steps`` is that of an epoch."""
    split = prepared.splits[0]
    num_samples, num_columns = prepared.arrays.x_train.shape[-2:]
    repeats = 1
    if min_steps > 1:
        repeats = max(1, math.ceil(min_steps * batch_size / num_samples))
    whole = num_columns == dataset.num_features
    return Spec(
        num_features=num_columns,
        num_outputs=prepared.num_outputs,
        task=task,
        num_samples=num_samples,
        batch_size=min(batch_size, num_samples * repeats),
        num_epochs=num_epochs,
        shuffle=shuffle,
        drop_last=drop_last,
        best_by=best_by if len(split.valid) else "last",
        repeats=repeats,
        image_shape=dataset.image_shape if whole else None,
        image_order=dataset.image_order,
    )


def data_checksum(prepared: Prepared) -> int:
    """CRC-32 of the rows that are trained and validated on."""
    checksum = 0
    for leaf in jax.tree.leaves(prepared.arrays):
        checksum = zlib.crc32(np.ascontiguousarray(leaf), checksum)
    return checksum


def _identity(
    method: Method, dataset: Dataset, spec: Spec, seeds: tuple[int, ...], checksum: int
) -> dict[str, object]:
    """What makes a run the same run: a checkpoint of another one must not be continued."""
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


def _check_best_by(best_by: str, task: str, dataset: Dataset) -> None:
    if best_by not in BEST_BY:
        raise ConfigError(f"best_by={best_by!r}: {nearest(best_by, BEST_BY)}")
    if best_by == "accuracy" and task != "classification":
        raise ConfigError(f"best_by='accuracy' needs classes, but the task is {task}; use 'loss'")
    if best_by == "auc" and (task != "classification" or dataset.num_classes != 2):
        raise ConfigError("best_by='auc' needs two classes; use 'accuracy' or 'loss'")


def _numbers_to_select(method: Method, sizes: Sequence[int | None]) -> list[int]:
    """The sizes, or the method's own; one that was made for another number is refused."""
    own = method.num_features
    if own is None:
        if None in sizes:
            raise ConfigError(f"{method.name} selects any number; give fit(num_features=...)")
        return list(sizes)
    if None not in sizes and own not in sizes:
        told = f"num_features={sizes[0]!r}" if len(sizes) == 1 else f"sizes={tuple(sizes)}"
        raise ConfigError(
            f"{told} but the method was made for {own}; "
            f"pass num_features to fsjax.methods.{method.name} only"
        )
    return [own if k is None else k for k in sizes]


def _result(
    method: Method,
    dataset: Dataset,
    spec: Spec,
    seeds: tuple[int, ...],
    k: int,
    prepared: Prepared,
    constant: np.ndarray,
    trained: Trained,
    found: Found | None,
) -> FitResult:
    states, history = jax.vmap(TrainState.at_best)(trained.states), trained.history
    scores, selected = map(np.asarray, choose_features(method, k, states))
    per_seed = []
    for row, (x, y) in enumerate(zip(prepared.x_test, prepared.y_test, strict=True)):
        if len(x):
            outputs = np.asarray(predict_seed(method, states, row, x))
            truth = x if spec.task == "reconstruction" else y
            per_seed.append(embedded_metrics(spec.task, outputs, truth))
    names = per_seed[0] if per_seed else ()
    metrics = {name: np.array([m[name] for m in per_seed]) for name in names}
    best_epoch = np.asarray(states.epoch if spec.best_by == "last" else states.best.epoch)
    if method.gates is not None:
        metrics |= gate_metrics(usable_gates(method, states))
    if found is not None:
        metrics |= found.metrics()
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
        constant_columns=constant,
        connection_epochs=() if connections is None else counted,
        input_connections=connections,
        unit_names=unit_names(dataset.feature_names, spec.groups),
    )
