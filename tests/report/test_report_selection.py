"""Pictures of the selection: pixel grids and ranked bars."""

import dataclasses

import numpy as np
import pytest
from figure_checks import assert_readable
from marks import slow_ids
from synthetic_result import make_result

from fsjax.errors import DataError
from fsjax.report import plot_selection, save_figure
from fsjax.report.selection import most_selected


def pixels(figure):
    """The heat map, with zero where no seed selected the pixel."""
    return figure.axes[0].images[-1].get_array().filled(0.0)


@slow_ids("F")
@pytest.mark.parametrize("order", ["C", "F"])
def test_pixel_grid(order, tmp_path):
    result = make_result(columns=64, num_seeds=10)
    figure = plot_selection(result, (8, 8), order)
    grid = result.selection_frequency.reshape((8, 8), order=order)
    np.testing.assert_allclose(pixels(figure), grid)
    axes, bar = figure.axes
    assert bar.get_ylabel() == "share of seeds"
    assert len(axes.images) == 1
    assert figure.get_suptitle() == "ip_cae on coil20, K = 10, classification, 10 seeds"
    assert_readable(figure)
    save_figure(figure, tmp_path / "selection.png")
    assert (tmp_path / "selection.png").stat().st_size > 1000


def test_colour_images_are_summed_over_channels():
    result = make_result(columns=48, num_features=48, num_seeds=2)
    figure = plot_selection(result, (4, 4, 3), background=np.ones(48))
    np.testing.assert_allclose(pixels(figure), 3.0)
    assert "summed over 3 channels" in figure.axes[1].get_ylabel()
    assert figure.axes[0].images[-1].norm.vmax == 3.0
    assert_readable(figure)


def test_bars(tmp_path):
    names = [f"gene {i}" for i in range(30)]
    result = make_result(columns=30, num_features=5, num_seeds=4)
    figure = plot_selection(result, feature_names=names)
    named = plot_selection(dataclasses.replace(result, unit_names=tuple(names)))
    axes, bar = figure.axes
    widths = [patch.get_width() for patch in axes.patches]
    frequency = result.selection_frequency
    assert widths == sorted(widths, reverse=True)
    assert len(widths) == np.count_nonzero(frequency)
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert [frequency[names.index(label)] for label in labels] == pytest.approx(widths)
    assert [label.get_text() for label in named.axes[0].get_yticklabels()] == labels
    assert (axes.get_xlabel(), bar.get_ylabel()) == ("share of seeds", "mean score")
    assert_readable(figure)
    save_figure(figure, tmp_path / "selection.png")


def test_ties_are_ordered_by_score():
    result = make_result(
        columns=4,
        num_features=3,
        num_seeds=2,
        selected=np.array([[0, 1, 2], [2, 1, 3]]),
        scores=np.array([[0.1, 0.5, 0.9, 0.2]] * 2),
    )
    assert most_selected(result).tolist() == [2, 1, 3, 0]
    assert most_selected(result, limit=2).tolist() == [2, 1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 2e-6, 1e9, np.nan, -np.inf])
def test_scores_without_a_range(value):
    result = make_result(columns=20, scores=np.full((3, 20), value))
    assert_readable(plot_selection(result))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"image_shape": (8, 9)}, r"image_shape=\(8, 9\) does not fit 64 columns"),
        ({"image_shape": (64,)}, r"give \(H, W\) or \(H, W, C\)"),
        ({"feature_names": ["a"]}, "feature_names has 1 entries; give 64"),
        ({"image_shape": (8, 8), "background": np.zeros(3)}, "background has 3 entries; give 64"),
    ],
)
def test_what_does_not_fit(wrong, message):
    with pytest.raises(DataError, match=message):
        plot_selection(make_result(columns=64), **wrong)
