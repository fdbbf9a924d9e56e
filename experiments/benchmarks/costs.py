"""Operations and bytes of a compiled step of every method, by XLA's cost analysis."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np

import fsjax
from experiments.benchmarks.timing import Case, case
from fsjax.engine.loop import init_state, train_step
from fsjax.engine.rows import as_batch
from fsjax.sparsity.summary import count_connections

#: Columns, classes, batch size, and number of selected columns.
COLUMNS, CLASSES, BATCH, K = 784, 10, 64, 50


def build(name: str) -> fsjax.Method:
    """Builds a method with its default arguments."""
    method = fsjax.methods.METHODS[name]
    return method(**({"num_features": K} if method.registration.takes_number else {}))


def step(name: str) -> dict[str, Any]:
    """Analyses one training step of a method with default arguments, for one seed.

    Returns:
      ``mflop``, millions of additions, products and comparisons; ``mib``, MiB read and written,
      including accesses to caches; ``weights``, the entries of all matrices, masked or not; and
      ``per_weight``, operations per weight and row of the batch, of which the papers count six.
      The body of a loop, such as a bisection, counts once.
    """
    method = build(name)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4 * BATCH, COLUMNS), np.float32)
    data = (X, rng.integers(0, CLASSES, len(X)))
    planned = fsjax.plan(
        method, data, num_features=K, batch_size=BATCH, valid_fraction=0.25, scaling="none"
    )
    state, _ = abstract_state(method, planned)
    cost = analysis(method, planned, BATCH)
    weights = count_connections(state.params)
    values = {"weights": weights, "mflop": cost["flops"] / 1e6}
    if weights:
        values["per_weight"] = cost["flops"] / (weights * BATCH)
    return values | {"mib": cost["bytes accessed"] / 2**20}


def abstract_state(method: fsjax.Method, planned: fsjax.Plan) -> tuple[Any, Any]:
    """The shapes of the state of one seed and of the training rows of a plan."""
    rows = as_batch(planned.spec.task, jax.device_put(planned.prepared.arrays.train))
    init = functools.partial(init_state, method, planned.spec)
    return jax.eval_shape(init, np.uint32(0), rows, np.ones(planned.spec.num_columns, bool)), rows


def analysis(method: fsjax.Method, planned: fsjax.Plan, batch_size: int) -> dict[str, float]:
    """Compiles one training step of one seed; returns XLA's ``flops`` and ``bytes accessed``."""
    state, rows = abstract_state(method, planned)
    batch = jax.eval_shape(lambda rows: rows.take(np.arange(batch_size)), rows)
    key = jax.eval_shape(lambda: jax.random.key(0))
    compiled = jax.jit(functools.partial(train_step, method)).lower(state, batch, key).compile()
    return compiled.cost_analysis() or {}


def cases() -> dict[str, Case]:
    """Returns the cases by name: all methods that train a network."""
    return {f"costs/{name}": case(step, name) for name in fsjax.methods.METHODS if build(name).loss}
