"""Fisher scores against NumPy and scikit-learn's F statistic, and the filter as a method."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from bad_calls import refuses
from sklearn.feature_selection import f_classif

import fsjax
from fsjax.errors import ConfigError
from fsjax.methods.fisher_score import HIGHEST, fisher_scores

compiled = jax.jit(fisher_scores, static_argnames="num_classes")


def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Between over within, summed class by class in float64."""
    x = x.astype(np.float64)
    between = within = 0.0
    for label in np.unique(y):
        rows = x[y == label]
        between = between + len(rows) * (rows.mean(axis=0) - x.mean(axis=0)) ** 2
        within = within + len(rows) * rows.var(axis=0)
    return between / within


def table(classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns of several scales and offsets; every third one depends on the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, 200)
    x = rng.normal(size=(200, 30)) * 10.0 ** rng.integers(-3, 3, 30)
    x[:, ::3] *= 1 + y[:, None]
    x[:, ::3] += x[:, ::3].std(axis=0) * y[:, None] * rng.random(10)
    return (x + x.std(axis=0) * rng.normal(size=30)).astype(np.float32), y


@pytest.mark.parametrize("classes", [2, 5])
def test_scores_are_those_of_numpy_in_the_order_of_scikit_learn(classes: int) -> None:
    x, y = table(classes)
    scores = np.asarray(compiled(x, y, num_classes=classes))
    np.testing.assert_allclose(scores, reference(x, y), rtol=1e-4, atol=1e-8)
    statistic, _ = f_classif(x.astype(np.float64), y)
    np.testing.assert_allclose(
        scores * (len(y) - classes) / (classes - 1), statistic, rtol=1e-4, atol=1e-6
    )
    assert np.argsort(-scores).tolist() == np.argsort(-statistic).tolist()


def test_order_and_scale_of_the_table_do_not_matter() -> None:
    x, y = table(3)
    scores = compiled(x, y, num_classes=3)
    order = np.random.default_rng(1).permutation(200)
    np.testing.assert_allclose(compiled(x[order], y[order], num_classes=3), scores, rtol=1e-4)
    np.testing.assert_allclose(compiled(1024 * x, y, num_classes=3), scores, rtol=1e-4)
    # Whole numbers that float32 holds exactly keep their scores far from 0.
    whole = np.round(4 * x)
    near, far = (compiled(of.astype(np.float32), y, num_classes=3) for of in (whole, whole + 4e6))
    np.testing.assert_allclose(far, near, rtol=1e-4)
    # Classes that do not occur change nothing, and neither do rows without weight.
    np.testing.assert_allclose(compiled(x, 2 * y + 1, num_classes=9), scores, rtol=1e-4)
    more, labels = np.concatenate([99 + x[:7], x]), np.concatenate([np.zeros(7, int), y])
    weight = (np.arange(207) >= 7).astype(np.float32)
    np.testing.assert_allclose(compiled(more, labels, 3, weight), scores, rtol=1e-4)
    twice = np.concatenate([x, x[:50]]), np.concatenate([y, y[:50]])
    weight = 1.0 + (np.arange(200) < 50).astype(np.float32)
    np.testing.assert_allclose(
        compiled(x, y, 3, weight), compiled(*twice, num_classes=3), rtol=1e-4
    )


@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e6])
def test_perfect_constant_and_equal_columns(value: float) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1001)
    noise = rng.normal(size=1001) + y
    perfect = value + np.array([0.1, 0.7, 0.3])[y] * max(1, abs(value))
    balanced = np.where(np.arange(1001) % 2, value, -value)
    x = np.stack([noise, perfect, np.full(1001, value), noise, balanced], axis=1)
    scores = np.asarray(compiled(x.astype(np.float32), y, num_classes=3))
    assert scores[1] == np.float32(HIGHEST) and scores[2] == 0.0
    assert scores[0] == scores[3] and 0.1 < scores[0] < 10
    assert 0 <= scores[4] < 0.05
    assert np.isfinite(scores).all()


def signal() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(400, 25)).astype(np.float32)
    y = rng.integers(0, 3, 400)
    x[:, 4] += y == 1
    x[:, 11] += 1.5 * (y == 2)
    x[:, 17] -= 1.2 * y
    return x, y


def test_the_filter_trains_nothing_and_sees_the_training_rows_alone() -> None:
    x, y = signal()
    plan = fsjax.plan(fsjax.methods.fisher_score(), (x, y), num_features=[3, 1], seeds=(0, 1))
    several, one = plan.fit()
    rows = several.splits[0].train
    scaled = (x[rows] - x[rows].mean(axis=0)) / x[rows].std(axis=0)
    expected = reference(scaled, y[rows])
    np.testing.assert_allclose(several.scores, np.stack([expected] * 2), rtol=1e-3)
    assert several.selected.tolist() == [[17, 11, 4]] * 2 and one.selected.tolist() == [[17]] * 2
    assert several.metrics == several.history == {} and several.states.params == ()
    assert several.cost["trained_epochs"] == several.cost["params"] == 0
    with pytest.raises(ConfigError, match="fisher_score only selects columns"):
        several.predict(x)


def test_other_tasks_and_a_network_without_a_number_are_refused() -> None:
    build, rows = fsjax.methods.fisher_score, (signal()[0], None)
    refuses(lambda: fsjax.plan(build(3), rows, task="reconstruction"), "classification")
    refuses(lambda: build(0), "num_features=0")
    refuses(lambda: build(hidden=(4,)), "a network needs num_features")
