"""The networks that rewire themselves: gradients against NumPy, and what they learn.

Covers ``fsjax.methods.sparse``.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from jax.test_util import check_grads
from sparse_network_reference import (
    SIZES,
    N,
    begun,
    forward,
    kernels,
    rows,
    slopes,
    softmax,
    spec_for,
)

import fsjax
from fsjax.data import load
from fsjax.methods.shared.sparse_network import sparse_network
from fsjax.sparsity import drop, grow, may_shrink

PLAIN = dict(**SIZES, learning_rate=0.01, momentum=0.9)


def test_loss_and_its_gradient() -> None:
    data = rows()
    method = sparse_network(form="dense", l2=0.1, **PLAIN)
    small = begun(method, spec_for())
    biases = iter(np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32))
    small = small.replace(
        params={
            name: {**layer, "bias": 0.3 * next(biases)[: layer["bias"].size]}
            for name, layer in small.params.items()
        }
    )
    value, gradient = jax.jit(jax.value_and_grad(lambda p, s: method.loss(p, s, data, None)[0]))(
        small.params, small
    )
    state = method.finish(small, data, None)
    x, y = np.asarray(data.x), np.asarray(data.y)
    chances = softmax(forward(state.params, x)[-1])[np.arange(N), y]
    penalty = 0.05 * sum((weight.astype(np.float64) ** 2).sum() for weight in kernels(state.params))
    assert float(value) == pytest.approx(-np.log(chances).mean() + penalty, rel=1e-5)
    for gradient_of_layer, slope, weight, mask in zip(
        kernels(gradient),
        slopes(state.params, x, y),
        *map(kernels, (state.params, state.masks)),
        strict=True,
    ):
        expected = np.where(mask, slope + 0.1 * weight, 0)
        np.testing.assert_allclose(gradient_of_layer, expected, rtol=1e-4, atol=1e-6)

    # Finite differences, where the activation has no corners.
    method = sparse_network(activation="sigmoid", form="dense", l2=0.1, **PLAIN)
    loss = jax.jit(lambda params: method.loss(params, small, data, None)[0])
    check_grads(loss, (small.params,), 1, modes=["rev"], atol=1e-2, rtol=1e-2, eps=1e-2)


def switched() -> Any:
    return grow.switched(grow.similar, grow.random)


@bad_calls(
    (lambda: fsjax.methods.set(form="denes"), "form='denes': did you mean 'dense'"),
    (
        lambda: fsjax.plan(
            fsjax.methods.quick_selection(), load("digits"), task="classification", num_features=5
        ),
        "quick_selection is for the task",
    ),
    (lambda: sparse_network(drop=drop.magnitude, grow=grow.important_inputs), "needs importance"),
    (lambda: sparse_network(drop=drop.magnitude, grow=switched()), "needs search"),
)
def test_what_does_not_fit_a_network(bad: tuple) -> None:
    refuses(*bad)


def fit(name: str, data, **options) -> fsjax.FitResult:
    method = getattr(fsjax.methods, name)(hidden=(64,), learning_rate=0.03, **options)
    return fsjax.fit(
        method,
        data,
        seeds=(0, 1, 2, 3),
        num_features=10,
        num_epochs=80,
        batch_size=50,
        split="random",
        scaling="standard",
        best_by="accuracy",
    )


@pytest.mark.slow
def test_ctre_sim_finds_what_a_fixed_topology_misses() -> None:
    # Classes are corners of a hypercube: no column is informative alone, and connections are few.
    data = load(
        "madelon_like",
        num_samples=1000,
        num_features=60,
        num_informative=4,
        num_redundant=6,
        flip_y=0.0,
    )
    wrong = np.random.default_rng(1).permutation(data.y)
    search = fit("ctre_sim", (data.X, data.y), epsilon=1.0)
    accuracy, fixed, chance = (
        result.metrics["embedded_accuracy"]
        for result in (
            search,
            fit("static_sparse", (data.X, data.y), epsilon=1.0),
            fit("ctre_sim", (data.X, wrong), epsilon=1.0),
        )
    )
    assert search.history["train/sparsity"].min() > 0.95
    assert accuracy.mean() > fixed.mean() + 8
    assert abs(chance.mean() - 50) < 6
    recovered = np.isin(search.selected, np.array(data.informative)).mean(axis=1)
    assert recovered.min() >= 0.8


def test_a_dense_form_loses_connections_to_a_rule_that_may_shrink() -> None:
    losing = may_shrink(lambda layer, dropped, key: dropped & (layer.number > 0))
    # So sparse that it would be trained as connections.
    options = {"hidden": (40,), "epsilon": 0.1, "rank_by": "strength"}
    method = sparse_network(drop=drop.magnitude, grow=losing, drop_fraction=0.5, **options)
    state = begun(method, spec_for())
    after = jax.jit(method.after_epoch)(state, rows(), jax.random.key(0))
    counts = [[int(mask.sum()) for mask in kernels(s.masks)] for s in (state, after)]
    assert counts == [[5, 4], [3, 4]]
    assert after.params["layer_0"]["kernel"].shape == (13, 40)
