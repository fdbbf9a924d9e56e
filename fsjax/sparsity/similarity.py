"""Similarity of the neurons of two successive layers over the training rows (CTRE, section 3.2).

Each similarity is a function of the products of the activations and of their squared norms. These
are sums over rows, so large data sets are processed in chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

#: Smallest norm that is divided by: neurons that are always 0 have similarity 0.
_MIN_NORM = 1e-6


class Moments(NamedTuple):
    """Sums over rows; those of two chunks are added field by field.

    Attributes:
      products: ``(I, O)`` sums of the products of the activations.
      before: ``(I,)`` sums of squares of the input neurons.
      after: ``(O,)`` sums of squares of the output neurons.
    """

    products: Array
    before: Array
    after: Array


def moments(before: Array, after: Array) -> Moments:
    """Sums over the rows of activations ``(N, I)`` and ``(N, O)``."""
    # Products with ones, because a sum over the leading axis is slow on CPUs.
    ones = jnp.ones(before.shape[0], before.dtype)
    return Moments(before.T @ after, ones @ jnp.square(before), ones @ jnp.square(after))


def cosine_of(sums: Moments) -> Array:
    """Absolute cosine similarity (eq. 2), ``(I, O)`` in [0, 1]; 0 for neurons that are always 0."""
    before, after = (jnp.maximum(jnp.sqrt(squares), _MIN_NORM) for squares in sums[1:])
    return jnp.abs(sums.products) / (before[:, None] * after)


def hebb_of(sums: Moments) -> Array:
    """Absolute product without normalisation (section 5.3), ``(I, O)``, at least 0."""
    return jnp.abs(sums.products)


def euclidean_of(sums: Moments) -> Array:
    """Euclidean similarity ``1 / (1 + distance)`` (eq. 4), ``(I, O)`` in (0, 1]."""
    squares = sums.before[:, None] + sums.after - 2.0 * sums.products
    return 1.0 / (1.0 + jnp.sqrt(jnp.maximum(squares, 0.0)))


#: Functions from sums over rows to similarities, by name.
SIMILARITIES: dict[str, Callable[[Moments], Array]] = {
    "cosine": cosine_of,
    "euclidean": euclidean_of,
    "hebb": hebb_of,
}


def cosine(before: Array, after: Array) -> Array:
    """Absolute cosine of activations ``(N, I)`` and ``(N, O)``; see :func:`cosine_of`."""
    return cosine_of(moments(before, after))


def hebb(before: Array, after: Array) -> Array:
    """Absolute product of activations ``(N, I)`` and ``(N, O)``; see :func:`hebb_of`."""
    return hebb_of(moments(before, after))


def euclidean(before: Array, after: Array) -> Array:
    """Euclidean similarity of activations ``(N, I)`` and ``(N, O)``; see :func:`euclidean_of`."""
    return euclidean_of(moments(before, after))
