"""Annotations that are types and not text, as this file has no ``annotations`` from the future."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from bad_calls import bad_calls, refuses

import fsjax
from fsjax.arguments import STATIC, TERM, Count, Layers, NonNegative, Positive
from fsjax.errors import ConfigError
from fsjax.estimators import ESTIMATORS
from fsjax.methods import METHODS
from fsjax.methods.shared.network import NetworkOptions


@pytest.fixture(autouse=True)
def _own_registry() -> Iterator[None]:
    before = dict(METHODS), dict(ESTIMATORS)
    yield
    for table, old in zip((METHODS, ESTIMATORS), before, strict=True):
        table.clear()
        table.update(old)


def annotated(
    num_features: Count | None = None,
    *,
    penalty: Positive = 0.1,
    share: Annotated[NonNegative, STATIC] | None = None,
    extra_term: Annotated[NonNegative, TERM] = 0.0,
    plain: float = 1.0,
    whole: int = 3,
    hidden: Layers = (8,),
    kind: Literal["near", "far"] = "near",
    flag: bool = False,
    label: str = "",
    **options: Any,
) -> fsjax.Method:
    """A plain network whose arguments play no part."""
    return fsjax.methods.neural_network(hidden=hidden, **options)


def register() -> Any:
    return fsjax.register(estimator="Annotated_", options=NetworkOptions(), without=("l1",))(
        annotated
    )


@bad_calls(
    ({"num_features": 0}, "num_features=0; choose a whole number"),
    ({"penalty": -1.0}, "penalty=-1.0; choose a value above 0"),
    ({"penalty": "a"}, "penalty='a'; choose a finite number"),
    ({"penalty": None}, "penalty=None; choose a finite number"),
    ({"share": -0.1}, "share=-0.1", "or None"),
    ({"plain": float("nan")}, "plain=nan"),
    ({"whole": 2.5}, "whole=2.5; choose a whole number"),
    ({"hidden": ()}, "hidden is empty"),
    ({"kind": "nearr"}, "kind='nearr': did you mean 'near'"),
    ({"flag": 1}, "flag=1; choose True or False"),
    ({"label": 3}, "label=3; give text"),
    ({"momentum": 1.0}, "momentum=1.0"),
)
def test_values_are_checked_by_their_annotations(bad: tuple) -> None:
    refuses(lambda: register()(**bad[0]), bad[1])


def test_floats_are_traced_unless_they_are_marked() -> None:
    build = register()
    names = set(fsjax.plan(build(), table(), num_features=2).hyper)
    assert {"penalty", "plain", "learning_rate"} <= names
    assert not names & {"share", "extra_term", "whole", "dropout", "num_features"}
    # A term of the loss is left out of the program by a weight of 0.
    assert "extra_term" in fsjax.plan(build(extra_term=0.5), table(), num_features=2).hyper


def test_a_name_is_taken_once() -> None:
    register()

    def other() -> fsjax.Method:
        return annotated()

    other.__name__ = "annotated"
    with pytest.raises(ConfigError, match="'annotated' is taken"):
        fsjax.register(estimator="Other")(other)


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 5)), np.arange(30) % 2


def test_options_given_as_a_class_are_refused() -> None:
    decorate = fsjax.register(estimator="Annotated_", options=NetworkOptions)
    refuses(lambda: decorate(annotated), "give an instance, NetworkOptions()")
