"""Which training a search keeps when none has exactly K open gates."""

from __future__ import annotations

import numpy as np
import pytest

from fsjax.engine.search import MAX_STEPS, next_strengths, search_strengths
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


def test_each_round_has_its_own_folder_and_the_search_for_each_number_its_steps() -> None:
    folders: list[str] = []

    def train_into(strengths, *, folder, **options) -> tuple[Trained, np.ndarray]:
        folders.append(folder)
        return train(strengths, folder=folder, **options)

    [(_, five), (_, nine)] = search_strengths(1, [5, 9], 1.0, train_into)
    assert len(folders) == len(set(folders)) > 1
    # The first strength opens nine, so that the search for nine ends with it.
    assert (nine.steps[0], five.steps[0]) == (1, 2)
    assert nine.trainings[0] == five.trainings[0] == len(folders)


def test_without_an_exact_training_the_threshold_is_the_gate_of_the_last_column() -> None:
    def train_one(strengths, *, rows, idle, folder) -> tuple[Trained, np.ndarray]:
        trained, gates = train(strengths, rows=rows, idle=idle, folder=folder)
        return trained, np.tile([0.9, 0.1, 0.05, 0.0], (len(gates), 1))

    [(_, outcome)] = search_strengths(1, [2], 1.0, train_one)
    assert outcome.threshold[0] == 0.1


@pytest.mark.parametrize(("opened", "kept"), [(2, True), (0, False)])
def test_a_training_without_open_gates_is_kept_last(opened: int, kept: bool) -> None:
    def train_some(strengths, *, rows, idle, folder) -> tuple[Trained, np.ndarray]:
        trained, gates = train(strengths, rows=rows, idle=idle, folder=folder)
        counts = np.where(np.array(strengths) < 0.5, opened, 0)
        return trained, (np.arange(10) < counts[:, None]).astype(float)

    # Both miss 1 open gate by one.
    [(trained, outcome)] = search_strengths(1, [1], 1.0, train_some)
    assert (trained.states[0] < 0.5) == kept
    # A threshold of 0 would open all gates.
    assert 0 < outcome.threshold[0] <= 1


def test_a_bracket_that_is_too_narrow_is_not_divided() -> None:
    tried = {1.0: np.ones(9), 1.004: np.zeros(9)}
    assert next_strengths(tried, 4, 1.0) == []
    assert len(next_strengths({1.0: np.ones(9), 1.1: np.zeros(9)}, 4, 1.0)) == 1


def test_a_stopped_search_keeps_what_it_has() -> None:
    [(_, outcome)] = search_strengths(1, [4], 1.0, train, stopped=lambda: True)
    assert list(outcome.strength) == [1.0] and outcome.trainings[0] == 1
