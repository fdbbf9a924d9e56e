"""DUFS: Lindenbaum et al., "Differentiable Unsupervised Feature Selection based on a Gated
Laplacian", NeurIPS 2021."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax
from jax import Array
from jax.scipy.stats import norm

from fsjax.arguments import Count, NonNegative, Optimizer, Positive, Schedule
from fsjax.method import (
    About,
    Batch,
    Method,
    PyTree,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
)
from fsjax.methods.shared.network import open_share
from fsjax.registry import register
from fsjax.tables.groups import expand

#: Added to the share of open gates, by which the parameter-free loss divides.
MIN_SHARE = 1e-6

#: Kernel widths below this are replaced by 1.
MIN_WIDTH = 1e-8


@register(
    estimator="DUFS",
    paper="Lindenbaum et al., NeurIPS 2021",
    optimises="the smoothness of gated rows along their own graph, and the share of open gates",
    num_epochs=100,
    batch_size=128,
    scaling="scalar",
    small={"learning_rate": 10.0},
)
def dufs(
    *,
    loss: Literal["ratio", "difference"] = "ratio",
    strength: NonNegative = 0.1,
    sigma: Positive = 0.5,
    noise: Literal["row", "batch"] = "row",
    num_neighbors: Count = 2,
    width: Positive = 5.0,
    walk_steps: Count = 2,
    optimizer: Literal["sgd"] | Optimizer = "sgd",
    learning_rate: Positive | Schedule = 1.0,
) -> Method:
    """Stochastic gates that keep the columns which vary slowly along a graph of the rows.

    The rows of a batch are multiplied by the gates of :func:`fsjax.methods.stg`. The graph is that
    of the gated rows, so that closed columns do not blur it. With ``Z`` the gated rows ``(B, D)``,
    ``P`` the random walk on their graph, ``p`` the mean probability that a gate is open and
    ``s = tr(Z' P^t Z) / (B D)``, the loss is ``-s / p`` or ``-s + lambda p``.

    Args:
      loss: ``ratio``, the paper's parameter-free loss (eq. 4), or ``difference`` (eq. 3). Both are
        divided by D, as in the authors' code.
      strength: lambda of ``difference``, at least 0.
      sigma: standard deviation of the gates' noise, above 0.
      noise: ``row`` draws noise for each row, as in the authors' code; ``batch`` once for a batch.
      num_neighbors: which neighbour of a row (itself being the first) gives the unit of ``width``:
        the median over the rows of the squared distance to it.
      width: width of the kernel ``exp(-d^2 / width)`` in that unit, above 0. The defaults of both
        are those of the authors' example.
      walk_steps: t, at least 1; 2 in the authors' code, 1 in the paper.
      optimizer: ``sgd``; or an Optax transformation, or a function from Spec to one.
      learning_rate: of plain gradient descent; or an Optax schedule.

    Returns:
      The method; the score of a column is the mean mu of its gate. It needs no labels, and predicts
      the rows multiplied by the gates.
    """

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        del data
        return create_state(spec, 0.01 * jax.random.truncated_normal(key, -2, 2, (spec.num_units,)))

    def objective(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict[str, Any]]:
        shape = (len(batch.x), params.size) if noise == "row" else params.shape
        gates = open_share(params + sigma * jax.random.normal(key, shape))
        rows = batch.x * expand(gates, state.spec.groups)
        smooth = smoothness(rows, batch.weight, num_neighbors, width, walk_steps)
        probability = jnp.mean(norm.cdf((params + 0.5) / sigma))
        if loss == "ratio":
            return -smooth / (probability + MIN_SHARE), {}
        return -smooth + strength * probability, {}

    def gates(state: TrainState) -> Array:
        return open_share(state.params)

    return Method(
        About(tasks=("reconstruction",), takes_groups=True, gates=True, sparse=True),
        init=init,
        loss=objective,
        optimizer=optax.sgd(learning_rate) if optimizer == "sgd" else optimizer,
        predict=lambda state, x: x * expand(gates(state), state.spec.groups),
        select=lambda state: Selection(state.params, gates=gates(state)),
        keep="last",
        monitor=lambda state: {"num_open": jnp.sum((gates(state) > 0).astype(jnp.float32))},
    )


def smoothness(
    rows: Array, weight: Array, neighbors: int, width: Array | float, steps: int
) -> Array:
    """``tr(Z' P^steps Z) / (B D)``, larger where columns vary slowly along the graph of the rows.

    Args:
      rows: Z, ``(B, D)``.
      weight: ``(B,)``; rows of weight 0 are not in the graph.
      neighbors, width, steps: ``num_neighbors``, ``width`` and ``walk_steps`` of :func:`dufs`.
    """
    norms = jnp.sum(jnp.square(rows), axis=1)
    distances = jnp.maximum(norms[:, None] - 2.0 * rows @ rows.T + norms, 0.0)
    # Exactly 0, so that every row of positive weight has a neighbour, however narrow the kernel.
    distances = jnp.where(jnp.eye(len(rows), dtype=bool), 0.0, distances)
    unit = median_distance(distances, weight, neighbors)
    kernel = jnp.exp(-distances / (width * unit)) * weight
    walk = kernel / jnp.where(weight > 0, jnp.sum(kernel, axis=1), 1.0)[:, None]
    smoothed = rows
    for _ in range(steps):
        smoothed = walk @ smoothed
    return weight @ jnp.mean(smoothed * rows, axis=1) / jnp.sum(weight)


def median_distance(distances: Array, weight: Array, neighbors: int) -> Array:
    """Median over the rows of the squared distance to their n-th neighbour.

    Args:
      distances: ``(B, B)`` squared distances; a row is its own first neighbour.
      weight: ``(B,)``; rows of weight 0 do not count.
      neighbors: n, at least 1.
    """
    counts, last = weight > 0, min(neighbors, len(weight)) - 1
    to_neighbor = jnp.sort(jnp.where(counts, distances, jnp.inf), axis=1)[:, last]
    ordered = jnp.sort(jnp.where(counts, to_neighbor, jnp.inf))
    count = jnp.sum(counts)
    unit = 0.5 * (ordered[(count - 1) // 2] + ordered[count // 2])
    return jnp.where(unit < MIN_WIDTH, 1.0, unit)
