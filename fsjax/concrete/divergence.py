"""Generalised Jensen-Shannon divergence of the selector's distributions (IP-CAE, eq. 10, 11)."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array


def gjsd(logits: Array) -> Array:
    """GJSD of the K categorical distributions ``softmax(logits[k])`` with weights 1/K (eq. 10).

    From logits ``(K, D)``, unnormalised, finite, to a scalar in ``[0, log K]`` nats: 0 where all
    rows agree, log K where no two overlap. Maximising it pushes the selectors to distinct features
    (eq. 11 subtracts lambda times it).
    """
    log_p = jax.nn.log_softmax(logits, axis=-1)
    log_mixture = jax.nn.logsumexp(log_p, axis=0) - math.log(logits.shape[0])
    return jnp.mean(jnp.sum(jnp.exp(log_p) * (log_p - log_mixture), axis=-1))
