"""SAND: columns with small gains drown in noise, so that K gains go to 1 and the others to 0.

Pad et al., "SAND: One-Shot Feature Selection with Additive Noise Distortion", ICML 2025.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.arguments import Count, NonNegative, Within
from fsjax.engine.kernels.noise import normal
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
from fsjax.methods.shared.network import PLAIN, NetworkOptions, keep_stats
from fsjax.registry import register
from fsjax.sparsity import largest
from fsjax.tables.groups import expand
from fsjax.tasks import SUPERVISED

#: Standard deviation of the differences between the first gains, so that ties have no order.
START = 1e-5


@register(
    estimator="SAND",
    paper="Pad et al., ICML 2025",
    optimises="the loss of a network whose inputs have noise where their gains are below 1",
    num_epochs=200,
    batch_size=64,
    training={"min_steps_per_epoch": 10},
    small={"num_features": 4, "hidden": (6,), "learning_rate": 0.01},
    options=replace(PLAIN, hidden=(100,)),
    without=("finetune_epochs", "finetune_learning_rate"),
)
def sand(
    num_features: Count = 50,
    *,
    sigma: NonNegative = 1.5,
    norm: Annotated[float, Within(least=1, most=32)] = 2.0,
    **options: Any,
) -> Method:
    """A network whose inputs are mixed with noise, less of it the more they help.

    In training the input ``x_d`` of each row is ``a_d x_d + (1 - a_d) z_d``, with normal noise
    ``z_d`` of standard deviation sigma, drawn for each row and column (equation 1). The gains a are
    trained with the weights, and ``sum_d |a_d|^alpha = K`` (equation 2), so that a column can gain
    only what others lose. The loss has no further term. Predictions use the columns of the K
    largest gains, times their gains and without noise.

    Gains start at their common value, ``(K / D)^(1 / alpha)``. As in the authors' code they are cut
    at 1 before they are scaled to the sum, and a step begins at the scaled gains. Constant columns
    have a gain of 0.

    Args:
      num_features: K.
      sigma: standard deviation of the noise, at least 0; inputs should have one of about 1.
      norm: alpha, 1 to 32; higher powers of gains underflow in float32.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`; the optimiser trains
        all parameters, including the gains.

    Returns:
      The method; the score of a column is its gain.
    """
    body = NetworkOptions(**options)

    def gains(params: PyTree, state: TrainState) -> Array:
        return scaled_gains(params["gains"], state.feature_mask, num_features, norm)

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_network, key_gains = jax.random.split(key)
        weights, stats = body.init(key_network, spec)
        first = 0.5 + START * jax.random.normal(key_gains, (spec.num_units,))
        return create_state(spec, {"weights": weights, "gains": first}, extra={"stats": stats})

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict[str, Any]]:
        key_noise, key_network = jax.random.split(key)
        scaled = gains(params, state)
        share = expand(scaled, state.spec.groups)
        # x~ = a x + (1 - a) z (eq. 1)
        noise = sigma * normal(key_noise, batch.x.shape)
        x = share * batch.x + (1.0 - share) * noise
        value, aux = body.train(params["weights"], state, batch._replace(x=x), key_network)
        return value, {**aux, "scaling": scaled - params["gains"]}

    def after_step(state: TrainState, grads: PyTree, aux: dict[str, Any], *_: Any) -> TrainState:
        moved = {**state.params, "gains": state.params["gains"] + aux["scaling"]}
        return keep_stats(state.replace(params=moved), grads, aux)

    def predict(state: TrainState, x: Array) -> Array:
        scaled = gains(state.params, state)
        kept = jnp.where(largest(scaled, num_features, state.feature_mask), scaled, 0.0)
        share = expand(kept, state.spec.groups)
        return body.predict(state.params["weights"], state, x, share)

    def monitor(state: TrainState) -> dict[str, Array]:
        return {"num_open": jnp.sum(gains(state.params, state) >= 0.5, dtype=jnp.float32)}

    return Method(
        About(tasks=SUPERVISED, num_features=num_features, takes_groups=True, sparse=True),
        init=init,
        loss=loss,
        optimizer=body.tx,
        predict=predict,
        select=lambda state: Selection(gains(state.params, state)),
        after_step=after_step,
        keep="last",
        monitor=monitor,
    )


def scaled_gains(values: Array, usable: Array, num_features: int, norm: Array | float) -> Array:
    """The gains a of trained values: cut at 1, then scaled to ``sum_d a_d^norm = K``.

    Args:
      values: ``(D,)``, of any sign.
      usable: ``(D,)`` bool; the gains of the others are 0.
      num_features: K. If fewer columns are usable, their number takes its place.
      norm: alpha, 1 to 32; higher powers of gains underflow in float32.
    """
    cut = jnp.where(usable, jnp.minimum(jnp.abs(values), 1.0), 0.0)
    total = jnp.sum(cut**norm)
    wanted = jnp.minimum(num_features, jnp.sum(usable))
    return cut * (wanted / jnp.maximum(total, 1e-12)) ** (1.0 / norm)
