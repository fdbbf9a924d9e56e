"""Stability of selections: against plain loops, pairwise overlaps and simulations."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import combinations
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fsjax.engine.stability import (
    complementary_pairs,
    consensus,
    nogueira_stability,
    selection_frequency,
    selection_mask,
    stability_metrics,
)

#: Selections of any sizes for which stability is defined.
CHOSEN = hnp.arrays(
    bool, st.tuples(st.integers(2, 6), st.integers(2, 8)), elements=st.booleans()
).filter(lambda chosen: chosen.any() and not chosen.all())

#: Few different values, so that there are ties.
SCORES = st.sampled_from([0.0, 0.5, 1.0, -2.0, np.nan])


def by_loops(chosen: np.ndarray, level: float) -> tuple[float, float, float]:
    """Definition 4 and Corollary 9 of the paper, with loops."""
    rows, d = chosen.tolist(), chosen.shape[1]
    m = len(rows)
    p = [sum(row[f] for row in rows) / m for f in range(d)]
    k = [sum(row) for row in rows]
    kbar = sum(k) / m
    spread = kbar / d * (1 - kbar / d)
    phi = 1 - sum(m / (m - 1) * q * (1 - q) for q in p) / d / spread
    parts = []
    for row, size in zip(rows, k, strict=True):
        both = sum(z * q for z, q in zip(row, p, strict=True)) / d
        correction = 2 * size * kbar / d**2 - size / d - kbar / d + 1
        parts.append((both - size * kbar / d**2 + phi / 2 * correction) / spread)
    mean = sum(parts) / m
    variance = 4 / m**2 * sum((part - mean) ** 2 for part in parts)
    half = NormalDist().inv_cdf(1 - (1 - level) / 2) * math.sqrt(variance)
    return phi, phi - half, phi + half


def noisy_selections(rng: np.random.Generator, number: int, noise: float) -> np.ndarray:
    """Select the 20 highest of 200 noisy scores, of which 20 have a higher mean."""
    scores = 2.0 * (np.arange(200) < 20) + noise * rng.standard_normal((number, 200))
    return selection_mask(np.argsort(-scores, axis=1)[:, :20], 200)


@given(CHOSEN, st.sampled_from([0.5, 0.9, 0.99]))
def test_stability_and_interval_by_loops(chosen: np.ndarray, level: float) -> None:
    stability = nogueira_stability(chosen, level)
    value, lower, upper = by_loops(chosen, level)
    assert stability.value == pytest.approx(value, abs=1e-12)
    assert stability.level == level
    if len(chosen) == 2:
        assert math.isnan(stability.lower) and math.isnan(stability.upper)
    else:
        # If all parts are equal, this is the square root of a rounding error.
        assert (stability.lower, stability.upper) == pytest.approx((lower, upper), abs=1e-7)


@given(st.integers(2, 6), st.integers(2, 9), st.data())
def test_selections_of_equal_size_by_their_pairs(rows: int, d: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, d - 1))
    columns = st.permutations(range(d)).map(lambda order: order[:k])
    picks = data.draw(st.lists(columns, min_size=rows, max_size=rows))
    # Kuncheva's index (2007) of each pair.
    kuncheva = [
        (len(set(a) & set(b)) * d - k * k) / (k * (d - k)) for a, b in combinations(picks, 2)
    ]
    stability = nogueira_stability(selection_mask(np.array(picks), d))
    assert stability.value == pytest.approx(np.mean(kuncheva), abs=1e-12)


@pytest.mark.parametrize(("number", "least"), [(10, 0.8), (50, 0.91)])
def test_share_of_intervals_that_hold_the_true_value(number: int, least: float) -> None:
    rng = np.random.default_rng(1)
    truth = nogueira_stability(noisy_selections(rng, 5000, noise=1.0)).value
    estimates = [nogueira_stability(noisy_selections(rng, number, noise=1.0)) for _ in range(400)]
    assert 0.2 < truth < 0.5
    assert np.mean([estimate.value for estimate in estimates]) == pytest.approx(truth, abs=0.01)
    share = np.mean([estimate.lower <= truth <= estimate.upper for estimate in estimates])
    assert least <= share <= 0.99


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=40), st.integers(0, 5))
def test_halves_are_disjoint_equal_and_stratified(labels: list[int], seed: int) -> None:
    y = np.array(labels)
    for first, second in complementary_pairs(len(y), 3, seed, y):
        assert first.dtype == second.dtype == np.int32
        assert len(first) == len(second) == len(y) // 2
        assert len({*first, *second}) == 2 * len(first)
        assert (np.diff(first) > 0).all() and (np.diff(second) > 0).all()
        a, b = Counter(y[first]), Counter(y[second])
        assert all(abs(a[label] - b[label]) <= 1 for label in set(labels))


def test_pairs_repeat_by_seed_and_leave_out_another_row_each_time() -> None:
    pairs = complementary_pairs(21, 40, seed=3)
    for again, pair in zip(complementary_pairs(21, 40, seed=3), pairs, strict=True):
        np.testing.assert_array_equal(again, pair)
    assert not np.array_equal(complementary_pairs(21, 1, seed=4)[0], pairs[0])
    left_out = {row for pair in pairs for row in set(range(21)) - {*pair[0], *pair[1]}}
    assert len(left_out) > 10
    # Each row is in the first half about as often as in the second.
    counts = np.bincount(np.concatenate([first for first, _ in pairs]), minlength=21)
    assert 8 <= counts.min() and counts.max() <= 32


def test_rare_classes_are_in_both_halves() -> None:
    y = np.array(["many"] * 17 + ["few"] * 2 + ["rare"] * 2)
    for first, second in complementary_pairs(len(y), 20, 0, y):
        assert Counter(y[first])["few"] == Counter(y[second])["few"] == 1
        assert Counter(y[first])["rare"] == Counter(y[second])["rare"] == 1


def test_consensus_by_frequency_then_rank_then_order() -> None:
    selected = np.array([[1, 2], [1, 3], [1, 4]])
    scores = np.array(
        [
            [0.0, 9.0, 8.0, 7.0, 7.0, 0.0],
            [0.0, 0.9, 0.1, 0.8, 0.1, 0.0],
            [0.0, 90.0, 50.0, 80.0, 80.0, 0.0],
        ]
    )
    # Columns 2, 3 and 4 are selected once: their mean ranks are (2 + 3.5 + 4) / 3, (3.5 + 2 + 2.5)
    # / 3 and (3.5 + 3.5 + 2.5) / 3, so that columns 2 and 4 keep the order of the table.
    order = [1, 3, 2, 4, 0, 5]
    for number in range(1, 7):
        columns = consensus(selected, scores, number)
        assert columns.dtype == np.int64
        np.testing.assert_array_equal(columns, order[:number])
    np.testing.assert_array_equal(consensus(selection_mask(selected, 6), scores, 6), order)


@given(st.integers(1, 5), st.integers(1, 8), st.data())
def test_consensus_follows_the_columns(seeds: int, d: int, data: st.DataObject) -> None:
    chosen = data.draw(hnp.arrays(bool, (seeds, d), elements=st.booleans()))
    scores = data.draw(hnp.arrays(float, (seeds, d), elements=SCORES))
    number = data.draw(st.integers(1, d))
    order = np.array(data.draw(st.permutations(range(d))))
    columns = consensus(chosen, scores, number)

    lowest = np.where(np.isnan(scores), -np.inf, scores)
    above = (lowest[:, None, :] > lowest[:, :, None]).sum(axis=2)
    equal = (lowest[:, None, :] == lowest[:, :, None]).sum(axis=2)
    ranks = (above + (equal + 1) / 2).sum(axis=0)
    keys = list(zip((-chosen.sum(axis=0)).tolist(), ranks.tolist(), strict=True))
    assert columns.tolist() == sorted(range(d), key=lambda column: (keys[column], column))[:number]

    # Only columns with equal keys may change places.
    moved = order[consensus(chosen[:, order], scores[:, order], number)]
    assert [keys[column] for column in moved] == [keys[column] for column in columns]
    assert len(set(moved.tolist())) == number


def fitted(selected: list[list[int]], columns: int = 4) -> SimpleNamespace:
    """The attributes that :func:`stability_metrics` uses; scores favour early columns."""
    scores = np.tile(-np.arange(columns, dtype=np.float32), (len(selected), 1))
    return SimpleNamespace(
        selected=np.array(selected, np.int32), scores=scores, num_features=len(selected[0])
    )


def test_metrics_of_three_seeds() -> None:
    metrics = stability_metrics(fitted([[0, 3], [3, 1], [3, 2]]))
    assert metrics == json.loads(json.dumps(metrics, allow_nan=False))
    expected = nogueira_stability(selection_mask([[0, 3], [3, 1], [3, 2]], 4))
    assert metrics == {
        "num_seeds": 3,
        "stability": expected.value,
        "interval": [expected.lower, expected.upper],
        "level": 0.95,
        "consensus": [3, 0],
        "consensus_frequency": [1.0, pytest.approx(1 / 3)],
    }


@pytest.mark.parametrize(
    ("selected", "stability"),
    [([[2, 0]], None), ([[2, 0], [0, 2]], 1.0), ([[0, 1, 2, 3]] * 3, None)],
    ids=["one seed", "two seeds", "all columns"],
)
def test_metrics_that_have_no_interval(selected: list[list[int]], stability: float | None) -> None:
    metrics = stability_metrics(fitted(selected))
    assert (metrics["stability"], metrics["interval"]) == (stability, None)
    assert metrics["num_seeds"] == len(selected)
    assert metrics["consensus"] == sorted(selected[0])
    assert metrics["consensus_frequency"] == [1.0] * len(selected[0])


TWO = np.array([[0, 1], [2, 3]])


@bad_calls(
    (nogueira_stability, (np.ones((1, 3), bool),), "the number of selections is 1"),
    (nogueira_stability, (np.ones((2, 3)),), "float64 and shape"),
    (nogueira_stability, (np.ones((3, 0), bool),), "shape (3, 0)"),
    (nogueira_stability, (np.eye(3, dtype=bool), 1.0), "level=1.0"),
    (selection_frequency, ([[0, 5]], 5), "columns from 0 to 5; the 5 columns"),
    (selection_frequency, ([[-1, 2]], 5), "columns from -1 to 2"),
    (selection_frequency, ([0, 1], 5), "shape (2,)"),
    (selection_frequency, ([[0.5]], 5), "float64"),
    (selection_frequency, (np.ones((2, 4), bool), 5), "shape (2, 4) for 5 columns"),
    (selection_frequency, (np.ones((0, 5), bool), 5), "no selections"),
    (complementary_pairs, (1, 1, 0), "num_rows=1"),
    (complementary_pairs, (4, 0, 0), "num_pairs=0"),
    (complementary_pairs, (4, 1, -1), "seed=-1"),
    (complementary_pairs, (4, 1, 0, np.zeros(3)), "y has shape (3,) for 4 rows"),
    (consensus, (TWO, np.zeros((3, 4)), 2), "for 2 selections"),
    (consensus, (TWO, np.zeros(4), 2), "shape (4,)"),
    (consensus, (TWO, np.zeros((2, 4)), 5), "num_features=5"),
    (consensus, (TWO, np.zeros((2, 2)), 1), "columns from 0 to 3"),
)
def test_bad_calls(bad: tuple) -> None:
    refuses(lambda: bad[0](*bad[1]), bad[2])
