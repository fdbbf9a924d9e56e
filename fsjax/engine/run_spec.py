"""The static facts of a run: how an epoch visits the rows, and what the run is trained for."""

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

#: The most epochs, rows of a step and steps of an epoch: the device counts with 32 bits.
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
      ConfigError: for numbers that are not whole or out of range, and a loss that is not a
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
    """Rows of a step as they were asked for, or as suits the task; ``None`` takes all."""
    size, coupled = options.batch_size, TABLE[task].coupled
    if size == "auto":
        size = COUPLED_BATCH if coupled else 64
    if coupled and size is not None:
        # All rows once, however often an epoch visits them: copies would be at risk twice.
        return min(check_whole("batch_size", size), rows)
    return size


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
