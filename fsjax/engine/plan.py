"""``plan``: everything that a run needs, checked once, before anything is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import jax
import numpy as np
from numpy.typing import ArrayLike

from fsjax.engine.compilation import check_platform
from fsjax.engine.control import Callback, Control
from fsjax.engine.mesh import check_batch_devices, choose_seed_axis
from fsjax.engine.method_checks import check_fields, check_functions
from fsjax.engine.planned import Plan
from fsjax.engine.prepare import Options, check_seeds, prepare
from fsjax.engine.result import FitResult
from fsjax.engine.user_function_checks import check_loss
from fsjax.environment.garbage_collection import paused
from fsjax.environment.jax_settings import check_process
from fsjax.errors import (
    ConfigError,
    DataError,
    check_choice,
    check_flag,
    check_whole,
    suggests_names,
)
from fsjax.groups import check_groups
from fsjax.method import BEST_BY, Loss, Method, Spec, TrainState
from fsjax.registry import Fixed, Structure, structure_of
from fsjax.storage.fingerprint import fingerprint_of_task
from fsjax.tables.checks import check_num_features
from fsjax.tables.dataset import Dataset
from fsjax.tables.dense import check_size
from fsjax.tables.from_arrays import as_dataset
from fsjax.tables.scaled import filled_length
from fsjax.tables.splits import Split
from fsjax.tasks import COUPLED_BATCH, TABLE, Task, name_of
from fsjax.tasks.registry import resembled

#: The most epochs, rows of a step and steps of an epoch: the device counts with 32 bits.
MOST = 2**31 - 1

#: A data set, or X and y.
Data = Dataset | tuple[ArrayLike, ArrayLike | None]


@suggests_names
def plan(
    method: Method,
    data: Data,
    *,
    seeds: Sequence[int] = (0,),
    task: str | Task | None = None,
    loss: Loss | None = None,
    num_features: int | Sequence[int] | None = None,
    num_epochs: int = 200,
    batch_size: int | Literal["auto"] | None = "auto",
    shuffle: bool = True,
    drop_last: bool = False,
    min_steps_per_epoch: int = 1,
    split: str | Split | Sequence[Split] = "paper",
    split_per_seed: bool = False,
    scaling: str = "paper",
    valid_fraction: float | None = None,
    noise_std: float = 0.0,
    sample_weight: np.ndarray | None = None,
    groups: Sequence[int] | np.ndarray | None = None,
    columns: np.ndarray | None = None,
    zero_others: bool = False,
    best_by: str | None = None,
    record_test: bool = False,
    seed_axis: str = "auto",
    batch_devices: int = 1,
    progress: bool = False,
    checkpoint_dir: str | Path | None = None,
    checkpoint_every: int = 20,
    early_stopping: int | None = None,
    max_time: float | None = None,
    callback: Callback | None = None,
    keep_partial: bool = False,
    start: FitResult | None = None,
) -> Plan:
    """Checks a run, splits and scales the data, and trains nothing.

    Args:
      method: what to train, from ``fsjax.methods``.
      data: a data set, or ``(X, y)`` with X ``(N, D)`` and y as the task has it, or ``None``. X may
        be a sparse matrix or array of SciPy, or a pandas frame with sparse columns, for methods
        that train by batches: only batches are made dense.
      seeds: whole numbers from 0; each gives one run (initialisation, noise, order of rows).
      task: ``classification``, ``reconstruction`` (y is not used), ``regression``,
        ``multilabel`` (y ``(N, L)`` of 0 and 1), ``counts`` or ``survival`` (y ``(N, 2)``, time and
        event); by default the first that the method is for. :data:`fsjax.tasks.TABLE` says all. Or
        a registered task, as a value or as text such as ``quantile(0.9)``
        (:func:`fsjax.tasks.register`).
      loss: ``(outputs (B, C), y, weight (B,)) -> scalar`` in place of the task's loss, in training
        and in validation; the penalties of the method stay. Rows of weight 0 must not count, as in
        ``fsjax.tasks.weighted_mean``.
      num_features: K, or several numbers; by default the method's own.
      num_epochs: epochs to train, at least 1.
      batch_size: rows per step, at least 1; at most all training rows are taken, as ``None``
        takes them. ``auto`` takes 64, and for survival, whose loss compares the rows of a batch,
        4096.
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
      seed_axis: ``vmap`` or ``map`` on one device, ``shard`` over the devices of all processes, or
        ``auto`` to choose by the devices. The results of a seed are the same on each up to
        floating-point reassociation.
      batch_devices: devices over which the rows of each batch are split, for runs that are large;
        it divides the number of devices and that of the rows. The loss and its noise are those of
        the whole batch, up to floating-point reassociation.
      progress: whether to show a progress bar.
      checkpoint_dir: where to keep checkpoints; a run that finds its own continues from them,
        bit for bit as if it had not stopped. ``None`` keeps none.
      checkpoint_every: epochs between checkpoints.
      early_stopping: epochs without a lower validation loss (or a better value of ``best_by``)
        after which a seed ends; ``None`` trains all epochs.
      max_time: seconds after which training ends with the epochs done by then, compilation
        included; at least one call of the program, about a second, is made.
      callback: a function of :class:`fsjax.Progress`, called after each epoch, on the host; true
        ends training. See :func:`fsjax.log_to` for loggers.
      keep_partial: whether the first Ctrl-C ends training with a warning and the result of the
        epochs done by then; the second one interrupts.
      start: an earlier result of the same method, shapes and number of seeds, whose parameters,
        masks and importances are where training starts; the optimiser and schedules start anew.

    Returns:
      The plan, of which :meth:`Plan.fit` is the run.

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for settings that do not fit.
    """
    _check_method(method)
    check_fields(method)
    check_platform()
    check_process()
    flags = {"shuffle": shuffle, "drop_last": drop_last, "split_per_seed": split_per_seed}
    flags |= {"record_test": record_test, "progress": progress, "zero_others": zero_others}
    for name, flag in flags.items():
        check_flag(name, flag)
    if checkpoint_dir is not None and not isinstance(checkpoint_dir, str | Path):
        raise ConfigError(f"checkpoint_dir={checkpoint_dir!r}; give a folder, or None")
    check_seeds(seeds)
    task = task_of(method, task)
    dataset = to_dataset(data, task)
    numbers = check_groups(groups, dataset.num_features)
    if numbers is not None and not method.about.takes_groups:
        raise ConfigError(f"{method.name} chooses single columns, not groups of them")
    _check_sparse(method, dataset)
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
    entry, rows = TABLE[task], prepared.num_rows
    if batch_size == "auto":
        batch_size = COUPLED_BATCH if entry.coupled else 64
    if entry.coupled and batch_size is not None:
        # All rows once, however often an epoch visits them: copies would be at risk twice.
        batch_size = min(check_whole("batch_size", batch_size), rows)
    whole = entry.coupled and batch_size in (None, rows)
    structure, hyper = structure_of(method)
    num_columns = prepared.arrays.train.x.shape[-1]
    if early_stopping is not None:
        check_whole("early_stopping", early_stopping)
        if not len(prepared.splits[0].valid):
            raise ConfigError(
                "early_stopping looks at the validation loss, but there are no validation rows; "
                "choose a split that has some (valid_fraction=0.1), or leave it out"
            )
    control = Control(callback, max_time, keep_partial, saves=checkpoint_dir is not None)
    spec = Spec(
        num_columns=num_columns,
        num_outputs=prepared.num_outputs,
        task=task,
        num_epochs=check_whole("num_epochs", num_epochs, most=MOST),
        shuffle=bool(shuffle) and not whole,
        best_by=best_by if len(prepared.splits[0].valid) else "last",
        image_shape=dataset.image_shape if num_columns == dataset.num_features else None,
        image_order=dataset.image_order,
        groups=numbers,
        early_stopping=early_stopping,
        loss=check_loss(loss),
        task_code=fingerprint_of_task(entry),
        **_batches(prepared.num_rows, batch_size, min_steps_per_epoch, drop_last),
    )
    batch_devices = check_batch_devices(batch_devices, spec.batch_size)
    if dataset.table.batches_only:
        _check_rows(spec.batch_size, spec.num_columns, f"batch_size={batch_size}: ")
    if method.search is not None and method.search.parameter not in hyper:
        raise ConfigError(
            f"{method.name} searches for {method.search.parameter!r}, which is no float argument "
            "of a registered builder; register the method with fsjax.register"
        )
    with paused():
        check_functions(method, spec, prepared)
    return Plan(
        method=method,
        structure=structure,
        hyper=hyper,
        dataset=dataset,
        prepared=prepared,
        spec=spec,
        seeds=tuple(int(seed) for seed in seeds),
        sizes=sizes,
        axis=_seed_axis(seed_axis, dataset, len(seeds), batch_devices),
        batch_devices=batch_devices,
        progress=bool(progress),
        checkpoint_dir=None if checkpoint_dir is None else Path(checkpoint_dir),
        checkpoint_every=check_whole("checkpoint_every", checkpoint_every),
        control=control,
        start=_start(start, structure, spec, seeds),
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


def task_of(method: Method, task: str | Task | None) -> str:
    """The name of the task that is meant, by default the method's first; ConfigError for one it is
    not for.
    """
    tasks = method.about.tasks
    if task is None:
        return tasks[0]
    name = name_of(task)
    if resembled(name) not in tasks:
        raise ConfigError(
            f"{method.name} is for the task {' or '.join(tasks)}, not for {_with_likeness(name)}; "
            "labels may still be in the data"
        )
    return name


def _with_likeness(name: str) -> str:
    like = TABLE[name].like
    return f"{name}, which is like {like}" if like else name


def _start(
    result: FitResult | None, structure: Structure | Fixed, spec: Spec, seeds: Sequence[int]
) -> TrainState | None:
    """The states of an earlier result; ConfigError where they do not fit."""
    if result is None:
        return None
    if not isinstance(result, FitResult):
        raise ConfigError(f"start is of the type {type(result).__name__}; give a FitResult")
    if structure_of(result.method)[0] != structure:
        raise ConfigError(
            f"start is a result of {result.method.name} with other settings; start from one of "
            "the same method, of which only float arguments differ"
        )
    theirs = result.states.spec
    for name in ("num_columns", "num_outputs", "task"):
        if getattr(theirs, name) != getattr(spec, name):
            raise ConfigError(
                f"start has {name}={getattr(theirs, name)!r}, not {getattr(spec, name)!r}"
            )
    if len(result.seeds) != len(seeds):
        raise ConfigError(f"start has {len(result.seeds)} seeds, not {len(seeds)}")
    return result.states


def _check_sparse(method: Method, dataset: Dataset) -> None:
    """ConfigError for a table without a whole dense form and a method that needs one."""
    table = dataset.table
    if table.batches_only and not method.about.sparse:
        raise ConfigError(
            f"{method.name} looks at the whole table at once, so that {table.batches_only}"
        )
    if table.sparse:
        # About what the statistics of the columns take.
        _check_rows(8, dataset.num_features, "")


def _check_rows(rows: int, columns: int, what: str) -> None:
    """ConfigError for a batch that the memory does not hold as dense rows."""
    try:
        check_size((rows, columns), np.dtype(np.float32))
    except DataError as error:
        raise ConfigError(
            f"{what}batches are dense rows in memory, and {error}, or choose a smaller batch_size"
        ) from None


def _seed_axis(given: str, dataset: Dataset, num_seeds: int, batch_devices: int) -> str:
    """The axis of the seeds, which take turns where batches are read from disk."""
    if not dataset.table.on_disk:
        return choose_seed_axis(given, num_seeds, batch_devices)
    if batch_devices > 1 or jax.process_count() > 1:
        raise ConfigError(
            f"{dataset.name} is read from disk, for one device; leave out batch_devices and "
            "--distributed, or read the table with data.dense=true"
        )
    if given not in ("auto", "map"):
        raise ConfigError(
            f"seed_axis={given!r}, but {dataset.name} is read from disk, where seeds take turns; "
            "choose 'auto' or 'map'"
        )
    return "map"


def _best_by(method: Method, given: str | None, task: str, dataset: Dataset) -> str:
    if given is None:
        return "loss" if callable(method.keep) else method.keep
    check_choice("best_by", given, BEST_BY)
    if callable(method.keep):
        raise ConfigError(f"{method.name} keeps an epoch of its own choice; leave best_by out")
    entry = TABLE[task]
    if given == "accuracy" and given not in entry.best_by:
        raise ConfigError(f"best_by='accuracy' needs classes, but the task is {task}; use 'loss'")
    classes = dataset.num_classes if entry.classes else 2
    if given == "auc" and (given not in entry.best_by or classes != 2):
        raise ConfigError("best_by='auc' needs two classes; use 'accuracy' or 'loss'")
    return given


def _sizes(
    method: Method, given: int | Sequence[int] | None, dataset: Dataset, groups: Any
) -> tuple[int, ...]:
    """The numbers of columns; where the method was made for another number it is refused."""
    own = method.about.num_features
    told, sizes = f"num_features={given!r}", [] if own is None else [own]
    if isinstance(given, list | tuple | range | np.ndarray):
        sizes = list(given)
        told = f"sizes={tuple(sizes)}"
        if not sizes:
            raise ConfigError(f"{told}; give at least one number")
    elif given is not None:
        sizes = [cast(int, given)]  # anything else is refused below
    for k in sizes:
        check_num_features(k, dataset.num_features)
        if groups is not None and k > max(groups) + 1:
            raise ConfigError(f"num_features={k} but there are {max(groups) + 1} groups")
    if own is not None and own not in sizes:
        raise ConfigError(
            f"{told} but the method was made for {own}; "
            f"pass num_features to fsjax.methods.{method.name} only"
        )
    return tuple(int(k) for k in sizes)


def _batches(rows: int, batch_size: int | None, min_steps: int, drop_last: bool) -> dict[str, int]:
    """The fields of the spec that say how an epoch visits so many rows."""
    filled = filled_length(rows)
    min_steps = check_whole("min_steps_per_epoch", min_steps, most=MOST)
    batch_size = rows if batch_size is None else check_whole("batch_size", batch_size, most=MOST)
    repeats = max(1, math.ceil(min_steps * batch_size / rows)) if min_steps > 1 else 1
    full, rest = divmod(rows * repeats, batch_size)
    if not full:
        # One batch of all rows, those that fill up among them.
        batch_size = filled * repeats
    elif batch_size == rows and repeats == 1:
        batch_size = filled
    steps = max(full if drop_last or rest == 0 else full + 1, 1)
    return dict(num_rows=filled, batch_size=batch_size, steps_per_epoch=steps, repeats=repeats)
