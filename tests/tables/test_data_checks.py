"""Checks of users' tables, the class of data sets, generated data, and helpers of errors.

Covers ``fsjax.tables.datasets.generated``.
"""

import numpy as np
import pytest

from fsjax import data
from fsjax.errors import ConfigError, DataError, FsjaxError, NonFiniteLossError, nearest


def table(y: np.ndarray | None, **more: object) -> data.Dataset:
    rows = 4 if y is None else len(y)
    return data.Dataset("t", np.zeros((rows, 3), np.float32), y, **more)


def test_nearest() -> None:
    assert nearest("Isolett", ["coil20", "isolet"]) == "did you mean 'isolet'?"
    assert nearest("zzz", ["a", "b"]) == "allowed: 'a', 'b'"
    assert "none" in nearest("zzz", [])
    assert issubclass(NonFiniteLossError, FsjaxError) and issubclass(FsjaxError, ValueError)


@pytest.mark.parametrize("number", [1, 64, np.int64(5)])
def test_num_features_in_range(number) -> None:
    data.check_num_features(number, 64)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (80, "num_features=80 but X has 64 columns; choose at most 64"),
        (0, "num_features=0; choose a whole number from 1 to 64"),
        (2.5, "num_features=2.5; choose a whole number"),
        ("5", "num_features='5'; choose a whole number"),
        (True, "num_features=True; choose a whole number"),
    ],
)
def test_num_features_out_of_range(number, message) -> None:
    with pytest.raises(ConfigError, match=message):
        data.check_num_features(number, 64)


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        (None, "classification", "needs a target.*data.target"),
        (np.linspace(0, 1, 9, dtype=np.float32), "classification", "choose task=regression"),
        (np.zeros(4, np.int32), "classification", "at least 2 classes"),
        (np.array([-1, 1], np.int32), "classification", "number them from 0"),
        (None, "regression", "needs a target"),
    ],
)
def test_task_that_does_not_fit(y, task, message) -> None:
    with pytest.raises(DataError, match=message):
        data.check_task(table(y), task)


def test_task_of_named_classes_and_unknown_task() -> None:
    named = table(np.array([0, 1], np.int32), class_names=("cat", "dog"))
    assert data.check_task(named, "classification") is named
    with pytest.raises(DataError, match="classes 'cat', 'dog'"):
        data.check_task(named, "regression")
    with pytest.raises(ConfigError, match="did you mean 'regression'"):
        data.check_task(named, "regresion")


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
    digits = data.load("digits")
    assert (digits.num_samples, digits.num_features, digits.num_classes) == (1797, 64, 10)
    assert digits.as_image(np.arange(64))[1, 0] == 8
    assert "1797 rows" in repr(digits)
    assert digits.column_names[1] == "pixel_0_1"
    with pytest.raises(DataError, match="no image_shape"):
        table(None).as_image(np.zeros(3))
    assert table(None).column_names == ("x0", "x1", "x2")


@pytest.mark.parametrize(
    "more",
    [
        {"official_split": np.zeros(3, np.uint8)},
        {"feature_names": ("a",)},
        {"image_shape": (2, 2)},
    ],
)
def test_dataset_parts_must_agree(more) -> None:
    with pytest.raises(DataError):
        table(None, **more)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros(3), None, r"X has shape \(3,\); give a table of \(rows, columns\)"),
        (np.zeros((2, 1)), np.array(["a", "b"]), "y of t has the type <U1; give numbers"),
    ],
)
def test_datasets_hold_tables_of_numbers(X, y, message) -> None:
    with pytest.raises(DataError, match=message):
        data.Dataset("t", X, y)


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


def test_no_single_generated_column_tells_the_class() -> None:
    dataset = data.madelon_like(seed=1)
    sign = np.where(dataset.y == 1, 1, -1)[:, None]
    above = dataset.X > np.median(dataset.X, axis=0)
    agreement = np.abs((np.where(above, 1, -1) * sign).mean(axis=0))
    assert agreement.max() < 0.5


@pytest.mark.parametrize(
    "options",
    [
        {"num_features": 10},
        {"num_informative": 2, "num_clusters_per_class": 16},
        {"num_informative": 0},
        {"num_samples": 5},
        {"sead": 1},
    ],
)
def test_generated_data_bad_options(options) -> None:
    with pytest.raises(ConfigError):
        data.load("madelon_like", **options)


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


def test_generated_codes_occur_together_in_groups(records) -> None:
    frequent = (records.X > 0)[:, (records.X > 0).mean(axis=0) > 0.05].astype(float)
    related = np.corrcoef(frequent, rowvar=False)[np.triu_indices(frequent.shape[1], 1)]
    assert 0.02 < np.median(related) < 0.12
    # A few pairs, those of one group, are much more correlated than the patient explains.
    assert 0.005 < (related > 0.2).mean() < 0.1


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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_informative": 4000}, "num_features=3000; choose at most 3000"),
        ({"num_informative": 0}, "num_informative=0"),
        ({"num_interactions": 21}, "choose at most 20"),
        ({"num_interactions": -1}, "num_interactions=-1"),
        ({"prevalence": 0.0}, "prevalence=0.0; choose a share"),
        ({"density": 1.0}, "density=1.0"),
        ({"log_odds_std": -1.0}, "choose 0 or more"),
        ({"num_samples": 100}, "fewer than 10 expected rows"),
        ({"num_samples": 10.5}, "whole number"),
        ({"sead": 1}, "did you mean 'seed'"),
    ],
)
def test_generated_records_bad_options(options, message) -> None:
    with pytest.raises(ConfigError, match=message):
        data.load("ehr_like", **options)
