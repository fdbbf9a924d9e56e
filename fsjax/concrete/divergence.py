"""Generalised Jensen-Shannon divergence of the selectors' distributions (IP-CAE, eq. 10, 11)."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array


def gjsd(logits: Array) -> Array:
    """GJSD of the K categorical distributions ``softmax(logits[k])`` with weights 1/K (eq. 10).

    Maximising it pushes the selectors to distinct features; eq. 11 subtracts lambda times it from
    the loss.

    Args:
      logits: ``(K, D)``, unnormalised and finite.

    Returns:
      Scalar in ``[0, log K]`` nats: 0 if all distributions are equal, log K if no two overlap.
    """
    log_p = jax.nn.log_softmax(logits, axis=-1)
    log_mixture = jax.nn.logsumexp(log_p, axis=0) - math.log(logits.shape[0])
    return jnp.mean(jnp.sum(jnp.exp(log_p) * (log_p - log_mixture), axis=-1))
