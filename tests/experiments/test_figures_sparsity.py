"""The figures of accuracy by sparsity and of layer sparsities, on synthetic trials."""

import numpy as np
import pandas as pd
import pytest
from figure_checks import bars_of

from experiments.artifacts.figures.sparsity import (
    plot_accuracy_sparsity,
    sparsity_points,
)
from experiments.artifacts.statistics.trials import mean_interval
from fsjax.errors import DataError


def sparsity_rows(networks=("ResNet32 on CIFAR10",), methods=("BinMask", "ProbMask"), trials=4):
    """Accuracies before and after fine-tuning by sparsity, which differs a little by trial."""
    rng = np.random.default_rng(0)
    densities = np.array([0.06, 0.045, 0.03, 0.018, 0.011, 0.006, 0.0035])
    rows = []
    for network in networks:
        for trial in range(trials):
            rows.append((network, "dense", trial, 0.0, *(93.2 + 0.2 * rng.normal(size=2))))
            for number, method in enumerate(methods):
                for density in densities:
                    tuned = 93.5 - 0.35 * number - 0.045 / density + 0.2 * rng.normal()
                    before = tuned - (15 * number + 0.3) - number * abs(rng.normal())
                    density = density * (1 + 0.02 * rng.normal())
                    rows.append((network, method, trial, 1 - density, before, tuned))
    names = ["network", "method", "trial", "sparsity", "accuracy", "finetuned_accuracy"]
    return pd.DataFrame(rows, columns=names)


def test_sparsity_lines():
    rows = sparsity_rows()
    (axes,) = plot_accuracy_sparsity(rows).axes
    lines = [container[0] for container in axes.containers]
    assert [line.get_linestyle() for line in lines] == ["-", "-", "--", "--"]
    assert lines[0].get_color() == lines[2].get_color() != lines[1].get_color()
    low, high = axes.get_xlim()
    assert low > high and axes.get_xscale() == "log"
    method_rows = rows[rows["method"] == "ProbMask"].sort_values("sparsity")
    last = method_rows["sparsity"].to_numpy()[-4:]  # the sparsest of each of the four trials
    np.testing.assert_allclose(lines[3].get_xdata().min(), 1 - last.mean(), rtol=0.06)
    tuned = method_rows["finetuned_accuracy"].to_numpy()[-4:]
    np.testing.assert_allclose(lines[3].get_ydata()[0], tuned.mean())
    np.testing.assert_allclose(bars_of(axes)[3][0], mean_interval(tuned)[1])
    bands = [patch for patch in axes.patches if patch.get_height() > 0]
    dense = rows.loc[rows["method"] == "dense", "accuracy"]
    np.testing.assert_allclose(2 * mean_interval(dense)[1], bands[0].get_height())


def test_trials_belong_together_by_strength_or_by_rank():
    rows = sparsity_rows(methods=("BinMask",), trials=2)
    method_rows = rows[rows["method"] == "BinMask"].assign(strength=np.nan)
    by_rank = sparsity_points(method_rows, "accuracy")
    assert len(by_rank.places) == 7
    pair = method_rows.iloc[[0, 7]].assign(sparsity=[0.99, 0.98])
    np.testing.assert_allclose(sparsity_points(pair, "accuracy").places, [0.015])
    split = sparsity_points(pair.assign(strength=[1.0, 2.0]), "accuracy")
    np.testing.assert_allclose(split.places, [0.01, 0.02])
    same = pair.assign(strength=[1.0, 2.0], sparsity=0.0)
    assert len(sparsity_points(same, "accuracy").places) == 2
    uneven = rows.drop(index=rows.index[-1])
    with pytest.raises(DataError, match="6 to 7 sparsities"):
        plot_accuracy_sparsity(uneven)
    strengths = uneven["sparsity"].round(2)
    assert plot_accuracy_sparsity(uneven.assign(strength=strengths))
