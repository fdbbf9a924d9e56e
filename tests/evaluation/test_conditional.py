"""Importance of columns beside all others, against the definitions and another package.

Covers fsjax.evaluation.conditional.
"""

import warnings

import chex
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.metrics import mean_squared_error
from sklearn.pipeline import make_pipeline

from fsjax.errors import ConfigError, DataError
from fsjax.evaluation import conditional_importance, loco_importance

ROWS, COLUMNS, TRUE = 900, 12, 3


def table(seed: int, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Columns correlated with their neighbours, of which three matter; two thirds train."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, COLUMNS))
    for column in range(1, COLUMNS):
        X[:, column] = 0.6 * X[:, column - 1] + 0.8 * X[:, column]
    y = X[:, :TRUE] @ [1.0, -0.5, 0.25] + rng.standard_normal(rows)
    cut = 2 * rows // 3
    return X[:cut], y[:cut], X[cut:], y[cut:]


def test_of_a_linear_model_follows_from_weights_and_residuals() -> None:
    X, y, X_test, y_test = table(0, rows=60_000)
    model = LinearRegression().fit(X, y)
    found = conditional_importance(model, X, X_test, y_test)
    precision = np.linalg.inv(np.cov(X.T))
    # A draw has twice the variance of the residual: its own, and that of what it replaces.
    chex.assert_trees_all_close(
        found.importances[:TRUE],
        2.0 * model.coef_[:TRUE] ** 2 / np.diag(precision)[:TRUE],
        rtol=0.1,
        atol=0.01,
    )


def test_useless_columns_are_found_at_the_level_whatever_the_number_of_draws() -> None:
    for num_draws in (2, 50):
        shares, power = [], []
        for seed in range(40):
            X, y, X_test, y_test = table(seed)
            model = RidgeCV().fit(X, y)
            p = conditional_importance(
                model, X, X_test, y_test, num_draws=num_draws, seed=seed
            ).p_values
            shares.append(np.mean(p[TRUE:] <= 0.1))
            power.append(np.mean(p[:TRUE] <= 0.1))
        # Columns that hardly change the loss may be found less often, as their losses are skewed.
        assert 0.03 < np.mean(shares) < 0.14
        assert np.mean(power) > 0.9


def test_models_that_know_the_names_of_columns_are_given_them() -> None:
    (X, y, X_test, y_test), names = table(2), [f"c{column}" for column in range(COLUMNS)]
    frame, frame_test = pd.DataFrame(X, columns=names), pd.DataFrame(X_test, columns=names)
    by_name = make_pipeline(make_column_transformer(("passthrough", names[:TRUE])), RidgeCV())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = conditional_importance(by_name.fit(frame, y), frame, frame_test, y_test)
        left_out = loco_importance(RidgeCV(), frame, y, frame_test, y_test)
    assert (drawn.importances[:TRUE] > 0).all()
    assert not drawn.importances[TRUE:].any()
    chex.assert_trees_all_equal(left_out, loco_importance(RidgeCV(), X, y, X_test, y_test))


def test_leaving_out_compares_two_fitted_models() -> None:
    X, y, X_test, y_test = table(1)
    found = loco_importance(LinearRegression(), X, y, X_test, y_test)
    fewer = LinearRegression().fit(X[:, 1:], y)
    full = LinearRegression().fit(X, y)
    growth = (y_test - fewer.predict(X_test[:, 1:])) ** 2 - (y_test - full.predict(X_test)) ** 2
    chex.assert_trees_all_close(found.importances[0], growth.mean(), rtol=1e-9)
    assert found.p_values[0] < 1e-6 < found.p_values[TRUE:].min()
    assert (found.q_values >= found.p_values).all()


def test_copies_of_rows_in_groups_tell_no_more_than_the_rows() -> None:
    X, y, X_test, y_test = table(2, rows=150)
    model = RidgeCV().fit(X, y)
    once = loco_importance(model, X, y, X_test, y_test)
    rows = np.repeat(np.arange(len(y_test)), 5)
    grouped = loco_importance(model, X, y, X_test[rows], y_test[rows], groups=rows)
    chex.assert_trees_all_close(tuple(grouped), tuple(once), rtol=1e-6, atol=1e-12)
    alone = loco_importance(model, X, y, X_test[rows], y_test[rows])
    assert alone.p_values[0] < once.p_values[0]


def test_units_of_the_columns_do_not_matter() -> None:
    X, y, X_test, y_test = table(3, rows=300)
    model = LinearRegression().fit(X, y)
    found = conditional_importance(model, X, X_test, y_test)
    unit = np.logspace(-6, 6, COLUMNS)
    model.coef_ /= unit
    other = conditional_importance(model, X * unit, X_test * unit, y_test)
    chex.assert_trees_all_close(tuple(found), tuple(other), rtol=1e-6, atol=1e-9)


def test_a_column_that_the_model_ignores_and_a_constant_one_are_not_important() -> None:
    X, y, X_test, y_test = table(4)
    X[:, 5] = X_test[:, 5] = 7.0
    model = LinearRegression().fit(X, y)
    model.coef_[4] = 0.0
    found = conditional_importance(model, X, X_test, y_test)
    chex.assert_trees_all_equal(found.importances[4:6], np.zeros(2))
    chex.assert_trees_all_equal(found.p_values[4:6], np.ones(2))


def test_rounding_of_a_model_in_float32_does_not_make_columns_important() -> None:
    X, y, X_test, y_test = table(10, rows=90)
    weights = np.zeros((COLUMNS, 8), np.float32)
    weights[:TRUE] = np.random.default_rng(0).standard_normal((TRUE, 8))

    def squares(model: None, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.square(np.tanh(X.astype(np.float32) @ weights) @ np.ones(8, np.float32) - y)

    found = conditional_importance(None, X, X_test, y_test, loss=squares)
    chex.assert_trees_all_equal(found.p_values[TRUE:], np.ones(COLUMNS - TRUE))


def test_classes_of_any_label_are_judged_by_their_probability() -> None:
    X, y, X_test, y_test = table(5)
    labels = [np.where(part > 0, "yes", "no") for part in (y, y_test)]
    model = LogisticRegression().fit(X, labels[0])
    found = conditional_importance(model, X, X_test, labels[1])
    assert found.p_values[0] < 1e-6
    with pytest.raises(DataError, match="maybe"):
        conditional_importance(model, X, X_test, np.full(len(y_test), "maybe"))


def test_one_column_of_targets_or_predictions_is_like_a_vector() -> None:
    X, y, X_test, y_test = table(9, rows=150)
    model, wide = LinearRegression().fit(X, y), LinearRegression().fit(X, y[:, None])
    drawn = conditional_importance(model, X, X_test, y_test)
    left_out = loco_importance(model, X, y, X_test, y_test)
    for fitted, target in ((model, y_test[:, None]), (wide, y_test), (wide, y_test[:, None])):
        other = conditional_importance(fitted, X, X_test, target)
        chex.assert_trees_all_close(tuple(other), tuple(drawn), rtol=1e-9, atol=1e-12)
    other = loco_importance(model, X, y[:, None], X_test, y_test)
    chex.assert_trees_all_close(tuple(other), tuple(left_out), rtol=1e-9, atol=1e-12)
    classes = LogisticRegression().fit(X, y > 0)
    other = conditional_importance(classes, X, X_test, pd.DataFrame({"late": y_test > 0}))
    expected = conditional_importance(classes, X, X_test, y_test > 0)
    chex.assert_trees_all_equal(tuple(other), tuple(expected))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y_test": [np.nan, *range(8)]}, "1 of 9 losses are not finite"),
        ({"y_test": np.ones((9, 2))}, "predicts 1 outputs, but y_test has 2"),
        ({"loss": lambda model, X, y: np.mean(model.predict(X) - y)}, r"returned shape \(\)"),
        ({"X_train": pd.DataFrame(np.eye(9, 3), columns=["c", "b", "a"])}, "another order"),
    ],
)
def test_what_has_no_loss_of_each_row_is_refused(options: dict, message: str) -> None:
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((9, 3)), columns=["a", "b", "c"])
    y = np.arange(9.0)
    model = LinearRegression().fit(X, y)
    data = {"X_train": X, "X_test": X, "y_test": y, **options}
    with pytest.raises(DataError, match=message):
        conditional_importance(model, **data, num_draws=1)
    with pytest.raises(DataError, match=message):
        loco_importance(model, y_train=y, **data)


def test_numbers_are_those_of_hidimstat() -> None:
    hidimstat = pytest.importorskip("hidimstat", reason="pip install -e .[bench]")
    X, y, X_test, y_test = table(6)
    model = LinearRegression().fit(X, y)
    left_out = hidimstat.LOCO(model, loss=mean_squared_error).fit(X, y)
    ours = loco_importance(model, X, y, X_test, y_test).importances
    chex.assert_trees_all_close(ours, left_out.importance(X_test, y_test), rtol=1e-6, atol=1e-9)
    drawn = hidimstat.CFI(model, loss=mean_squared_error, feature_types="continuous").fit(X, y)
    ours = conditional_importance(model, X, X_test, y_test, num_draws=50).importances
    chex.assert_trees_all_close(ours, drawn.importance(X_test, y_test), rtol=0.1, atol=0.02)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, :2], X[:, :3], y, None), "same columns"),
        (lambda X, y: (X, X, y[1:], None), "9 rows, y_test 8"),
        (lambda X, y: (X, np.where(X == X[0, 0], np.nan, X), y, None), "impute"),
        (lambda X, y: (X, X, y, np.arange(9) % 2), "fewer than 3 groups"),
        (lambda X, y: (X, X[:2], y[:2], None), "fewer than 3 rows"),
    ],
)
def test_bad_input_says_what_to_do(change: object, message: str) -> None:
    X, y, _, _ = table(7)
    model = LinearRegression().fit(X, y)
    train, test, target, groups = change(X[:9], y[:9])  # type: ignore[operator]
    with pytest.raises(DataError, match=message):
        conditional_importance(model, train, test, target, groups=groups)
    with pytest.raises(ConfigError, match="num_draws"):
        conditional_importance(model, X, X, y, num_draws=0)


def test_leaving_out_the_only_column_is_an_error() -> None:
    X, y, X_test, y_test = table(8)
    with pytest.raises(DataError, match="one column"):
        loco_importance(LinearRegression(), X[:, :1], y, X_test[:, :1], y_test)
