"""Paired differences: their intervals hold what they should, and their words follow from them."""

import numpy as np
import pytest

from fsjax.auto.contest.differences import (
    ALIKE,
    BETTER,
    UNCLEAR,
    WORSE,
    Difference,
    above_chance,
    difference,
    interval,
    mean_gain,
)


def test_words_follow_from_the_interval():
    assert Difference(3.0, 1.0, 5.0, 5).verdict(2.0) == BETTER
    assert Difference(-3.0, -5.0, -1.0, 5).verdict(2.0) == WORSE
    assert Difference(0.2, -1.0, 1.4, 5).verdict(2.0) == ALIKE
    assert Difference(0.2, -9.0, 9.4, 5).verdict(2.0) == UNCLEAR
    assert Difference(0.0, -0.5, 0.5, 5).verdict(np.inf) == UNCLEAR
    # A share of 0.01 is little, one of 1 is all there is.
    assert Difference(0.0, -0.5, 0.5, 5).verdict(0.02) == UNCLEAR
    assert Difference(0.0, -0.01, 0.01, 5).verdict(0.02) == ALIKE


def test_the_interval_is_that_of_nadeau_and_bengio():
    values = np.array([1.0, 2.0, 3.0, 4.0, np.nan])
    mean, low, high = interval(values, 0.25)
    error = np.sqrt((1 / 4 + 0.25) * np.var([1, 2, 3, 4], ddof=1))
    assert mean == 2.5
    assert (low, high) == pytest.approx((2.5 - 3.182446 * error, 2.5 + 3.182446 * error))
    assert interval(values[:1], 0.25) == (1.0, -np.inf, np.inf)


def test_differences_are_paired():
    hard = np.array([-20.0, 20.0, -20.0, 20.0, 0.0])
    paired = difference(81.0 + hard, 80.0 + hard, 0.25)
    assert (paired.low, paired.mean, paired.high) == pytest.approx((1.0, 1.0, 1.0))
    assert (paired.pairs, paired.unit) == (5, "folds")


def test_above_chance():
    gain = np.array([1.0, 2.0, 1.5, 1.7, np.nan])
    assert above_chance(gain, np.zeros(5), 0.25) < 0.01
    assert above_chance(-gain, np.zeros(5), 0.25) > 0.9
    assert above_chance(gain[:1], np.zeros(1), 0.25) == 1.0


@pytest.mark.parametrize("last_bit", [-7e-15, 0.0, 7e-15])
def test_scores_that_differ_in_their_last_bit_are_equal(last_bit):
    scores = np.array([55.0, 54.0, 56.0, 55.0])
    assert above_chance(scores + last_bit, scores, 0.25) == 1.0
    assert mean_gain(scores + last_bit, scores) == 0.0
    assert mean_gain(scores * 1e-200, scores * 0.0) == 0.0
    # Errors of a target in a small unit are small too.
    small = -1e-13 * scores
    assert mean_gain(small + 1e-28, small, known_scale=False) == 0.0
    assert mean_gain(0.5 * small, small, known_scale=False) > 0
    assert above_chance(0.5 * small, small, 0.25, known_scale=False) < 0.1


def test_no_fold_is_no_gain():
    assert np.isnan(mean_gain(np.full(3, np.nan), np.zeros(3)))
    assert above_chance(np.full(3, np.nan), np.zeros(3), 0.25) == 1.0


@pytest.mark.parametrize("last_bit", [0.0, 7e-15])
def test_equal_gains_of_a_few_folds_are_no_certainty(last_bit):
    # Two of five folds where a judge returned no number in the others.
    gain = np.array([12.5, 12.5 + last_bit, np.nan, np.nan, np.nan])
    assert above_chance(50.0 + gain, np.full(5, 50.0), 0.25) == 0.25
    assert above_chance(50.0 - gain, np.full(5, 50.0), 0.25) == 1.0
