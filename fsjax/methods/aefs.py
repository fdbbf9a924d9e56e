"""AEFS: Han et al., "Autoencoder Inspired Unsupervised Feature Selection", ICASSP 2018."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Layers, NonNegative, Optimizer, Positive, Schedule
from fsjax.errors import ConfigError
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
from fsjax.methods.shared.network import FIRST_LAYER, PLAIN
from fsjax.registry import register

#: Under the roots, as a norm has no gradient where it is 0.
SMOOTHING = 1e-12


@register(
    estimator="AEFS",
    paper="Han et al., ICASSP 2018",
    optimises="the reconstruction plus the norms of the columns' weights",
    num_epochs=100,
    batch_size=256,
    scaling="scalar",
    small={"hidden": (6,), "learning_rate": 1e-2},
)
def aefs(
    *,
    penalty: NonNegative = 1e-3,
    weight_decay: NonNegative = 1e-3,
    hidden: Layers = (200,),
    activation: Literal["leaky_relu", "sigmoid"] = "leaky_relu",
    rank_by: Literal["largest", "norm"] = "largest",
    optimizer: Literal["adam"] | Optimizer = "adam",
    learning_rate: Positive | Schedule = 1e-3,
) -> Method:
    """An autoencoder with a group lasso on the weights of its inputs.

    With weights ``W1 (D, H)`` and ``W2 (H, D)`` it minimises the mean squared error, over rows and
    columns, plus ``alpha sum_j ||W1_j||_2 + beta / 2 (||W1||^2 + ||W2||^2)``.

    Args:
      penalty: alpha, at least 0.
      weight_decay: beta, at least 0.
      hidden: width of the one hidden layer, as a tuple.
      activation: of the hidden layer; the paper has ``sigmoid``.
      rank_by: ``norm`` of a row of ``W1``, as in the paper, or ``largest``: each hidden unit
        chooses the column of its largest absolute weight. These come first, in the order of the
        units; all others follow by their norms.
      optimizer: ``adam``; or an Optax transformation, or a function of the Spec that gives one.
      learning_rate: of Adam; or an Optax schedule. The authors' code has 100 full steps of L-BFGS.

    The defaults are those of the code with which the papers on CAE and WAST compare. The paper has
    half the squared error, summed over the columns: its alpha and beta are ours times D / 2. Its
    code has 0.3 and 0.03 there.

    Returns:
      The method. It needs no labels.

    Raises:
      ConfigError: for a value outside its range.
    """
    if len(hidden) != 1:
        raise ConfigError(f"hidden={hidden}; aefs has one hidden layer, such as (200,)")
    body = replace(
        PLAIN,
        hidden=hidden,
        activation=activation,
        optimizer=optimizer,
        learning_rate=learning_rate,
    )

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        del data
        weights, stats = body.init(key, spec)
        return create_state(spec, weights, extra={"stats": stats})

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict[str, Any]]:
        value, aux = body.train(params, state, batch, key)
        groups = jnp.sum(jnp.sqrt(jnp.sum(jnp.square(encoder(params)), axis=1) + SMOOTHING))
        decay = sum(jnp.sum(jnp.square(w)) for w in jax.tree.leaves(params) if w.ndim == 2)
        return value + penalty * groups + 0.5 * weight_decay * decay, aux

    return Method(
        About(tasks=("reconstruction",), sparse=True),
        init=init,
        loss=loss,
        optimizer=body.tx,
        predict=lambda state, x: body.predict(state.params, state, x),
        select=lambda state: Selection(SCORES[rank_by](encoder(state.params))),
    )


def encoder(params: PyTree) -> Array:
    """W1, ``(D, H)``."""
    return params[FIRST_LAYER]["Dense_0"]["kernel"]


def norms(w1: Array) -> Array:
    """``(D,)``: the norm of each column's weights ``(D, H)``."""
    return jnp.linalg.norm(w1, axis=1)


def largest(w1: Array) -> Array:
    """``(D,)`` scores by which the hidden units choose in turn.

    A column that unit u of H is the first to choose has H - u; the others have less than 1, in the
    order of their norms.
    """
    chosen = jnp.argmax(jnp.abs(w1), axis=0)
    turns = len(chosen) - jnp.arange(len(chosen), dtype=w1.dtype)
    first = jnp.zeros(len(w1), w1.dtype).at[chosen].max(turns)
    of_norms = norms(w1)
    return jnp.where(first > 0, first, of_norms / (1.0 + jnp.max(of_norms)))


#: Scores of the columns by name, from W1.
SCORES = {"largest": largest, "norm": norms}
