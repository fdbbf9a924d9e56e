"""What distinguishes ICAP from CIFE (``test_cife.py`` has the rest): redundancy is capped at 0."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from fsjax.methods.icap import MERGES
from fsjax.methods.shared.greedy_information import greedy_scores

scores_with = partial(greedy_scores, depth=200, bins=None)


def table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns: the best, a weaker one, a copy of the best, and two that inform only jointly."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)

    def noisy_class(share: float) -> np.ndarray:
        return np.where(rng.random(4000) < share, y, rng.integers(0, 2, 4000))

    best, coin = noisy_class(0.8), rng.integers(0, 2, 4000)
    x = np.stack([best, noisy_class(0.4), best, coin, coin ^ y], axis=1).astype(float)
    return x, y, np.ones(4000)


@pytest.mark.parametrize("redundancy", ["max", "sum"])
def test_copies_are_last_and_synergy_is_not_rewarded(redundancy: str) -> None:
    order = np.argsort(-scores_with(*table(), merge=MERGES[redundancy]))
    assert order[:2].tolist() == [0, 1] and order[-1] == 2
    # With the infomax criterion the second of the pair comes before the weaker column could.
    infomax = np.argsort(-scores_with(*table(), merge=np.add)).tolist()
    x, y, weight = table()
    pair = scores_with(x[:, [3, 4, 1]], y, weight, merge=np.add)
    assert infomax[-1] == 2 and pair[:2].min() >= 1


def test_several_partial_copies_cost_more_in_sum_than_at_most() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 6000)
    noisy = [np.where(rng.random(6000) < 0.7, y, rng.integers(0, 2, 6000)) for _ in range(3)]
    # The last column follows each of two others half of the time.
    mixed = np.where(rng.random(6000) < 0.5, noisy[0], noisy[1])
    weak = np.where(rng.random(6000) < 0.3, y, rng.integers(0, 2, 6000))
    x, weight = np.stack([noisy[0], noisy[1], mixed, weak], axis=1).astype(float), np.ones(6000)
    place = {
        name: np.argsort(-scores_with(x, y, weight, merge=merge)).tolist().index(2)
        for name, merge in MERGES.items()
    }
    assert place["max"] <= place["sum"]
