"""Gaussian gates (Yamada et al., ICML 2020), which STG and DUFS train."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def open_share(mu: Array) -> Array:
    """How far gates are open, in [0, 1], at ``mu`` (with or without noise)."""
    return jnp.clip(mu + 0.5, 0.0, 1.0)
