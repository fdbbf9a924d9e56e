"""Direction, size and evidence of the effect of single columns, against SciPy and scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import roc_auc_score

from fsjax.auto.answer import effects
from fsjax.auto.certainty.unit_tests import drawn_rows
from fsjax.auto.certainty.univariate_tests import column_tests, unit_p_values
from fsjax.auto.contest.rankers import martingale_residuals
from fsjax.auto.reading.columns import design
from fsjax.auto.reading.sparse_columns import sparse_design


@pytest.fixture(scope="module")
def numbers() -> np.ndarray:
    """Rows with ties, and a constant column."""
    X = np.random.default_rng(0).normal(size=(90, 5)).round(1)
    X[:, 4] = 0.0
    return X


def test_p_values_of_classes_are_those_of_kruskal_and_wallis(numbers):
    y = np.random.default_rng(1).integers(0, 3, 90)
    numbers = numbers + 0.3 * (y == 2)[:, None] * np.array([1, 0, 0, 0, 0])
    tests = column_tests(numbers, y, "classification")
    for column in range(4):
        expected = stats.kruskal(*(numbers[y == label, column] for label in range(3))).pvalue
        assert tests.p_values[column] == pytest.approx(expected, rel=1e-9)
        for label in range(3):
            auc = roc_auc_score(y == label, numbers[:, column])
            assert tests.association[label, column] == pytest.approx(auc)
    assert tests.p_values[4] == 1.0 and tests.association[0, 4] == pytest.approx(0.5)


def test_p_values_of_numbers_are_those_of_spearman(numbers):
    y = numbers[:, 0] + np.random.default_rng(2).normal(size=90).round(1)
    tests = column_tests(numbers, y, "regression")
    for column in range(4):
        expected = stats.spearmanr(numbers[:, column], y)
        assert tests.association[0, column] == pytest.approx(expected.statistic)
        assert tests.p_values[column] == pytest.approx(expected.pvalue, rel=1e-9)
    assert tests.p_values[4] == 1.0
    both = column_tests(numbers, np.stack([y, numbers[:, 1]], axis=1), "regression")
    smallest = min(stats.spearmanr(numbers[:, 2], target).pvalue for target in (y, numbers[:, 1]))
    assert both.p_values[2] == pytest.approx(2 * smallest)
    copy = column_tests(numbers, numbers[:, 1], "regression")
    assert 0.0 < copy.p_values[1] < 1e-100


@pytest.mark.parametrize("task", ["classification", "regression", "counts", "survival"])
def test_sparse_columns_have_the_tests_of_dense_ones(task):
    rng = np.random.default_rng(0)
    X = sp.random_array((120, 30), density=0.2, rng=rng, format="csr")
    X.data -= 0.3
    y = {
        "classification": rng.integers(0, 3, 120),
        "regression": rng.normal(size=120),
        "counts": rng.poisson(2.0, 120).astype(float),
        "survival": np.stack([rng.exponential(size=120), rng.integers(0, 2, 120)], axis=1),
    }[task]
    sparse, dense = column_tests(X, y, task), column_tests(X.toarray(), y, task)
    np.testing.assert_allclose(sparse.p_values, dense.p_values, rtol=1e-9)
    np.testing.assert_allclose(sparse.association, dense.association, atol=1e-12)


def test_times_are_tested_by_their_martingale_residuals(numbers):
    rng = np.random.default_rng(3)
    y = np.stack([rng.exponential(np.exp(-numbers[:, 0])), rng.random(90) < 0.8], axis=1)
    expected = stats.spearmanr(numbers[:, 0], martingale_residuals(y))
    assert column_tests(numbers, y, "survival").p_values[0] == pytest.approx(expected.pvalue)


def test_p_values_of_units():
    p_values = np.array([0.04, 0.001, 0.5, 0.02])
    units = unit_p_values(p_values, np.array([0, 0, 1, 2]))
    np.testing.assert_allclose(units, [0.002, 0.5, 0.02])
    assert unit_p_values(np.array([0.9, 0.8]), np.array([0, 0])).tolist() == [1.0]


def test_effects_on_two_classes():
    cancer = load_breast_cancer(as_frame=True)
    table, y = design(cancer.data), cancer.target.to_numpy()
    order = np.arange(table.num_units)[::-1]
    frame = effects.effects(table, y, "classification", order, ["malignant", "benign"])
    assert list(frame["column"]) == [table.units[unit] for unit in order]
    row = frame.set_index("column").loc["worst radius"]
    x = cancer.data["worst radius"]
    assert row["direction"] == "higher in malignant" and row["part"] == "worst radius"
    assert row["auc"] == pytest.approx(roc_auc_score(1 - y, x))
    low, high = x[y == 1], x[y == 0]
    pooled = np.sqrt((low.var(ddof=0) * len(low) + high.var(ddof=0) * len(high)) / (len(x) - 2))
    assert row["difference"] == pytest.approx((high.mean() - low.mean()) / pooled)
    standardised = (x - x.mean()) / x.std(ddof=0)
    assert row["means"]["benign"] == pytest.approx(standardised[y == 1].mean())
    assert frame["curve"].notna().sum() == effects.WITH_CURVE
    assert frame["curve"][0].predictions.max() <= 1 and set(frame["curve_of"]) <= {
        "share of benign", ""
    }  # fmt: skip
    expected = stats.false_discovery_control(frame["p_value"])
    np.testing.assert_allclose(frame["q_value"], expected)


def test_a_class_without_rows_is_left_out():
    iris = load_iris(as_frame=True)
    some = iris.target.to_numpy() != 1
    table, y = design(iris.data[some]), iris.target.to_numpy()[some]
    frame = effects.effects(table, y, "classification", [2], iris.target_names)
    assert frame["direction"][0] == "higher in virginica"
    assert set(frame["means"][0]) == {"setosa", "virginica"}
    frame = effects.effects(table, y, "classification", [2])
    assert frame["direction"][0] == "higher in class 2"


@pytest.mark.parametrize("task", ["classification", "regression", "survival", "multilabel"])
def test_a_direction_names_the_part_that_it_is_of(task):
    rng = np.random.default_rng(0)
    high = np.arange(400) % 2 == 1
    dream = high & (rng.random(400) < 0.6)
    frame = pd.DataFrame(
        {
            "island": np.where(dream, "Dream", rng.choice(["B", "T"], 400)),
            "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(
                7 * rng.integers(0, 50, 400) + np.where(high, rng.integers(3, 7, 400), 0), unit="D"
            ),
            "death": np.where(high, np.nan, rng.normal(size=400)),
            "sex": np.where(high ^ (rng.random(400) < 0.1), "m", "f"),
            "flag": high ^ (rng.random(400) < 0.1),
            "dose": np.where(high ^ (rng.random(400) < 0.1), 7.0, 3.0),
            "species": rng.choice(["x", "y", "z"], 400),
            "noise": rng.normal(size=400),
        }
    )  # fmt: skip
    y = {
        "classification": high.astype(int),
        "regression": high + 0.1 * rng.normal(size=400),
        "survival": np.column_stack([np.exp(-1.0 * high) * rng.exponential(size=400), high | True]),
        "multilabel": np.column_stack([high, rng.random(400) < 0.5]).astype(float),
    }[task]
    names = {"classification": ["LOW", "HIGH"], "multilabel": ["a", "b"]}.get(task)
    table = design(frame, "median")
    result = effects.effects(table, y, task, range(table.num_units), names)
    more = {"classification": "more often in HIGH", "regression": "target higher",
            "survival": "earlier events", "multilabel": "a higher"}[task]  # fmt: skip
    higher = {"regression": "target rises", "multilabel": "a rises"}.get(task, more)
    higher = higher.replace("more often", "higher")
    assert result.set_index("column")["direction"].to_dict() == {
        "island": f"Dream: {more}",
        "date": f"weekday {higher}",
        "death": f"missing {more}",
        "sex": f"m: {more}",
        "flag": more,
        "dose": higher,
        "species": "",
        "noise": "",
    }


def test_effects_on_numbers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"up": rng.normal(size=300), "down": rng.normal(size=300), "none": rng.random(300)}
    )
    y = 3 * X["up"].to_numpy() - 2 * X["down"].to_numpy() ** 3
    frame = effects.effects(design(X), y, "regression", [0, 1, 2])
    assert list(frame["direction"][:2]) == ["target rises", "target falls"]
    slope = np.polyfit(X["up"] / X["up"].std(ddof=0), y, 1)[0]
    assert frame["slope"][0] == pytest.approx(slope)
    assert frame["correlation"][1] == pytest.approx(stats.spearmanr(X["down"], y).statistic)
    assert frame["q_value"][1] < 1e-6 < frame["q_value"][2]
    assert np.ptp(frame["curve"][1].predictions) > 5 * np.ptp(frame["curve"][2].predictions)
    both = effects.effects(design(X), np.stack([y, -X["none"]], 1), "regression", [2], ["a", "b"])
    assert both["direction"][0] == "b falls" and both["curve_of"][0] == "target b"


def test_only_the_first_units_are_described(monkeypatch):
    monkeypatch.setattr(effects, "DESCRIBED", 3)
    X = sp.random_array((60, 10), density=0.4, rng=np.random.default_rng(0), format="csr")
    y = np.arange(60) % 2
    frame = effects.effects(sparse_design(X), y, "classification", range(10), selected=2)
    assert len(frame) == 10 and frame["q_value"].notna().all()
    assert frame["direction"].notna().sum() == 3 and frame["curve"].notna().sum() == 2
    frame = effects.effects(sparse_design(X), y, "classification", range(10), selected=0)
    assert frame["curve"].isna().all()


def test_a_curve_follows_the_column_that_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = np.sign(X[:, 0]) + 0.1 * rng.normal(size=500)
    curve, flat = effects.partial_dependence_curves(X, y, [0, 2])
    assert len(curve.values) == effects._POINTS
    np.testing.assert_allclose(curve.predictions[[0, -1]], [-1, 1], atol=0.2)
    assert np.ptp(flat.predictions) < 0.2
    # In any unit of the target.
    (small,) = effects.partial_dependence_curves(X, 1e-9 * y, [0])
    np.testing.assert_allclose(1e9 * small.predictions, curve.predictions)
    # Nearly all values of a column of counts are 0.
    X[:, 1] = 0.0
    X[:3, 1] = 5.0
    assert effects.partial_dependence_curves(X, y, [1])[0].values.tolist() == [0.0, 5.0]


def test_likeness_is_the_rank_correlation():
    rng = np.random.default_rng(0)
    first = rng.normal(size=100)
    frame = pd.DataFrame({"x": first, "y": -np.exp(first), "z": rng.normal(size=100)})
    frame["kind"] = np.where(first > 0, "a", "b")
    table = design(frame)
    order = [2, 0, 1, 3]
    correlation = effects.likeness(table, np.arange(100) % 2, "classification", order)
    assert list(correlation.index) == list(correlation.columns) == ["z", "x", "y", "kind"]
    assert correlation.loc["x", "y"] == pytest.approx(1.0)
    expected = abs(stats.spearmanr(frame["x"], frame["z"]).statistic)
    assert correlation.loc["z", "x"] == correlation.loc["x", "z"] == pytest.approx(expected)


def test_rare_classes_stay_among_the_drawn_rows():
    y = np.zeros(50_000, int)
    y[:60] = 1
    rows = drawn_rows(y, "classification", 1000, 0)
    assert 1000 <= len(rows) < 1060 and (y[rows] == 1).sum() >= 50
    assert (np.diff(rows) > 0).all()
    assert len(drawn_rows(y, "regression", 60_000, 0)) == len(y)
