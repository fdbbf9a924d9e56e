"""Mistakes of a method's author are reported in one sentence, before anything is trained.

Covers ``fsjax.engine.method_checks``, ``fsjax.engine.choose``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from engine_helpers import linear_method

import fsjax
from fsjax import registry
from fsjax.arguments import NonNegative
from fsjax.errors import ConfigError
from fsjax.estimators.base import Selector
from fsjax.estimators.factory import _common
from fsjax.method import Method, Selection, TrainState
from fsjax.testing import check_method

PLAIN = linear_method()


def wide(state: TrainState, x: jax.Array) -> jax.Array:
    """Outputs for one class too many."""
    return jnp.pad(PLAIN.predict(state, x), ((0, 0), (0, 1)))


def grown(state: TrainState, *_: Any) -> TrainState:
    return state.replace(extra={"seen": jnp.zeros(1 + state.spec.num_columns)})


def more(state: TrainState, *_: Any) -> TrainState:
    return state.replace(extra={**state.extra, "new": jnp.zeros(2)})


def counted(state: TrainState, *_: Any) -> TrainState:
    return state.replace(params={"kernel": state.params["kernel"].astype(jnp.int32)})


def branching(params: Any, state: TrainState, batch: Any, key: jax.Array) -> tuple[jax.Array, dict]:
    if state.epoch > 2:
        return jnp.zeros(()), {}
    return PLAIN.loss(params, state, batch, key)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "init": ({"init": lambda k, s, d: {}}, "init returns a value of type dict; return a Train"),
    "predict": ({"predict": wide}, r"predict returns an array of shape \(2, \d+\) for 2 rows; ret"),
    "array": ({"select": lambda s: jnp.zeros(13)}, "select returns an array .* return fsjax.Selec"),
    "scores": ({"select": lambda s: Selection(jnp.zeros(3))}, r"scores that are .* shape \(3,\)"),
    "whole scores": (
        {"select": lambda s: Selection(jnp.zeros(s.spec.num_columns, int))},
        "dtype int32; return a float",
    ),
    "picks": (
        {"select": lambda s: PLAIN.select(s)._replace(picks=jnp.zeros((2, 2), int))},
        "select returns picks .* indices of K columns",
    ),
    "no aux": ({"loss": lambda p, *a: PLAIN.loss(p, *a)[0]}, r"return a pair \(loss, aux\)"),
    "loss": ({"loss": lambda p, *a: (jnp.ones(8), {})}, r"shape \(8,\) and aux; return a scalar"),
    "branch": (
        {"loss": branching},
        r"loss needs the value of a traced .*\(test_method_checks.py, line \d+: if",
    ),
    "optimizer": ({"optimizer": None}, "has a loss but no optimizer; give"),
    "of spec": (
        {"optimizer": lambda spec: 0.1},
        "the optimizer .* returns a float; a function of the Spec",
    ),
    "no predict": ({"predict": None}, "has a loss but no predict; give"),
    "keep": ({"keep": "lst"}, "keep='lst': did you mean 'last'"),
    "kept": ({"keep": lambda s: s.extra["seen"]}, "keep returns an array .* return a scalar"),
    "shape": ({"after_step": grown}, r"after_step changes state.extra\['seen'\] from float32\["),
    "new": ({"after_epoch": more}, r"after_epoch adds state.extra\['new'\]; create all arrays"),
    "type": ({"after_step": counted}, r"from float32\[.*\] to int32"),
    "state": ({"finish": lambda s, d, k: s.params}, "finish returns .* dict; return a TrainState"),
    "monitor": ({"monitor": lambda s: {"seen": s.extra["seen"]}}, "return a dictionary of scalars"),
    "reserved": (
        {"monitor": lambda s: {"loss": 0.0 * s.epoch}},
        "'loss', which the engine records",
    ),
    "number": ({"optimizer": 0.1}, "optimizer=0.1; give an Optax transformation"),
    "uncalled": ({"optimizer": optax.sgd}, "sgd, which takes a learning rate; call it"),
    "no finish": ({"finish": None}, "finish=None; give a function"),
    "tasks": ({"about": PLAIN.about._replace(tasks="classification")}, "give a tuple, .'classif"),
    "padded picks": (
        {"select": lambda s: PLAIN.select(s)._replace(picks=jnp.array([1, -1]))},
        "select gives the pick -1 before the first step; picks are 0 to",
    ),
    "picks beyond": (
        {"select": lambda s: PLAIN.select(s)._replace(picks=jnp.array([99]))},
        "select gives the pick 99 before the first step; picks are 0 to",
    ),
    "gates": (
        {"select": lambda s: PLAIN.select(s)._replace(gates=1.1 + PLAIN.select(s).scores)},
        r"select gives the gate 1\.\d+ before the first step; gates are in \[0, 1\]",
    ),
    "no gates": (
        {"select": lambda s: PLAIN.select(s)._replace(gates=jnp.nan * PLAIN.select(s).scores)},
        "select gives the gate nan before",
    ),
    "nan": (
        {"select": lambda s: Selection(0.0 / (0.0 * jnp.arange(s.spec.num_columns)))},
        "columns the score nan before the first step; scores must be finite",
    ),
}


@pytest.mark.parametrize(("changes", "message"), WRONG.values(), ids=WRONG.keys())
@pytest.mark.parametrize("checks", ["fit", "check_method"])
def test_wrong_functions_are_named_before_training(changes, message, checks, data, monkeypatch):
    method = PLAIN._replace(**changes)
    monkeypatch.setattr("fsjax.engine.train.chunks", None)  # Nothing is trained.
    with pytest.raises(ConfigError, match=message):
        fsjax.fit(method, data) if checks == "fit" else check_method(method)


def test_names_of_masks_are_free_where_a_method_has_none(data) -> None:
    method = PLAIN._replace(monitor=lambda s: {"sparsity": jnp.float32(0.25)})
    assert fsjax.fit(method, data, num_epochs=1).history["train/sparsity"].item() == 0.25
    masked = PLAIN._replace(
        init=lambda *args: PLAIN.init(*args).replace(masks=[jnp.ones((2, 2), bool)]),
        monitor=method.monitor,
    )
    with pytest.raises(ConfigError, match="'sparsity', which the engine records"):
        fsjax.fit(masked, data, num_epochs=1)


def test_an_initialisation_that_ignores_its_key_is_found() -> None:
    def init(key: jax.Array, spec: Any, data: Any) -> TrainState:
        state = PLAIN.init(key, spec, data)
        noise = np.random.default_rng().normal()
        return state.replace(params=jax.tree.map(lambda leaf: leaf + noise, state.params))

    with pytest.raises(AssertionError, match="for the same key; draw all random numbers from"):
        check_method(PLAIN._replace(init=init))


def test_a_method_without_a_name_is_the_method(data) -> None:
    about = PLAIN.about._replace(name="")
    with pytest.raises(ConfigError, match="^the method has a loss but no optimizer"):
        fsjax.fit(PLAIN._replace(about=about, optimizer=None), data)


def test_other_errors_say_in_which_function_they_were_raised(data) -> None:
    method = PLAIN._replace(predict=lambda s, x: x @ jnp.ones((2, 2)))
    with pytest.raises(TypeError) as caught:
        fsjax.plan(method, data)
    assert "in predict of the method linear" in "".join(caught.value.__notes__)


def test_scores_that_end_as_no_numbers_are_refused(data) -> None:
    method = PLAIN._replace(
        select=lambda s: Selection(0.0 * PLAIN.select(s).scores / (3 - s.epoch))
    )
    with pytest.raises(ConfigError, match="score nan after training"):
        fsjax.fit(method, data, num_epochs=3, best_by="last")


def register(build: Callable[..., Method]) -> Callable[..., Method]:
    return fsjax.register(estimator="Unregistered")(build)


@pytest.fixture
def registered_by_test():
    names = set(registry.METHODS)
    yield
    for name in set(registry.METHODS) - names:
        del registry.METHODS[name]


def test_a_branch_on_a_traced_argument_is_named(data, registered_by_test) -> None:
    def branching_builder(*, penalty: NonNegative = 1.0) -> Method:
        return linear_method(2.0 if penalty > 0.5 else 1.0)

    method = register(branching_builder)()
    with pytest.raises(ConfigError, match="the builder needs the value .* in Python"):
        fsjax.plan(method, data)


def test_arguments_without_annotation_are_refused(registered_by_test) -> None:
    def unannotated(*, penalty=1.0) -> Method:
        return PLAIN

    with pytest.raises(ConfigError, match="argument 'penalty' of unannotated has no"):
        register(unannotated)


@pytest.mark.parametrize("name", ["score", "num_epochs"])
def test_names_of_the_estimator_are_refused(name: str, registered_by_test) -> None:
    scope: dict[str, Any] = {"PLAIN": PLAIN}
    exec(f"def hiding(*, {name}: float = 1.0): return PLAIN", scope)  # noqa: S102
    with pytest.raises(ConfigError, match=f"argument '{name}', a name that estimators reserve"):
        register(scope["hiding"])


def test_reserved_names_are_those_of_the_estimators() -> None:
    methods = {name for name in dir(Selector) if not name.startswith("_")}
    arguments = set(inspect.signature(_common).parameters) - {"self"}
    assert registry.RESERVED == methods | arguments
