"""Exactly K open gates for every seed: trains with several strengths, each seed its own.

All trainings of a round run in one compiled program, since the strength is traced. What one K has
tried serves every other K of the same seed.
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

#: Most strengths that are tried for one K and seed.
MAX_STEPS = 12

#: A mask has converged if at most this share of its gates is undecided (BinMask, section 4.1).
MOST_UNDECIDED = 0.2


class Found(NamedTuple):
    """What the search for one K found, ``(S,)`` each.

    Attributes:
      strength: the strength of the training that was kept.
      threshold: gates that reach it are open.
      steps: trainings that this K looked at, until the one that was kept.
      trainings: different trainings of the seed, for all K together.
    """

    strength: np.ndarray
    threshold: np.ndarray
    steps: np.ndarray
    trainings: np.ndarray

    def metrics(self, closed: np.ndarray, k: int, parameter: str) -> dict[str, np.ndarray]:
        """As test metrics of a run.

        Args:
          closed: ``(S, D)`` gates of the kept states, once those below the threshold are closed.
          k: how many were to stay open.
          parameter: name of the strength.

        Returns:
          ``(S,)`` by name; ``exact_selection`` is 100 where exactly k gates are open, at a
          threshold that cuts none that has converged, and else 0.
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
      ``(S,)`` by name: ``undecided_percentage`` of all gates, within [0.15, 0.85];
      ``undecided_open_percentage``, the same of those above 0.15, as on wide data nearly all are
      closed; ``mask_converged``, 100 where at most 20 % of all gates are undecided, else 0.
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
    """One training: its gates ``(D,)``, and where it is."""

    gates: np.ndarray
    round: Trained
    row: int


#: What to try next, given the gates by strength of what was tried, for K open ones.
_Next = Callable[[Mapping[float, np.ndarray], int], list[float]]


def search_strengths(
    num_seeds: int,
    sizes: Sequence[int],
    start: float,
    train: Callable[..., tuple[Trained, np.ndarray]],
    stopped: Callable[[], bool] = lambda: False,
) -> list[tuple[Trained, Found]]:
    """Trains until every seed has exactly K open gates, for each K of ``sizes``.

    The first strength is ``start``; ``train(strengths, rows=, idle=, folder=)`` is ``Plan.train``,
    and gives the gates ``(R, D)`` of its rows as well. No training begins once it is ``stopped``.

    Returns:
      For each K the trainings that were kept, and what was found. Where no strength gives exactly
      K the nearest is kept.
    """
    # On a CPU several strengths at once would take as long as one after another.
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
    """Seed and strength of every row of a round; rows without a strength only fill up."""
    slots = [
        (seed, strength)
        for seed, strengths in enumerate(wanted)
        for strength in [*strengths, *[None] * (width - len(strengths))]
    ]
    slots.sort(key=lambda slot: slot[1] is None)
    # Devices take contiguous parts: each gets as many rows that train.
    devices = jax.device_count()
    return [slot for device in range(devices) for slot in slots[device::devices]]


def _sequence(
    known: dict[float, _Training], k: int, following: _Next
) -> tuple[dict[float, np.ndarray], list[float]]:
    """What k alone would have tried of the known trainings, and what it lacks next."""
    tried: dict[float, np.ndarray] = {}
    while len(tried) < MAX_STEPS:
        strengths = following(tried, k)
        missing = [strength for strength in strengths if strength not in known]
        if missing or not strengths:
            return tried, missing
        tried |= {strength: known[strength].gates for strength in strengths}
    return tried, []


def _wanted(known: dict[float, _Training], sizes: Sequence[int], following: _Next) -> list[float]:
    """The strengths that a seed should be trained with next."""
    lacking = [_sequence(known, k, following)[1] for k in sizes]
    return list(dict.fromkeys(itertools.chain.from_iterable(lacking)))


def _kept(
    k: int, known: list[dict[float, _Training]], rounds: list[Trained], following: _Next
) -> tuple[Trained, Found]:
    outcomes, chosen = [], []
    for of_seed in known:
        tried, _ = _sequence(of_seed, k, following)
        off = {s: (threshold_for(gates, k) is None, misses(gates, k)) for s, gates in tried.items()}
        strength = min(tried, key=off.__getitem__)
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
