"""The figure of a path from a dense network to a sparse one.

Covers ``fsjax.report.path``.
"""

import dataclasses

import numpy as np
import pytest
from figure_checks import assert_readable, legend_texts
from synthetic_result import make_result

from fsjax.errors import DataError
from fsjax.report import path_of, plot_path
from fsjax.tasks import TABLE


def lasso_path(length=120, dense=True):
    """A path with a dense network at its start."""
    strength = 0.05 * 1.06 ** np.arange(length)
    share = np.linspace(0.0, 1.0, length)
    size = np.round(617 * (1 - share) ** 1.6).astype(int)
    accuracy = 96.0 - 90.0 * share**8
    if dense:
        strength[0] = 0.0
    chosen = int(np.abs(size - 50).argmin())
    return {
        "lambda": strength,
        "num_selected": size,
        "valid_accuracy": accuracy + 0.3 * np.sin(np.arange(length)),
        "test_accuracy": accuracy - 1.0 + 0.3 * np.cos(np.arange(length)),
        "chosen": chosen,
    }


@pytest.mark.parametrize("length", [1, 2, 20, 400])
@pytest.mark.parametrize("dense", [False, True])
def test_path(length, dense):
    path = lasso_path(length, dense and length > 1)
    figure = plot_path(path, "LassoNet on isolet")
    upper, lower = figure.axes
    shown = path["lambda"] > 0
    np.testing.assert_array_equal(lower.lines[0].get_ydata(), path["num_selected"][shown])
    np.testing.assert_allclose(upper.lines[1].get_ydata(), path["test_accuracy"][shown])
    assert lower.get_xscale() == "log" and upper.get_xlim() == lower.get_xlim()
    if length > 2:
        assert legend_texts(upper)[2].startswith("chosen: ")
        place = lower.collections[0].get_offsets()[0]
        chosen = path["chosen"]
        np.testing.assert_allclose(place, [path["lambda"][chosen], path["num_selected"][chosen]])
    assert_readable(figure)


def lasso_result(task="classification", **changes):
    """Two seeds: dense for two epochs, three lambdas of two epochs, then nothing."""
    nan = np.nan
    strength = np.array([[0, 0, 1, 1, 2, 2, 4, 4, nan]] * 2)
    size = np.array([[9, 9, 9, 8, 6, 5, 3, 2, nan]] * 2)
    size[1, 5] = 4
    metric = np.array([[90, 91, 92, 93, 94, 95, 80, 70, nan]] * 2)
    name = {"classification": "accuracy", "regression": "mse"}[task]
    history = {"train/lambda": strength, "train/num_selected": size, f"valid/{name}": metric}
    result = make_result(name="lassonet", task=task, columns=9, num_features=4, num_seeds=2)
    return dataclasses.replace(result, history={**history, **changes})


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_path_of_a_result(task):
    result = lasso_result(task)
    path = path_of(result)
    np.testing.assert_array_equal(path["lambda"], [1, 2, 4])
    np.testing.assert_array_equal(path["num_selected"], [8, 5, 2])
    assert path["chosen"] == 2 and path_of(result, seed=2)["chosen"] == 1
    figure = plot_path(result)
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), [93, 95, 70])
    assert figure.get_suptitle().startswith("lassonet on coil20, K = 4")
    assert figure.axes[0].get_ylabel() == (
        "accuracy (%)" if task != "regression" else TABLE["regression"].words.label
    )
    assert_readable(figure)


def test_results_without_a_path():
    with pytest.raises(DataError, match="ip_cae has no path"):
        plot_path(make_result())
    with pytest.raises(DataError, match="the path has not started"):
        plot_path(lasso_result(**{"train/lambda": np.zeros((2, 9))}))
    short = lasso_result(**{"train/num_selected": np.full((2, 9), 8.0)})
    assert "chosen" not in path_of(short)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_selected": None}, "no 'num_selected'"),
        ({"valid_accuracy": [1.0, 2.0]}, "has shape"),
        ({"lambda": np.zeros(20)}, "no lambda"),
        ({"chosen": 20}, "from 0 to 19"),
        ({"chosen": -1}, "from 0 to 19"),
    ],
)
def test_paths_are_checked(change, message):
    with pytest.raises(DataError, match=message):
        plot_path({**lasso_path(20), **change})
