"""``plan``, which checks a run before it is trained; ``fit`` and ``fit_sizes``, which train it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fsjax.arguments.signatures import takes_arguments_of
from fsjax.engine.check_run import Data, check_run
from fsjax.engine.control import Callback
from fsjax.engine.options import DataOptions, RunOptions, TrainOptions
from fsjax.engine.plan import Plan
from fsjax.engine.result import FitResult
from fsjax.errors import ConfigError, check_flag, check_names, suggests_names
from fsjax.method import Loss, Method
from fsjax.tables.splits import Split
from fsjax.tasks import Task


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
      method: a method of ``fsjax.methods``, or your own.
      data: a data set, or ``(X, y)`` with X ``(N, D)`` and y as the task requires, or ``None``. For
        methods that train on batches X may be a sparse matrix or array of SciPy, or a pandas frame
        with sparse columns; only batches are then made dense.
      seeds: whole numbers from 0; each gives one run (initialisation, noise, order of rows).
      task: ``classification``, ``reconstruction`` (y is not used), ``regression``,
        ``multilabel`` (y ``(N, L)`` of 0 and 1), ``counts`` or ``survival`` (y ``(N, 2)``, time and
        event); see :data:`fsjax.tasks.TABLE`. Or a registered task, as a value or as text such as
        ``quantile(0.9)`` (:func:`fsjax.tasks.register`). By default the first task of the method.
      loss: ``(outputs (B, C), y, weight (B,)) -> scalar``, replaces the loss of the task in
        training and validation; the penalties of the method stay. Rows of weight 0 must not count,
        as in ``fsjax.tasks.weighted_mean``.
      num_features: K, or several numbers; by default the method's own.
      num_epochs: epochs to train, at least 1.
      batch_size: rows per step, at least 1. ``None``, or a number above that of the training rows,
        takes all of them. ``auto`` is 64, and 4096 for survival, whose loss compares the rows of a
        batch.
      shuffle: whether each epoch visits the rows in a new order.
      drop_last: whether to skip the incomplete last batch of an epoch.
      min_steps_per_epoch: an epoch visits all training rows repeatedly until it has this many
        steps (BinMask, section 4.1: 30).
      split: a protocol of ``fsjax.data.make_split``, where ``paper`` is that of the data set's
        paper; or your own ``fsjax.data.Split``, or one per seed. Without test rows there are no
        test metrics.
      split_per_seed: whether each seed draws its own split; the papers share one.
      scaling: a kind of ``fsjax.data.fit_scaler``; ``paper`` is that of the data set's paper.
      valid_fraction: share, in [0, 1), of the training rows that are used for validation; ``None``
        takes that of the split protocol.
      noise_std: standard deviation, at least 0, of Gaussian noise that is added once to the scaled
        training rows (WAST, appendix G).
      sample_weight: ``(N,)`` weights above 0 of the rows in the training and validation losses;
        each batch is divided by the sum of its weights. Test metrics weight all rows equally.
      groups: ``(D,)`` whole numbers from 0 to G - 1, the group of each column. Groups are then
        selected as a whole: K is a number of groups, and everything that the result has per
        column, such as ``selected`` and ``scores``, it has per group.
      columns: ``(S, M)`` columns to which the network of each seed is restricted, for trainings
        (``plan(...).train()``), not for selections; ``None`` uses all.
      zero_others: with ``columns``, whether the other columns are kept as zeros, for convolutional
        networks, instead of being removed.
      best_by: the criterion for the epoch whose state is kept: the lowest validation ``loss``, the
        highest validation ``accuracy`` or (two classes) ``auc``, or ``last`` for the last epoch.
        By default that of the method: ``last`` if it prunes during training, else ``loss``.
      record_test: whether to record the test metrics after each epoch, for learning curves;
        nothing is selected by them.
      seed_axis: ``vmap`` or ``map`` on one device, ``shard`` over the devices of all processes, or
        ``auto`` to choose by the devices. The results of a seed are the same on each up to
        floating-point reassociation.
      batch_devices: number of devices over which the rows of each batch are split, for large runs;
        it must divide the number of devices and ``batch_size``. The loss and its noise are those
        of the whole batch, up to floating-point reassociation.
      progress: whether to show a progress bar.
      checkpoint_dir: folder for checkpoints; a run that finds its own checkpoints there resumes,
        and its result is bitwise equal to that of an uninterrupted run. A run with a lambda, a
        local function or a function of a notebook is not saved, with a warning. ``None`` saves
        none.
      checkpoint_every: epochs between checkpoints.
      early_stopping: a seed ends after this many epochs without a lower validation loss (or a
        better value of ``best_by``); ``None`` trains all epochs.
      max_time: seconds, including compilation, after which training ends with the epochs done so
        far; at least one call of the program, about a second, is made.
      callback: a function of :class:`fsjax.Progress`, called on the host after each epoch; a true
        result ends training. See :func:`fsjax.log_to` for loggers.
      keep_partial: whether the first Ctrl-C ends training with a warning and the result of the
        epochs done so far; the second one interrupts.
      start: an earlier result of the same method, shapes and number of seeds; training starts from
        its parameters, masks and importances, with a new optimiser state and new schedules.

    Returns:
      The plan; :meth:`Plan.fit` runs it.

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for invalid settings.

    Examples:
      >>> # a fsjax.Plan: checks, trains nothing
      >>> plan = fsjax.plan(method, data, num_features=2, num_epochs=2)
      >>> result = plan.fit()
    """
    # fmt: off
    data_options = DataOptions(
        task=task, num_features=num_features, split=split, scaling=scaling,
        split_per_seed=check_flag("split_per_seed", split_per_seed),
        valid_fraction=valid_fraction, noise_std=noise_std, sample_weight=sample_weight,
        groups=groups, columns=columns, zero_others=check_flag("zero_others", zero_others),
        record_test=check_flag("record_test", record_test),
    )
    train_options = TrainOptions(
        loss=loss, num_epochs=num_epochs, batch_size=batch_size,
        shuffle=check_flag("shuffle", shuffle), drop_last=check_flag("drop_last", drop_last),
        min_steps_per_epoch=min_steps_per_epoch, best_by=best_by, early_stopping=early_stopping,
    )
    run_options = RunOptions(
        seeds=seeds, seed_axis=seed_axis, batch_devices=batch_devices,
        progress=check_flag("progress", progress), checkpoint_dir=checkpoint_dir,
        checkpoint_every=checkpoint_every, max_time=max_time, callback=callback,
        keep_partial=check_flag("keep_partial", keep_partial), start=start,
    )
    # fmt: on
    return check_run(method, data, data_options, train_options, run_options)


@takes_arguments_of(plan)
def fit(method: Method, data: Data, **options: Any) -> FitResult:
    """Trains a method once for each seed and evaluates it on the test rows.

    Args:
      method: a method of ``fsjax.methods``, or your own.
      data: a data set, or ``(X, y)`` with X ``(N, D)`` and y ``(N,)`` or ``None``.
      **options: those of :func:`fsjax.plan`, such as ``seeds``, ``num_features`` and
        ``num_epochs``.

    Returns:
      The result at the best epoch, or at the last one if there are no validation rows.

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for invalid settings.
      NonFiniteLossError: if the training loss becomes NaN or infinite.

    Examples:
      >>> # a fsjax.FitResult
      >>> result = fsjax.fit(method, data, seeds=range(3), num_features=2, num_epochs=2)
      >>> print(result.selected)  # (3, 2): two columns per seed, the most important first
      >>> print(result.selection_frequency)  # (6,)
      >>> print(result.to_frame().head())
    """
    planned = plan(method, data, **options)
    planned.check_one_size("use fsjax.fit_sizes for several")
    return planned.fit()[0]


def fit_sizes(
    method: Method, data: Data, sizes: Sequence[int], **options: Any
) -> dict[int, FitResult]:
    """Selects several numbers of columns with as few trainings as possible.

    A method that ranks the columns is trained once. A method that searches for the regularization
    strength that leaves exactly K gates open (BinMask, STG) reuses every training for each K.

    Args:
      method: a method as for :func:`fit`; if possible, build it without ``num_features``.
      data: as for :func:`fit`.
      sizes: numbers of columns, each at least 1.
      **options: those of :func:`fsjax.plan` except ``num_features``.

    Returns:
      The result for each number, in the given order.

    Raises:
      ConfigError, DataError, NonFiniteLossError: as :func:`fit`.

    Examples:
      >>> results = fsjax.fit_sizes(method, data, (2, 4), num_epochs=2)
      >>> print(results[2].selected, results[4].selected)
    """
    if "num_features" in options:
        raise ConfigError(
            f"sizes={tuple(sizes)} already gives the numbers of columns; leave num_features out"
        )
    check_names("fit_sizes has no", options, inspect.signature(plan).parameters)
    results = plan(method, data, num_features=list(sizes), **options).fit()
    return dict(zip(sizes, results, strict=True))
