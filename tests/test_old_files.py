"""What earlier versions wrote is read, or refused by name (see ``old_files/README.md``)."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from marks import slow_ids

import fsjax
from fsjax import estimators
from fsjax.errors import ConfigError, DataError

FILES = Path(__file__).parent / "old_files"
UNREAD = ["format_1"]
READ = ["format_2", "table_of_tasks", "records", "circumstances", "derived"]
READ_CHECKPOINTS = ["derived"]
METHODS = {"ip_cae": fsjax.methods.ip_cae(2, hidden=(3,)), "wast": fsjax.methods.wast(hidden=(4,))}


def table() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.RandomState(0).normal(size=(40, 6)).astype(np.float32)
    return x, (x[:, 1] > 0).astype(int)


def test_every_folder_is_tried() -> None:
    assert sorted(UNREAD + READ) == sorted(path.name for path in FILES.iterdir() if path.is_dir())


@pytest.mark.parametrize("version", UNREAD)
@pytest.mark.parametrize("name", ["ip_cae", "wast", "estimator"])
def test_what_is_not_read_is_refused_by_name(version: str, name: str) -> None:
    load = estimators.load if name == "estimator" else fsjax.load
    with pytest.raises(
        DataError, match=rf"{name}.npz has version 1 .* use that version, or fit again"
    ):
        load(FILES / version / f"{name}.npz")


@pytest.mark.parametrize("version", READ)
@pytest.mark.parametrize("name", list(METHODS))
def test_results_are_read(version: str, name: str) -> None:
    result = fsjax.load(FILES / version / f"{name}.npz")
    assert result.method.name == name and result.seeds == (0, 1)
    # The same columns in all of them, as their arithmetic is.
    chosen = {"ip_cae": [[5, 0], [3, 1]], "wast": [[4, 2], [1, 4]]}[name]
    np.testing.assert_array_equal(result.selected, chosen)
    assert result.scores.shape == (2, 6) and np.isfinite(result.scores).all()
    x, y = table()
    if name == "ip_cae":
        test = result.splits[0].test
        right = 100 * np.mean(result.predict(x[test])[0].argmax(1) == y[test])
        np.testing.assert_allclose(right, result.metrics["embedded_accuracy"][0])


@pytest.mark.parametrize("version", READ)
def test_estimators_are_read(version: str) -> None:
    estimator = estimators.load(FILES / version / "estimator.npz")
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


@slow_ids("format_1")
@pytest.mark.parametrize("version", UNREAD + READ)
def test_checkpoints_are_continued_or_refused(version: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / version / "checkpoints.zip") as packed:
        packed.extractall(tmp_path)
    if version not in READ_CHECKPOINTS:
        with pytest.raises(ConfigError, match="checkpoint of an earlier version"):
            trained(tmp_path)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = trained(tmp_path)
    assert result.cost["trained_epochs"] < 3000
    assert "is resumed with other versions or devices" in " ".join(
        str(one.message) for one in caught
    )
