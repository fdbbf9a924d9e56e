"""The figure of accuracy by number of features, on synthetic trials."""

import numpy as np
import pytest
from binmask_trials import SIX, selection_rows
from figure_checks import assert_all_readable, bars_of, legend_texts

from experiments.artifacts.figures.accuracy import plot_accuracy, strength_labels
from experiments.artifacts.statistics.trials import mean_interval


@pytest.mark.parametrize(
    ("datasets", "methods", "trials"),
    [
        (("isolet",), SIX, 8),
        (("a_very_long_name_of_a_data_set_that_goes_on", "b"), SIX, 2),
        (tuple("abc"), SIX[1:3], 1),
        (tuple("abcdef"), SIX[:4], 8),
    ],
)
def test_accuracy_figures_are_readable(datasets, methods, trials):
    figure = plot_accuracy(selection_rows(datasets, methods, trials))
    assert len(figure.axes) == len(datasets)
    assert_all_readable(figure)


def test_accuracy_lines_are_means_and_intervals():
    rows = selection_rows(("isolet", "mnist"))
    figure = plot_accuracy(rows.to_dict("records"))
    for axes, dataset in zip(figure.axes, ("isolet", "mnist"), strict=True):
        here = rows[rows["dataset"] == dataset]
        assert axes.get_title() == dataset
        texts = legend_texts(axes)
        for number, method in enumerate(("BinMask", "Fisher score")):
            method_rows = here[here["method"] == method]
            groups = method_rows.groupby("num_features")["accuracy"]
            halves = [mean_interval(values)[1] for _, values in groups]
            line = axes.containers[number][0]
            np.testing.assert_allclose(line.get_ydata(), groups.mean())
            np.testing.assert_allclose(bars_of(axes)[number], halves)
            # The shift is small compared with the distance between two sizes.
            np.testing.assert_allclose(line.get_xdata(), list(groups.groups), rtol=0.03)
            assert f"{method} ({method_rows['accuracy'].mean():.1f})" in texts
        band = here.loc[here["method"] == "all features", "accuracy"]
        assert f"all features ({band.mean():.1f})" in texts
        mean, half = mean_interval(band)
        (patch,) = axes.patches
        np.testing.assert_allclose([patch.get_y(), patch.get_height()], [mean - half, 2 * half])


def test_strengths_stand_on_the_top_axis():
    rows = selection_rows(sizes=3)
    (axes,) = plot_accuracy(rows).axes
    (top,) = axes.child_axes
    assert top.get_xlabel() == "BinMask λ"
    strengths = rows[rows["method"] == "BinMask"].groupby("num_features")["strength"]
    first = strengths.mean().iloc[0], strengths.std(ddof=0).iloc[0]
    text = "{}\n({})".format(*(f"{value:.1e}".replace("e-0", "e-") for value in first))
    assert strength_labels(rows)[strengths.mean().index[0]] == text
    assert [label.get_text() for label in top.get_xticklabels()][0] == text
    for without in (rows.drop(columns="strength"), rows.assign(strength=None)):
        assert not plot_accuracy(without).axes[0].child_axes
    assert strength_labels(rows[rows["method"] == "BinMask"].assign(method="binmask")) == (
        strength_labels(rows)
    )
