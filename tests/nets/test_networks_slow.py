"""The networks of BinMask's section 4.2 train on photos, on a CPU."""

from __future__ import annotations

import os

import numpy as np
import pytest

import fsjax
from fsjax.data import Dataset, Split, load
from fsjax.errors import DataError
from fsjax.methods import binmask

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif("FSJAX_DATA" not in os.environ, reason="needs FSJAX_DATA with CIFAR-10"),
    # Inputs of convolutions have no score, which a fit says.
    pytest.mark.filterwarnings("ignore:.*all columns the same score"),
]


@pytest.fixture(scope="module")
def cifar10() -> Dataset:
    try:
        return load("cifar10")
    except DataError as error:
        pytest.skip(f"CIFAR-10 is missing, its subset too: {error}")


def first_rows(data: Dataset, train: int, test: int) -> Split:
    """So many of the official training and test rows, at random."""
    draws = np.random.default_rng(0)
    rows = [draws.permutation(np.flatnonzero(data.official_split == part)) for part in (0, 1)]
    return Split(rows[0][:train], rows[0][:0], rows[1][:test])


def fit(data: Dataset, network: str, split: Split, num_epochs: int, **options) -> fsjax.FitResult:
    method = binmask(masked="weights", network=network, **options)
    return fsjax.fit(
        method,
        data,
        num_features=1,
        num_epochs=num_epochs,
        batch_size=32,
        split=split,
        scaling="minmax",
        best_by="last",
        record_test=True,
        seed_axis="map",
    )


def check(result: fsjax.FitResult) -> None:
    loss = result.history["train/loss"][0]
    assert np.isfinite(loss).all()
    assert loss[-1] < loss[0] - 0.1
    assert 0.0 < result.history["train/sparsity"][0, -1] < 1.0


def test_resnet32_learns_photos(cifar10: Dataset) -> None:
    """80 steps, 120 CPU seconds: losses of 1.7 to 1.9 from three seeds, accuracies of 22 to 26."""
    split = first_rows(cifar10, 512, 256)
    # Masks that start near 0, as so few steps close no others.
    options = {"strength": 1e-7, "initial": 0.01, "learning_rate": 0.05}
    result = fit(cifar10, "resnet32", split, 5, **options)
    check(result)
    assert result.history["train/loss"][0, -1] < np.log(10) - 0.2
    assert result.history["test/accuracy"][0, -1] > 15.0


def test_vgg19_learns_photos(cifar10: Dataset) -> None:
    """24 steps, 250 CPU seconds."""
    split = first_rows(cifar10, 256, 128)
    # Without a penalty on its 20 million masks, the loss is that of the classification.
    options = {"strength": 0.0, "initial": 0.011, "learning_rate": 0.01}
    result = fit(cifar10, "vgg19", split, 3, **options)
    check(result)
    # After so few epochs only the training loss says something.
    assert result.history["train/loss"][0, -1] < np.log(10)
