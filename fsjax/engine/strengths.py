"""Which strengths to try so that exactly K gates stay open (BinMask, section 3.2): pure decisions.

The paper searches exponentially for a strength and a threshold in [0.2, 0.8] that leave K gates
open. Here a bracket, once there is one, is narrowed by interpolation between the numbers of open
gates, which both fall as powers of the strength.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

#: A gate is undecided between these values, so a threshold there cuts nothing that has converged.
LOWEST, HIGHEST = 0.2, 0.8

#: Of the strength, from one trial to the next, while no bracket is known.
FACTOR = 2.0

#: Strengths that are closer than this share are not told apart.
CLOSEST = 1.005


def threshold_for(gates: np.ndarray, k: int) -> float | None:
    """A threshold in [0.2, 0.8] that exactly k gates reach.

    Args:
      gates: ``(D,)`` in [0, 1].
      k: from 1 to D.

    Returns:
      The largest one, or ``None`` where there is none.
    """
    ordered = np.sort(np.asarray(gates))[::-1]
    last, next_one = float(ordered[k - 1]), float(ordered[k]) if k < len(ordered) else -1.0
    if last < LOWEST or next_one >= HIGHEST or last == next_one:
        return None
    return min(last, HIGHEST)


def too_many(gates: np.ndarray, k: int) -> bool:
    """Whether more than k gates are open, so that the strength has to rise.

    For gates without a :func:`threshold_for` k: between equal gates the nearer side decides.
    """
    above = int(np.sum(gates >= LOWEST))
    if above < k:
        return False
    if int(np.sum(gates >= HIGHEST)) > k:
        return True
    return above - k >= k - int(np.sum(gates >= HIGHEST))


def misses(gates: np.ndarray, k: int) -> int:
    """By how many gates the thresholds of [0.2, 0.8] miss k, at least 0."""
    most, fewest = int(np.sum(gates >= LOWEST)), int(np.sum(gates >= HIGHEST))
    return max(k - most, fewest - k, 0)


def next_strengths(
    tried: Mapping[float, np.ndarray], k: int, start: float, width: int = 1
) -> list[float]:
    """The strengths to try next.

    Args:
      tried: gates by strength.
      k: how many shall stay open.
      start: the first strength to try, above 0.
      width: how many to try at once.

    Returns:
      As many strengths as ``width``, the likeliest first; none when one of ``tried`` is right or
      nothing is left between two that are not.
    """
    if any(threshold_for(gates, k) is not None for gates in tried.values()):
        return []
    if not tried:
        return [start * FACTOR**step for step in _around(width)]
    high = min((s for s, gates in tried.items() if not too_many(gates, k)), default=None)
    low = max(
        (s for s, gates in tried.items() if too_many(gates, k) and (high is None or s < high)),
        default=None,
    )
    if high is None:
        return [low * FACTOR**step for step in range(1, width + 1)]
    if low is None:
        return [high / FACTOR**step for step in range(1, width + 1)]
    if high / low < CLOSEST:
        return []
    if width > 1:
        shares = [step / (width + 1) for step in range(1, width + 1)]
    else:
        shares = [_share(tried[low], tried[high], k)]
    return [low * (high / low) ** share for share in shares]


def _around(width: int) -> list[int]:
    """0, 1, -1, 2, -2, ...: larger first, as fewer columns are wanted as a rule."""
    return [(step + 1) // 2 * (1 if step % 2 else -1) for step in range(width)]


def _share(gates_low: np.ndarray, gates_high: np.ndarray, k: int) -> float:
    """Where between two strengths k gates should be open, on a log-log scale."""
    more, fewer = (math.log(max(int(np.sum(g >= 0.5)), 0.5)) for g in (gates_low, gates_high))
    if more <= fewer:
        return 0.5
    return float(np.clip((more - math.log(k)) / (more - fewer), 0.15, 0.85))
