"""The :class:`fsjax.Spec` of a run: its shapes, its task, and the batches of an epoch."""

from __future__ import annotations

import math

from fsjax.engine.fingerprint import fingerprint_of_task
from fsjax.engine.options import TrainOptions
from fsjax.engine.prepare import Prepared
from fsjax.engine.user_function_checks import check_loss
from fsjax.errors import check_whole
from fsjax.method import Spec
from fsjax.tables.dataset import Dataset
from fsjax.tables.scaled import filled_length
from fsjax.tasks import COUPLED_BATCH, TABLE

#: The largest number of epochs, rows per step and steps per epoch: the device counts in int32.
MOST = 2**31 - 1


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
    all_at_once = entry.coupled and batch_size in (None, rows)
    num_columns = prepared.arrays.train.x.shape[-1]
    return Spec(
        num_columns=num_columns,
        num_outputs=prepared.num_outputs,
        task=task,
        num_epochs=check_whole("num_epochs", options.num_epochs, most=MOST),
        shuffle=bool(options.shuffle) and not all_at_once,
        best_by=best_by if len(prepared.splits[0].valid) else "last",
        image_shape=dataset.image_shape if num_columns == dataset.num_features else None,
        image_order=dataset.image_order,
        groups=groups,
        early_stopping=options.early_stopping,
        loss=check_loss(options.loss),
        task_code=fingerprint_of_task(entry),
        **_batches(rows, batch_size, options.min_steps_per_epoch, options.drop_last),
    )


def batch_size_of(options: TrainOptions, task: str, rows: int) -> int | None:
    """Rows per step as requested, or the default of the task; ``None`` takes all rows."""
    size, coupled = options.batch_size, TABLE[task].coupled
    if size == "auto":
        size = COUPLED_BATCH if coupled else 64
    if coupled and size is not None:
        # At most all rows: if a batch held a row twice, the row would be in the risk set twice.
        return min(check_whole("batch_size", size), rows)
    return size


def _batches(rows: int, batch_size: int | None, min_steps: int, drop_last: bool) -> dict[str, int]:
    """The fields of the spec that describe how an epoch visits the rows."""
    filled = filled_length(rows)
    min_steps = check_whole("min_steps_per_epoch", min_steps, most=MOST)
    batch_size = rows if batch_size is None else check_whole("batch_size", batch_size, most=MOST)
    repeats = max(1, math.ceil(min_steps * batch_size / rows)) if min_steps > 1 else 1
    full, rest = divmod(rows * repeats, batch_size)
    if not full:
        # One batch of all rows, including padding.
        batch_size = filled * repeats
    elif batch_size == rows and repeats == 1:
        batch_size = filled
    steps = max(full if drop_last or rest == 0 else full + 1, 1)
    return dict(num_rows=filled, batch_size=batch_size, steps_per_epoch=steps, repeats=repeats)
