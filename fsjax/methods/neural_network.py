"""A plain network on all columns.

It is the classifier of the retrain protocol, and has the regularisers of BinMask's section 4.3: L1,
weight decay and dropout. With ``hidden=()`` it is logistic regression.
"""

from __future__ import annotations

from typing import Any

from fsjax.method import About, Method, Selection
from fsjax.methods.shared.attribution import ScoreName, scored_by
from fsjax.methods.shared.network import TRAINING, NetworkOptions, first_state, keep_stats
from fsjax.registry import register
from fsjax.tasks import SUPERVISED


@register(
    estimator="NeuralNetwork",
    paper="control",
    optimises="the loss of an ordinary network, with L1, weight decay or dropout",
    num_epochs=100,
    small={"hidden": (6, 5), "batch_norm": True, "dropout": 0.1, "l1": 1e-3},
    options=NetworkOptions(),
    **TRAINING,
)
def neural_network(*, rank_by: ScoreName = "strength", **options: Any) -> Method:
    """A plain network on all columns, optionally with L1, weight decay or dropout.

    Args:
      rank_by: score of a column: ``strength``, the sum of the absolute weights of its input neuron;
        or by the derivatives of the outputs, see
        :func:`fsjax.methods.shared.attribution.scored_by`.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`.

    Returns:
      The method, for supervised tasks. In convolutional networks the strength of every column is
      0, so rank by attribution.
    """
    body = NetworkOptions(**options)
    method = Method(
        About(tasks=SUPERVISED, sparse=True, merges_copies=body.merges_copies),
        init=lambda key, spec, data: first_state(body, key, spec),
        loss=body.train,
        optimizer=body.tx,
        predict=lambda state, x: body.predict(state.params, state, x),
        select=lambda state: Selection(body.strength(state.params, state.spec)),
        after_step=keep_stats,
    )
    return scored_by(rank_by, method)
