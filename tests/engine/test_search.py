"""The search for exactly K open gates, on a method whose gates are known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from bad_calls import bad_calls, refuses

import fsjax
from fsjax.arguments import Positive
from fsjax.data import Split
from fsjax.engine.search import SearchOutcome, gate_metrics
from fsjax.errors import ConfigError
from fsjax.method import About, Batch, Method, Search, Selection, Spec, TrainState, create_state
from fsjax.methods import METHODS

D = 12


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("known_gates", "careless"):
        monkeypatch.delitem(METHODS, name, raising=False)


def known_gates(*, strength: Positive = 1.0, shrinks: bool = True) -> Method:
    """A method whose gate d is ``1 / (1 + strength d / 4)``; nothing is learnt."""

    def init(key: jax.Array, spec: Spec, data: Batch) -> TrainState:
        extra = {"threshold": jnp.zeros(()), "place": jnp.arange(D) * 1.0}
        return create_state(spec, {"bias": jnp.zeros(spec.num_outputs)}, extra=extra)

    def gates(state: TrainState) -> jax.Array:
        found = 1.0 / (1.0 + strength * state.extra["place"] / 4)
        return jnp.where(found >= state.extra["threshold"], found, 0.0)

    def close(state: TrainState, threshold: jax.Array) -> TrainState:
        if not shrinks:
            return state
        return state.replace(extra={**state.extra, "threshold": threshold})

    return Method(
        About("known_gates", gates=True),
        init=init,
        select=lambda s: Selection(gates(s), gates=gates(s)),
        loss=lambda p, s, b, k: (jnp.sum(jnp.square(p["bias"])), {}),
        optimizer=optax.sgd(0.1),
        predict=lambda s, x: x[:, :2] * gates(s)[5] + s.params["bias"],
        keep="last",
        search=Search("strength", close),
    )


def registered() -> Method:
    return fsjax.register(estimator="KnownGates")(known_gates)()


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, D)), np.arange(40) % 2


OPTIONS = dict(num_epochs=1, split=Split(np.arange(30), np.arange(0), np.arange(30, 40)))


def test_exactly_k_gates_stay_open_in_the_state_that_is_kept() -> None:
    results = fsjax.fit_sizes(registered(), table(), (3, 6), seeds=(0, 1), **OPTIONS)
    for k, result in results.items():
        np.testing.assert_array_equal(result.selected, [list(range(k))] * 2)
        assert result.metrics["exact_selection"].tolist() == [100.0, 100.0]
        # The network sees all columns before any gate is closed, and then the remaining ones.
        assert (result.gates > 0).all()
        strength = result.metrics["strength"][:, None]
        np.testing.assert_allclose(result.gates, 1 / (1 + strength * np.arange(D) / 4), rtol=1e-5)
        threshold = result.states.extra["threshold"][:, None]
        assert ((result.gates >= threshold).sum(axis=1) == k).all()
        outputs = result.predict(table()[0])
        assert (outputs == 0).all() == (k <= 5)
    assert (results[3].metrics["strength"] >= results[6].metrics["strength"]).all()
    # Each training is used for every K.
    assert results[3].cost["trainings"] == results[6].cost["trainings"]


def test_gates_that_an_earlier_search_closed_are_open_at_the_start() -> None:
    first = fsjax.fit(registered(), table(), num_features=3, **OPTIONS)
    METHODS.pop("known_gates")
    second = fsjax.fit(registered(), table(), num_features=6, start=first, **OPTIONS)
    assert second.metrics["exact_selection"].tolist() == [100.0]


def test_the_searches_of_a_sweep_have_checkpoints_of_their_own(tmp_path) -> None:
    grid = {"strength": [1.0, 2.0]}
    options = OPTIONS | {"num_features": 3, "checkpoint_dir": tmp_path}
    sweep = fsjax.sweep(registered(), table(), grid, **options)
    assert [result.metrics["exact_selection"][0] for result in sweep.results] == [100.0, 100.0]


@bad_calls(
    ({"num_features": [2, 4]}, "give one number, or use fsjax.fit_sizes"),
    ({"num_features": 2, "columns": np.array([[2, 0, 4]])}, "columns= is for plan().train()"),
)
def test_options_of_which_a_fit_would_ignore_a_part(bad: tuple) -> None:
    options, message = bad
    method = fsjax.methods.neural_network(hidden=(2,))
    refuses(lambda: fsjax.fit(method, table(), **options, **OPTIONS), message)


def test_a_sweep_validates_the_networks_whose_gates_were_closed() -> None:
    X, y = table()
    split = Split(np.arange(20), np.arange(20, 30), np.arange(30, 40))
    # Gate 5 scales the outputs, and is closed with two columns.
    grid = {"num_features": [2, 8]}
    sweep = fsjax.sweep(registered(), (X, y), grid, **(OPTIONS | {"split": split}))
    validated = sweep.table()["validation"]
    for result, validation in zip(sweep.results, validated, strict=True):
        logits = result.predict(X[split.valid])[0]
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, y[split.valid]).mean()
        np.testing.assert_allclose(validation, loss, rtol=1e-5)
    assert validated[0] != validated[1]


def test_gates_that_close_does_not_close_are_not_exact() -> None:
    careless = fsjax.register(estimator="KnownGates")(known_gates)(shrinks=False)
    result = fsjax.fit(careless, table(), num_features=6, **OPTIONS)
    assert result.metrics["exact_selection"].tolist() == [0.0]
    assert result.selected.tolist() == [list(range(6))]


def test_columns_that_may_not_be_selected_have_closed_gates() -> None:
    x, y = table()
    x[:, 1] = 3.0
    result = fsjax.fit(registered(), (x, y), num_features=3, **OPTIONS)
    assert result.selected.tolist() == [[0, 2, 3]] and result.gates[0, 1] == 0
    assert result.metrics["exact_selection"].tolist() == [100.0]


@pytest.mark.parametrize("by", ["hand", "replacement", "another parameter"])
def test_a_search_without_a_traced_argument_is_refused(by: str) -> None:
    method = known_gates()
    if by == "replacement":
        method = registered()._replace(keep="loss")
    if by == "another parameter":

        def other(*, strength: Positive = 1.0) -> Method:
            made = known_gates(strength=strength)
            return made._replace(search=Search("strengt", made.search.close))

        other.__name__ = "known_gates"
        method = fsjax.register(estimator="KnownGates")(other)()
    with pytest.raises(ConfigError, match="searches for 'strengt.*not a float"):
        fsjax.plan(method, table(), num_features=3)


def test_an_exact_selection_needs_a_threshold_that_cuts_no_converged_gate() -> None:
    ones, closed = np.ones(4), np.tile([1.0, 0.9, 0.0], (4, 1))
    search = SearchOutcome(
        ones, threshold=np.array([0.1, 0.2, 0.8, 0.9]), steps=ones, trainings=ones
    )
    assert search.metrics(closed, 2, "strength")["exact_selection"].tolist() == [0, 100, 100, 0]
    assert not search.metrics(closed, 1, "strength")["exact_selection"].any()


def test_gate_metrics_count_as_the_paper_does() -> None:
    gates = np.zeros((2, 100))
    gates[0, :10], gates[0, 10:40] = 0.5, 1.0
    gates[1, :30], gates[1, 30:40] = 0.5, 0.99
    found = gate_metrics(gates)
    np.testing.assert_allclose(found["undecided_percentage"], [10, 30])
    np.testing.assert_allclose(found["undecided_open_percentage"], [25, 75])
    np.testing.assert_allclose(found["mask_converged"], [100, 0])
