"""The search for exactly K open gates: each seed trains with several regularization strengths.

All trainings of a round run in one compiled program, because the strength is traced. A training
that was made for one K is reused for every other K of the same seed.

BinMask (section 3.2) searches exponentially for a strength and a threshold in [0.2, 0.8] that leave
K gates open. The number of open gates falls approximately as a power of the strength. Each step
here extrapolates or interpolates by that power law, and by at least a factor of 2 while there is no
bracket.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np

from fsjax.engine.rows import take_rows
from fsjax.engine.run import Trained

#: Gates between these values are undecided, so a threshold in this range closes no converged gate.
LOWEST, HIGHEST = 0.2, 0.8

#: The smallest and largest factor between successive strengths while there is no bracket.
FACTOR, LARGEST_FACTOR = 2.0, 8.0

#: The number of open gates is assumed to fall as ``strength ** -POWER`` until it is measured
#: (0.6 with BinMask on ISOLET and PCMAC).
POWER = 0.6

#: A bracket with a smaller ratio of its strengths is not divided further.
CLOSEST = 1.005

#: The largest number of strengths that are tried for one K and seed.
MAX_STEPS = 12

#: A mask has converged if at most this share of its gates is undecided (BinMask, section 4.1).
MAX_UNDECIDED = 0.2


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


class SearchOutcome(NamedTuple):
    """The outcome of the search for one K, ``(S,)`` each.

    Attributes:
      strength: the strength of the training that was kept.
      threshold: gates of at least this value are open.
      steps: trainings that the search for this K examined.
      trainings: different trainings of the seed, over all K.
    """

    strength: np.ndarray
    threshold: np.ndarray
    steps: np.ndarray
    trainings: np.ndarray

    def metrics(self, closed: np.ndarray, k: int, parameter: str) -> dict[str, np.ndarray]:
        """The outcome as test metrics of a run.

        Args:
          closed: ``(S, D)`` gates of the kept states after those below the threshold were closed.
          k: the number of gates that should be open.
          parameter: name of the strength.

        Returns:
          ``(S,)`` by name; ``exact_selection`` is 100 if exactly k gates are open and the threshold
          is in [0.2, 0.8], where it closes no converged gate, else 0.
        """
        inside = (self.threshold >= LOWEST) & (self.threshold <= HIGHEST)
        return {
            parameter: self.strength,
            "search_steps": self.steps.astype(np.float64),
            "exact_selection": 100.0 * (inside & ((closed > 0).sum(axis=1) == k)),
        }


def gate_metrics(gates: np.ndarray) -> dict[str, np.ndarray]:
    """Whether gates converged (BinMask, section 4.1).

    Args:
      gates: ``(S, D)`` in [0, 1].

    Returns:
      ``(S,)`` by name: ``undecided_percentage``, the percentage of all gates in [0.15, 0.85];
      ``undecided_open_percentage``, the same among the gates of at least 0.15, because on wide data
      nearly all are closed; ``mask_converged``, 100 if at most 20 % of all gates are undecided,
      else 0.
    """
    undecided = (gates >= 0.15) & (gates <= 0.85)
    opened = np.sum(gates >= 0.15, axis=1)
    share = undecided.mean(axis=1)
    return {
        "undecided_percentage": 100.0 * share,
        "undecided_open_percentage": 100.0 * undecided.sum(axis=1) / np.maximum(opened, 1),
        "mask_converged": 100.0 * (share <= MAX_UNDECIDED),
    }


class _Trial(NamedTuple):
    """One training: its gates ``(D,)``, its round, and its row in the round."""

    gates: np.ndarray
    round: Trained
    row: int


#: ``(gates by strength, K) -> strengths to try next``.
_Next = Callable[[Mapping[float, np.ndarray], int], list[float]]


def search_strengths(
    num_seeds: int,
    sizes: Sequence[int],
    start: float,
    train: Callable[..., tuple[Trained, np.ndarray]],
    stopped: Callable[[], bool] = lambda: False,
) -> list[tuple[Trained, SearchOutcome]]:
    """Trains until every seed has exactly K open gates, for each K of ``sizes``.

    Args:
      train: ``(strengths, rows=, idle=, folder=) -> (trained, gates (R, D))``; the arguments are
        those of ``Plan.train``.
      stopped: whether to end the search before the next round.

    Returns:
      For each K the trainings that were kept, and the outcome. If no strength gives exactly K, the
      nearest training is kept, and one without open gates only if all are.
    """
    # On a CPU, several strengths at once would take as long as one after another.
    width = 1 if jax.default_backend() == "cpu" else 4
    following = functools.partial(next_strengths, start=start, width=width)
    known: list[dict[float, _Trial]] = [{} for _ in range(num_seeds)]
    rounds: list[Trained] = []
    while any(wanted := [_wanted(of_seed, sizes, following)[:width] for of_seed in known]):
        slots = _slots(wanted, width)
        trained, gates = train(
            [strength or start for _, strength in slots],
            rows=np.array([seed for seed, _ in slots]),
            idle=[strength is None for _, strength in slots],
            folder=f"round_{len(rounds):02d}",
        )
        for row, (seed, strength) in enumerate(slots):
            if strength is not None:
                known[seed][strength] = _Trial(gates[row], trained, row)
        rounds.append(trained)
        if stopped():
            break
    return [_kept(k, known, rounds, following) for k in sizes]


def _slots(wanted: list[list[float]], width: int) -> list[tuple[int, float | None]]:
    """Seed and strength of each row of a round; rows without a strength are padding."""
    slots = [
        (seed, strength)
        for seed, strengths in enumerate(wanted)
        for strength in [*strengths, *[None] * (width - len(strengths))]
    ]
    slots.sort(key=lambda slot: slot[1] is None)
    # Devices take contiguous parts; deal the rows so that each device trains as many as the others.
    devices = jax.device_count()
    return [slot for device in range(devices) for slot in slots[device::devices]]


def _sequence(
    known: dict[float, _Trial], k: int, following: _Next
) -> tuple[dict[float, np.ndarray], list[float]]:
    """The trainings that a search for k alone would have used, and the strengths it needs next."""
    tried: dict[float, np.ndarray] = {}
    while len(tried) < MAX_STEPS:
        strengths = following(tried, k)
        missing = [strength for strength in strengths if strength not in known]
        if missing or not strengths:
            return tried, missing
        tried |= {strength: known[strength].gates for strength in strengths}
    return tried, []


def _wanted(known: dict[float, _Trial], sizes: Sequence[int], following: _Next) -> list[float]:
    """The strengths to train a seed with next, for all sizes."""
    lacking = [_sequence(known, k, following)[1] for k in sizes]
    return list(dict.fromkeys(itertools.chain.from_iterable(lacking)))


def _kept(
    k: int, known: list[dict[float, _Trial]], rounds: list[Trained], following: _Next
) -> tuple[Trained, SearchOutcome]:
    outcomes, chosen = [], []
    for of_seed in known:
        tried, _ = _sequence(of_seed, k, following)
        distance = {s: _distance(gates, k) for s, gates in tried.items()}
        strength = min(tried, key=distance.__getitem__)
        threshold = threshold_for(tried[strength], k)
        if threshold is None:
            # A threshold of 0 would open the gates that are 0.
            last = float(np.sort(tried[strength])[::-1][k - 1])
            threshold = max(last, float(np.finfo(np.float32).tiny))
        outcomes.append((strength, threshold, len(tried), len(of_seed)))
        chosen.append(of_seed[strength])
    result = SearchOutcome(*map(np.array, zip(*outcomes, strict=True)))
    longest = max(trial.round.history["train/loss"].shape[1] for trial in chosen)
    history = {
        name: np.stack([_padded(trial.round.history[name][trial.row], longest) for trial in chosen])
        for name in rounds[0].history
    }
    cost = dict(rounds[0].cost)
    for name in ("train_seconds", "trained_epochs"):
        cost[name] = sum(trial.cost[name] for trial in rounds)
    cost["trainings"] = float(np.mean(result.trainings))
    cost["train_flops"] *= cost["trainings"]
    states = [take_rows(trial.round.states, np.array([trial.row])) for trial in chosen]
    return Trained(jax.tree.map(lambda *rows: np.concatenate(rows), *states), history, cost), result


def _distance(gates: np.ndarray, k: int) -> tuple[bool, bool, int, bool]:
    """How far a training is from k open gates, smaller is nearer.

    One without any open gate is the farthest, because its gates tell nothing about the columns; and
    of two that miss k by as many, that with fewer open gates.
    """
    most, _ = _open(gates)
    return threshold_for(gates, k) is None, most == 0, misses(gates, k), most < k


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    return np.pad(values, (0, length - len(values)), constant_values=np.nan)
