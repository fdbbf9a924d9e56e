"""Fingerprints, which distinguish methods that were made by hand."""

from __future__ import annotations

import dataclasses
import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from engine_helpers import linear_method

import fsjax
from fsjax.engine.fingerprint import fingerprint
from fsjax.method import Method

SCALE = 1.0

falling = functools.partial(optax.cosine_decay_schedule, 0.1)


@dataclasses.dataclass(frozen=True)
class Body:
    """An object that a method may close over."""

    width: int

    def loss(self, params, state, batch, key):
        return self.width * jnp.sum(params["kernel"]), {}


def scaled(params, state, batch, key):
    return SCALE * jnp.sum(params["kernel"]), {}


def helped(params, state, batch, key):
    return scaled(params, state, batch, key)


def weighted(params, state, batch, key, *, weight):
    return weight * jnp.sum(params["kernel"]), {}


def closing_over(value) -> Callable:
    def loss(params, state, batch, key):
        return jnp.sum(params["kernel"] * value.width if hasattr(value, "width") else 1.0), {}

    return loss


def with_loss(loss: Callable) -> Method:
    return linear_method()._replace(loss=loss)


PAIRS = {
    "a number in a closure": (linear_method(1.0), linear_method(2.0)),
    "an array in a closure": tuple(with_loss(closing_over(np.full(3, v))) for v in (1.0, 2.0)),
    "a dataclass in a closure": tuple(with_loss(closing_over(Body(w))) for w in (1, 2)),
    "a bound method": tuple(with_loss(Body(w).loss) for w in (1, 2)),
    "a partial": tuple(
        with_loss(functools.partial(weighted, weight=weight)) for weight in (1.0, 2.0)
    ),
    "the rate of an optimiser": tuple(
        linear_method(optimizer=optax.sgd(rate)) for rate in (0.1, 0.2)
    ),
    "the code": (with_loss(scaled), with_loss(helped)),
    "a field": (linear_method(), linear_method(keep="last")),
    "a field of a registered one": tuple(
        fsjax.methods.dense(hidden=(4,))._replace(keep=keep) for keep in ("accuracy", "last")
    ),
    "settings": tuple(fsjax.methods.dense(hidden=(4,), l2=l2) for l2 in (0.1, 0.2)),
    "a schedule": tuple(fsjax.methods.dense(learning_rate=falling(n)) for n in (5, 6)),
    "the optimiser": tuple(fsjax.methods.dense(optimizer=optax.adam(r)) for r in (0.1, 0.2)),
}


@pytest.mark.parametrize("what", PAIRS)
def test_methods_that_differ_are_told_apart(what: str) -> None:
    one, other = map(fingerprint, PAIRS[what])
    assert one != other


@pytest.mark.parametrize("loss", [scaled, helped], ids=["itself", "through a function"])
def test_a_constant_of_the_module_counts(loss: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(with_loss(loss))
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert fingerprint(with_loss(loss)) != before


def test_a_method_made_again_is_the_same() -> None:
    assert fingerprint(linear_method(2.0)) == fingerprint(linear_method(2.0))
    assert fingerprint(with_loss(Body(3).loss)) == fingerprint(with_loss(Body(3).loss))


@pytest.mark.slow
def test_another_process_finds_the_same() -> None:
    script = (
        "from engine_helpers import linear_method; import fsjax;"
        "from fsjax.engine.fingerprint import fingerprint;"
        "print(fingerprint(linear_method(2.0)));"
        "print(fingerprint(fsjax.methods.dense(hidden=(4,))._replace(keep='last')));"
        "import optax; rate = optax.cosine_decay_schedule(0.1, 5);"
        "print(fingerprint(fsjax.methods.dense(learning_rate=rate)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    changed = fsjax.methods.dense(hidden=(4,))._replace(keep="last")
    scheduled = fsjax.methods.dense(learning_rate=falling(5))
    wanted = [fingerprint(one) for one in (linear_method(2.0), changed, scheduled)]
    assert ran.stdout.splitlines() == wanted
