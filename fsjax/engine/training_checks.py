"""Checks of the recorded losses: that they are finite, and that an epoch can be kept by them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from fsjax.engine import mesh
from fsjax.engine.run import Run
from fsjax.errors import NonFiniteLossError
from fsjax.method import Method, TrainState
from fsjax.tables.scaled import leaves_of


def check_finite_losses(
    run: Run,
    seeds: Sequence[int],
    first: int,
    losses: np.ndarray,
    was_trained: np.ndarray,
    states: TrainState,
) -> None:
    """Raises NonFiniteLossError for the first training loss ``(R, E)`` that is not finite.

    ``seeds`` are those of the R rows, ``first`` is the number of epochs before the E epochs.
    """
    bad = was_trained & ~np.isfinite(losses)
    if not bad.any():
        return
    epoch = int(np.argmax(bad.any(axis=0)))
    row = int(np.argmax(bad[:, epoch]))
    largest = max(
        float(np.abs(leaf).max(initial=0.0))
        for leaf in leaves_of(run.prepared.arrays.train.x)
        if np.issubdtype(leaf.dtype, np.floating)
    )
    hyper = mesh.gathered(states.hyper, run.batch_devices)
    rate = float(np.max(hyper.get("learning_rate", 0.0)))
    causes = []
    if largest > 1e3:
        advice = "use scaling (standardize of an estimator) 'standard' or 'minmax'"
        causes.append(f"the scaled inputs reach {largest:.3g}; {advice}")
    if rate > 1e-2:
        causes.append(f"the learning rate {rate:.3g} is high; try a tenth of it")
    causes.append("a step that was too large; lower the learning rate or raise the batch size")
    raise NonFiniteLossError(
        f"the training loss became {losses[row, epoch]} in epoch {first + 1 + epoch} with "
        f"seed {seeds[row]}. Likely cause: {'; or '.join(causes)}."
    )


def check_validation(run: Run, seeds: Sequence[int], history: Mapping[str, np.ndarray]) -> None:
    """Raises NonFiniteLossError for a seed without any finite validation loss.

    Only warns if the kept epoch is the last one, or that of the method's own ``keep``.
    """
    if "valid/loss" not in history:
        return
    # Epochs that a seed did not train are NaN too, so "trained" is read from the training loss.
    trained, judged = (
        np.isfinite(history[f"{part}/loss"]).any(axis=1) for part in ("train", "valid")
    )
    failing = np.flatnonzero(trained & ~judged)
    if not failing.size:
        return
    by_loss = run.spec.best_by != "last" and not callable(run.method.keep)
    message = (
        f"the validation loss of seed {seeds[failing[0]]} was not finite in any epoch, "
        f"{'so no epoch can be kept, ' if by_loss else ''}but its training loss was finite; look "
        "for values in the validation rows that are far outside the range of the training rows, or "
        "choose the scaling 'minmax'"
    )
    if by_loss:
        raise NonFiniteLossError(message)
    warnings.warn(message, stacklevel=6)


def warn_of_unjudged(method: Method, states: TrainState) -> None:
    """Warns if the method's own ``keep`` had no finite value for any epoch of a seed."""
    unjudged = np.isinf(np.asarray(states.best.value)) & (np.asarray(states.epoch) > 0)
    if callable(method.keep) and unjudged.any():
        warnings.warn(
            f"keep of {method.name} had no finite value for {int(unjudged.sum())} of "
            f"{unjudged.size} seeds in the {int(np.max(states.epoch))} epochs that were trained; "
            "the last epoch of these seeds is kept",
            stacklevel=6,
        )
