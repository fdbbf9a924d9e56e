"""AEFS: Han et al., "Autoencoder Inspired Unsupervised Feature Selection", ICASSP 2018."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Layers, NonNegative, Optimizer, Positive, Schedule
from fsjax.errors import ConfigError
from fsjax.method import About, Batch, Method, PyTree, Selection, TrainState
from fsjax.methods.shared.network import PLAIN, first_kernel, first_state
from fsjax.registry import register

#: Added under the square roots, because a norm has no gradient at 0.
SMOOTHING = 1e-12


@register(
    estimator="AEFS",
    paper="Han et al., ICASSP 2018",
    optimises="the reconstruction error plus the norms of the columns' weights",
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
    """An autoencoder with a group lasso penalty on the weights of its inputs.

    With encoder weights ``W1 (D, H)`` and decoder weights ``W2 (H, D)`` it minimises the squared
    error, averaged over rows and columns, plus
    ``alpha sum_j ||W1_j||_2 + beta / 2 (||W1||^2 + ||W2||^2)``.

    Args:
      penalty: alpha, at least 0.
      weight_decay: beta, at least 0.
      hidden: width of the single hidden layer, as a tuple.
      activation: activation of the hidden layer; the paper uses ``sigmoid``.
      rank_by: ``norm``, the norm of a column's row of ``W1``, as in the paper; or ``largest``: each
        hidden unit chooses the column with its largest absolute weight. The chosen columns come
        first, in the order of the units; all others follow by their norms.
      optimizer: ``adam``; or an Optax transformation, or a function from Spec to one.
      learning_rate: of Adam; or an Optax schedule. The authors' code takes 100 full-batch steps of
        L-BFGS instead.

    The defaults are those of the code with which the papers on CAE and WAST compare. The paper uses
    half the squared error, summed over the columns, so its alpha and beta are ours times D / 2; its
    code sets them to 0.3 and 0.03.

    Returns:
      The method. It needs no labels.
    """
    if len(hidden) != 1:
        raise ConfigError(
            f"hidden={hidden}; aefs has one hidden layer; give one width, for example (200,)"
        )
    body = replace(
        PLAIN,
        hidden=hidden,
        activation=activation,
        optimizer=optimizer,
        learning_rate=learning_rate,
    )

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict[str, Any]]:
        value, aux = body.train(params, state, batch, key)
        groups = jnp.sum(jnp.sqrt(jnp.sum(jnp.square(first_kernel(params)), axis=1) + SMOOTHING))
        decay = sum(jnp.sum(jnp.square(w)) for w in jax.tree.leaves(params) if w.ndim == 2)
        return value + penalty * groups + 0.5 * weight_decay * decay, aux

    return Method(
        About(tasks=("reconstruction",), sparse=True),
        init=lambda key, spec, data: first_state(body, key, spec),
        loss=loss,
        optimizer=body.tx,
        predict=lambda state, x: body.predict(state.params, state, x),
        select=lambda state: Selection(SCORES[rank_by](first_kernel(state.params))),
    )


def norms(w1: Array) -> Array:
    """``(D,)``: the norm of each column's weights ``(D, H)``."""
    return jnp.linalg.norm(w1, axis=1)


def first_choices(w1: Array) -> Array:
    """``(D,)`` scores that rank columns by which hidden unit chooses them first.

    A column that unit u of H is the first to choose scores H - u; columns that no unit chooses
    score below 1, in the order of their norms.
    """
    chosen = jnp.argmax(jnp.abs(w1), axis=0)
    places = len(chosen) - jnp.arange(len(chosen), dtype=w1.dtype)
    first = jnp.zeros(len(w1), w1.dtype).at[chosen].max(places)
    lengths = norms(w1)
    return jnp.where(first > 0, first, lengths / (1.0 + jnp.max(lengths)))


#: Functions from W1 to the scores of the columns, by the name in ``rank_by``.
SCORES = {"largest": first_choices, "norm": norms}
