"""Training delay: how soon a network gets close to the best accuracy."""

from __future__ import annotations

import math

import numpy as np

from fsjax.errors import ConfigError


def training_delay(accuracy: np.ndarray, best: float, threshold: float = 0.9) -> np.ndarray:
    """Share of the epochs until ``threshold * best`` is reached (CTRE, appendix A, eq. 3).

    Args:
      accuracy: ``(S, E)`` or ``(E,)``: test accuracy after each of the E epochs; NaN where it was
        not measured.
      best: the best accuracy of all compared methods, in the unit of ``accuracy``, at least 0.
      threshold: above 0, at most 1; 0.9 in the paper.

    Returns:
      ``(S,)`` in percent, above 0 and at most 100; NaN for seeds that never get there.

    Raises:
      ConfigError: for values out of these ranges, or without epochs.
    """
    accuracy = np.asarray(accuracy)
    if accuracy.ndim not in (1, 2) or accuracy.shape[-1] == 0:
        raise ConfigError(
            f"accuracy has shape {accuracy.shape}; give (seeds, epochs) with at least one epoch"
        )
    if not 0 < threshold <= 1:
        raise ConfigError(f"threshold={threshold}; choose above 0, at most 1")
    if not math.isfinite(best) or best < 0:
        raise ConfigError(f"best={best}; give a finite accuracy, at least 0")
    reached = np.atleast_2d(accuracy) >= threshold * best
    percent = 100.0 * (reached.argmax(axis=1) + 1) / reached.shape[1]
    return np.where(reached.any(axis=1), percent, np.nan)
