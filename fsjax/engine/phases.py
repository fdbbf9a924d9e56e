"""Whether a run reaches the phases that the selection of its method needs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from fsjax.errors import UnreachedPhaseWarning
from fsjax.method import Method, Phase, Spec


def check_phases(method: Method, spec: Spec) -> None:
    """Checks, before training, that the epochs of a run are enough for the phases of its method.

    Warns of the first phase that the run does not reach, or may not.
    """
    for phase in method.phases(spec):
        if spec.num_epochs >= phase.epochs:
            continue
        soonest = phase.epochs if phase.soonest is None else phase.soonest
        ends = "ends" if spec.num_epochs < soonest else "may end"
        message = (
            f"{method.name}: num_epochs={spec.num_epochs} {ends} before {phase.name}, and without "
            f"that {phase.without}; give num_epochs={phase.epochs} or more{_or(phase)}"
        )
        warnings.warn(message, UnreachedPhaseWarning, stacklevel=6)
        return


def warn_of_unreached(
    method: Method, spec: Spec, kept: np.ndarray, history: Mapping[str, np.ndarray]
) -> None:
    """Warns, after training, of the first phase that was not reached though the epochs suffice.

    Args:
      kept: ``(S,)`` the kept epochs, from 1.
      history: ``(S, E)`` values by ``split/metric`` name, NaN for epochs that were not trained.
    """
    if method.loss is None:
        return
    for phase in method.phases(spec):
        soonest = phase.epochs if phase.soonest is None else phase.soonest
        if not phase.kept or spec.num_epochs < soonest:
            continue
        missing = np.asarray(kept < phase.epochs)
        if phase.recorded is not None:
            missing = np.logical_not((history[f"train/{phase.recorded}"] > 0).any(axis=1))
        if missing.any():
            warnings.warn(
                f"{method.name}: for {int(missing.sum())} of {missing.size} seeds training ended, "
                f"or the kept epoch lies, before {phase.name}, and without that {phase.without}; "
                f"train longer, or give best_by='last' if an early epoch was kept{_or(phase)}",
                UnreachedPhaseWarning,
                stacklevel=5,
            )
            return


def _or(phase: Phase) -> str:
    return f", or {phase.instead}" if phase.instead else ""
