"""Synthetic trials of the comparison of selectors."""

import numpy as np
import pandas as pd

SIX = ("BinMask", "Fisher score", "STG", "LassoNet", "IP-CAE", "random selection")


def selection_rows(datasets=("isolet",), methods=("BinMask", "Fisher score"), trials=8, sizes=5):
    """Accuracies of methods by number of features, with BinMask's strengths and all features."""
    rng = np.random.default_rng(0)
    rows = []
    for dataset in datasets:
        most = int(rng.integers(40, 300))
        for trial in range(trials):
            rows.append((dataset, "all features", trial, 617, 96.5 + 0.3 * rng.normal(), np.nan))
            for number, method in enumerate(methods):
                for part in range(sizes):
                    size = most - part * (most // 5)
                    level = 97.0 - 1.3 * number - 12.0 * np.exp(-3.0 * size / most)
                    strength = 1e-3 * (1 + part) ** 1.5 * (1 + 0.1 * rng.normal())
                    found = strength if method == "BinMask" else np.nan
                    rows.append((dataset, method, trial, size, level + 0.6 * rng.normal(), found))
    names = ["dataset", "method", "trial", "num_features", "accuracy", "strength"]
    return pd.DataFrame(rows, columns=names)
