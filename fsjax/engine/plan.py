"""``plan``: everything that a run needs, checked once, before anything is trained."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from fsjax.data.arrays import as_dataset
from fsjax.data.checks import check_num_features
from fsjax.data.dataset import Dataset
from fsjax.data.splits import Split
from fsjax.engine.checkpoint import Checkpoints
from fsjax.engine.consistency import check_shapes_and_scores
from fsjax.engine.fingerprint import fingerprint
from fsjax.engine.loop import CONNECTION_EPOCHS, keeps_snapshot
from fsjax.engine.prepare import Options, Prepared, check_seeds, filled_length, filled_rows, prepare
from fsjax.engine.programs import run
from fsjax.engine.result import FitResult
from fsjax.engine.search import Found, gate_metrics, search_strengths
from fsjax.engine.seeds import Chosen, choose_seed_axis, finish_seeds, take_rows
from fsjax.engine.train import Job, Trained, train
from fsjax.errors import ConfigError, check_flag, check_whole, nearest
from fsjax.groups import any_column, check_groups, unit_names
from fsjax.method import BEST_BY, Method, Spec
from fsjax.metrics.embedded import embedded_metrics
from fsjax.registry import Fixed, Structure, structure_of
from fsjax.tasks import TASKS

#: A column that this share of the seeds leaves open is kept where a method picks its own number.
MAJORITY = 0.5

Data = Dataset | tuple[np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Plan:
    """A run that was checked; nothing is trained yet.

    Attributes:
      method: what is to be trained.
      structure, hyper: its structure, and the values of its traced arguments.
      dataset, prepared: the data, and their scaled rows.
      spec: static facts of the run.
      seeds: the S seeds.
      sizes: numbers of columns to select; empty where the method decides, or nothing is selected.
      axis: ``vmap``, ``map`` or ``shard``.
      progress, checkpoint_dir, checkpoint_every: see :func:`plan`.
    """

    method: Method
    structure: Structure | Fixed
    hyper: Mapping[str, float]
    dataset: Dataset
    prepared: Prepared
    spec: Spec
    seeds: tuple[int, ...]
    sizes: tuple[int, ...]
    axis: str
    progress: bool
    checkpoint_dir: Path | None
    checkpoint_every: int

    def train(
        self,
        *,
        hyper: Mapping[str, Sequence[float]] = {},
        rows: np.ndarray | None = None,
        idle: Sequence[bool] | None = None,
        folder: str | Path | None = None,
    ) -> Trained:
        """Trains the method, without a selection.

        Args:
          hyper: values of float arguments by name, one for each row, in place of the method's
            own; they compile nothing.
          rows: which seeds to train, by their place; may repeat. By default each once.
          idle: rows that only fill up and are not trained.
          folder: for checkpoints, below ``checkpoint_dir``; by default that itself.

        Raises:
          ConfigError: for an argument that is not traced, and for checkpoints of another run.
          NonFiniteLossError: if the training loss leaves the finite numbers.
        """
        for name in hyper:
            if name not in self.hyper:
                raise ConfigError(
                    f"{self.method.name} has no traced argument {name!r}: "
                    f"{nearest(name, self.hyper)}"
                )
        given = {name: [float(value) for value in values] for name, values in hyper.items()}
        rows = np.arange(len(self.seeds)) if rows is None else np.asarray(rows)
        prepared, seeds = self.prepared, [self.seeds[row] for row in rows]
        arrays = take_rows(prepared.arrays, rows) if prepared.own_arrays else prepared.arrays
        values = {name: [value] * len(rows) for name, value in self.hyper.items()} | given
        checkpoints = None
        if self.checkpoint_dir is not None:
            identity = self._identity(seeds) | {f"hyper.{k}": v for k, v in given.items()}
            checkpoints = Checkpoints(self.checkpoint_dir / (folder or ""), identity)
        return train(
            Job(
                structure=self.structure,
                about=self.method.about,
                trains=self.method.loss is not None,
                spec=self.spec,
                axis=self.axis,
                seeds=seeds,
                hyper={name: np.asarray(v, np.float32) for name, v in values.items()},
                feature_mask=self.usable[rows],
                arrays=arrays,
                own_arrays=prepared.own_arrays,
                num_rows=prepared.num_rows * self.spec.repeats,
                idle=np.zeros(len(rows), bool) if idle is None else np.asarray(idle),
                progress=self.progress,
                checkpoints=checkpoints,
                checkpoint_every=self.checkpoint_every,
            )
        )

    def choose(self, trained: Trained, threshold: np.ndarray | None = None) -> Chosen:
        """What the kept epochs of all seeds select, and their outputs for the test rows.

        Args:
          trained: with a row for each seed.
          threshold: ``(S,)``, which gates have to reach to stay open; ``None`` closes none.
        """
        prepared, x_test, own_test = self.prepared, None, False
        if self.method.predict is not None and len(prepared.x_test[0]):
            own_test = len({id(x) for x in prepared.x_test}) > 1
            padded = [filled_rows(x) for x in prepared.x_test[: None if own_test else 1]]
            x_test = np.stack(padded) if own_test else padded[0]
        if threshold is not None:
            threshold = np.asarray(threshold, np.float32)
        states = jax.tree.map(np.asarray, trained.states)
        return run(
            finish_seeds,
            (self.structure, prepared.own_arrays, own_test),
            (states, prepared.arrays, x_test, threshold),
            once=True,
        )

    def gates(self, trained: Trained, rows: np.ndarray) -> np.ndarray:
        """The gates ``(R, D)`` of trained rows, those of unusable columns as 0.

        Args:
          trained: of R rows.
          rows: the place of the seed of each row.
        """
        arrays = self.prepared.arrays
        if self.prepared.own_arrays:
            arrays = take_rows(arrays, rows)
        states = jax.tree.map(np.asarray, trained.states)
        static = (self.structure, self.prepared.own_arrays, False)
        return np.asarray(run(finish_seeds, static, (states, arrays, None, None), once=True).gates)

    def test_metrics(self, chosen: Chosen) -> dict[str, np.ndarray]:
        """Embedded test metrics, ``(S,)`` by name; none without test rows or predictions."""
        if chosen.outputs is None:
            return {}
        task, outputs = self.spec.task, np.asarray(chosen.outputs)
        per_seed = []
        for row, (x, y) in enumerate(zip(self.prepared.x_test, self.prepared.y_test, strict=True)):
            truth = x if task == "reconstruction" else y
            per_seed.append(embedded_metrics(task, outputs[row, : len(x)], truth))
        return {name: np.array([one[name] for one in per_seed]) for name in per_seed[0]}

    def fit(self) -> list[FitResult]:
        """Trains and selects; the results are in the order of ``sizes``.

        Where the method opens gates and no number is asked for, a majority of the seeds decides.

        Raises:
          ConfigError: if the method selects any number and none is asked for.
          NonFiniteLossError: if the training loss leaves the finite numbers.
        """
        about = self.method.about
        if not self.sizes and not about.gates:
            raise ConfigError(f"{about.name} selects any number; give fit(num_features=...)")
        if self.sizes and self.method.search is not None:
            found = self._searched(self.method.search.parameter)
            return [
                self._result(trained, self.choose(trained, one.threshold), k, one)
                for k, (trained, one) in zip(self.sizes, found, strict=True)
            ]
        trained = self.train()
        chosen = self.choose(trained)
        sizes = self.sizes or (own_number(np.asarray(chosen.gates)),)
        return [self._result(trained, chosen, k, None) for k in sizes]

    def _searched(self, parameter: str) -> list[tuple[Trained, Found]]:
        def trained(strengths: Sequence[float], **options: Any) -> Trained:
            return self.train(hyper={parameter: strengths}, **options)

        start = self.hyper[parameter]
        return search_strengths(len(self.seeds), self.sizes, start, trained, self.gates)

    @property
    def usable(self) -> np.ndarray:
        """``(S, D)`` bool, columns that may be selected, or ``(S, G)`` groups."""
        return any_column(self.prepared.feature_mask, self.spec.groups)

    def _identity(self, seeds: Sequence[int]) -> dict[str, object]:
        """What makes a run the same run: a checkpoint of another one must not be continued."""
        checksum = 0
        for leaf in jax.tree.leaves(self.prepared.arrays):
            checksum = zlib.crc32(np.ascontiguousarray(leaf), checksum)
        return {
            "method": self.method.name,
            **{f"method.{name}": repr(value) for name, value in self.method.about.settings},
            "code": fingerprint(self.method),
            "dataset": self.dataset.name,
            "data_crc32": checksum,
            "seeds": list(seeds),
            **self.spec._asdict(),
        }

    def _result(self, trained: Trained, chosen: Chosen, k: int, found: Found | None) -> FitResult:
        prepared, spec = self.prepared, self.spec
        states = jax.tree.map(np.asarray, chosen.states)
        scores, ranking = np.asarray(chosen.scores), np.asarray(chosen.ranking)
        _warn_of_equal(scores, self.usable, self.method)
        best_epoch = states.best.epoch if keeps_snapshot(self.method, spec) else states.epoch
        metrics = self.test_metrics(chosen)
        gates = None if chosen.gates is None else np.asarray(chosen.gates)
        if gates is not None:
            metrics |= gate_metrics(gates)
        if found is not None:
            metrics |= found.metrics(np.asarray(chosen.closed), k, self.method.search.parameter)
        if "train/unique_percentage" in trained.history:
            unique = trained.history["train/unique_percentage"]
            metrics["unique_percentage"] = unique[np.arange(len(self.seeds)), best_epoch - 1]
        counted, connections = (), None
        if not isinstance(states.trace, tuple):
            counted = tuple(epoch for epoch in CONNECTION_EPOCHS if epoch <= spec.num_epochs)
            connections = states.trace[:, : len(counted)]
        return FitResult(
            method=self.method,
            dataset=self.dataset.name,
            task=spec.task,
            num_features=k,
            seeds=self.seeds,
            selected=ranking[:, :k],
            ranking=ranking,
            scores=scores,
            gates=gates,
            metrics=metrics,
            history=trained.history,
            best_epoch=best_epoch,
            cost=trained.cost,
            states=states,
            scalers=prepared.scalers,
            splits=prepared.splits,
            constant_columns=(~prepared.feature_mask).sum(axis=1),
            connection_epochs=counted,
            input_connections=connections,
            unit_names=unit_names(self.dataset.feature_names, spec.groups),
        )


def plan(
    method: Method,
    data: Data,
    *,
    seeds: Sequence[int] = (0,),
    task: str | None = None,
    num_features: int | Sequence[int] | None = None,
    num_epochs: int = 200,
    batch_size: int | None = 64,
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
    columns: np.ndarray | None = None,
    zero_others: bool = False,
    best_by: str | None = None,
    record_test: bool = False,
    seed_axis: str = "auto",
    progress: bool = False,
    checkpoint_dir: str | Path | None = None,
    checkpoint_every: int = 20,
) -> Plan:
    """Checks a run, splits and scales the data, and trains nothing.

    Args:
      method: what to train, from ``fsjax.methods``.
      data: a data set, or ``(X, y)`` with X ``(N, D)`` and y ``(N,)`` or ``None``.
      seeds: whole numbers from 0; each gives one run (initialisation, noise, order of rows).
      task: ``classification``, ``reconstruction`` (y is not used) or ``regression``; by default
        the first that the method is for.
      num_features: K, or several numbers; by default the method's own.
      num_epochs: epochs to train, at least 1.
      batch_size: rows per step, at least 1; at most all training rows are taken, as ``None``
        takes them.
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
        has for columns is for groups.
      columns: ``(S, M)`` columns that each seed gets to see; ``None`` is all of them.
      zero_others: with ``columns``, whether the other columns stay in place as zeros, for
        convolutional networks; otherwise the M columns are all there is.
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

    Returns:
      The plan, of which :meth:`Plan.fit` is the run.

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for settings that do not fit.
    """
    _check_method(method)
    flags = {"shuffle": shuffle, "drop_last": drop_last, "split_per_seed": split_per_seed}
    for name, flag in (flags | {"record_test": record_test, "progress": progress}).items():
        check_flag(name, flag)
    if checkpoint_dir is not None and not isinstance(checkpoint_dir, str | Path):
        raise ConfigError(f"checkpoint_dir={checkpoint_dir!r}; give a folder, or None")
    check_seeds(seeds)
    task = _task(method, task)
    dataset = to_dataset(data, task)
    numbers = check_groups(groups, dataset.num_features)
    if numbers is not None and not method.about.takes_groups:
        raise ConfigError(f"{method.name} chooses single columns, not groups of them")
    sizes = _sizes(method, num_features, dataset, numbers)
    best_by = _best_by(method, best_by, task, dataset)
    options = Options(
        split,
        split_per_seed,
        scaling,
        valid_fraction,
        noise_std,
        sample_weight,
        record_test,
        columns,
        zero_others,
    )
    prepared = prepare(dataset, task, seeds, options)
    structure, hyper = structure_of(method)
    spec = _spec(
        prepared,
        dataset,
        task=task,
        batch_size=batch_size,
        num_epochs=check_whole("num_epochs", num_epochs),
        shuffle=shuffle,
        drop_last=drop_last,
        best_by=best_by,
        min_steps=check_whole("min_steps_per_epoch", min_steps_per_epoch),
    )._replace(groups=numbers)
    if method.search is not None and method.search.parameter not in hyper:
        raise ConfigError(
            f"{method.name} searches for {method.search.parameter!r}, which is no float argument "
            "of a registered builder; register the method with fsjax.register"
        )
    # Fails on a network that cannot take these shapes, before anything is trained.
    check_shapes_and_scores(method, spec, prepared)
    return Plan(
        method=method,
        structure=structure,
        hyper=hyper,
        dataset=dataset,
        prepared=prepared,
        spec=spec,
        seeds=tuple(int(seed) for seed in seeds),
        sizes=sizes,
        axis=choose_seed_axis(seed_axis, len(seeds)),
        progress=bool(progress),
        checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir),
        checkpoint_every=check_whole("checkpoint_every", checkpoint_every),
    )


def to_dataset(data: Data, task: str) -> Dataset:
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


def own_number(gates: np.ndarray) -> int:
    """How many columns ``(S, D)`` gates in [0, 1] leave open, by a majority of the seeds."""
    return max(int(((gates >= 0.5).mean(axis=0) >= MAJORITY).sum()), 1)


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


def _task(method: Method, task: str | None) -> str:
    tasks = method.about.tasks
    if task is None:
        return tasks[0]
    if task not in TASKS:
        raise ConfigError(f"task={task!r}: {nearest(str(task), TASKS)}")
    if task not in tasks:
        raise ConfigError(
            f"{method.name} is for the task {' or '.join(tasks)}, not for {task}; "
            "labels may still be in the data"
        )
    return task


def _best_by(method: Method, given: str | None, task: str, dataset: Dataset) -> str:
    if given is None:
        return "loss" if callable(method.keep) else method.keep
    if given not in BEST_BY:
        raise ConfigError(f"best_by={given!r}: {nearest(str(given), BEST_BY)}")
    if callable(method.keep):
        raise ConfigError(f"{method.name} keeps an epoch of its own choice; leave best_by out")
    if given == "accuracy" and task != "classification":
        raise ConfigError(f"best_by='accuracy' needs classes, but the task is {task}; use 'loss'")
    if given == "auc" and (task != "classification" or dataset.num_classes != 2):
        raise ConfigError("best_by='auc' needs two classes; use 'accuracy' or 'loss'")
    return given


def _sizes(
    method: Method, given: int | Sequence[int] | None, dataset: Dataset, groups: Any
) -> tuple[int, ...]:
    """The numbers of columns; where the method was made for another number it is refused."""
    own = method.about.num_features
    several = isinstance(given, list | tuple | range | np.ndarray)
    sizes = list(given) if several else [] if given is None else [given]
    if several and not sizes:
        raise ConfigError(f"sizes={tuple(sizes)}; give at least one number")
    if own is not None and not sizes:
        sizes = [own]
    for k in sizes:
        check_num_features(k, dataset.num_features)
        if groups is not None and k > max(groups) + 1:
            raise ConfigError(f"num_features={k} but there are {max(groups) + 1} groups")
    if own is not None and own not in sizes:
        told = f"sizes={tuple(sizes)}" if several else f"num_features={given!r}"
        raise ConfigError(
            f"{told} but the method was made for {own}; "
            f"pass num_features to fsjax.methods.{method.name} only"
        )
    return tuple(int(k) for k in sizes)


def _spec(
    prepared: Prepared,
    dataset: Dataset,
    *,
    task: str,
    batch_size: int | None,
    num_epochs: int,
    shuffle: bool,
    drop_last: bool,
    best_by: str,
    min_steps: int,
) -> Spec:
    """The static facts of a run on prepared data; ``min_steps`` is that of an epoch."""
    rows, num_columns = prepared.num_rows, prepared.arrays.train.x.shape[-1]
    filled = filled_length(rows)
    batch_size = rows if batch_size is None else check_whole("batch_size", batch_size)
    repeats = 1
    if min_steps > 1:
        repeats = max(1, math.ceil(min_steps * batch_size / rows))
    full, rest = divmod(rows * repeats, batch_size)
    if not full:
        # One batch of all rows, those that fill up among them.
        batch_size = filled * repeats
    elif batch_size == rows and repeats == 1:
        batch_size = filled
    whole = num_columns == dataset.num_features
    return Spec(
        num_columns=num_columns,
        num_outputs=prepared.num_outputs,
        task=task,
        num_rows=filled,
        batch_size=batch_size,
        num_epochs=num_epochs,
        steps_per_epoch=max(full if drop_last or rest == 0 else full + 1, 1),
        shuffle=bool(shuffle),
        best_by=best_by if len(prepared.splits[0].valid) else "last",
        repeats=repeats,
        image_shape=dataset.image_shape if whole else None,
        image_order=dataset.image_order,
    )


def _warn_of_equal(scores: np.ndarray, usable: np.ndarray, method: Method) -> None:
    """Says so where a selection goes by position alone."""
    for of_seed, mask in zip(scores, usable, strict=True):
        found = of_seed[mask]
        if len(found) > 1 and (found == found[0]).all():
            warnings.warn(
                f"{method.name} gives all columns the same score, so the selection goes by their "
                "position; train longer, or check the method with fsjax.testing.check_method",
                stacklevel=4,
            )
            return
