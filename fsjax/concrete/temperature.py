"""Annealing of the Gumbel-Softmax temperature (IP-CAE, eq. 3)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def exponential_temperature(progress: Array, start: Array, end: Array) -> Array:
    """``T = T_0 (T_B / T_0) ** progress``, a positive scalar (IP-CAE, eq. 3).

    Args:
      progress: share of the training done, b / B, in [0, 1]; clipped to it.
      start: T_0, positive, unitless; 10 in the papers.
      end: T_B, positive; 0.01 in IP-CAE.
    """
    return start * (end / start) ** jnp.clip(progress, 0.0, 1.0)
