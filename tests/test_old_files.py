"""What the version before wrote is read (see ``old_files/README.md``)."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import fsjax
from fsjax import estimators
from fsjax.storage.npz import VERSION

FILES = Path(__file__).parent / "old_files" / f"version_{VERSION - 1}"
METHODS = {"ip_cae": fsjax.methods.ip_cae(2, hidden=(3,)), "wast": fsjax.methods.wast(hidden=(4,))}


def table() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.RandomState(0).normal(size=(40, 6)).astype(np.float32)
    return x, (x[:, 1] > 0).astype(int)


@pytest.mark.parametrize("name", list(METHODS))
def test_results_are_read(name: str) -> None:
    result = fsjax.load(FILES / f"{name}.npz")
    assert result.method.name == name and result.seeds == (0, 1)
    chosen = {"ip_cae": [[5, 0], [3, 1]], "wast": [[4, 2], [1, 4]]}[name]
    np.testing.assert_array_equal(result.selected, chosen)
    assert result.scores.shape == (2, 6) and np.isfinite(result.scores).all()
    x, y = table()
    if name == "ip_cae":
        test = result.splits[0].test
        right = 100 * np.mean(result.predict(x[test])[0].argmax(1) == y[test])
        np.testing.assert_allclose(right, result.metrics["embedded_accuracy"][0])


def test_estimators_are_read() -> None:
    estimator = estimators.load(FILES / "estimator.npz")
    np.testing.assert_array_equal(estimator.get_support(indices=True), [0, 5])
    assert estimator.transform(table()[0]).shape == (40, 2)


def trained(folder: Path) -> fsjax.FitResult:
    return fsjax.fit(
        METHODS["wast"],
        table(),
        num_features=2,
        num_epochs=3000,
        seeds=(0, 1),
        checkpoint_dir=folder,
        checkpoint_every=100,
    )


@pytest.mark.slow
def test_checkpoints_are_continued(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / "checkpoints.zip") as packed:
        packed.extractall(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = trained(tmp_path)
    assert result.cost["trained_epochs"] < 3000
    assert "is resumed with other versions or devices" in " ".join(
        str(one.message) for one in caught
    )
