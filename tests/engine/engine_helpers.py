"""Methods and data that the tests of the engine share."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import fsjax
from fsjax.data import Split
from fsjax.engine.check_run import to_dataset
from fsjax.engine.options import DataOptions
from fsjax.engine.prepare import Prepared, prepare
from fsjax.engine.result import FitResult
from fsjax.method import About, Batch, Method, Selection, Spec, TrainState, create_state
from fsjax.storage.checkpoints import Checkpoints

STATIC = fsjax.methods.static_sparse(hidden=(8,), epsilon=2, learning_rate=0.1)


def counting_method() -> Method:
    """A method that records the engine's calls: its parameters follow a fixed path."""

    def init(key: jax.Array, spec: Spec, data: Batch) -> TrainState:
        params = {"bias": jnp.zeros(spec.num_outputs)}
        extra = {"rows": jnp.zeros(spec.num_rows), "steps": jnp.zeros(())}
        return create_state(spec, params, extra=extra)

    def after_step(state, grads, aux, batch: Batch, key) -> TrainState:
        # The first column of X holds the row's number.
        rows = batch.x[:, 0].astype(jnp.int32)
        seen = state.extra["rows"].at[rows].add(batch.weight)
        return state.replace(extra={"rows": seen, "steps": state.extra["steps"] + 1})

    return Method(
        About("counting", num_features=2),
        init=init,
        select=lambda s: Selection(jnp.arange(s.spec.num_columns, dtype=jnp.float32)),
        loss=lambda p, s, b, k: (jnp.sum(p["bias"]) + b.weight.sum() * 0.0, {}),
        optimizer=optax.sgd(0.0),
        predict=lambda s, x: jnp.zeros((x.shape[0], s.spec.num_outputs)),
        after_step=after_step,
    )


def linear_method(slope: float = 1.0, **changes: Any) -> Method:
    """A linear model made by hand; the closure of its loss holds ``slope``."""

    def init(key: jax.Array, spec: Spec, data: Batch) -> TrainState:
        kernel = 0.1 * jax.random.normal(key, (spec.num_columns, spec.num_outputs))
        return create_state(spec, {"kernel": kernel}, extra={"seen": jnp.zeros(spec.num_columns)})

    def predict(state: TrainState, x: jax.Array) -> jax.Array:
        return x @ state.params["kernel"]

    def loss(params, state: TrainState, batch: Batch, key) -> tuple[jax.Array, dict]:
        outputs = predict(state.replace(params=params), batch.x)
        return slope * fsjax.tasks.loss(state.spec.task, outputs, batch.y, batch.weight), {}

    method = Method(
        About("linear", num_features=2),
        init=init,
        select=lambda s: Selection(jnp.sum(jnp.abs(s.params["kernel"]), axis=1)),
        loss=loss,
        optimizer=optax.sgd(0.1),
        predict=predict,
    )
    return method._replace(**changes)


def fit_saving(
    method: Method, data: Any, folder: Path, checkpoint_every: int = 20, **options: Any
) -> FitResult:
    """Fits a method made by hand with checkpoints, which a user's run of it would not write."""
    planned = fsjax.plan(method, data, checkpoint_every=checkpoint_every, **options)
    return dataclasses.replace(planned, checkpoint_dir=folder).fit()[0]


def prepared_by(data: Any, split: str | Split = "random", **changes: Any) -> Prepared:
    given = {
        "split": split,
        "split_per_seed": False,
        "scaling": "paper",
        "valid_fraction": None,
        "noise_std": 0.0,
        "sample_weight": None,
        "record_test": False,
        "columns": None,
        "zero_others": False,
    }
    seeds = changes.pop("seeds", (0,))
    options = DataOptions(**given | changes)
    return prepare(to_dataset(data, "classification"), "classification", seeds, options)


@contextlib.contextmanager
def killed_after_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A context in which a run dies after it has saved its first checkpoint."""
    saved = Checkpoints.save

    def save_then_die(self: Checkpoints, *args: Any) -> None:
        saved(self, *args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_then_die)
        with pytest.raises(KeyboardInterrupt):
            yield


def real(rows: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The rows without padding."""
    return rows[weight > 0]
