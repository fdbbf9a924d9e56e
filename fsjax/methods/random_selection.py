"""Random selection: the control that any selector has to beat."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from fsjax import tasks
from fsjax.errors import check_whole
from fsjax.method import Array, Batch, Method, PyTree, Spec, TrainState, create_state
from fsjax.methods.cached import cached_method
from fsjax.nets import MLP
from fsjax.optimizers import adam
from fsjax.selection import distinct_top_k


@cached_method
def random_selection(
    num_features: int = 50,
    *,
    hidden: Sequence[int] = (200,),
    layer_norm: bool = True,
    learning_rate: float = 1e-3,
) -> Method:
    """The decoder of the concrete selectors on K distinct columns drawn at random for each seed.

    Args:
      num_features: K. Constant columns are not drawn while there are others.
      hidden: widths of the network's hidden layers, as a tuple.
      layer_norm: LayerNorm before each activation.
      learning_rate: of Adam.

    Returns:
      The method; its scores are the random numbers that were drawn.

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
        key_train, key_draw, key_network = jax.random.split(key, 3)
        params = network(spec).init(key_network, jnp.zeros((1, num_features)))["params"]
        extra = {"score": jax.random.uniform(key_draw, (spec.num_features,))}
        return create_state(key_train, spec, params, optimizer, extra=extra)

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
        name="random_selection",
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=lambda state, x: apply(state.params, state, x),
        score=score,
        picks=picks,
        num_features=num_features,
    )
