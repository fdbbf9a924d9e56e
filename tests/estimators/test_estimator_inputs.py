"""What estimators are given: frames, kinds of numbers, weights, rows to validate on, mistakes.

Covers ``fsjax.estimators.inputs``, ``fsjax.estimators.reading``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from bad_calls import refuses
from estimator_helpers import ROWS, quick, table
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.utils.class_weight import compute_class_weight

import fsjax
from fsjax.data import Dataset
from fsjax.errors import ConfigError, DataError
from fsjax.estimators import WAST, FisherScore, NeuralNetwork
from fsjax.method import Method


@pytest.fixture
def fits(fitted: FisherScore, monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """Method, data and options of every call of ``fsjax.fit``, of which none trains."""
    calls = []

    def recorded(method: Method, dataset: Dataset, **options: Any) -> fsjax.FitResult:
        calls.append((method, dataset, options))
        return fitted.result_

    monkeypatch.setattr("fsjax.estimators.base.fit", recorded)
    return calls


def test_parameters_reach_the_fit(fits: list[tuple]) -> None:
    x, y = table()
    weight = np.linspace(1.0, 2.0, ROWS)
    estimator = quick(
        learning_rate=0.2,
        num_epochs=7,
        batch_size=5,
        n_seeds=2,
        random_state=4,
        validation_fraction=0.25,
        standardize="minmax",
        early_stopping=3,
        max_time=9.0,
        callback=print,
        verbose=True,
    )
    estimator.fit(x, y, sample_weight=weight).set_params(warm_start=True).fit(x, y)
    (method, dataset, options), (_, _, again) = fits
    expected = {
        "seeds": range(4, 6),
        "task": "classification",
        "num_epochs": 7,
        "batch_size": 5,
        "scaling": "minmax",
        "groups": None,
        "early_stopping": 3,
        "max_time": 9.0,
        "callback": print,
        "progress": True,
        "start": None,
    }
    assert {name: options[name] for name in expected} == expected
    assert method.about.num_features == 2
    assert dict(method.about.settings)["learning_rate"] == 0.2
    np.testing.assert_array_equal(options["sample_weight"], weight)
    np.testing.assert_array_equal(dataset.X, x)
    np.testing.assert_array_equal(dataset.y, y == "low")
    assert list(map(len, options["split"])) == [45, 15, 0]
    assert again["sample_weight"] is None and again["start"] is estimator.result_


def test_rows_that_validate_follow_the_seed_and_hold_the_classes_in_proportion(
    fits: list[tuple],
) -> None:
    x, y = table()[0], np.repeat([0, 1, 2], [30, 20, 10])
    for seed in (0, 1):
        quick(validation_fraction=0.2, random_state=seed).fit(x, y)
    first, second = (options["split"].valid for _, _, options in fits)
    for rows in (first, second):
        assert np.bincount(y[rows]).tolist() == [6, 4, 2]
    assert not np.array_equal(first, second)


def test_validation_data_come_last_and_have_no_weights(fits: list[tuple]) -> None:
    x, y = table()
    weight = np.linspace(1.0, 2.0, 40)
    estimator = quick(validation_data=(x[:20], y[:20]))
    estimator.fit(x[20:], y[20:], sample_weight=weight)
    ((_, dataset, options),) = fits
    np.testing.assert_array_equal(options["sample_weight"], [*weight, *np.ones(20)])
    np.testing.assert_array_equal(dataset.X, np.roll(x, -20, axis=0))
    assert [list(rows) for rows in options["split"]] == [[*range(40)], [*range(40, 60)], []]


def test_validation_data_have_the_weights_of_their_classes(fits: list[tuple]) -> None:
    x, y = table()
    weights: tuple[Any, ...] = ({"high": 1.0, "low": 20.0}, "balanced")
    for class_weight in weights:
        estimator = quick(validation_data=(x[:20], y[:20, None]), class_weight=class_weight)
        estimator.fit(x[20:], y[20:])
    for (_, _, options), expected in zip(fits, weights, strict=True):
        by_class = compute_class_weight(expected, classes=np.unique(y), y=y[20:])
        by_row = by_class[np.searchsorted(np.unique(y), y)]
        np.testing.assert_allclose(options["sample_weight"], np.roll(by_row, -20))


def test_frames_keep_their_names(fitted: FisherScore) -> None:
    x, y = table()
    frame = pd.DataFrame(x, columns=list("abcdef"))
    estimator = quick().fit(frame, pd.Series(y))
    assert "c" in estimator.get_feature_names_out()
    out = estimator.set_output(transform="pandas").transform(frame)
    assert list(out.columns) == list(estimator.get_feature_names_out())
    np.testing.assert_array_equal(out["c"], frame["c"])
    back = estimator.inverse_transform(out)
    assert back.shape == x.shape and (np.asarray(back)[:, ~estimator.get_support()] == 0).all()
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(frame[list("bacdef")])


def test_polars_frames() -> None:
    import polars

    x, y = table()
    frame = polars.DataFrame(x, schema=list("abcdef"))
    estimator = quick().fit(frame, y).set_output(transform="polars")
    out = estimator.transform(frame)
    assert isinstance(out, polars.DataFrame) and "c" in out.columns
    np.testing.assert_array_equal(estimator.predict(frame), quick().fit(x, y).predict(x))
    dated = frame.with_columns(day=polars.lit("2020-01-31").str.to_date())
    with pytest.raises(DataError, match=r"1 of 7 columns that are not numbers: 'day' \(Date\)"):
        quick().fit(dated, y)
    with pytest.raises(DataError, match="'day'"):
        fsjax.data.as_dataset(dated, y)


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_kinds_of_numbers(dtype: type) -> None:
    x, y = table()
    x = np.round(10 * x).astype(dtype)
    estimator = quick().fit(x, y)
    assert estimator.transform(x).dtype == dtype
    assert estimator.get_support()[2]


def test_nullable_and_arrow_columns_of_pandas() -> None:
    x, y = table()
    plain = pd.DataFrame(np.round(4 * x), columns=list("abcdef")).assign(b=x[:, 1] > 0)
    expected = quick().fit(plain, y)
    for kind in ("numpy_nullable", "pyarrow"):
        frame = plain.convert_dtypes(dtype_backend=kind)
        estimator = quick().fit(frame, pd.Series(y).convert_dtypes(dtype_backend=kind))
        np.testing.assert_array_equal(estimator.scores_, expected.scores_)
        np.testing.assert_array_equal(estimator.predict(frame), expected.predict(plain))
        assert list(estimator.feature_names_in_) == list("abcdef")
        frame.loc[3, "c"] = pd.NA
        with pytest.raises(DataError, match=r"1 missing value \(NaN\) in 1 .*'c'"):
            quick().fit(frame, y)


@pytest.mark.slow
def test_labels_play_no_part_without_supervision() -> None:
    x, y = table()
    options = {"n_features_to_select": 2, "hidden": (4,), "num_epochs": 2}
    with_labels, without = WAST(**options).fit(x, y), WAST(**options).fit(x)
    np.testing.assert_array_equal(with_labels.scores_, without.scores_)


def test_weights_of_rows_and_of_classes() -> None:
    x, y = table()
    rng = np.random.default_rng(1)
    noise = rng.permutation(y)
    both_x, both_y = np.concatenate([x, x]), np.concatenate([y, noise])
    weight = np.repeat([1.0, 0.0], ROWS)
    plain, weighted = quick().fit(x, y), quick().fit(both_x, both_y, sample_weight=weight)
    np.testing.assert_array_equal(plain.predict_proba(x), weighted.predict_proba(x))

    third = np.concatenate([y, np.full(ROWS, "third")])
    without = quick().fit(both_x, third, sample_weight=weight)
    assert list(without.classes_) == ["high", "low"]
    np.testing.assert_array_equal(without.predict_proba(x), plain.predict_proba(x))

    lean = quick(class_weight={"high": 50.0, "low": 1.0}, num_epochs=30).fit(x, noise)
    even = quick(num_epochs=30).fit(x, noise)
    assert (lean.predict(x) == "high").mean() > 0.9 > (even.predict(x) == "high").mean()
    with pytest.raises(ConfigError, match="class_weight"):
        WAST(class_weight="balanced").fit(x)


@pytest.mark.slow
def test_rows_to_validate_on() -> None:
    x, y = table()
    estimator = quick(validation_data=(x[:20], y[:20])).fit(x[20:], y[20:])
    assert list(estimator.result_.splits[0].valid) == list(range(40, 60))
    assert "valid/loss" not in quick(validation_fraction=0).fit(x, y).history_


def test_stopping_early_needs_rows_to_validate_on() -> None:
    given = {"early_stopping": 2, "validation_fraction": 0}
    refuses(lambda: quick(**given).fit(*table()), "early_stopping=2", "validation_fraction above 0")


def test_missing_values_are_named() -> None:
    x, y = table()
    frame = pd.DataFrame(x, columns=list("abcdef"))
    frame.loc[3, "e"] = np.nan
    refuses(lambda: quick().fit(frame, y), "NaN", " in 1 of 6 columns: 'e'", "SimpleImputer")
    make_pipeline(SimpleImputer(), quick()).fit(frame, y)
    refuses(lambda: quick().fit(frame.fillna(np.inf), y), "infinite")


def test_a_network_continues_only_with_its_own_classes_and_columns() -> None:
    x, y = table()
    frame = pd.DataFrame(x, columns=list("abcdef"))
    estimator = quick(warm_start=True, num_epochs=1).fit(frame, y)
    predicted = estimator.predict_proba(frame)
    with pytest.raises(ConfigError, match=r"classes_=\['high', 'low'\], but .*'lower'"):
        estimator.fit(frame, np.where(y == "low", "lower", y))
    with pytest.raises(ConfigError, match="feature_names_in_=.*warm_start=False"):
        estimator.fit(frame[list("bacdef")], y)
    assert list(estimator.feature_names_in_) == list("abcdef")
    np.testing.assert_array_equal(estimator.predict_proba(frame), predicted)
    estimator.fit(frame, y)
    assert estimator.set_params(warm_start=False).fit(frame[list("bacdef")], y).support_[2]


def test_an_interrupted_fit_leaves_the_estimator_as_it_was() -> None:
    def stop(progress: Any) -> None:
        raise KeyboardInterrupt

    x, y = table("numbers")
    estimator = NeuralNetwork(2, task="regression", hidden=(4,), num_epochs=1).fit(x, y)
    predicted = estimator.predict(x)
    with pytest.raises(KeyboardInterrupt):
        estimator.set_params(callback=stop).fit(pd.DataFrame(x).add_prefix("c"), 1000 * y)
    np.testing.assert_array_equal(estimator.predict(x), predicted)
