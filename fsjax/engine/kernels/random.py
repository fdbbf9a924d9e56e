"""Threefry, the generator of ``jax.random``, in a form that XLA fuses with the use of its numbers.

On CPUs JAX computes its rounds in a loop over arrays, which is about four times slower. Here
the same numbers are computed from the index of each element, and need not be stored.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Hashable

import jax
import jax.extend.random
import jax.numpy as jnp
from jax import Array

from fsjax.engine.environment.jax_settings import setting

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


def generator() -> Hashable:
    """The ``impl`` of keys: Threefry, because others share streams over vmapped seeds."""
    fast = jax.default_backend() == "cpu" and setting("jax_threefry_partitionable")
    return _UNROLLED if fast else "threefry2x32"


@functools.partial(jax.jit, static_argnums=(1, 2))
def _bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    # Few numbers compile faster in a loop, and 64 bits take both words.
    if width > 32 or not 1024 < math.prod(shape) < 2**32:
        return _OF_JAX.random_bits(key, width, shape)
    index = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    first, second = threefry_2x32(key, jnp.zeros((), jnp.uint32), index)
    return (first ^ second).astype(f"uint{width}")


_OF_JAX = jax.extend.random.threefry_prng_impl
_OWN_PARTS = {"random_bits": _bits, "name": "unrolled_threefry"}
_UNROLLED = jax.extend.random.define_prng_impl(**_OF_JAX._asdict() | _OWN_PARTS)


def key_words(key: Array) -> Array:
    """The two uint32 words of a Threefry key; for other generators, two random words."""
    if jax.random.key_impl(key) in ("threefry2x32", _UNROLLED):
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
