"""Every registered method, and variants of some, keep one contract; faults turn it red."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from marks import slow_ids, some_long

import fsjax
from fsjax import tasks, testing
from fsjax.engine import programs, search
from fsjax.method import About, Batch, Method, Selection, Spec, TrainState, create_state
from fsjax.methods import METHODS

#: Ablations and options in addition to those of the registrations.
VARIANTS: dict[str, Callable[[], Method]] = {
    "ip_cae-row": lambda: _small("ip_cae", noise="row"),
    "ip_cae-diagonal-gjsd": lambda: _small(
        "ip_cae", hidden=(), weights="diagonal", embedding_dim=None, gjsd_weight=0.1, anneal="step"
    ),
    "wast-epoch": lambda: _small("wast", update="epoch", drop="per_sign", accumulate=False),
    "set-dense-form": lambda: _small("set", form="dense"),
    "set-paths-attribution": lambda: _small(
        "set", grow="sampled_short_paths", rank_by="attribution"
    ),
    "neural_network-attribution": lambda: _small(
        "neural_network", rank_by="attribution_times_input"
    ),
    "sequential_attention-pairs": lambda: _small(
        "sequential_attention", columns_per_phase=2, finetune_epochs=2
    ),
    "binmask-weights": lambda: _small(
        "binmask", masked="weights", finetune_epochs=1, optimizer="adamw", learning_rate=0.03
    ),
    "lassonet-until": lambda: _small("lassonet", until=1),
    "fisher_score-network": lambda: _small(
        "fisher_score", num_features=testing.K, hidden=(6,), learning_rate=0.03
    ),
}


#: Run by ``make test-long`` only; most of them resemble another method.
SLOW = (
    "ctre_sim",
    "rigl",
    "snip",
    "static_sparse",
    "gjsd",
    "set-dense-form",
    "set-paths-attribution",
    "ip_cae-diagonal-gjsd",
    "wast-epoch",
    "neural_network-attribution",
    "set",
    "dense",
    "random_selection",
    "neurofs",
    "sequential_attention-pairs",
    "binmask-weights",
    "fisher_score-network",
    "ip_cae-row",
    "lassonet-until",
    "quick_selection",
    "cae",
    "neural_network",
    "entryprune",
    "binmask",
    "deep_lasso",
    "dufs",
    "auto_nfs",
    "sand",
)


def _small(name: str, **changes: object) -> Method:
    build = METHODS[name]
    return build(**{**build.registration.small, **changes})


@slow_ids(
    "aefs", "ctre_seq", "ip_cae", "lassonet", "probmask", "sequential_attention", "stg", "wast"
)
@pytest.mark.parametrize("name", some_long(METHODS, SLOW))
def test_every_method_keeps_the_contract(name: str) -> None:
    testing.check_method(_small(name))


@pytest.mark.parametrize("name", some_long(VARIANTS, SLOW))
def test_variants_keep_the_contract(name: str) -> None:
    testing.check_method(VARIANTS[name]())


@pytest.mark.slow
@pytest.mark.parametrize("name", some_long(METHODS, SLOW))
def test_training_of_every_method_goes_on_from_a_result(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    data, method = (x, (x[:, 0] > 0).astype(int)), _small(name)
    number = 2 if method.about.num_features is None else None
    fit = functools.partial(fsjax.fit, method, data, num_features=number, num_epochs=2)
    assert np.isfinite(fit(start=fit()).scores).all()


@slow_ids("entryprune", "gjsd", "ip_cae", "cae", "sand")
@pytest.mark.parametrize(
    "name", ["sequential_attention", "sand", "entryprune", "cae", "ip_cae", "gjsd"]
)
def test_the_only_column_that_is_not_selected_does_not_change_predictions(name: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)).astype(np.float32)
    x[:, 2] = 1.0  # constant
    data = x, (x[:, 3] + x[:, 1] > 0).astype(int)
    result = fsjax.fit(_small(name, num_features=2), data, num_epochs=8)
    moved = x + 5 * ~np.isin(np.arange(4), result.selected[0])
    np.testing.assert_array_equal(result.predict(x), result.predict(moved.astype(np.float32)))


@pytest.fixture
def anew() -> Iterator[None]:
    """Programs of code that a test breaks are not found by others, nor those of others by it."""
    jax.clear_caches()
    programs.free()
    yield
    jax.clear_caches()
    programs.free()


SCORES: dict[str, Callable[[Method, TrainState], object]] = {
    "the same score": lambda method, state: jnp.zeros(state.spec.num_units),
    "a larger score than others in only 0 %": lambda method, state: -method.select(state).scores,
    "permuted columns": lambda method, state: jnp.arange(state.spec.num_units) * 1.0,
}


@pytest.mark.parametrize("fault", SCORES)
def test_wrong_scores_are_found(fault: str) -> None:
    method = _small("fisher_score")
    wrong = method._replace(select=lambda state: Selection(SCORES[fault](method, state)))
    with pytest.raises(AssertionError, match=fault):
        testing.check_method(wrong)


def _linear() -> Method:
    """A linear model made by hand, which starts at zero."""

    def init(key: jax.Array, spec: Spec, data: Batch) -> TrainState:
        return create_state(spec, {"kernel": jnp.zeros((spec.num_columns, spec.num_outputs))})

    def predict(state: TrainState, x: jax.Array) -> jax.Array:
        return x @ state.params["kernel"]

    def loss(params, state: TrainState, batch: Batch, key: jax.Array) -> tuple[jax.Array, dict]:
        outputs = predict(state.replace(params=params), batch.x)
        return tasks.loss(state.spec.task, outputs, batch.y, batch.weight), {}

    return Method(
        About("linear", tasks=("classification",)),
        init=init,
        loss=loss,
        optimizer=optax.sgd(0.1),
        predict=predict,
        select=lambda state: Selection(jnp.linalg.norm(state.params["kernel"], axis=1)),
    )


@pytest.mark.slow
def test_a_linear_model_that_starts_at_zero_keeps_the_contract() -> None:
    testing.check_method(_linear())


@pytest.mark.slow
def test_a_loss_that_is_maximised_is_found() -> None:
    method = _linear()

    def loss(params, state, batch, key):
        value, aux = method.loss(params, state, batch, key)
        return -value, aux

    with pytest.raises(AssertionError, match="does not lower the validation loss"):
        testing.check_method(method._replace(loss=loss))


@pytest.mark.slow
def test_connections_that_are_added_at_constant_columns_are_found() -> None:
    method = _small("static_sparse", form="dense")

    def after_epoch(state, data, key):
        masks = dict(state.masks)
        kernel = masks["layer_0"]["kernel"].at[testing.CONSTANT].set(True)
        masks["layer_0"] = {**masks["layer_0"], "kernel": kernel}
        return method.after_epoch(state, data, key).replace(masks=masks)

    with pytest.raises(AssertionError, match="training adds"):
        testing.check_method(method._replace(after_epoch=after_epoch))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ip_cae", "stg", "lassonet"])
def test_columns_of_another_group_are_found(
    name: str, anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = fsjax.tables.groups._members

    def wrong(groups):
        rows, places = members(groups)
        return np.roll(rows, 1, axis=0), places

    def wrong_gates(values, groups):
        return jnp.roll(values, 1)[..., np.asarray(groups)]

    monkeypatch.setattr("fsjax.tables.groups._members", wrong)
    monkeypatch.setattr(sys.modules["fsjax.methods.stg"], "expand", wrong_gates)
    with pytest.raises(AssertionError, match=r"sees|does not lower"):
        testing.check_groups(_small(name), "classification", 12)


@pytest.mark.slow
def test_a_search_that_leaves_one_gate_too_few_is_found(
    anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = search.threshold_for
    monkeypatch.setattr(search, "threshold_for", lambda gates, k: right(gates, k - 1))
    with pytest.raises(AssertionError, match="open gates"):
        testing.check_search(_small("binmask"), "classification")


@pytest.mark.slow
def test_padding_that_counts_is_found() -> None:
    method = _small("dense")

    def loss(params, state, batch, key):
        return method.loss(params, state, batch._replace(weight=jnp.ones(len(batch.x))), key)

    with pytest.raises(AssertionError, match="rows of weight 0"):
        testing.check_method(method._replace(loss=loss))


@pytest.mark.slow
def test_a_network_that_sees_other_columns_is_found() -> None:
    method = _small("random_selection")

    def predict(state, x):
        return method.predict(state, x) + 1e-2 * jnp.sum(x, axis=1, keepdims=True)

    with pytest.raises(AssertionError):
        testing.check_method(method._replace(predict=predict))


def test_equal_arguments_give_the_same_method() -> None:
    assert fsjax.methods.ip_cae(5, hidden=[4]) is fsjax.methods.ip_cae(5, hidden=(4,))
    assert fsjax.methods.gjsd(5) is fsjax.methods.gjsd(5)
    assert fsjax.methods.cae(5) is not fsjax.methods.cae(6)
