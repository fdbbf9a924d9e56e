"""A plain network: the classifier of the retrain protocol, and the regularisers of BinMask's
section 4.3 (L1, weight decay, dropout; logistic regression with ``hidden=()``)."""

from __future__ import annotations

from typing import Any

import jax

from fsjax.method import Array, Batch, Method, PyTree, Spec, TrainState, create_state
from fsjax.methods.cached import cached_method
from fsjax.methods.network import network_options


@cached_method
def neural_network(**options: Any) -> Method:
    """An ordinary network on all columns.

    Args:
      **options: those of :class:`fsjax.methods.network.NetworkOptions`.

    Returns:
      The method, for classification and regression. The score of a column is the sum of the
      absolute weights of its input neuron; convolutional networks score nothing (zeros).

    Raises:
      ConfigError: for an unknown option or a value outside its range.
    """
    body = network_options(**options)

    def init(key: Array, spec: Spec) -> TrainState:
        key_train, key_network = jax.random.split(key)
        weights, stats = body.init(key_network, spec)
        return create_state(key_train, spec, weights, body.tx(spec), extra={"stats": stats})

    def loss(
        params: PyTree, state: TrainState, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Any]]:
        value, _, stats = body.train(params, state.extra["stats"], state.spec, batch, key)
        return value, {"stats": stats}

    def after_step(state: TrainState, grads: PyTree, aux: dict[str, Any], *_: Any) -> TrainState:
        del grads
        return state.replace(extra={"stats": aux["stats"]})

    def predict(state: TrainState, x: Array) -> Array:
        return body.predict(state.params, state.extra["stats"], state.spec, x)

    return Method(
        name="neural_network",
        init=init,
        loss=loss,
        optimizer=body.tx,
        predict=predict,
        score=lambda state: body.strength(state.params, state.spec.num_features),
        after_step=after_step,
        tasks=("classification", "regression"),
    )
