"""Checks of users' tables, the class of data sets, generated data, and helpers of errors.

Covers ``fsjax.tables.datasets.generated``.
"""

import numpy as np
import pytest
from bad_calls import bad_calls, refuses

from fsjax import data
from fsjax.errors import DataError, FsjaxError, NonFiniteLossError, nearest


def table(y: np.ndarray | None, **more: object) -> data.Dataset:
    rows = 4 if y is None else len(y)
    return data.Dataset("t", np.zeros((rows, 3), np.float32), y, **more)


def test_nearest() -> None:
    assert nearest("Isolett", ["coil20", "isolet"]) == "did you mean 'isolet'?"
    assert nearest("zzz", ["a", "b"]) == "allowed: 'a', 'b'"
    assert "none" in nearest("zzz", [])
    assert issubclass(NonFiniteLossError, FsjaxError) and issubclass(FsjaxError, ValueError)


NAMED = table(np.array([0, 1], np.int32), class_names=("cat", "dog"))


@bad_calls(
    (lambda: data.check_num_features(80, 64), "num_features=80 but X has 64 columns", "at most 64"),
    (lambda: data.check_num_features(True, 64), "num_features=True; choose a whole number"),
    (lambda: data.check_task(table(None), "classification"), "needs a target", "data.target"),
    (
        lambda: data.check_task(table(np.linspace(0, 1, 9, dtype=np.float32)), "classification"),
        "choose task=regression",
    ),
    (lambda: data.check_task(table(np.zeros(4, np.int32)), "classification"), "least 2 classes"),
    (lambda: data.check_task(table(np.array([-1, 1], np.int32)), "classification"), "from 0"),
    (lambda: data.check_task(table(None), "regression"), "needs a target"),
    (lambda: data.check_task(NAMED, "regression"), "classes 'cat', 'dog'"),
    (lambda: data.check_task(NAMED, "regresion"), "did you mean 'regression'"),
    (lambda: table(None).as_image(np.zeros(3)), "no image_shape"),
    (lambda: table(None, official_split=np.zeros(3, np.uint8)), "official_split"),
    (lambda: table(None, feature_names=("a",)), "feature names"),
    (lambda: table(None, image_shape=(2, 2)), "image_shape"),
    (lambda: data.Dataset("t", np.zeros(3), None), "X has shape (3,)", "(rows, columns)"),
    (lambda: data.Dataset("t", np.zeros((2, 1)), np.array(["a", "b"])), "y of t has the type <U1"),
    (lambda: data.load("madelon_like", num_features=10), "num_features=10"),
    (
        lambda: data.load("madelon_like", num_informative=2, num_clusters_per_class=16),
        "num_informative=2",
    ),
    (lambda: data.load("madelon_like", num_informative=0), "num_informative=0"),
    (lambda: data.load("madelon_like", num_samples=5), "num_samples=5"),
    (lambda: data.load("madelon_like", sead=1), "sead"),
    (lambda: data.load("ehr_like", num_informative=4000), "num_features=3000; choose at most 3000"),
    (lambda: data.load("ehr_like", num_informative=0), "num_informative=0"),
    (lambda: data.load("ehr_like", num_interactions=21), "choose at most 20"),
    (lambda: data.load("ehr_like", num_interactions=-1), "num_interactions=-1"),
    (lambda: data.load("ehr_like", prevalence=0.0), "prevalence=0.0; choose a share"),
    (lambda: data.load("ehr_like", density=1.0), "density=1.0"),
    (lambda: data.load("ehr_like", log_odds_std=-1.0), "choose 0 or more"),
    (lambda: data.load("ehr_like", num_samples=100), "fewer than 10 expected rows"),
    (lambda: data.load("ehr_like", num_samples=10.5), "whole number"),
    (lambda: data.load("ehr_like", sead=1), "did you mean 'seed'"),
)
def test_bad_calls(bad: tuple) -> None:
    refuses(*bad)


def test_features_and_constant_columns() -> None:
    X = np.array([[1, 2], [1, 3]], np.float32)
    data.check_features(X, None, "X")
    data.check_features(X.astype(np.uint8), ("a", "b"), "X")
    assert data.constant_columns(X).tolist() == [True, False]
    X[0, 1] = np.nan
    with pytest.raises(DataError, match="here has 1 missing.*: 'b'"):
        data.check_features(X, ("a", "b"), "here")
    with pytest.raises(DataError, match="'column 1'"):
        data.check_features(X, None, "here")
    with pytest.raises(DataError, match="real numbers"):
        data.check_features(X.astype(complex), None, "here")


def test_dataset_properties_and_grid() -> None:
    assert data.check_task(NAMED, "classification") is NAMED
    digits = data.load("digits")
    assert (digits.num_samples, digits.num_features, digits.num_classes) == (1797, 64, 10)
    assert digits.as_image(np.arange(64))[1, 0] == 8
    assert "1797 rows" in repr(digits)
    assert digits.column_names[1] == "pixel_0_1"
    with pytest.raises(DataError, match="no image_shape"):
        table(None).as_image(np.zeros(3))
    assert table(None).column_names == ("x0", "x1", "x2")


def test_generated_data_knows_its_informative_columns() -> None:
    from sklearn.svm import SVC

    dataset = data.load("madelon_like", num_samples=600, num_features=60, seed=3)
    assert dataset.X.shape == (600, 60) and len(dataset.informative) == 20
    signal = list(dataset.informative)
    noise = [column for column in range(60) if column not in signal]
    scores = {}
    for name, columns in (("signal", signal), ("noise", noise)):
        X = dataset.X[:, columns]
        scores[name] = SVC().fit(X[:400], dataset.y[:400]).score(X[400:], dataset.y[400:])
    assert scores["signal"] > 0.75 > 0.6 > scores["noise"]
    # Redundant columns are linear in the informative ones: 20 columns of rank 5.
    centred = dataset.X[:, signal] - dataset.X[:, signal].mean(axis=0)
    assert np.linalg.matrix_rank(centred, tol=1e-2) == 5
    again = data.madelon_like(600, 60, seed=3)
    np.testing.assert_array_equal(dataset.X, again.X)


@pytest.fixture(scope="module")
def records() -> data.Dataset:
    return data.load("ehr_like", num_samples=6000, num_features=400, prevalence=0.1, seed=1)


def test_generated_records_are_sparse_and_uneven(records) -> None:
    assert records.X.dtype == np.float32 and records.y.dtype == np.int32
    assert records.X.shape == (6000, 400) and len(set(records.informative)) == 40
    assert (records.X >= 0).all() and np.isfinite(records.X).all()
    present = records.X > 0
    assert present.mean() == pytest.approx(0.06, abs=0.004)
    columns, rows = present.mean(axis=0), present.mean(axis=1)
    assert columns.min() < 0.006 and columns.max() > 0.3
    assert np.median(columns) < 0.75 * columns.mean()
    # With independent entries, the share of a row would have a standard deviation of 0.012.
    assert rows.std() > 0.03
    # Binary codes, counts and shares of the time.
    binary = ((records.X == 0) | (records.X == 1)).all(axis=0)
    counts = (records.X == np.round(records.X)).all(axis=0)
    assert 100 < binary.sum() < counts.sum() < 350
    assert records.X[:, ~counts].max() <= 1 < records.X[:, counts].max()


def test_generated_outcome_is_rare_and_predictable(records) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    assert records.y.mean() == pytest.approx(0.1, abs=0.012)
    signal = list(records.informative)
    shuffled = np.random.default_rng(0).permutation(records.y)

    def area(columns: list[int], y: np.ndarray) -> float:
        X = np.log2(1 + records.X[:, columns])
        model = LogisticRegression(max_iter=500).fit(X[:4000], y[:4000])
        return roc_auc_score(y[4000:], model.decision_function(X[4000:]))

    # Other columns are correlated with the patient and the groups too, but less.
    others = [column for column in range(400) if column not in signal][:40]
    assert area(signal, records.y) > max(0.77, area(others, records.y) + 0.08)
    assert area(signal, shuffled) < 0.57
    weak = data.ehr_like(6000, 400, prevalence=0.1, seed=1, log_odds_std=0.0)
    np.testing.assert_array_equal(weak.X, records.X)
    assert area(signal, weak.y) < 0.57


@pytest.mark.parametrize("prevalence", [0.02, 0.5, 0.9])
def test_generated_prevalence_density_and_seeds(prevalence: float) -> None:
    def make(seed: int) -> data.Dataset:
        more = dict(num_interactions=0, log_odds_std=3.0)
        return data.ehr_like(5000, 60, 5, prevalence, 0.2, seed, **more)

    first = make(0)
    assert first.y.mean() == pytest.approx(prevalence, abs=4 * (prevalence / 5000) ** 0.5)
    assert (first.X > 0).mean() == pytest.approx(0.2, abs=0.01)
    np.testing.assert_array_equal(first.X, make(0).X)
    np.testing.assert_array_equal(first.y, make(0).y)
    assert (first.X != make(1).X).any()
