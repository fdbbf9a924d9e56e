"""One method under several circumstances, and how far its states and scores are apart."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from typing import Any, Final

import jax
import numpy as np
import scipy.sparse as sp

import fsjax
from fsjax.methods import METHODS
from fsjax.registry import Registration

#: Two seeds, some epochs, several batches in each.
OPTIONS: Final = {"seeds": (3, 5), "num_epochs": 4, "batch_size": 16}

Data = tuple[Any, np.ndarray]
Fit = Callable[..., fsjax.FitResult]


def table() -> Data:
    """``(90, 12)`` rows, two informative columns, zeros among the others."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((90, 12)).astype(np.float32)
    x[rng.random(x.shape) < 0.5] = 0
    y = (x[:, 0] + x[:, 3] > 0).astype(int)
    return x, y


def registration(name: str) -> Registration:
    """That of a method."""
    return METHODS[name].registration


def fit(name: str, data: Data | None = None, **options: Any) -> fsjax.FitResult:
    """The method with the settings of its tests."""
    method = METHODS[name](**registration(name).small)
    number = None if method.about.num_features else 3
    with warnings.catch_warnings():
        # Of other circumstances, and of equal scores after so few epochs.
        warnings.simplefilter("ignore")
        return fsjax.fit(method, data or table(), num_features=number, **{**OPTIONS, **options})


def alone(name: str) -> float:
    """A seed by itself, and beside another."""
    both = fit(name, seed_axis="map")
    single = fit(name, seeds=OPTIONS["seeds"][1:], seed_axis="map")
    return distance(row_of(both, 1), row_of(single, 0))


def resumed(name: str) -> float:
    """In one piece, and ended after two epochs and taken up again."""
    whole = fit(name, seed_axis="map")
    with tempfile.TemporaryDirectory() as folder:
        options = {"seed_axis": "map", "checkpoint_dir": folder, "checkpoint_every": 1}
        ended = fit(name, callback=lambda progress: progress.epoch == 2, **options)
        again = fit(name, **options)
    if ended.history and not ended.method.search:
        assert (ended.cost["trained_epochs"], again.cost["trained_epochs"]) == (2, 2)
    return max(distance(row_of(whole, row), row_of(again, row)) for row in range(2))


def watched(name: str) -> float:
    """Many epochs in a call of the program, and one, as with a callback."""
    whole = fit(name, seed_axis="map")
    each = fit(name, seed_axis="map", callback=lambda progress: False)
    return max(distance(row_of(whole, row), row_of(each, row)) for row in range(2))


def devices(name: str) -> float:
    """One seed after another, and on two devices."""
    return _axes(name, "shard")


def batched(name: str) -> float:
    """One seed after another, and in one batched program."""
    return _axes(name, "vmap")


def _axes(name: str, other: str) -> float:
    first, second = fit(name, seed_axis="map"), fit(name, seed_axis=other)
    return max(distance(row_of(first, row), row_of(second, row)) for row in range(2))


def sparse(name: str) -> float:
    """The rows of a dense table, and of the same as a sparse one; NaN where it takes none."""
    x, y = table()
    if not METHODS[name](**registration(name).small).about.sparse:
        return float("nan")
    first, second = (fit(name, (X, y), seed_axis="map") for X in (x, sp.csr_array(x)))
    return max(distance(row_of(first, row), row_of(second, row)) for row in range(2))


#: What is compared, by the name of its column.
COMPARISONS: Final[dict[str, Callable[[str], float]]] = {
    "alone": alone,
    "resumed": resumed,
    "watched": watched,
    "devices": devices,
    "batched": batched,
    "sparse": sparse,
}


def row_of(result: fsjax.FitResult, row: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """States, scores and columns of one seed, for :func:`distance`."""
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[row], result.states)
    return states, result.scores[row], result.selected[row]


def distance(first: tuple, second: tuple) -> float:
    """0 if states, scores and columns are equal to the bit, infinity if other columns are chosen.

    Else the largest difference of a score, as a share of the largest score, or the smallest
    positive number where only states differ.
    """
    equal = jax.tree.map(lambda a, b: a.tobytes() == b.tobytes(), first[0], second[0])
    if all(jax.tree.leaves(equal)) and np.array_equal(first[1], second[1]):
        return 0.0
    if not np.array_equal(np.sort(first[2]), np.sort(second[2])):
        return float("inf")
    scale = max(float(np.abs(first[1]).max()), 1e-30)
    return max(float(np.abs(first[1] - second[1]).max()) / scale, 1e-12)
