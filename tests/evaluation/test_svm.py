"""The SVM protocol against direct calls of scikit-learn, and its noise.

Covers ``fsjax.evaluation.svm``.
"""

from __future__ import annotations

import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fsjax.data import Dataset, load, make_split
from fsjax.evaluation import svm_accuracy
from fsjax.tables.splits import Split


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


@pytest.fixture(scope="module")
def split(digits: Dataset) -> Split:
    return make_split(digits)


def small(y: np.ndarray | None, rows: int = 40) -> tuple[Dataset, Split]:
    """Column 0 holds the class where y is one, column 1 is constant, column 2 is noise."""
    rng = np.random.default_rng(0)
    x = np.stack([np.arange(rows) % 2 * 10, np.full(rows, 7), rng.integers(0, 9, rows)], axis=1)
    parts = np.split(np.arange(rows, dtype=np.int32), [rows // 2, 3 * rows // 4])
    return Dataset("small", x.astype(np.uint8), y), Split(*parts)


def test_matches_scikit_learn(digits: Dataset, split: Split) -> None:
    columns = np.array([20, 30, 43, 10, 61])
    rows = np.sort(np.concatenate([split.train, split.valid]))
    x = digits.X.astype(np.float64)[:, np.sort(columns)]
    model = make_pipeline(StandardScaler(), SVC()).fit(x[rows], digits.y[rows])
    expected = 100 * model.score(x[split.test], digits.y[split.test])
    assert svm_accuracy(digits, split, columns) == pytest.approx(expected)
    assert 50 < expected < 100


def test_validation_rows_train_and_orders_do_not_matter(digits: Dataset, split: Split) -> None:
    columns = np.arange(20, 30)
    accuracy = svm_accuracy(digits, split, columns)
    merged = Split(np.concatenate([split.valid, split.train]), split.valid[:0], split.test)
    assert svm_accuracy(digits, merged, columns[::-1]) == accuracy
    fewer = Split(split.train[:40], split.valid[:0], split.test)
    assert svm_accuracy(digits, fewer, columns) < accuracy


def test_noise_of_a_column_does_not_depend_on_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, split = small(np.arange(40, dtype=np.int32) % 2)
    seen = []
    fit = SVC.fit
    monkeypatch.setattr(SVC, "fit", lambda self, x, y: seen.append(x) or fit(self, x, y))
    for columns in ([0, 1], [1, 2], [2, 1], [1]):
        svm_accuracy(dataset, split, np.array(columns), noise_std=0.5)
    # Column 1 is constant, so that only its noise remains.
    noise = seen[0][:, 1]
    assert 0.3 < noise.std() < 0.7
    for x in seen[1:]:
        np.testing.assert_array_equal(x[:, 0], noise)
    assert np.abs(np.corrcoef(noise, seen[1][:, 1])[0, 1]) < 0.6


@bad_calls(
    ({"y": None}, "small has no target"),
    ({"y": np.linspace(0, 1, 40, dtype=np.float32)}, "small has a numeric target"),
    ({"y": (np.arange(40) > 35).astype(np.int32)}, "30 training rows of small have only one"),
    ({"columns": []}, "give (K,) column numbers"),
    ({"columns": [[0, 1]]}, "shape (1, 2)"),
    ({"columns": [0.0, 1.0]}, "type float64"),
    ({"columns": [-1, 0]}, "columns from -1 to 0, but X has 3"),
    ({"columns": [0, 3]}, "columns from 0 to 3"),
    ({"columns": [1, 0, 1]}, "columns has 1 twice"),
    ({"noise_std": -0.1}, "choose a value from 0"),
    ({"noise_std": np.nan}, "choose a "),
    ({"noise_std": np.inf}, "choose a "),
    ({"noise_std": "0.2"}, "choose a "),
    ({"noise_std": True}, "choose a "),
)
def test_bad_calls(bad: tuple) -> None:
    call = {"y": np.arange(40, dtype=np.int32) % 2, "columns": [0], **bad[0]}
    dataset, split = small(call.pop("y"))
    refuses(lambda: svm_accuracy(dataset, split, np.array(call.pop("columns")), **call), bad[1])
