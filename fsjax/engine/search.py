"""The search for exactly K open gates: each seed trains with several regularization strengths.

All trainings of a round run in one compiled program, because the strength is traced. A training
that was made for one K is reused for every other K of the same seed.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np

from fsjax.engine.search_steps import HIGHEST, LOWEST, misses, next_strengths, threshold_for
from fsjax.engine.seeds import take_rows
from fsjax.engine.train import Trained

#: The largest number of strengths that are tried for one K and seed.
MAX_STEPS = 12

#: A mask has converged if at most this share of its gates is undecided (BinMask, section 4.1).
MOST_UNDECIDED = 0.2


class Found(NamedTuple):
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
        "mask_converged": 100.0 * (share <= MOST_UNDECIDED),
    }


class _Training(NamedTuple):
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
) -> list[tuple[Trained, Found]]:
    """Trains until every seed has exactly K open gates, for each K of ``sizes``.

    Args:
      num_seeds: S.
      sizes: the numbers K of gates.
      start: the first strength.
      train: ``(strengths, rows=, idle=, folder=) -> (trained, gates (R, D))``; the arguments are
        those of ``Plan.train``.
      stopped: whether to end the search before the next round.

    Returns:
      For each K the trainings that were kept, and the outcome. If no strength gives exactly K, the
      nearest training is kept.
    """
    # On a CPU, several strengths at once would take as long as one after another.
    width = 1 if jax.default_backend() == "cpu" else 4
    following = functools.partial(next_strengths, start=start, width=width)
    known: list[dict[float, _Training]] = [{} for _ in range(num_seeds)]
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
                known[seed][strength] = _Training(gates[row], trained, row)
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
    known: dict[float, _Training], k: int, following: _Next
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


def _wanted(known: dict[float, _Training], sizes: Sequence[int], following: _Next) -> list[float]:
    """The strengths to train a seed with next, for all sizes."""
    lacking = [_sequence(known, k, following)[1] for k in sizes]
    return list(dict.fromkeys(itertools.chain.from_iterable(lacking)))


def _kept(
    k: int, known: list[dict[float, _Training]], rounds: list[Trained], following: _Next
) -> tuple[Trained, Found]:
    outcomes, chosen = [], []
    for of_seed in known:
        tried, _ = _sequence(of_seed, k, following)
        distance = {
            s: (threshold_for(gates, k) is None, misses(gates, k)) for s, gates in tried.items()
        }
        strength = min(tried, key=distance.__getitem__)
        threshold = threshold_for(tried[strength], k)
        if threshold is None:
            threshold = float(np.sort(tried[strength])[::-1][k - 1])
        outcomes.append((strength, threshold, len(tried), len(of_seed)))
        chosen.append(of_seed[strength])
    result = Found(*map(np.array, zip(*outcomes, strict=True)))
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


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    return np.pad(values, (0, length - len(values)), constant_values=np.nan)
