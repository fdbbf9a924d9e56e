"""A plain network: the classifier of the retrain protocol, and the regularisers of BinMask's
section 4.3 (L1, weight decay, dropout; logistic regression with ``hidden=()``)."""

from __future__ import annotations

from typing import Any

from fsjax.method import (
    About,
    Array,
    Batch,
    Method,
    PyTree,
    Selection,
    Spec,
    TrainState,
    create_state,
)
from fsjax.methods.shared.attribution import Score, scored_by
from fsjax.methods.shared.network import TRAINING, NetworkOptions
from fsjax.registry import register


@register(
    estimator="NeuralNetwork",
    paper="control",
    optimises="the loss of an ordinary network, with L1, weight decay or dropout",
    num_epochs=100,
    small={"hidden": (6, 5), "batch_norm": True, "dropout": 0.1, "l1": 1e-3},
    options=NetworkOptions,
    **TRAINING,
)
def neural_network(*, score: Score = "strength", **options: Any) -> Method:
    """An ordinary network on all columns.

    Args:
      score: of a column: ``strength``, the sum of the absolute weights of its input neuron, or by
        the derivatives of the outputs; see :func:`fsjax.methods.shared.attribution.scored_by`.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`.

    Returns:
      The method, for classification and regression. The strength of the columns of convolutional
      networks is 0; their attribution is not.

    Raises:
      ConfigError: for an unknown option or a value outside its range.
    """
    body = NetworkOptions(**options)

    def init(key: Array, spec: Spec, data: Batch) -> TrainState:
        del data
        weights, stats = body.init(key, spec)
        return create_state(spec, weights, extra={"stats": stats})

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

    def select(state: TrainState) -> Selection:
        return Selection(body.strength(state.params, state.spec.num_columns))

    method = Method(
        About(tasks=("classification", "regression")),
        init=init,
        loss=loss,
        optimizer=body.tx,
        predict=predict,
        select=select,
        after_step=after_step,
    )
    return scored_by(score, method)
