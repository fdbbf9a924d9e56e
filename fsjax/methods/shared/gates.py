"""Gaussian stochastic gates (Yamada et al., ICML 2020), shared by STG and DUFS."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def open_share(mu: Array) -> Array:
    """The values of gates, in [0, 1], for means ``mu`` (with or without noise)."""
    return jnp.clip(mu + 0.5, 0.0, 1.0)
