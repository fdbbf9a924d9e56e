"""Which training a search keeps when none has exactly K open gates."""

from __future__ import annotations

import numpy as np

from fsjax.engine.search import MAX_STEPS, search_strengths
from fsjax.engine.train import Trained


def train(strengths, *, rows, idle, folder) -> tuple[Trained, np.ndarray]:
    """Trains nothing: 9 of 10 gates are open, then 5, then none; no threshold gives 4."""
    count = np.array([9 if s < 1.5 else 5 if s < 3 else 0 for s in strengths])
    gates = (np.arange(10) < count[:, None]).astype(float)
    history = {"train/loss": np.zeros((len(strengths), 1))}
    cost = {"train_seconds": 1.0, "trained_epochs": 1.0, "train_flops": 1.0}
    return Trained(np.array(strengths), history, cost), gates


def test_the_nearest_training_is_kept() -> None:
    [(trained, outcome)] = search_strengths(1, [4], 1.0, train)
    assert 1.5 <= outcome.strength[0] < 3
    assert trained.states[0] == outcome.strength[0]
    assert outcome.steps[0] <= MAX_STEPS
    assert trained.cost["train_seconds"] == outcome.trainings[0]
    assert trained.cost["train_flops"] == outcome.trainings[0] > 1


def test_a_stopped_search_keeps_what_it_has() -> None:
    [(_, outcome)] = search_strengths(1, [4], 1.0, train, stopped=lambda: True)
    assert list(outcome.strength) == [1.0] and outcome.trainings[0] == 1
