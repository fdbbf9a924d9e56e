"""The contract of a task, for your own too: ``check_task``, which :mod:`fsjax.testing` offers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from fsjax.tasks import TABLE, Task, name_of, row_metrics
from fsjax.tasks import loss as task_loss
from fsjax.tasks import metrics as task_metrics
from fsjax.tasks.checks import Sample, sample

#: Rows on which a task is checked.
ROWS_OF_TASK = 24


def check_task(task: str | Task, y: ArrayLike | None = None) -> None:
    """Checks that a task keeps the contract of :class:`fsjax.tasks.Task`.

    The checks use random outputs:

    - a row of weight 0 does not count, and a row of weight 2 counts as two rows;
    - the gradient is finite, and a small step against it lowers the loss;
    - metrics and test metrics are finite, and predictions can be scored;
    - unless the task declares its rows as coupled: scaling all weights changes nothing, and the
      loss of all rows is the mean of their losses.

    Args:
      task: a task, or its name.
      y: targets of at least 8 rows; ``None`` takes an example of the built-in task that the task
        resembles, which is enough if it accepts all targets of that task.

    Raises:
      AssertionError: if a check fails; the message says which.
      ConfigError: for an unknown or invalid task.
    """
    name = name_of(task)
    entry, rows = TABLE[name], sample(TABLE[name], TABLE[name].target, y, ROWS_OF_TASK)
    compiled = jax.jit(functools.partial(task_metrics, name))

    def values(*arrays: Any) -> dict[str, float]:
        return {key: float(value) for key, value in compiled(*arrays).items()}

    before = values(*rows)
    for key, value in before.items():
        require_that(np.isfinite(value), f"{key} is {value}")
    _check_weights(values, rows, entry.objective.coupled)
    if not entry.objective.coupled:
        one_by_one = jax.jit(functools.partial(row_metrics, name))(rows.outputs, rows.y)["loss"]
        advice = (
            f"the loss of all rows is {before['loss']:.4g}, the mean of their losses "
            f"{np.mean(one_by_one):.4g}; set coupled=True if a loss depends on the other rows"
        )
        require_that(np.isclose(np.mean(one_by_one), before["loss"], rtol=1e-3, atol=1e-6), advice)
    slope = np.asarray(jax.jit(jax.grad(functools.partial(task_loss, name)))(*rows))
    require_that(np.isfinite(slope).all(), "the gradient of the loss is not finite")
    require_that(slope.any(), "the gradient of the loss is 0 everywhere, so that nothing is learnt")
    after = values(rows.outputs - 1e-2 / np.abs(slope).max() * slope, rows.y, rows.weight)["loss"]
    lower = f"a step against the gradient turns the loss {before['loss']:.6g} into {after:.6g}"
    require_that(after < before["loss"], lower)
    for key, value in entry.outputs.test_metrics(rows.outputs, rows.y).items():
        require_that(np.isfinite(value), f"the test metric {key!r} is {value}")
    outputs = entry.outputs
    if outputs.score is not None:
        predictions = outputs.estimate(np.stack([rows.outputs, rows.outputs]))
        if outputs.one_output and predictions.ndim == 2:
            predictions = predictions[:, 0]
        score = outputs.score(rows.y, predictions, sample_weight=rows.weight)
        require_that(np.isfinite(score), f"the score is {score}")


def _check_weights(values: Callable[..., dict[str, float]], rows: Sample, coupled: bool) -> None:
    """Checks that weight 0 removes a row, weight 2 doubles it, and only ratios matter."""
    outputs, y, weight = rows
    numbers = np.arange(len(y))
    first = (numbers < len(y) // 2).astype(np.float32)
    others = np.where(first, numbers, numbers[::-1] // 2)
    twice = np.r_[0, numbers[:-1]]
    # Weights of the rotated rows: 0 for the last row, which comes first, and 2 for row 0.
    heavier = np.r_[np.array([0.0, 2.0], np.float32), weight[2:]]
    rotated = (np.roll(part, 1, axis=0) for part in (outputs, y))
    pairs = {
        "rows of weight 0 change": ((outputs, y, first), (outputs[others], y[others], first)),
        "a row of weight 2 is not two rows for": (
            (outputs[twice], y[twice], weight),
            (*rotated, heavier),
        ),
    }
    if not coupled:  # Cox's likelihood grows by the logarithm of a common factor
        fault = "divide by the sum of the weights: weights twice as large change"
        pairs[fault] = rows, (outputs, y, 2.0 * weight)
    for fault, (plain, changed) in pairs.items():
        before, after = values(*plain), values(*changed)
        for key, value in before.items():
            same = np.isclose(value, after[key], rtol=1e-3, atol=1e-6)
            require_that(same, f"{fault} {key}: {value:.4g} and {after[key]:.4g}")


def require_that(holds: bool | np.bool_, message: str) -> None:
    if not holds:
        raise AssertionError(message)
