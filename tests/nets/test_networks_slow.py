"""The networks of BinMask's section 4.2 train on photos, on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

import fsjax
from fsjax.data import Dataset, Split, load
from fsjax.errors import DataError
from fsjax.methods import binmask

pytestmark = pytest.mark.slow


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


def fit(data: Dataset, network: str, split: Split, **options) -> fsjax.FitResult:
    # Masks that start near 0, as a few epochs have too few steps to close others.
    method = binmask(masked="weights", strength=1e-7, initial=0.01, network=network, **options)
    return fsjax.fit(
        method,
        data,
        num_features=1,
        num_epochs=3,
        batch_size=32,
        split=split,
        scaling="minmax",
        best_by="last",
        record_test=True,
        seed_axis="map",
    )


def check(result: fsjax.FitResult, chance: float) -> None:
    loss = result.history["train/loss"][0]
    assert np.isfinite(loss).all()
    assert loss[-1] < loss[0]
    assert 0.0 < result.history["train/sparsity"][0, -1] < 1.0
    assert result.history["test/accuracy"][0].max() > chance


def test_resnet32_learns_photos(cifar10: Dataset) -> None:
    """Some 60 CPU seconds."""
    result = fit(cifar10, "resnet32", first_rows(cifar10, 512, 256), learning_rate=0.05)
    check(result, chance=15.0)
    assert result.history["train/loss"][0, -1] < np.log(10)


def test_vgg19_learns_photos(cifar10: Dataset) -> None:
    check(fit(cifar10, "vgg19", first_rows(cifar10, 256, 128), learning_rate=0.01), chance=12.0)
