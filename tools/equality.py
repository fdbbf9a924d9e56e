"""Trains a method in two ways that should be equal, and measures how far the results differ.

``python -m tools.equality`` prints the table ``docs/tables/equality.md`` of ``docs/equality.md``.
"""

from __future__ import annotations

import math
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
    """A table of shape ``(90, 12)`` with two informative columns; half of its values are 0."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((90, 12)).astype(np.float32)
    x[rng.random(x.shape) < 0.5] = 0
    y = (x[:, 0] + x[:, 3] > 0).astype(int)
    return x, y


def registration(name: str) -> Registration:
    """The registration of a method."""
    return METHODS[name].registration


def fit(name: str, data: Data | None = None, **options: Any) -> fsjax.FitResult:
    """Fits a method with the settings of its tests."""
    method = METHODS[name](**registration(name).small)
    number = None if method.about.num_features else 3
    with warnings.catch_warnings():
        # Among them that scores are equal after so few epochs.
        warnings.simplefilter("ignore")
        return fsjax.fit(method, data or table(), num_features=number, **{**OPTIONS, **options})


def alone(name: str) -> float:
    """Compares a seed alone with the same seed beside another one."""
    both = fit(name, seed_axis="map")
    single = fit(name, seeds=OPTIONS["seeds"][1:], seed_axis="map")
    return distance(row_of(both, 1), row_of(single, 0))


def resumed(name: str) -> float:
    """Compares an uninterrupted run with one that is stopped after two epochs and resumed."""
    uninterrupted = fit(name, seed_axis="map")
    with tempfile.TemporaryDirectory() as folder:
        options = {"seed_axis": "map", "checkpoint_dir": folder, "checkpoint_every": 1}
        ended = fit(name, callback=lambda progress: progress.epoch == 2, **options)
        again = fit(name, **options)
    if ended.history and not ended.method.search:
        assert (ended.cost["trained_epochs"], again.cost["trained_epochs"]) == (2, 2)
    return distance_of_seeds(uninterrupted, again)


def watched(name: str) -> float:
    """Compares many epochs per call of the program with one, as with a callback."""
    watched_run = fit(name, seed_axis="map", callback=lambda progress: False)
    return distance_of_seeds(fit(name, seed_axis="map"), watched_run)


def devices(name: str) -> float:
    """Compares seeds one after another with seeds on two devices."""
    return distance_of_seeds(fit(name, seed_axis="map"), fit(name, seed_axis="shard"))


def batched(name: str) -> float:
    """Compares seeds one after another with seeds in one batched program."""
    return distance_of_seeds(fit(name, seed_axis="map"), fit(name, seed_axis="vmap"))


def sparse(name: str) -> float:
    """Compares a dense table with the same table as a sparse one; NaN if the method takes none."""
    x, y = table()
    if not METHODS[name](**registration(name).small).about.sparse:
        return float("nan")
    dense_run, sparse_run = (fit(name, (X, y), seed_axis="map") for X in (x, sp.csr_array(x)))
    return distance_of_seeds(dense_run, sparse_run)


#: The comparisons, by the name of their column.
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


def distance_of_seeds(first: fsjax.FitResult, second: fsjax.FitResult) -> float:
    """The larger :func:`distance` of both seeds."""
    return max(distance(row_of(first, row), row_of(second, row)) for row in range(2))


def distance(first: tuple, second: tuple) -> float:
    """0 if states, scores and columns are bitwise equal, infinity if other columns are selected.

    Otherwise the largest difference of a score, as a share of the largest score, but at least
    1e-12, also if only states differ.
    """
    equal = jax.tree.map(lambda a, b: a.tobytes() == b.tobytes(), first[0], second[0])
    if all(jax.tree.leaves(equal)) and np.array_equal(first[1], second[1]):
        return 0.0
    if not np.array_equal(np.sort(first[2]), np.sort(second[2])):
        return float("inf")
    scale = max(float(np.abs(first[1]).max()), 1e-30)
    return max(float(np.abs(first[1] - second[1]).max()) / scale, 1e-12)


def text(distance: float) -> str:
    """Formats a cell of the table."""
    if math.isnan(distance):
        return "-"
    if distance == 0:
        return "bits"
    return "other columns" if math.isinf(distance) else f"{distance:.0e}"


def main() -> None:
    """Measures all methods and prints a row for each."""
    fsjax.use_cpu_devices(2)
    fsjax.use_compilation_cache()
    print(f"| method | {' | '.join(COMPARISONS)} |\n|{' --- |' * (1 + len(COMPARISONS))}")
    for name in sorted(METHODS):
        cells = [text(compare(name)) for compare in COMPARISONS.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
