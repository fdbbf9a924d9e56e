"""Gaussian noise that is fused with what uses it, equal to that of ``jax.random``."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fsjax.concrete.random import key_words, threefry_2x32


def normal(key: Array, shape: Sequence[int]) -> Array:
    """``jax.random.normal(key, shape)``, float32, of below 2**32 entries; cheaper on CPUs.

    There ``jax.random`` computes the bits in a loop over arrays, here they stay in registers.
    """
    if jax.default_backend() != "cpu" or not jax.config.jax_threefry_partitionable:
        return jax.random.normal(key, shape)
    index = lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    first, second = threefry_2x32(key_words(key), jnp.zeros((), jnp.uint32), index)
    bits = ((first ^ second) >> 9) | jnp.uint32(0x3F800000)
    zero_to_one = lax.bitcast_convert_type(bits, jnp.float32) - 1.0
    lowest = np.nextafter(np.float32(-1.0), np.float32(0.0))
    uniform = jnp.maximum(lowest, zero_to_one * (np.float32(1.0) - lowest) + lowest)
    return np.float32(math.sqrt(2.0)) * lax.erf_inv(uniform)
