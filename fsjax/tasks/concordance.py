"""Harrell's concordance index, without a loop over pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fsjax.errors import DataError


def concordance_index(
    time: ArrayLike, event: ArrayLike, risk: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """The share of pairs in which the row with the earlier event has the larger risk.

    Harrell et al., JAMA 1982. A pair is comparable if the row with the shorter time had the event;
    at equal times, if one row had the event and the other is censored. Equal risks count half.
    Takes ``O(N log(N)^2)`` time.

    Args:
      time: ``(N,)``, in any unit; only the order matters.
      event: ``(N,)``, 1 (or true) where the event was observed, 0 where the row is censored.
      risk: ``(N,)``, larger for earlier events.
      sample_weight: ``(N,)``, at least 0; the weight of a pair is the product of its rows'.

    Returns:
      A number in [0, 1]: 0.5 for uninformative risks, 1 for the correct order.

    Raises:
      DataError: for different lengths, missing or infinite values, other events than 0 and 1,
        negative weights, or if no pair is comparable.
    """
    time, risk = np.asarray(time, np.float64), np.asarray(risk, np.float64)
    event = np.asarray(event, np.float64)
    weight = np.ones(time.shape) if sample_weight is None else np.asarray(sample_weight, np.float64)
    shapes = {array.shape for array in (time, event, risk, weight)}
    if len(shapes) > 1 or time.ndim != 1:
        lengths = ", ".join(str(array.shape) for array in (time, event, risk))
        raise DataError(f"time, event and risk have the shapes {lengths}; give (N,) each")
    if not all(np.isfinite(array).all() for array in (time, event, risk, weight)):
        raise DataError(
            "time, event, risk or sample_weight has NaN or infinite values; leave these rows out"
        )
    if not np.isin(event, (0, 1)).all():
        raise DataError(
            f"event has the values {np.unique(event)[:5]}; give 1 where the event was observed, "
            "and 0 where the row is censored"
        )
    if (weight < 0).any():
        raise DataError(f"sample_weight holds {weight.min()}; give numbers of at least 0")
    order = np.unique(np.stack([time, 1 - event]), axis=1, return_inverse=True)[1].ravel()
    ranks = np.unique(risk, return_inverse=True)[1]
    levels = max(int(order.max(initial=0)).bit_length(), 1)
    concordant = sum(
        concordant_at(np, order, ranks, event > 0, weight, bit) for bit in range(levels)
    )
    pairs = comparable(np, order, event > 0, weight)
    if not pairs > 0:
        raise DataError(
            "no two rows are comparable: no event is earlier than the time of another row; give "
            "more rows, or check the column of events"
        )
    return float(np.clip(concordant / pairs, 0.0, 1.0))


def comparable(xp: Any, order: Any, event: Any, weight: Any) -> Any:
    """The total weight of the comparable pairs; arguments as for :func:`concordant_at`."""
    places = xp.argsort(order)
    order, event, weight = order[places], event[places], weight[places]
    cumulative = xp.cumsum(weight)
    after = cumulative[-1] - cumulative[xp.searchsorted(order, order, side="right") - 1]
    return xp.sum(xp.where(event, weight * after, 0.0))


def concordant_at(xp: Any, order: Any, ranks: Any, event: Any, weight: Any, bit: Any) -> Any:
    """The weight of concordant pairs whose ranks in time first differ in a given binary digit.

    The sum over all digits covers all pairs: among rows with equal higher digits, rows with a 0 in
    this digit come before rows with a 1. Ordered by risk, one running sum counts these pairs.

    Args:
      xp: NumPy or ``jax.numpy``.
      order: ``(N,)`` whole numbers from 0: the rank by time, with events before censored rows of
        the same time; equal for equal rows.
      ranks: ``(N,)`` numbers, larger for larger risk.
      event: ``(N,)`` bool.
      weight: ``(N,)``, at least 0.
      bit: the digit, from 0.
    """
    above, later = order >> (bit + 1), (order >> bit) & 1
    places = xp.lexsort((ranks, above))
    above, ranks, later = above[places], ranks[places], later[places]
    event, weight = event[places], weight[places]
    none = xp.zeros((1,), weight.dtype)
    cumulative = xp.concatenate([none, xp.cumsum(xp.where(later == 1, weight, 0.0))])
    # Numbers of groups of rows with equal higher digits, and of runs of equal risk in them.
    new_group = above[1:] != above[:-1]
    start = xp.zeros((1,), int)
    group = xp.concatenate([start, xp.cumsum(new_group)])
    run = xp.concatenate([start, xp.cumsum(new_group | (ranks[1:] != ranks[:-1]))])
    below = cumulative[xp.searchsorted(run, run, side="left")]
    through = cumulative[xp.searchsorted(run, run, side="right")]
    before = cumulative[xp.searchsorted(group, group, side="left")]
    earlier = event & (later == 0)
    return xp.sum(xp.where(earlier, weight * ((below + through) / 2 - before), 0.0))
