"""All checks of a run: a method, data and options become a :class:`~fsjax.engine.plan.Plan`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np
from numpy.typing import ArrayLike

from fsjax.engine.compilation import check_platform
from fsjax.engine.control import Control
from fsjax.engine.environment.garbage_collection import paused
from fsjax.engine.environment.jax_settings import check_process
from fsjax.engine.fingerprint import unidentified
from fsjax.engine.mesh import check_batch_devices, choose_seed_axis
from fsjax.engine.method_checks import check_fields, check_functions
from fsjax.engine.options import DataOptions, RunOptions, TrainOptions
from fsjax.engine.phases import check_phases
from fsjax.engine.plan import Plan
from fsjax.engine.prepare import Prepared, check_seeds, prepare
from fsjax.engine.result import FitResult
from fsjax.engine.user_function_checks import check_loss
from fsjax.errors import ConfigError, DataError, check_choice, check_num_features, check_whole
from fsjax.method import BEST_BY, Loss, Method, Spec, TrainState
from fsjax.registry import MethodStructure, structure_of
from fsjax.tables.dataset import Dataset
from fsjax.tables.groups import checked_groups
from fsjax.tables.scaled import filled_length
from fsjax.tables.sparse import check_size
from fsjax.tables.user_arrays import check_row_order
from fsjax.tasks import COUPLED_BATCH, TABLE, Task, name_of
from fsjax.tasks.from_arrays import as_dataset
from fsjax.tasks.registry import resembled

#: A data set, or X and y.
Data = Dataset | tuple[ArrayLike, ArrayLike | None]

#: The largest number of epochs, rows per step and steps per epoch: the device counts in int32.
MAX_COUNT = 2**31 - 1


def check_run(
    method: Method,
    data: Data,
    data_options: DataOptions,
    train_options: TrainOptions,
    run_options: RunOptions,
) -> Plan:
    """Checks everything about a run, then makes its plan; errors are those of ``fsjax.plan``."""
    _check_method(method)
    check_platform()
    check_process()
    seeds, task = run_options.seeds, task_of(method, data_options.task)
    check_seeds(seeds)
    checkpoint_every = check_whole("checkpoint_every", run_options.checkpoint_every)
    folder = _checkpoint_folder(run_options.checkpoint_dir, method, task, train_options.loss)
    control = Control(
        run_options.callback,
        run_options.max_time,
        run_options.keep_partial,
        saves=folder is not None,
    )
    dataset = to_dataset(data, task)
    if not isinstance(data, Dataset):
        check_row_order(data[0], sample_weight=data_options.sample_weight)
    _check_sparse(method, dataset)
    groups = _groups(method, data_options, dataset)
    sizes = _sizes(method, data_options.num_features, dataset, groups)
    best_by = _best_by(method, train_options.best_by, task, dataset)
    prepared = prepare(dataset, task, seeds, data_options)
    spec = spec_of(dataset, prepared, task, best_by, groups, train_options)
    if dataset.table.batches_only:
        size = batch_size_of(train_options, task, prepared.num_rows)
        _check_rows(spec.batch_size, spec.num_columns, f"batch_size={size}: ")
    batch_devices = check_batch_devices(run_options.batch_devices, spec.batch_size)
    axis = _seed_axis(run_options.seed_axis, dataset, len(seeds), batch_devices)
    structure, hyper = structure_of(method)
    start = _start(run_options.start, structure, spec, seeds)
    with paused():
        check_functions(method, spec, prepared, dataset.table.on_disk)
    check_phases(method, spec)
    return Plan(
        method=method,
        structure=structure,
        hyper=hyper,
        dataset=dataset,
        prepared=prepared,
        spec=spec,
        seeds=tuple(int(seed) for seed in seeds),
        sizes=sizes,
        axis=axis,
        batch_devices=batch_devices,
        progress=run_options.progress,
        checkpoint_dir=folder,
        checkpoint_every=checkpoint_every,
        control=control,
        start=start,
    )


def _checkpoint_folder(
    folder: str | Path | None, method: Method, task: str, loss: Loss | None
) -> Path | None:
    """The folder of checkpoints; ``None``, with a warning, for a run that could not resume."""
    if folder is None:
        return None
    if not isinstance(folder, str | Path):
        raise ConfigError(f"checkpoint_dir={folder!r}; give a path, or None")
    parts = unidentified(method, task, loss)
    if not parts:
        return Path(folder)
    warnings.warn(
        f"the run writes no checkpoints to {folder} and always starts anew, because another "
        f"process could not find {' and '.join(parts)} by name; define functions, and the "
        "registered functions that return methods and tasks, at the top level of a module",
        stacklevel=4,
    )
    return None


def _groups(method: Method, options: DataOptions, dataset: Dataset) -> tuple[int, ...] | None:
    """The group of each column; ConfigError if the method cannot select groups."""
    groups = checked_groups(options.groups, dataset.num_features)
    if groups is not None and not method.about.takes_groups:
        raise ConfigError(
            f"{method.name} selects single columns, not groups; leave groups out, or choose "
            "another method"
        )
    return groups


def _early_stopping(epochs: int | None, prepared: Prepared) -> int | None:
    """The patience as an ``int``; ConfigError without validation rows."""
    if epochs is None:
        return None
    patience = check_whole("early_stopping", epochs)
    if not len(prepared.splits[0].valid):
        raise ConfigError(
            "early_stopping needs the validation loss, but there are no validation rows; choose a "
            "split that has some (valid_fraction=0.1), or leave early_stopping out"
        )
    return patience


def to_dataset(data: Data, task: str) -> Dataset:
    """Converts the data of a call to a data set.

    Raises:
      ConfigError: for anything but a data set or a pair ``(X, y)``.
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
    """Raises ConfigError for anything but a method whose fields fit together."""
    if not isinstance(method, Method):
        name = getattr(method, "__name__", None) or (
            method if isinstance(method, str) else type(method).__name__
        )
        raise ConfigError(
            f"{name} is not a method; give fsjax.fit a method, such as fsjax.methods.ip_cae(10), "
            "and then the data. Estimators of fsjax.estimators have their own fit"
        )
    check_fields(method)
    if method.search is not None and method.search.parameter not in structure_of(method)[1]:
        raise ConfigError(
            f"{method.name} searches for {method.search.parameter!r}, which is not a float "
            "argument of a registered builder; register the method with fsjax.register"
        )


def task_of(method: Method, task: str | Task | None) -> str:
    """The name of the task, by default the method's first.

    Raises:
      ConfigError: for a task that the method does not support.
    """
    tasks = method.about.tasks
    if task is None:
        return tasks[0]
    name = name_of(task)
    if resembled(name) not in tasks:
        like = f", which is like {TABLE[name].like}" if TABLE[name].like else ""
        raise ConfigError(
            f"{method.name} is for the task {' or '.join(tasks)}, not for {name}{like}; the data "
            "may still have labels"
        )
    return name


def _start(
    result: FitResult | None, structure: MethodStructure, spec: Spec, seeds: Sequence[int]
) -> TrainState | None:
    """The states of an earlier result to start from; ConfigError if they do not fit this run."""
    if result is None:
        return None
    if not isinstance(result, FitResult):
        raise ConfigError(f"start is of the type {type(result).__name__}; give a FitResult")
    if structure_of(result.method)[0] != structure:
        raise ConfigError(
            f"start is a result of {result.method.name} with other settings; give a result of the "
            "same method that differs only in float arguments"
        )
    start_spec = result.states.spec
    for name in ("num_columns", "num_outputs", "task"):
        if getattr(start_spec, name) != getattr(spec, name):
            raise ConfigError(
                f"start has {name}={getattr(start_spec, name)!r}, but this run has "
                f"{getattr(spec, name)!r}; they must be equal"
            )
    if len(result.seeds) != len(seeds):
        raise ConfigError(
            f"start has {len(result.seeds)} seeds, but this run has {len(seeds)}; give as many"
        )
    return result.states


def _check_sparse(method: Method, dataset: Dataset) -> None:
    """Raises ConfigError if the method needs the whole table and it is only read in batches."""
    table = dataset.table
    if table.batches_only and not method.about.sparse:
        raise ConfigError(
            f"{method.name} looks at the whole table at once, so {table.batches_only}"
        )
    if table.sparse:
        # The statistics of the columns take about as much memory as 8 dense rows.
        _check_rows(8, dataset.num_features, "")


def _check_rows(rows: int, columns: int, what: str) -> None:
    """Raises ConfigError for a batch that does not fit into memory as dense rows."""
    try:
        check_size((rows, columns), np.dtype(np.float32))
    except DataError as error:
        raise ConfigError(
            f"{what}batches are dense rows in memory, and {error}, or choose a smaller batch_size"
        ) from None


def _seed_axis(seed_axis: str, dataset: Dataset, num_seeds: int, batch_devices: int) -> str:
    """How the seeds run; they take turns if batches are read from disk."""
    if not dataset.table.on_disk:
        return choose_seed_axis(seed_axis, num_seeds, batch_devices)
    if batch_devices > 1 or jax.process_count() > 1:
        raise ConfigError(
            f"{dataset.name} is read from disk, which only one device can do; leave out "
            "batch_devices and --distributed, or read the table with data.dense=true"
        )
    if seed_axis not in ("auto", "map"):
        raise ConfigError(
            f"seed_axis={seed_axis!r}, but {dataset.name} is read from disk, where seeds take "
            "turns; choose 'auto' or 'map'"
        )
    return "map"


def _best_by(method: Method, best_by: str | None, task: str, dataset: Dataset) -> str:
    if best_by is None:
        return "loss" if callable(method.keep) else method.keep
    check_choice("best_by", best_by, BEST_BY)
    if callable(method.keep):
        raise ConfigError(f"{method.name} chooses the best epoch itself; leave best_by out")
    entry = TABLE[task]
    if best_by in ("accuracy", "auc") and best_by not in entry.objective.best_by:
        raise ConfigError(f"best_by={best_by!r} needs classes, but the task is {task}; use 'loss'")
    if best_by == "auc" and entry.target.classes and dataset.num_classes != 2:
        raise ConfigError("best_by='auc' needs two classes; use 'accuracy' or 'loss'")
    return best_by


def _sizes(
    method: Method, num_features: int | Sequence[int] | None, dataset: Dataset, groups: Any
) -> tuple[int, ...]:
    """The numbers of columns; ConfigError if the method was built for another number."""
    default_size = method.about.num_features
    sizes = [] if default_size is None else [default_size]
    subject = f"num_features={num_features!r}"
    if isinstance(num_features, list | tuple | range | np.ndarray):
        sizes = list(num_features)
        subject = f"sizes={tuple(sizes)}"
        if not sizes:
            raise ConfigError(f"{subject}; give at least one number")
    elif num_features is not None:
        sizes = [cast(int, num_features)]  # anything else is refused below
    for k in sizes:
        check_num_features(k, dataset.num_features)
        if groups is not None and k > max(groups) + 1:
            raise ConfigError(
                f"num_features={k} but there are {max(groups) + 1} groups; choose at most that many"
            )
    if default_size is not None and default_size not in sizes:
        raise ConfigError(
            f"{subject} but the method was made for {default_size}; give num_features only to "
            f"fsjax.methods.{method.name}"
        )
    return tuple(int(k) for k in sizes)


def spec_of(
    dataset: Dataset,
    prepared: Prepared,
    task: str,
    best_by: str,
    groups: tuple[int, ...] | None,
    options: TrainOptions,
) -> Spec:
    """The :class:`fsjax.Spec` of a run on prepared rows.

    Raises:
      ConfigError: for numbers that are not whole or out of range, and for a loss that is not a
        function.
    """
    entry, rows = TABLE[task], prepared.num_rows
    batch_size = batch_size_of(options, task, rows)
    all_at_once = entry.objective.coupled and batch_size in (None, rows)
    num_columns = prepared.arrays.train.x.shape[-1]
    return Spec(
        num_columns=num_columns,
        num_outputs=prepared.num_outputs,
        task=task,
        num_epochs=check_whole("num_epochs", options.num_epochs, max_value=MAX_COUNT),
        shuffle=options.shuffle and not all_at_once,
        best_by=best_by if len(prepared.splits[0].valid) else "last",
        image_shape=dataset.image_shape if num_columns == dataset.num_features else None,
        image_order=dataset.image_order,
        groups=groups,
        early_stopping=_early_stopping(options.early_stopping, prepared),
        loss=check_loss(options.loss),
        registered_task=entry if entry.source else None,
        **_batches(rows, batch_size, options.min_steps_per_epoch, options.drop_last),
    )


def batch_size_of(options: TrainOptions, task: str, rows: int) -> int | None:
    """Rows per step as requested, or the default of the task; ``None`` takes all rows."""
    size, coupled = options.batch_size, TABLE[task].objective.coupled
    if size == "auto":
        size = COUPLED_BATCH if coupled else 64
    if coupled and size is not None:
        # At most all rows, as a row that a batch holds twice is in the risk set twice. On small
        # tables, batches of several passes of an epoch may still hold one twice.
        return min(check_whole("batch_size", size), rows)
    return size


def _batches(rows: int, batch_size: int | None, min_steps: int, drop_last: bool) -> dict[str, int]:
    """The fields of the spec that describe how an epoch visits the rows."""
    filled = filled_length(rows)
    min_steps = check_whole("min_steps_per_epoch", min_steps, max_value=MAX_COUNT)
    batch_size = (
        rows if batch_size is None else check_whole("batch_size", batch_size, max_value=MAX_COUNT)
    )
    repeats = max(1, math.ceil(min_steps * batch_size / rows)) if min_steps > 1 else 1
    full, rest = divmod(rows * repeats, batch_size)
    if not full:
        # One batch of all rows, including padding.
        batch_size = filled * repeats
    elif batch_size == rows and repeats == 1:
        batch_size = filled
    steps = max(full if drop_last or rest == 0 else full + 1, 1)
    return dict(num_rows=filled, batch_size=batch_size, steps_per_epoch=steps, repeats=repeats)
