"""Losses and recorded metrics of labels, counts and survival against their formulas in NumPy."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import slow_ids
from scipy.special import gammaln
from sklearn.metrics import (
    accuracy_score,
    d2_tweedie_score,
    mean_poisson_deviance,
    roc_auc_score,
)

from fsjax import tasks
from fsjax.tasks import losses
from fsjax.tasks.concordance import concordance_index
from fsjax.tasks.output_metrics import (
    count_metrics,
    d2_poisson,
    estimated_labels,
    label_metrics,
)


def cox_reference(risk: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Negative partial log-likelihood per event, as it stands in books, row by row."""
    total, events = 0.0, 0.0
    for i in range(len(y)):
        if y[i, 1] and weight[i] > 0:
            at_risk = y[:, 0] >= y[i, 0]
            total -= weight[i] * (risk[i] - np.log(weight[at_risk] @ np.exp(risk[at_risk])))
            events += weight[i]
    return total / events


def labels_reference(outputs: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    share = 1 / (1 + np.exp(-outputs))
    rows = -(y * np.log(share) + (1 - y) * np.log(1 - share)).mean(axis=1)
    return float(rows @ weight / weight.sum())


def counts_reference(outputs: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Twice the gap of the log-likelihoods of y itself and of exp(outputs)."""

    def likelihood(mean: np.ndarray) -> np.ndarray:
        return np.where(y > 0, y * np.log(np.where(mean > 0, mean, 1)), 0) - mean - gammaln(y + 1)

    rows = 2 * (likelihood(y) - likelihood(np.exp(outputs))).mean(axis=1)
    return float(rows @ weight / weight.sum())


def survival(rng: np.random.Generator, rows: int, times: int) -> np.ndarray:
    y = np.column_stack([rng.integers(1, times + 1, rows), rng.random(rows) < 0.6])
    y[0, 1] = 1
    return y.astype(float)


def example(task: str, rng: np.random.Generator, rows: int = 23) -> tuple[np.ndarray, np.ndarray]:
    if task == "survival":
        return rng.normal(size=(rows, 1)), survival(rng, rows, 9)
    outputs = rng.normal(size=(rows, 3))
    y = rng.random((rows, 3)) < 0.4 if task == "multilabel" else rng.poisson(1.5, (rows, 3))
    return outputs, y.astype(float)


REFERENCES = {
    "survival": lambda outputs, y, weight: cox_reference(outputs[:, 0], y, weight),
    "multilabel": labels_reference,
    "counts": counts_reference,
}


@pytest.mark.parametrize("task", REFERENCES)
def test_loss_and_gradient(task: str) -> None:
    rng = np.random.default_rng(1)
    outputs, y = example(task, rng)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], len(y))
    weight[0] = 1.0
    reference = REFERENCES[task]
    with jax.enable_x64(True):
        loss = jax.jit(jax.value_and_grad(functools.partial(tasks.loss, task)))
        value, slope = jax.device_get(loss(outputs, y, weight))
    np.testing.assert_allclose(value, reference(outputs, y, weight), rtol=1e-12)
    for place in np.ndindex(outputs.shape):
        step = np.zeros(outputs.shape)
        step[place] = 1e-5
        both = (reference(outputs + sign * step, y, weight) for sign in (1, -1))
        np.testing.assert_allclose(slope[place], np.subtract(*both) / 2e-5, rtol=1e-6, atol=1e-9)


@slow_ids("multilabel")
@pytest.mark.parametrize("task", REFERENCES)
def test_rows_without_weight_do_not_count(task: str) -> None:
    rng = np.random.default_rng(2)
    outputs, y = example(task, rng)
    weight = (np.arange(len(y)) < 15).astype(np.float32)
    others, other_y = outputs.copy(), y.copy()
    others[15:], other_y[15:] = 80.0 if task != "counts" else 5.0, 1.0
    metrics = jax.jit(functools.partial(tasks.metrics, task))
    found = metrics(outputs.astype(np.float32), y, weight)
    again = metrics(others.astype(np.float32), other_y, weight)
    few = metrics(outputs[:15].astype(np.float32), y[:15], weight[:15])
    for name, value in found.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(few[name], value, rtol=1e-6, err_msg=name)


def test_partial_likelihood_of_extremes() -> None:
    y = np.array([[1.0, 1], [2, 1], [3, 0]])
    ones = np.ones(3)
    # Far beyond what exp holds in float32, in the right order and in the wrong one.
    loss = jax.jit(jax.value_and_grad(losses.cox_partial_likelihood))
    value, slope = loss(np.array([[400.0], [0], [-400]]), y, ones)
    assert float(value) == pytest.approx(0.0)
    assert np.isfinite(slope).all()
    wrong, _ = loss(np.array([[-400.0], [0], [400]]), y, ones)
    assert float(wrong) == pytest.approx((800 + 400) / 2)
    none = np.array([[1.0, 0], [2, 0], [3, 0]])
    value, slope = loss(np.zeros((3, 1)), none, ones)
    assert float(value) == 0.0
    assert not np.asarray(slope).any()


def test_partial_likelihood_by_hand() -> None:
    # Two tied events among three rows, then the last alone: risk sets of 3, 3 and 1.
    y = np.array([[1.0, 1], [1, 1], [2, 1]])
    expected = (2 * np.log(np.e + 1 + 1) - 1 - 0 + 0) / 3
    loss = jax.jit(losses.cox_partial_likelihood)
    found = loss(np.array([[1.0], [0], [0]]), y, np.ones(3))
    assert float(found) == pytest.approx(expected, rel=1e-6)


def index_reference(y: np.ndarray, risk: np.ndarray, weight: np.ndarray) -> float | None:
    """Harrell's index over all pairs."""
    right, pairs = 0.0, 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            later = y[j, 0] > y[i, 0] or (y[j, 0] == y[i, 0] and not y[j, 1])
            if y[i, 1] and later:
                both = weight[i] * weight[j]
                pairs += both
                right += both * ((risk[i] > risk[j]) + (risk[i] == risk[j]) / 2)
    return right / pairs if pairs else None


#: One program per number of rows.
concordance = jax.jit(losses.concordance)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 9, 25]),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_concordance_against_all_pairs(seed: int, rows: int, times: int, risks: int) -> None:
    rng = np.random.default_rng(seed)
    y = survival(rng, rows, times)
    risk, weight = rng.integers(0, risks, rows) / 4, rng.choice([0.0, 0.5, 1.0], rows)
    expected = index_reference(y, risk, weight)
    compiled = float(concordance(risk[:, None], y, weight))
    assert compiled == pytest.approx(0.5 if expected is None else expected, abs=1e-6)
    if expected is not None:
        found = concordance_index(y[:, 0], y[:, 1], risk, weight)
        assert found == pytest.approx(expected, abs=1e-12)


def test_concordance_over_seeds_in_one_program() -> None:
    rng = np.random.default_rng(0)
    y, risk = survival(rng, 700, 300), rng.normal(size=(2, 700, 1)).astype(np.float32)
    found = jax.jit(jax.vmap(losses.concordance, in_axes=(0, None, None)))(risk, y, np.ones(700))
    expected = [concordance_index(*y.T, one[:, 0]) for one in risk]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_metrics_judge_the_labels_that_are_predicted() -> None:
    outputs = np.array([[0.0, 0.0], [0.0, 2.0], [-1.0, 1e-6]])
    y = np.array([[0, 1], [0, 1], [1, 1]])
    share = 100 * np.mean(estimated_labels(outputs[None]) == y)
    assert label_metrics(outputs, y)["label_accuracy"] == pytest.approx(share)
    recorded = jax.jit(losses.label_values)(outputs, y, np.ones(3))
    assert float(recorded["label_accuracy"]) == pytest.approx(share)


def test_metrics_of_labels_and_counts() -> None:
    rng = np.random.default_rng(3)
    outputs, y = example("multilabel", rng, 60)
    expected = {
        "label_accuracy": 100 * np.mean((outputs > 0) == y),
        "subset_accuracy": 100 * accuracy_score(y, outputs > 0),
        "auc": roc_auc_score(y, outputs, average="macro"),
    }
    recorded = jax.jit(losses.label_values)(outputs, y, np.ones(60))
    for name, value in expected.items():
        assert label_metrics(outputs, y)[name] == pytest.approx(value)
        assert float(recorded[name]) == pytest.approx(value, rel=1e-5)
    outputs, y = example("counts", rng, 60)
    deviance = mean_poisson_deviance(y.ravel(), np.exp(outputs).ravel())
    assert count_metrics(outputs, y)["poisson_deviance"] == pytest.approx(deviance)
    recorded = jax.jit(losses.count_values)(outputs, y, np.ones(60))["poisson_deviance"]
    assert float(recorded) == pytest.approx(deviance, rel=1e-5)
    assert d2_poisson(y[:, 0], np.full(60, y[:, 0].mean())) == pytest.approx(0.0)
    assert d2_poisson(y[:, 0], y[:, 0] + 1e-9) == pytest.approx(1.0)
    weight, expected_counts = np.arange(60) % 4, np.exp(outputs[:, 0])
    scikit_learn = d2_tweedie_score(y[:, 0], expected_counts, sample_weight=weight, power=1)
    assert d2_poisson(y[:, 0], expected_counts, weight) == pytest.approx(scikit_learn)
    huge = count_metrics(np.array([[800.0], [0.0]]), np.array([[1.0], [2.0]]))
    assert huge["poisson_deviance"] > 1e299 and huge["d2"] < -1e299
