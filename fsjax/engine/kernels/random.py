"""Gumbel noise for one row of a large array, equal to that row of ``jax.random.gumbel``.

``jax.random`` draws an entire array before any of it can be used. Here the same Threefry counter is
computed from an element's index inside the loop that uses the noise, so that XLA fuses random bits,
logarithms and exponential into one pass, and the noise is never stored.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry_2x32(key: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011): two random uint32 words per counter.

    Args:
      key: ``(2,)`` uint32 words.
      high, low: uint32, the first and the second word of each counter; they broadcast.
    """
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    first, second = high + schedule[0], low + schedule[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            first = first + second
            second = (second << rotation) | (second >> (32 - rotation))
            second = second ^ first
        first = first + schedule[(group + 1) % 3]
        second = second + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return first, second


def key_words(key: Array) -> Array:
    """The two uint32 words of a Threefry key; for other generators, two random words."""
    if str(jax.random.key_impl(key)) == "threefry2x32":
        return jax.random.key_data(key)
    return jax.random.bits(key, (2,), jnp.uint32)


def gumbel_row(words: Array, row: Array, shape: tuple[int, ...]) -> Array:
    """Row ``row`` of ``jax.random.gumbel(key, (num_rows, *shape))``, float32.

    It is standard Gumbel noise, ``-log(-log u)`` with a uniform ``u`` of 23 bits.

    Args:
      words: ``(2,)`` uint32 key words, see :func:`key_words`.
      row: scalar integer; ``num_rows * prod(shape)`` must stay below 2**32.
      shape: shape of one row.
    """
    size = math.prod(shape)
    start = row.astype(jnp.uint32) * jnp.uint32(size)
    index = jax.lax.iota(jnp.uint32, size).reshape(shape) + start
    first, second = threefry_2x32(words, jnp.zeros((), jnp.uint32), index)
    bits = first ^ second
    one_to_two = jax.lax.bitcast_convert_type((bits >> 9) | jnp.uint32(0x3F800000), jnp.float32)
    uniform = jnp.maximum(one_to_two - 1.0, jnp.finfo(jnp.float32).tiny)
    return -jnp.log(-jnp.log(uniform))
