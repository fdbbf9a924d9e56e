"""``plan``: everything that a run needs, checked once, before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from fsjax.engine.control import Callback
from fsjax.engine.options import grouped
from fsjax.engine.planned import Plan
from fsjax.engine.planning import Data, planned_run
from fsjax.engine.result import FitResult
from fsjax.errors import suggests_names
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
    return planned_run(method, data, *grouped(locals()))
