"""Permuted targets that keep groups of rows, and the order of time, as they are."""

import numpy as np
import pytest
from marks import slow_ids
from scipy.stats import kstest

from fsjax.auto.contest.folds import permutations
from fsjax.errors import ConfigError


def p_values(groups, ordered, draw_table, tables=150, count=59):
    """Of the largest correlation of ten columns of noise with a target of noise."""
    values = []
    for seed in range(tables):
        X, y = draw_table(np.random.default_rng(seed))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        orders = np.vstack([np.arange(len(y)), permutations(y, count, seed, groups, ordered)])
        permuted = y[orders] - y[orders].mean(axis=1, keepdims=True)
        statistics = np.abs(permuted @ X).max(axis=1) / np.linalg.norm(permuted, axis=1)
        # A little noise breaks ties at random.
        statistics += 1e-9 * np.random.default_rng(seed).random(len(statistics))
        values.append(np.mean(statistics >= statistics[0]))
    return np.array(values)


def noise_by_patient(rng):
    patients = np.repeat(np.arange(25), 4)
    X = rng.normal(size=(25, 10))[patients] + 0.3 * rng.normal(size=(100, 10))
    return X, rng.permutation(np.resize([0.0, 1.0], 25))[patients]


def noise_by_visit(rng):
    """The target differs within patients, of whom some have more visits than others."""
    patients = np.repeat(np.arange(30), np.resize([3, 4, 5], 30))
    X = rng.normal(size=(30, 10))[patients] + 0.3 * rng.normal(size=(120, 10))
    return X, rng.normal(size=30)[patients] + 0.3 * rng.normal(size=120)


def noise_in_time(rng):
    steps = rng.normal(size=(150, 11))
    for row in range(1, 150):
        steps[row] += 0.9 * steps[row - 1]
    return steps[:, 1:], steps[:, 0]


@slow_ids("noise_in_time*")
@slow_ids("noise_by_visit-*")
@pytest.mark.parametrize(
    ("draw_table", "groups", "ordered"),
    [
        (noise_by_patient, np.repeat(np.arange(25), 4), False),
        (noise_by_visit, np.repeat(np.arange(30), np.resize([3, 4, 5], 30)), False),
        (noise_in_time, None, True),
    ],
)
def test_p_values_of_noise_are_uniform_only_where_likeness_is_kept(draw_table, groups, ordered):
    kept = p_values(groups, ordered, draw_table)
    broken = p_values(None, False, draw_table)
    assert np.mean(kept <= 0.05) <= 0.1
    assert kstest(kept, "uniform").pvalue > 0.01
    assert np.mean(broken <= 0.05) >= 0.3


def test_whole_groups_change_places():
    labels = np.repeat(np.arange(6), 3)
    y = np.arange(18)
    (order,) = permutations(y, 1, 0, labels)
    assert np.array_equal(np.sort(order), y)
    blocks = order.reshape(6, 3)
    assert np.array_equal(np.sort(blocks[:, 0]), np.arange(0, 18, 3))
    assert (np.diff(blocks, axis=1) == 1).all()
    # Rows of a group need not be neighbours.
    scattered = np.random.default_rng(1).permutation(labels)
    (moved,) = permutations(y, 1, 0, scattered)
    for group in range(6):
        assert len(set(scattered[moved[scattered == group]])) == 1


def test_a_target_by_group_stays_constant_within_groups_of_any_size():
    labels = np.repeat(list("abcde"), [1, 7, 2, 5, 3])
    values = np.array([3.0, 1.0, 4.0, 1.5, 9.0])
    y = np.stack([np.repeat(values, [1, 7, 2, 5, 3])] * 2, axis=1)
    for order in permutations(y, 10, 0, labels):
        permuted = y[order]
        by_group = [np.unique(permuted[labels == label]) for label in "abcde"]
        assert np.array_equal(np.sort(np.concatenate(by_group)), np.sort(values))


def test_a_series_is_shifted_by_at_least_a_tenth():
    for rows in (2, 5, 50):
        y = np.arange(rows)
        orders = permutations(y, 100, 0, ordered=True)
        assert ((np.diff(orders, axis=1) % rows) == 1).all()
        shifts = orders[:, 0]
        assert np.minimum(shifts, rows - shifts).min() >= rows / 10
    # Each shift once: a test with 41 of them cannot show p = 0.01.
    assert sorted(shifts) == list(range(5, 46))


def test_each_order_of_few_groups_or_rows_is_drawn_once_and_that_of_the_data_never():
    for number, orders in ((2, 1), (3, 5), (5, 119)):
        labels = np.repeat(np.arange(number), 4)
        drawn = permutations(np.arange(len(labels)), 999, 0, labels)
        by_group = {tuple(order[::4] // 4) for order in drawn}
        assert len(drawn) == len(by_group) == orders
        assert tuple(range(number)) not in by_group
        assert np.array_equal(permutations(labels, 3, 0, labels), drawn[:3])
    assert len(permutations(np.arange(3), 999, 0)) == 5


def test_more_permutations_begin_with_the_same_ones():
    y = np.arange(20)
    few, many = permutations(y, 3, 7), permutations(y, 5, 7)
    assert many.shape == (5, 20) and np.array_equal(many[:3], few)
    assert len({tuple(order) for order in many}) == 5
    assert not np.array_equal(permutations(y, 1, 8), few[:1])
    with pytest.raises(ConfigError, match="not both"):
        permutations(y, 1, 0, y, True)
