"""Means over trials and their intervals, and what all figures of them share."""

import numpy as np
import pandas as pd
import pytest
from report_binmask_trials import SIX, selection_rows
from scipy import stats

from fsjax.errors import ConfigError, DataError
from fsjax.report import mean_interval, plot_accuracy, plot_accuracy_sparsity, plot_layer_sparsity
from fsjax.report.intervals import apart, looks, means_by, shifts, short_number


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("trials", [2, 8, 30])
def test_interval_is_that_of_scipy(trials, confidence):
    values = np.random.default_rng(trials).normal(90, 3, trials)
    mean, half = mean_interval(values, confidence)
    low, high = stats.t.interval(confidence, trials - 1, values.mean(), stats.sem(values))
    np.testing.assert_allclose([mean, mean - half, mean + half], [values.mean(), low, high])


def test_interval_of_few_trials():
    np.testing.assert_equal(mean_interval([3.0]), (3.0, np.nan))
    np.testing.assert_equal(mean_interval([np.nan, 3.0, np.inf]), (3.0, np.nan))
    np.testing.assert_equal(mean_interval([]), (np.nan, np.nan))
    assert mean_interval([1.0, np.nan, 3.0]) == mean_interval(iter([1.0, 3.0]))
    assert mean_interval([2.0, 2.0, 2.0]) == (2.0, 0.0)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, np.nan])
def test_interval_needs_a_share(confidence):
    with pytest.raises(ConfigError, match="confidence="):
        mean_interval([1.0, 2.0], confidence)


def test_methods_look_different():
    found = looks(f"method {number % 40}" for number in range(80))
    assert len(found) == len(set(found.values())) == 40
    assert len({look.color for look in looks(SIX).values()}) == 6


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (50, "50"),
        (250, "250"),
        (0, "0"),
        (0.012, "0.012"),
        (8.23e-4, "8.2e-4"),
        (1e-5, "1e-5"),
        (9.99e-4, "1e-3"),
        (123456, "1.2e5"),
        (np.nan, "-"),
    ],
)
def test_short_numbers(value, text):
    assert short_number(value) == text


def test_ticks_keep_their_distance():
    assert apart([10, 9, 5, 1], 10, 0.2) == [1, 5, 10]
    assert apart([], 1.0, 0.1) == []


@pytest.mark.parametrize("plot", [plot_accuracy, plot_accuracy_sparsity, plot_layer_sparsity])
def test_tables_are_checked(plot):
    with pytest.raises(DataError, match="no rows"):
        plot([])
    with pytest.raises(DataError, match="no column"):
        plot([{"method": "BinMask", "trial": 1}])
    with pytest.raises(DataError, match="no rows|no column"):
        plot(selection_rows().iloc[:0])


def test_numbers_of_tables_are_checked():
    rows = selection_rows().to_dict("records")
    rows[3]["accuracy"] = "high"
    with pytest.raises(DataError, match="must be numbers"):
        plot_accuracy(rows)


def test_means_leave_out_places_that_are_missing():
    rows = pd.DataFrame({"at": [2.0, 1.0, np.nan, 1.0], "value": [5.0, 1.0, 9.0, 3.0]})
    points = means_by(rows, "at", "value")
    np.testing.assert_array_equal(points.places, [1.0, 2.0])
    np.testing.assert_array_equal(points.means, [2.0, 5.0])
    assert np.isnan(points.halves[1]) and points.halves[0] > 0


def test_lines_move_little():
    for number in (1, 2, 6, 12):
        found = shifts(number)
        assert found.shape == (number,) and np.ptp(found) <= 0.03 + 1e-12
        np.testing.assert_allclose(found.sum(), 0.0, atol=1e-12)
    assert shifts(0).size == 0
    np.testing.assert_allclose(np.diff(shifts(3)), 0.007)
