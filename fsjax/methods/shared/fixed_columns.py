"""Methods that choose their K columns before training: filters, and networks on their columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jax.experimental.buffer_callback import buffer_callback
from jax.typing import ArrayLike

from fsjax import tasks
from fsjax.arguments import Optimizer, Schedule, Widths
from fsjax.engine.kernels.distinct_columns import distinct_top_k
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
from fsjax.nets import MLP, outputs_of

#: ``(key, spec, data) -> scores (D,)``, computed from all training rows.
Filter = Callable[[Array, Spec, TrainingRows], Array]

#: ``(x (N, D), y, weight (N,), *values) -> scores (D,)``, all of them NumPy arrays.
HostScores = Callable[..., np.ndarray]


#: ``(x (N, D), targets (N, C), weight (N,), *values) -> W (D, C)``, all of them NumPy arrays.
Solver = Callable[..., np.ndarray]


def filter_method(scores: Filter, only: tuple[str, ...] = tasks.TASKS, **about: Any) -> Method:
    """A method that scores columns and trains nothing.

    Args:
      scores: computes the scores. For NumPy code see :func:`on_host`.
      only: the tasks of the method; the first one is its default.
      **about: further fields of :class:`fsjax.About`.
    """

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        return create_state(spec, (), extra={"score": scores(key, spec, data)})

    return Method(
        About(tasks=only, **about), init=init, select=lambda state: Selection(state.extra["score"])
    )


def on_host(scores: HostScores, data: TrainingRows, *values: Array | float) -> Array:
    """Calls a NumPy function of the training rows from compiled code.

    Args:
      scores: the function. It receives the rows of positive weight (``x (N, D)`` and
        ``weight (N,)`` in float64, ``y`` unchanged) and ``values`` as Python floats.
      *values: float arguments of the method, which may be traced.

    Returns:
      ``(D,)`` float32.
    """

    def call(*arguments: ArrayLike) -> np.ndarray:
        x, y, weight, *numbers = map(np.asarray, arguments)
        rows = weight > 0
        results = scores(
            x[rows].astype(np.float64),
            y[rows],
            weight[rows].astype(np.float64),
            *map(float, numbers),
        )
        return np.asarray(results, np.float32)

    shape = jax.ShapeDtypeStruct((data.x.shape[1],), jnp.float32)

    def in_place(context: Any, result: Any, *arguments: Any) -> None:
        del context
        np.asarray(result)[...] = call(*arguments)

    def plain(*arguments: Array) -> Array:
        return jax.pure_callback(call, shape, *arguments, vmap_method="sequential")

    # A plain callback copies large arguments in the thread that waits for them if there is only one
    # CPU core, and never ends.
    return jax.lax.platform_dependent(
        *data,
        *map(jnp.asarray, values),
        cpu=buffer_callback(in_place, shape, vmap_method="sequential"),
        default=plain,
    )


def linear_filter(solve: Solver, *values: float, low: float) -> Method:
    """A filter that scores column d by the norm ``||W_d||`` in a linear model of all classes.

    Args:
      solve: computes W.
      *values: float arguments of the method, which may be traced, for ``solve``.
      low: the target of a class in the rows of other classes; in its own rows it is 1.
    """

    def score_rows(x: np.ndarray, y: np.ndarray, weight: np.ndarray, *values: float) -> np.ndarray:
        return np.linalg.norm(solve(x, y, weight, *values), axis=1)

    def scores(key: Array, spec: Spec, data: TrainingRows) -> Array:
        del key
        targets = low + (1.0 - low) * jax.nn.one_hot(data.y, spec.num_outputs)
        return on_host(score_rows, data._replace(y=targets), *values)

    return filter_method(scores, ("classification",))


def network_on_columns(
    scores: Filter,
    num_features: int,
    *,
    hidden: Widths,
    layer_norm: bool,
    optimizer: str | Optimizer,
    learning_rate: float | Schedule,
    only: tuple[str, ...] = tasks.TASKS,
) -> Method:
    """A method that trains the decoder of the concrete selectors on the K best columns.

    The scores do not change during training. Constant columns are used only if there are too few
    others. ``only`` are the tasks of the method; the first one is its default.
    """

    def network(spec: Spec) -> MLP:
        return MLP(spec.num_outputs, hidden, layer_norm=layer_norm)

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_score, key_network = jax.random.split(key)
        params = network(spec).init(key_network, jnp.zeros((1, num_features)))["params"]
        return create_state(spec, params, extra={"score": scores(key_score, spec, data)})

    def picks(state: TrainState) -> Array:
        return distinct_top_k(state.extra["score"], num_features, feature_mask=state.feature_mask)

    def apply(params: PyTree, state: TrainState, x: Array) -> Array:
        return outputs_of(network(state.spec), {"params": params}, x[:, picks(state)])

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        outputs = apply(params, state, batch.x)
        return state.spec.loss_of(outputs, batch.y, batch.weight), {}

    return Method(
        About(tasks=only, num_features=num_features, sparse=True),
        init=init,
        loss=loss,
        optimizer=optax.adam(learning_rate) if optimizer == "adam" else optimizer,
        predict=lambda state, x: apply(state.params, state, x),
        select=lambda state: Selection(state.extra["score"], picks(state)),
    )
