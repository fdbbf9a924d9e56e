"""The figure of accuracy by number of features, on synthetic trials."""

import numpy as np
from binmask_trials import selection_rows
from figure_checks import bars_of, legend_texts

from experiments.artifacts.figures.accuracy import plot_accuracy
from experiments.artifacts.statistics.trials import mean_interval


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
