"""The choice of strengths in the search for exactly K open gates (BinMask, section 3.2).

The paper searches exponentially for a strength and a threshold in [0.2, 0.8] that leave K gates
open. The number of open gates falls approximately as a power of the strength. Each step here
extrapolates or interpolates by that power law, and by at least a factor of 2 while there is no
bracket.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

#: Gates between these values are undecided, so a threshold in this range closes no converged gate.
LOWEST, HIGHEST = 0.2, 0.8

#: The smallest and largest factor between successive strengths while there is no bracket.
FACTOR, LARGEST_FACTOR = 2.0, 8.0

#: The number of open gates is assumed to fall as ``strength ** -POWER`` until it is measured
#: (0.6 with BinMask on ISOLET and PCMAC).
POWER = 0.6

#: A bracket with a smaller ratio of its strengths is not divided further.
CLOSEST = 1.005


def threshold_for(gates: np.ndarray, k: int) -> float | None:
    """The largest threshold in [0.2, 0.8] that exactly k gates reach, or ``None``.

    Args:
      gates: ``(D,)`` in [0, 1].
      k: from 1 to D.
    """
    ordered = np.sort(np.asarray(gates))[::-1]
    last, next_one = float(ordered[k - 1]), float(ordered[k]) if k < len(ordered) else -1.0
    if last < LOWEST or next_one >= HIGHEST or last == next_one:
        return None
    return min(last, HIGHEST)


def too_many(gates: np.ndarray, k: int) -> bool:
    """Whether more than k gates are open, so that the strength must rise.

    It is for gates without a :func:`threshold_for` k. If equal gates are the reason, the number of
    open gates that is nearer to k decides.
    """
    most, fewest = _open(gates)
    return most >= k and (fewest > k or most - k >= k - fewest)


def misses(gates: np.ndarray, k: int) -> int:
    """By how many gates the thresholds in [0.2, 0.8] miss k; 0 if one gives k."""
    most, fewest = _open(gates)
    return max(k - most, fewest - k, 0)


def _open(gates: np.ndarray) -> tuple[int, int]:
    """The largest and the smallest number of open gates over the thresholds in [0.2, 0.8]."""
    return int(np.sum(gates >= LOWEST)), int(np.sum(gates >= HIGHEST))


def next_strengths(
    tried: Mapping[float, np.ndarray], k: int, start: float, width: int = 1
) -> list[float]:
    """The strengths to try next.

    Args:
      tried: the gates ``(D,)`` by strength.
      k: the number of gates that should be open.
      start: the first strength to try, above 0.
      width: the number of strengths to try at once.

    Returns:
      As many strengths as ``width``, the likeliest first; an empty list if one of ``tried`` is
      right or the bracket is too narrow to divide.
    """
    if any(threshold_for(gates, k) is not None for gates in tried.values()):
        return []
    if not tried:
        return [start * FACTOR**step for step in _around(width)]
    high = min((s for s, gates in tried.items() if not too_many(gates, k)), default=math.inf)
    low = max((s for s, gates in tried.items() if too_many(gates, k) and s < high), default=0.0)
    if high < math.inf and low > 0.0:
        return _between(tried, low, high, k, width)
    return _beyond(tried, k, width, rising=high == math.inf)


def _beyond(tried: Mapping[float, np.ndarray], k: int, width: int, *, rising: bool) -> list[float]:
    """Strengths beyond those tried, on the side that still lacks a bound."""
    outermost = sorted(tried, reverse=rising)[:2]
    # Aim at the strength where just enough gates change sides for a threshold to fit. Far beyond
    # it, all gates may close at once, and training does not recover.
    edge = HIGHEST if rising else LOWEST
    counts, power = [_count(tried[strength], edge) for strength in outermost], POWER
    if len(outermost) == 2:
        ratio = math.log(outermost[0] / outermost[1])
        power = max(-math.log(counts[0] / counts[1]) / ratio, 0.1)
    factor = max(counts[0] / k, k / counts[0]) ** (1.0 / power)
    factor = float(np.clip(factor, FACTOR, LARGEST_FACTOR))
    return [outermost[0] * factor ** (step if rising else -step) for step in range(1, width + 1)]


def _between(
    tried: Mapping[float, np.ndarray], low: float, high: float, k: int, width: int
) -> list[float]:
    """Strengths inside a bracket; none if it is too narrow to divide."""
    if high / low < CLOSEST:
        return []
    shares = [step / (width + 1) for step in range(1, width + 1)]
    if width == 1:
        shares = [_share(tried[low], tried[high], k)]
    return [low * (high / low) ** share for share in shares]


def _around(width: int) -> list[int]:
    """0, 1, -1, 2, -2, ...: larger strengths first, because fewer columns are usually wanted."""
    return [(step + 1) // 2 * (1 if step % 2 else -1) for step in range(width)]


def _share(gates_low: np.ndarray, gates_high: np.ndarray, k: int) -> float:
    """The position in a bracket, in [0.15, 0.85], where k gates should be open (log-log scale)."""
    count_low, count_high = (math.log(_count(gates)) for gates in (gates_low, gates_high))
    if count_low <= count_high:
        return 0.5
    return float(np.clip((count_low - math.log(k)) / (count_low - count_high), 0.15, 0.85))


def _count(gates: np.ndarray, threshold: float = 0.5) -> float:
    """The number of open gates, at least 0.5 so that it has a logarithm."""
    return max(float(np.sum(gates >= threshold)), 0.5)
