"""The figure of a path from a dense network to a sparse one."""

import numpy as np
import pytest
from report_binmask_trials import legend_texts
from report_figure_checks import assert_readable

from fsjax.errors import DataError
from fsjax.report import plot_path


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


def test_path_with_the_least():
    path = {
        n: list(v) for n, v in lasso_path(30, False).items() if n not in ("chosen", "test_accuracy")
    }
    figure = plot_path(path)
    assert legend_texts(figure.axes[0]) == ["validation"]
    assert not figure.axes[0].collections
    narrow = plot_path({**path, "lambda": np.linspace(1.0, 1.6, 30)})
    assert len([t for t in narrow.axes[1].get_xticks() if 1.0 <= t <= 1.6]) >= 3
    assert_readable(narrow)


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
