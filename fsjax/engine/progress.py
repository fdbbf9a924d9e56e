"""Progress bar and the likely cause of a loss that is not finite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tqdm import tqdm

from fsjax.errors import NonFiniteLossError
from fsjax.tasks import MAIN_METRIC


def progress_bar(label: str, num_epochs: int, done: int, shown: bool) -> tqdm:
    """A bar over epochs with the time left; silent where ``shown`` is false."""
    return tqdm(total=num_epochs, initial=done, desc=label, unit="epoch", disable=not shown)


def describe(task: str, history: Mapping[str, np.ndarray]) -> str:
    """The current validation metric (or training loss), as a mean over seeds, for the bar."""
    name = MAIN_METRIC[task][0]
    for key in (f"valid/{name}", "train/loss"):
        if key in history and history[key].shape[1]:
            newest = history[key][:, -1]
            if np.isfinite(newest).any():
                return f"{key} {np.nanmean(newest):.4g}"
    return ""


def check_finite(
    history: Mapping[str, np.ndarray],
    ran: np.ndarray,
    first_epoch: int,
    seeds: Sequence[int],
    hints: Sequence[str],
) -> None:
    """Stops a run whose loss is not finite.

    Args:
      history: arrays ``(S, E)`` by name; ``train/loss`` is looked at.
      ran: ``(S, E)`` bool, the epochs that were trained.
      first_epoch: the number, from 1, of the first of these epochs.
      seeds: the seeds, in the order of the rows.
      hints: likely causes, most likely first.

    Raises:
      NonFiniteLossError: with the first such epoch, its seed and the likely cause.
    """
    bad = ran & ~np.isfinite(history["train/loss"])
    if not bad.any():
        return
    epoch = int(np.argmax(bad.any(axis=0)))
    row = int(np.argmax(bad[:, epoch]))
    value = history["train/loss"][row, epoch]
    raise NonFiniteLossError(
        f"the training loss became {value} in epoch {first_epoch + epoch} with seed {seeds[row]}. "
        f"Likely cause: {'; or '.join(hints)}."
    )


def likely_causes(x_train: np.ndarray, learning_rate: float) -> list[str]:
    """Why a loss may have left the finite numbers, most likely first."""
    causes = []
    largest = float(np.abs(x_train).max(initial=0.0))
    if largest > 1e3:
        causes.append(f"the scaled inputs reach {largest:.3g}; use scaling='standard' or 'minmax'")
    if learning_rate > 1e-2:
        causes.append(f"the learning rate {learning_rate:.3g} is high; try a tenth of it")
    causes.append("a step that was too large; lower the learning rate or raise the batch size")
    return causes
