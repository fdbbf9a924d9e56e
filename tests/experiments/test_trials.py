"""Tables of trials, and means over trials with their intervals."""

import numpy as np
import pandas as pd
import pytest
from binmask_trials import selection_rows
from scipy import stats

from experiments.artifacts.figures.accuracy import plot_accuracy
from experiments.artifacts.figures.sparsity import plot_accuracy_sparsity, plot_layer_sparsity
from experiments.artifacts.statistics.trials import mean_interval, means_by
from fsjax.errors import DataError


@pytest.mark.parametrize("trials", [2, 8, 30])
def test_interval_is_that_of_scipy(trials):
    values = np.random.default_rng(trials).normal(90, 3, trials)
    mean, half = mean_interval(values)
    low, high = stats.t.interval(0.95, trials - 1, values.mean(), stats.sem(values))
    np.testing.assert_allclose([mean, mean - half, mean + half], [values.mean(), low, high])


@pytest.mark.parametrize("plot", [plot_accuracy, plot_accuracy_sparsity, plot_layer_sparsity])
def test_tables_are_checked(plot):
    with pytest.raises(DataError, match="no rows"):
        plot([])
    with pytest.raises(DataError, match="no column"):
        plot([{"method": "BinMask", "trial": 1}])
    with pytest.raises(DataError, match="no rows|no column"):
        plot(selection_rows().iloc[:0])


def test_means_leave_out_places_that_are_missing():
    rows = pd.DataFrame({"at": [2.0, 1.0, np.nan, 1.0], "value": [5.0, 1.0, 9.0, 3.0]})
    points = means_by(rows, "at", "value")
    np.testing.assert_array_equal(points.places, [1.0, 2.0])
    np.testing.assert_array_equal(points.means, [2.0, 5.0])
    assert np.isnan(points.halves[1]) and points.halves[0] > 0
