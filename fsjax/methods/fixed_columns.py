"""The shared body of the methods that train a network on K columns chosen before training."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from fsjax import tasks
from fsjax.errors import check_whole
from fsjax.method import Array, Batch, Method, PyTree, Spec, TrainState, create_state
from fsjax.nets import MLP
from fsjax.optimizers import adam
from fsjax.selection import distinct_top_k


def fixed_columns(
    name: str,
    num_features: int,
    *,
    hidden: Sequence[int],
    layer_norm: bool,
    learning_rate: float,
    first_score: Callable[[Array, int], Array],
    filter_score: Callable[[Spec, Batch], Array] | None = None,
    only: tuple[str, ...] = tasks.TASKS,
) -> Method:
    """The decoder of the concrete selectors on the K columns with the highest scores.

    Args:
      name: the name of the method.
      num_features: K. Constant columns are not used while there are others.
      hidden: widths of the network's hidden layers.
      layer_norm: LayerNorm before each activation.
      learning_rate: of Adam.
      first_score: ``(key, D) -> scores (D,)`` at the initialisation.
      filter_score: ``(spec, data) -> scores (D,)`` from all training rows, before the first step;
        ``None`` keeps the first ones.
      only: the tasks that the method is for; the first is its default.

    Returns:
      The method; its scores, ``extra["score"]``, stay as they are during training.

    Raises:
      ConfigError: for a value outside its range.
    """
    num_features = check_whole("num_features", num_features)
    for width in hidden:
        check_whole("a width of hidden", width)
    optimizer = adam(learning_rate)

    def network(spec: Spec) -> MLP:
        return MLP(spec.num_outputs, tuple(hidden), layer_norm=layer_norm)

    def init(key: Array, spec: Spec) -> TrainState:
        key_train, key_score, key_network = jax.random.split(key, 3)
        params = network(spec).init(key_network, jnp.zeros((1, num_features)))["params"]
        extra = {"score": first_score(key_score, spec.num_features)}
        return create_state(key_train, spec, params, optimizer, extra=extra)

    def start(state: TrainState, data: Batch, key: Array) -> TrainState:
        del key
        return state.replace(extra={"score": filter_score(state.spec, data)})

    def score(state: TrainState) -> Array:
        return state.extra["score"]

    def picks(state: TrainState) -> Array:
        return distinct_top_k(score(state), num_features, feature_mask=state.feature_mask)

    def apply(params: PyTree, state: TrainState, x: Array) -> Array:
        return network(state.spec).apply({"params": params}, x[:, picks(state)])

    def loss(
        params: PyTree, state: TrainState, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        del key
        outputs = apply(params, state, batch.x)
        return tasks.loss(state.spec.task, outputs, batch.y, batch.weight), {}

    return Method(
        name=name,
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=lambda state, x: apply(state.params, state, x),
        score=score,
        start=None if filter_score is None else start,
        picks=picks,
        num_features=num_features,
        tasks=only,
    )
