"""Stochastic gates (STG): Yamada et al., "Feature Selection using Stochastic Gates", ICML 2020."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.stats import norm

from fsjax.arguments import Count, Positive
from fsjax.method import (
    About,
    Batch,
    Method,
    Search,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
)
from fsjax.methods.shared.network import PLAIN, NetworkOptions, close, keep_stats, open_share
from fsjax.registry import register
from fsjax.tables.groups import expand
from fsjax.tasks import TASKS

#: The smallest gate of an open column, if no search has set a threshold.
HALF = 0.5


@register(
    estimator="STG",
    paper="Yamada et al., ICML 2020",
    optimises="the loss plus the probability that noisy gates are open",
    num_epochs=100,
    batch_size=128,
    training={"min_steps_per_epoch": 10},
    small={"hidden": (6,)},
    options=replace(PLAIN, learning_rate=1e-2, weight_decay=1e-3),
    without=("finetune_epochs", "finetune_learning_rate"),
)
def stg(
    num_features: Count | None = None,
    *,
    strength: Positive = 0.1,
    search: bool = True,
    sigma: Positive = 0.5,
    penalty: Literal["mean", "sum"] = "mean",
    **options: Any,
) -> Method:
    """Stochastic gates: the inputs of a network are multiplied by noisy gates in [0, 1].

    During training a gate is ``clip(mu + 0.5 + sigma eps, 0, 1)``, with one draw of standard normal
    ``eps`` per column for the whole batch; predictions use no noise, and only gates of at least one
    half or, after a search, the K that it keeps open. The loss is
    ``L + lambda mean_d Phi((mu_d + 0.5) / sigma)``, which penalises the probability that a gate is
    open.

    Args:
      num_features: K; ``None`` leaves it to ``fit``.
      strength: lambda, above 0; in a search, the first one that is tried.
      search: whether to search for the lambda that keeps exactly K gates open, as BinMask's section
        4.1 does for STG. Otherwise there is one training run, and the columns with the K largest
        mu are selected.
      sigma: standard deviation of the noise, above 0.
      penalty: the penalty's ``mean`` over the columns, as in the authors' code, or ``sum``, as in
        the paper.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`; the optimiser trains
        all parameters, including the gates. The authors' library defaults to a learning rate of
        1e-5, with which no gate moves; its examples use 0.1.

    Returns:
      The method; the score of a column is mu.
    """
    body = NetworkOptions(**options)

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_network, key_gates = jax.random.split(key)
        weights, stats = body.init(key_network, spec)
        mu = 0.01 * jax.random.normal(key_gates, (spec.num_units,))
        extra = {"stats": stats, "threshold": jnp.asarray(-1.0)}
        return create_state(spec, {"weights": weights, "mu": mu}, extra=extra)

    def loss(
        params: dict, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        key_noise, key_network = jax.random.split(key)
        mu = params["mu"]
        noise = sigma * jax.random.normal(key_noise, mu.shape)
        share = expand(open_share(mu + noise), state.spec.groups)
        value, aux = body.train(params["weights"], state, batch, key_network, share)
        probability = norm.cdf((mu + 0.5) / sigma)
        total = jnp.mean(probability) if penalty == "mean" else jnp.sum(probability)
        return value + strength * total, aux

    def gates(state: TrainState, lowest: Array) -> Array:
        share = open_share(state.params["mu"])
        return jnp.where(share >= lowest, share, 0.0)

    def predict(state: TrainState, x: Array) -> Array:
        threshold = state.extra["threshold"]
        open_gates = gates(state, jnp.where(threshold < 0, HALF, threshold))
        share = expand(open_gates, state.spec.groups)
        return body.predict(state.params["weights"], state, x, share)

    def select(state: TrainState) -> Selection:
        return Selection(state.params["mu"], gates=gates(state, state.extra["threshold"]))

    def monitor(state: TrainState) -> dict[str, Array]:
        share = open_share(state.params["mu"])
        return {"num_selected": jnp.sum(share >= HALF, dtype=jnp.float32)}

    return Method(
        About(
            tasks=TASKS,
            num_features=num_features,
            takes_groups=True,
            gates=True,
            sparse=True,
            merges_copies=body.merges_copies,
        ),
        init=init,
        loss=loss,
        optimizer=body.tx,
        predict=predict,
        select=select,
        after_step=keep_stats,
        keep="last",
        monitor=monitor,
        search=Search("strength", close) if search else None,
    )
