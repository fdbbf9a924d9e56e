"""Exactly K open gates for every seed: trains with several strengths, each seed its own.

All trainings of a round run in one compiled program, since the strength is traced. What one K has
tried serves every other K of the same seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fsjax.engine.prepare import Prepared
from fsjax.engine.seeds import take_seeds
from fsjax.engine.strengths import misses, next_strengths, threshold_for
from fsjax.engine.train import Trained
from fsjax.method import Method, TrainState

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
      exact: whether exactly K gates reach a threshold in [0.2, 0.8].
      trainings: different trainings of the seed, for all K together.
    """

    strength: np.ndarray
    threshold: np.ndarray
    steps: np.ndarray
    exact: np.ndarray
    trainings: np.ndarray

    def metrics(self) -> dict[str, np.ndarray]:
        """As test metrics of a run; ``exact_selection`` is 100 or 0."""
        return {
            "strength": self.strength,
            "search_steps": self.steps.astype(np.float64),
            "exact_selection": 100.0 * self.exact,
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


def usable_gates(method: Method, states: TrainState) -> np.ndarray:
    """The gates ``(S, D)`` of stacked states; those of constant columns count as closed."""
    return np.asarray(jax.vmap(method.gates)(states) * states.feature_mask)


class _Training(NamedTuple):
    """Where one training is: a row of a round."""

    gates: np.ndarray
    round: int
    row: int


def search_strengths(
    method: Method,
    seeds: Sequence[int],
    sizes: Sequence[int],
    prepared: Prepared,
    run: Callable[..., Trained],
    folder: Path | None = None,
    width: int | None = None,
) -> list[tuple[Trained, Found]]:
    """Trains until every seed has exactly K open gates, for each K of ``sizes``.

    Args:
      method: with ``gates`` and ``search_from``, and a hyperparameter ``strength``.
      seeds: the S seeds.
      sizes: numbers of columns.
      prepared: their data.
      run: ``(folder, seeds=, prepared=, hyper=, idle=) -> Trained``, trains once.
      folder: for checkpoints, a subfolder for every round; ``None`` keeps none.
      width: strengths of a seed that are trained at once; by default 1 on a CPU, where they would
        take as long as one after another, and 4 on accelerators.

    Returns:
      For each K the trainings that were kept, with ``threshold`` set in ``hyper``, and what was
      found. Where no strength gives exactly K the nearest is kept, and ``exact`` is false.
    """
    width = width or (1 if jax.default_backend() == "cpu" else 4)
    rows = np.repeat(np.arange(len(seeds)), width)
    own = prepared.own_arrays
    repeated = prepared._replace(
        arrays=jax.tree.map(
            lambda leaf: leaf[rows] if own and width > 1 else leaf, prepared.arrays
        ),
        feature_mask=prepared.feature_mask[rows],
    )
    known: list[dict[float, _Training]] = [{} for _ in seeds]
    rounds: list[Trained] = []
    while True:
        wanted = [_wanted(of_seed, sizes, method.search_from, width) for of_seed in known]
        if not any(wanted):
            break
        slots = [(seed, i) for seed, strengths in enumerate(wanted) for i in range(width)]
        strengths = [wanted[seed][i] if i < len(wanted[seed]) else None for seed, i in slots]
        order = _spread([strength is not None for strength in strengths])
        if own:
            # Rows have their own data, so they stay where it is.
            order = list(range(len(slots)))
        trained = run(
            None if folder is None else folder / f"round_{len(rounds):02d}",
            seeds=[int(seeds[slots[i][0]]) for i in order],
            prepared=repeated._replace(feature_mask=repeated.feature_mask[order]),
            hyper={"strength": [strengths[i] or method.search_from for i in order]},
            idle=[strengths[i] is None for i in order],
        )
        gates = usable_gates(method, trained.states)
        for row, i in enumerate(order):
            if strengths[i] is not None:
                seed = slots[i][0]
                known[seed][strengths[i]] = _Training(gates[row], len(rounds), row)
        rounds.append(trained)
    return [_kept(k, known, rounds, method.search_from, width) for k in sizes]


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
        gates = tried[strength]
        threshold = threshold_for(gates, k)
        exact = threshold is not None
        if not exact:
            threshold = float(np.sort(gates)[::-1][k - 1])
        found.append((strength, threshold, len(tried), exact, len(of_seed)))
        chosen.append(of_seed[strength])
    result = Found(*map(np.array, zip(*found, strict=True)))
    states = _gather(rounds, chosen)
    threshold = jnp.asarray(result.threshold, jnp.float32)
    states = states.replace(hyper={**states.hyper, "threshold": threshold})
    names = rounds[0].history
    longest = max(rounds[one.round].history["train/loss"].shape[1] for one in chosen)
    history = {
        name: np.stack(
            [_padded(rounds[one.round].history[name][one.row], longest) for one in chosen]
        )
        for name in names
    }
    cost = dict(rounds[0].cost)
    for name in ("train_seconds", "trained_epochs"):
        cost[name] = sum(one.cost[name] for one in rounds)
    cost["train_flops"] = cost["train_flops"] * float(np.mean(result.trainings))
    cost["trainings"] = float(np.mean(result.trainings))
    return Trained(states, history, cost), result


def _padded(values: np.ndarray, length: int) -> np.ndarray:
    return np.pad(values, (0, length - len(values)), constant_values=np.nan)


def _gather(rounds: list[Trained], chosen: list[_Training]) -> TrainState:
    """The states of some trainings, stacked."""
    if len({one.round for one in chosen}) == 1:
        return take_seeds(rounds[chosen[0].round].states, np.array([one.row for one in chosen]))
    rows = [take_seeds(rounds[one.round].states, np.array([one.row])) for one in chosen]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *rows)
