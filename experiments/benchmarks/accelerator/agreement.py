"""Whether every method selects on an accelerator what it selects on a CPU.

Rounding differs between devices, and training amplifies it: a CPU does not select the same columns
either if the table changes by 1e-6 of a standard deviation. This change is the control. A method
*agrees* if the accelerator's selections share at least as many columns with the CPU's as the
control's do, less one column per seed.
"""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import load_breast_cancer

import fsjax
from experiments.benchmarks.accelerator.pieces import Size
from fsjax.methods import METHODS

#: Columns to select of the 30, and the seeds.
K, SEEDS = 5, (0, 1, 2)

#: Standard deviation of the control's noise, in standard deviations of a column.
CHANGE = 1e-6

#: The largest number of epochs.
MAX_EPOCHS: dict[Size, int] = {"full": 30, "tiny": 2}


def train(name: str, size: Size, noise: float = 0.0) -> fsjax.FitResult:
    """Trains a method with default arguments on the breast cancer data.

    Args:
      name: of the method.
      size: of the training; ``tiny`` has the arguments of the tests.
      noise: standard deviation of noise on the standardised columns.
    """
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0) + noise * np.random.default_rng(0).standard_normal(X.shape)
    builder = METHODS[name]
    about = builder.registration
    options = {} if size == "full" else dict(about.small)
    if about.takes_number:
        options["num_features"] = K
    method = builder(**options)
    with jax.default_matmul_precision("highest"):
        return fsjax.fit(
            method,
            (X.astype(np.float32), y),
            seeds=SEEDS,
            num_features=K,
            num_epochs=min(about.num_epochs, MAX_EPOCHS[size]),
            scaling="none",
            split="stratified",
            best_by="last" if method.loss else None,
        )


def save(name: str, size: Size, folder: Path, control: bool) -> None:
    """Trains a method and writes its scores and columns; a ``control`` on a changed table."""
    path = folder / f"{name}{'-control' if control else ''}.npz"
    if path.exists():
        return
    result = train(name, size, CHANGE if control else 0.0)
    folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, scores=result.scores, selected=result.selected)
    partial.rename(path)


def compare(name: str, cpu: Path, accelerator: Path) -> dict[str, float] | None:
    """Compares the files of a method from :func:`save`.

    Returns:
      ``rank_correlation`` of the scores, the lowest of the seeds; the numbers of ``common`` columns
      and of ``common_control``, of 5 columns for each of 3 seeds; and ``agrees``, 0 or 1. ``None``
      if a file is missing.
    """
    paths = [accelerator / f"{name}.npz", cpu / f"{name}.npz", cpu / f"{name}-control.npz"]
    if not all(path.exists() for path in paths):
        return None
    there, here, control = (dict(np.load(path)) for path in paths)

    def common(selected: np.ndarray) -> int:
        pairs = zip(selected, here["selected"], strict=True)
        return sum(len(np.intersect1d(*pair)) for pair in pairs)

    pairs = zip(there["scores"], here["scores"], strict=True)
    correlations = [float(spearmanr(*pair).statistic) for pair in pairs]
    shared, expected = common(there["selected"]), common(control["selected"])
    return {
        "rank_correlation": min(correlations),
        "common": shared,
        "common_control": expected,
        "agrees": int(shared >= expected - len(SEEDS)),
    }
