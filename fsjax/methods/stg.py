"""Stochastic gates (STG): Yamada et al., "Feature Selection using Stochastic Gates", ICML 2020."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm

from fsjax.errors import ConfigError, check_whole, nearest
from fsjax.groups import expand
from fsjax.method import Array, Batch, Method, PyTree, Spec, TrainState, create_state
from fsjax.methods.cached import cached_method
from fsjax.methods.network import network_options

PENALTIES = ("mean", "sum")


@cached_method
def stg(
    num_features: int | None = None,
    *,
    strength: float = 0.1,
    search: bool = True,
    sigma: float = 0.5,
    penalty: str = "mean",
    hidden: tuple[int, ...] = (400, 200),
    activation: str = "relu",
    optimizer: str = "adam",
    learning_rate: float = 1e-2,
    final_learning_rate: float | None = None,
    weight_decay: float = 1e-3,
    **options: Any,
) -> Method:
    """Stochastic gates: Gaussian gates, clipped to [0, 1], multiply the inputs.

    While training a gate is ``clip(mu + 0.5 + sigma eps, 0, 1)`` with one normal ``eps`` for the
    whole batch; afterwards the noise is left out. The penalty is the probability that gates are
    open, ``Phi((mu + 0.5) / sigma)``.

    Args:
      num_features: K; ``None`` leaves it to ``fit``.
      strength: lambda, above 0; the first one to be tried in a search.
      search: whether to look for the strength that keeps exactly K gates open, as BinMask's
        section 4.1 does for STG; otherwise one training, and the K largest mu.
      sigma: of the noise, above 0.
      penalty: ``mean`` over the columns, as the authors' code has it, or their ``sum``, as in the
        paper.
      hidden, activation: of the network; see below.
      optimizer, learning_rate, final_learning_rate, weight_decay: of all parameters, the gates'
        among them. The library of the authors has a rate of 1e-5 by default, with which no gate
        moves; its examples have 0.1.
      **options: further ones of :class:`fsjax.methods.network.NetworkOptions`.

    Returns:
      The method; its score of a column is mu.

    Raises:
      ConfigError: for an unknown option or a value outside its range.
    """
    if penalty not in PENALTIES:
        raise ConfigError(f"penalty={penalty!r}: {nearest(penalty, PENALTIES)}")
    if num_features is not None:
        check_whole("num_features", num_features)
    for name, value in (("strength", strength), ("sigma", sigma)):
        if not value > 0:
            raise ConfigError(f"{name}={value}; choose a value above 0")
    body = network_options(
        hidden=hidden,
        activation=activation,
        optimizer=optimizer,
        learning_rate=learning_rate,
        final_learning_rate=final_learning_rate,
        weight_decay=weight_decay,
        **options,
    )
    if body.finetune_epochs:
        raise ConfigError("finetune_epochs is for masked weights; use the retrain protocol instead")

    def init(key: Array, spec: Spec) -> TrainState:
        key_train, key_network, key_gates = jax.random.split(key, 3)
        weights, stats = body.init(key_network, spec)
        mu = 0.01 * jax.random.normal(key_gates, (spec.num_units,))
        return create_state(
            key_train,
            spec,
            {"weights": weights, "mu": mu},
            body.tx(spec),
            hyper={"strength": strength, "threshold": 0.0},
            extra={"stats": stats},
        )

    def loss(
        params: PyTree, state: TrainState, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Any]]:
        key_noise, key_network = jax.random.split(key)
        mu = params["mu"]
        noise = sigma * jax.random.normal(key_noise, mu.shape)
        share = expand(open_share(mu + noise), state.spec.groups)
        weights, x = body.gate(params["weights"], batch.x, share)
        value, _, stats = body.train(
            weights, state.extra["stats"], state.spec, batch._replace(x=x), key_network
        )
        probability = norm.cdf((mu + 0.5) / sigma)
        total = jnp.mean(probability) if penalty == "mean" else jnp.sum(probability)
        return value + state.hyper["strength"] * total, {"stats": stats}

    def after_step(state: TrainState, grads: PyTree, aux: dict[str, Any], *_: Any) -> TrainState:
        del grads
        return state.replace(extra={"stats": aux["stats"]})

    def gates(state: TrainState) -> Array:
        return open_share(state.params["mu"])

    def predict(state: TrainState, x: Array) -> Array:
        share = gates(state)
        share = jnp.where(share >= state.hyper["threshold"], share, 0.0)
        share = expand(share, state.spec.groups)
        weights, x = body.gate(state.params["weights"], x, share)
        return body.predict(weights, state.extra["stats"], state.spec, x)

    def monitor(state: TrainState) -> dict[str, Array]:
        return {"num_selected": jnp.sum((gates(state) >= 0.5).astype(jnp.float32))}

    return Method(
        name="stg",
        init=init,
        loss=loss,
        optimizer=body.tx,
        predict=predict,
        score=lambda state: state.params["mu"],
        after_step=after_step,
        monitor=monitor,
        gates=gates,
        search_from=strength if search else None,
        num_features=num_features,
        best_by="last",
        takes_groups=True,
        tasks=("classification", "regression"),
    )


def open_share(mu: Array) -> Array:
    """How far gates are open, in [0, 1], at ``mu`` (with or without noise)."""
    return jnp.clip(mu + 0.5, 0.0, 1.0)
