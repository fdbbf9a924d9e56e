"""Exactly K open gates for every seed: trains with several strengths, each seed its own.

All trainings of a round run in one compiled program, since the strength is traced. What one K has
tried serves every other K of the same seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from fsjax.engine.strengths import HIGHEST, LOWEST, misses, next_strengths, threshold_for
from fsjax.engine.train import Trained
from fsjax.method import TrainState

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
    """Where one training is: a row of a round."""

    gates: np.ndarray
    round: int
    row: int


def search_strengths(
    num_seeds: int,
    sizes: Sequence[int],
    start: float,
    train: Callable[..., Trained],
    gates: Callable[[Trained, np.ndarray], np.ndarray],
    width: int | None = None,
) -> list[tuple[Trained, Found]]:
    """Trains until every seed has exactly K open gates, for each K of ``sizes``.

    Args:
      num_seeds: S.
      sizes: numbers of columns.
      start: the first strength.
      train: ``(strengths, rows=, idle=, folder=) -> Trained``, see ``Plan.train``.
      gates: the gates ``(R, D)`` of what was trained, given the seed of each row.
      width: strengths of a seed that are trained at once; by default 1 on a CPU, where they would
        take as long as one after another, and 4 on accelerators.

    Returns:
      For each K the trainings that were kept, and what was found. Where no strength gives exactly
      K the nearest is kept.
    """
    width = width or (1 if jax.default_backend() == "cpu" else 4)
    known: list[dict[float, _Training]] = [{} for _ in range(num_seeds)]
    rounds: list[Trained] = []
    while any(wanted := [_wanted(of_seed, sizes, start, width) for of_seed in known]):
        slots = _slots(wanted, width)
        rows = np.array([seed for seed, _ in slots])
        trained = train(
            [strength or start for _, strength in slots],
            rows=rows,
            idle=[strength is None for _, strength in slots],
            folder=f"round_{len(rounds):02d}",
        )
        found = gates(trained, rows)
        for row, (seed, strength) in enumerate(slots):
            if strength is not None:
                known[seed][strength] = _Training(found[row], len(rounds), row)
        rounds.append(trained)
    return [_kept(k, known, rounds, start, width) for k in sizes]


def _slots(wanted: list[list[float]], width: int) -> list[tuple[int, float | None]]:
    """Seed and strength of every row of a round; rows without a strength only fill up."""
    slots = [
        (seed, strengths[i] if i < len(strengths) else None)
        for seed, strengths in enumerate(wanted)
        for i in range(width)
    ]
    return [slots[i] for i in _spread([strength is not None for _, strength in slots])]


def _sequence(
    known: dict[float, _Training], k: int, start: float, width: int
) -> tuple[dict[float, np.ndarray], list[float]]:
    """What k alone would have tried of the known trainings, and what it lacks next."""
    tried: dict[float, np.ndarray] = {}
    while len(tried) < MAX_STEPS:
        following = next_strengths(tried, k, start, width)
        missing = [strength for strength in following if strength not in known]
        if missing or not following:
            return tried, missing
        tried |= {strength: known[strength].gates for strength in following}
    return tried, []


def _wanted(
    known: dict[float, _Training], sizes: Sequence[int], start: float, width: int
) -> list[float]:
    """At most ``width`` strengths that a seed should be trained with next."""
    lacking = [_sequence(known, k, start, width)[1] for k in sizes]
    return list(dict.fromkeys(strength for one in lacking for strength in one))[:width]


def _spread(busy: Sequence[bool]) -> list[int]:
    """An order of rows whose halves hold as many busy ones: devices take contiguous parts."""
    ordered = sorted(range(len(busy)), key=lambda i: not busy[i])
    devices = jax.device_count()
    size = -(-len(busy) // devices)
    parts: list[list[int]] = [[] for _ in range(devices)]
    for i in ordered:
        min((part for part in parts if len(part) < size), key=len).append(i)
    return [i for part in parts for i in part]


def _kept(
    k: int,
    known: list[dict[float, _Training]],
    rounds: list[Trained],
    start: float,
    width: int,
) -> tuple[Trained, Found]:
    found, chosen = [], []
    for of_seed in known:
        tried, _ = _sequence(of_seed, k, start, width)
        off = {s: (threshold_for(gates, k) is None, misses(gates, k)) for s, gates in tried.items()}
        strength = min(tried, key=off.__getitem__)
        threshold = threshold_for(tried[strength], k)
        if threshold is None:
            threshold = float(np.sort(tried[strength])[::-1][k - 1])
        found.append((strength, threshold, len(tried), len(of_seed)))
        chosen.append(of_seed[strength])
    result = Found(*map(np.array, zip(*found, strict=True)))
    longest = max(rounds[one.round].history["train/loss"].shape[1] for one in chosen)
    history = {
        name: np.stack(
            [_padded(rounds[one.round].history[name][one.row], longest) for one in chosen]
        )
        for name in rounds[0].history
    }
    cost = dict(rounds[0].cost)
    for name in ("train_seconds", "trained_epochs"):
        cost[name] = sum(one.cost[name] for one in rounds)
    cost["trainings"] = float(np.mean(result.trainings))
    cost["train_flops"] *= cost["trainings"]
    return Trained(_gather(rounds, chosen), history, cost), result


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    return np.pad(values, (0, length - len(values)), constant_values=np.nan)


def _gather(rounds: list[Trained], chosen: list[_Training]) -> TrainState:
    """The states of some trainings, stacked, on the host."""
    rows = [
        jax.tree.map(lambda leaf, row=one.row: np.asarray(leaf)[row], rounds[one.round].states)
        for one in chosen
    ]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
