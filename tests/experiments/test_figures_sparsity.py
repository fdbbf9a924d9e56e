"""The figures of accuracy by sparsity and of layer sparsities, on synthetic trials."""

import numpy as np
import pandas as pd
import pytest

from experiments.artifacts.figures.sparsity import plot_accuracy_sparsity, sparsity_points
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
