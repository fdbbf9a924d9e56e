"""ICAP beside what it shares with CIFE (``test_cife.py``): redundancy is capped at 0."""

from __future__ import annotations

import numpy as np
import pytest

import fsjax
from fsjax.errors import ConfigError
from fsjax.methods.cife import cife_scores
from fsjax.methods.icap import icap_scores


def table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns: the best, a weaker one, a copy of the best, and two that only tell together."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)

    def told(share: float) -> np.ndarray:
        return np.where(rng.random(4000) < share, y, rng.integers(0, 2, 4000))

    best, coin = told(0.8), rng.integers(0, 2, 4000)
    x = np.stack([best, told(0.4), best, coin, coin ^ y], axis=1).astype(float)
    return x, y, np.ones(4000)


@pytest.mark.parametrize("redundancy", ["max", "sum"])
def test_copies_are_last_and_synergy_is_not_rewarded(redundancy: str) -> None:
    found = np.argsort(-icap_scores(*table(), redundancy=redundancy))
    assert found[:2].tolist() == [0, 1] and found[-1] == 2
    # With the infomax criterion the second of the pair comes before the weaker column could.
    infomax = np.argsort(-cife_scores(*table())).tolist()
    x, y, weight = table()
    pair = cife_scores(x[:, [3, 4, 1]], y, weight)
    assert infomax[-1] == 2 and pair[:2].min() >= 1


def test_several_partial_copies_cost_more_in_sum_than_at_most() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 6000)
    noisy = [np.where(rng.random(6000) < 0.7, y, rng.integers(0, 2, 6000)) for _ in range(3)]
    # The last column follows each of two others half of the time.
    mixed = np.where(rng.random(6000) < 0.5, noisy[0], noisy[1])
    weak = np.where(rng.random(6000) < 0.3, y, rng.integers(0, 2, 6000))
    x, weight = np.stack([noisy[0], noisy[1], mixed, weak], axis=1).astype(float), np.ones(6000)
    at_most = icap_scores(x, y, weight, redundancy="max")
    in_sum = icap_scores(x, y, weight, redundancy="sum")
    place = {
        name: np.argsort(-one).tolist().index(2)
        for name, one in (("max", at_most), ("sum", in_sum))
    }
    assert place["max"] <= place["sum"]


def test_another_rule_is_refused() -> None:
    with pytest.raises(ConfigError, match="redundancy='mean'"):
        fsjax.methods.icap(redundancy="mean")
