"""What the figures of CTRE's and IP-CAE's papers measure, on networks that are known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fsjax
from experiments.papers.figures import ctre, ip_cae
from experiments.papers.figures.training import curve

#: Options of a short fit.
FIT: dict[str, Any] = {"num_epochs": 2, "batch_size": 20, "scaling": "none"}


def layer(weights: list[list[float]]) -> ctre.Layer:
    array = np.array(weights)
    return ctre.Layer(array, np.zeros(array.shape[1]), array != 0.0)


def test_a_curve_has_the_first_epoch_and_multiples() -> None:
    points = curve("p", "s", "m", np.arange(24.0).reshape(2, 12), every=5)
    assert [(p.x, p.mean) for p in points] == [(1, 6.0), (5, 10.0), (10, 15.0)]


def test_the_connections_of_lowest_score_are_removed() -> None:
    layers = [layer([[3.0, -1.0], [0.0, 2.0], [0.0, 4.0]])]
    (smaller,) = ctre.without(layers, [np.abs(layers[0].weights)], 50)
    assert smaller.active.tolist() == [[True, False], [False, False], [False, True]]
    (whole,) = ctre.without(layers, [np.abs(layers[0].weights)], 0)
    np.testing.assert_array_equal(whole.active, layers[0].active)


def test_importance_is_magnitude_or_similarity() -> None:
    layers = [layer([[1.0, 0.5], [0.0, -2.0]]), layer([[1.0], [1.0]])]
    scores = dict(ctre.importance(layers, np.array([[1.0, 0.0], [2.0, 0.0]]), 0))
    np.testing.assert_array_equal(scores["magnitude"][0], [[1.0, 0.5], [0.0, 2.0]])
    np.testing.assert_allclose(scores["cosine"][0], [[1.0, 1.0], [0.0, 0.0]], atol=1e-6)


@pytest.mark.slow
def test_values_are_those_of_the_network() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(40, 6)).astype(np.float32), np.arange(40) % 2
    method = fsjax.methods.set(hidden=(5, 4), epsilon=2.0, form="dense")
    result = fsjax.fit(method, (x, y), seeds=(0, 1), num_features=2, **FIT)
    outputs = ctre.values_of(ctre.layers_of(result, 1), x)[-1]
    np.testing.assert_allclose(outputs, result.predict(x)[1], rtol=1e-4, atol=1e-5)


def test_the_better_variant_stands_for_ctre() -> None:
    points = {(p.panel, p.series, p.x): p.mean for p in ctre.better_variant()}
    cells = ctre.recorded("2", ("madelon",))
    variants = [cells["madelon", name, "500, 1"].mean for name in ctre.CTRE]
    assert points["madelon", "ctre", "500, 1"] == max(variants) > min(variants)
    assert {series for _, series, _ in points} == {"ctre", "snip", "rigl", "set"}


@pytest.mark.slow
def test_the_change_of_the_logits_is_that_of_the_last_step() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(40, 6)).astype(np.float32), np.arange(40) % 2
    method = ip_cae.with_norms("direct", fsjax.methods.cae(2, hidden=(3,), noise="batch"))
    history = fsjax.fit(method, (x, y), seeds=(0,), **{**FIT, "batch_size": 64}).history
    # Adam's first step is the learning rate, 1e-3, for each of the 12 logits.
    assert history["train/logits change"][0, 0] == pytest.approx(1e-3 * np.sqrt(12), rel=0.02)


def test_norms_are_of_the_rows_of_psi_and_of_the_square_of_w() -> None:
    values = ip_cae.norms({"psi": np.array([[3.0, 4.0], [0.0, 1.0]]), "kernel": 2.0 * np.eye(2)})
    assert float(values["psi"]) == 3.0
    assert float(values["W W^T"]) == pytest.approx(4.0 * np.sqrt(2))
    assert ip_cae.norms({"logits": np.eye(2)}) == {}


def test_a_rise_is_above_the_lowest_earlier_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = np.array([[3.0, 1.0, 2.5, 0.5], [4.0, 3.0, 2.0, 1.0]])
    result = SimpleNamespace(
        history={"valid/loss": loss}, metrics={"embedded_accuracy": np.array([50.0, 60.0])}
    )
    monkeypatch.setattr(ip_cae, "trained", lambda run: result)
    run = ip_cae.training("cae", "classification")
    values = {p.metric: p.mean for p in ip_cae.tested("classification", "cae", 1, run)}
    assert values == {"embedded accuracy": 55.0, "largest rise of the loss": 0.75}
