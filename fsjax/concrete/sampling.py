"""The concrete selector layer: K relaxed one-hot choices among D columns (IP-CAE, eq. 1 to 3).

Most of the cost of a concrete selector is its noise: with one noise matrix per row, B x K x D
Gumbel variables are drawn and exponentiated at each step. :func:`select_per_row` draws them row by
row inside one fused loop. It stores a single B x K x D array for its gradient, or none if that
array would be large.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.engine.kernels.products import product
from fsjax.engine.kernels.random import gumbel_row, key_words
from fsjax.errors import ConfigError

#: Largest B x K x D for which the samples are stored for the gradient; above, they are redrawn.
KEEP_LIMIT = 2**26


def exponential_temperature(progress: Array, start: Array | float, end: Array | float) -> Array:
    """``T = T_0 (T_B / T_0) ** progress``, a positive scalar (IP-CAE, eq. 3).

    Args:
      progress: share of the training that is done, b / B, clipped to [0, 1].
      start: T_0, positive, unitless; 10 in the papers.
      end: T_B, positive; 0.01 in IP-CAE.
    """
    return start * (end / start) ** jnp.clip(progress, 0.0, 1.0)


def gumbel_softmax(key: Array, logits: Array, temperature: Array) -> Array:
    """One relaxed one-hot sample per row of the logits, on the simplex (IP-CAE, eq. 1).

    Args:
      key: PRNG key.
      logits: log alpha, ``(..., K, D)``, unnormalised; the samples have the same shape.
      temperature: scalar, positive, unitless. Towards 0 the samples become one-hot.

    Returns:
      float32, or float64 for logits of this type.
    """
    noise = jax.random.gumbel(key, logits.shape, jnp.float32)
    return jax.nn.softmax((logits + noise) / temperature, axis=-1)


def select(key: Array, logits: Array, x: Array, temperature: Array, noise: str) -> Array:
    """Relaxed selected features ``x_S = M x``, ``(B, K)`` (IP-CAE, eq. 2).

    Args:
      key: PRNG key.
      logits: ``(K, D)``.
      x: ``(B, D)``.
      temperature: scalar, positive; its gradient is defined as zero for ``row``.
      noise: ``row`` draws an independent M for each row of x (the published IP-CAE tables),
        ``batch`` one M for all rows (the original CAE; cheaper); others are a ConfigError.
    """
    if noise == "batch":
        return product(x, gumbel_softmax(key, logits, temperature).T)
    if noise == "row":
        return select_per_row(key_words(key), logits, x, temperature)
    raise ConfigError(f"noise={noise!r}; choose one of row, batch")


def select_discrete(logits: Array, x: Array) -> Array:
    """Selected features at test time, ``(B, K)``: ``argmax_d logits[k, d]`` for each k (2.1).

    A column that two selectors choose appears twice.

    Args:
      logits: ``(K, D)``.
      x: ``(B, D)``.
    """
    return x[:, jnp.argmax(logits, axis=-1)]


def _relax_row(
    words: Array, logits: Array, temperature: Array, row: Array, x_row: Array
) -> tuple[Array, Array, Array]:
    """Unnormalised sample ``(K, D)``, the inverses ``(K,)`` of its row sums, and M x ``(K,)``."""
    perturbed = (logits + gumbel_row(words, row, logits.shape)) / temperature
    weights = jnp.exp(perturbed - jnp.max(perturbed, axis=-1, keepdims=True))
    inverse_sum = 1.0 / jnp.sum(weights, axis=-1)
    return weights, inverse_sum, (weights @ x_row) * inverse_sum


def _over_rows(function, xs):
    # On a CPU a loop, whose data stay in the cache; on accelerators all rows at once.
    on_cpu = jax.default_backend() == "cpu"
    return jax.lax.map(function, xs) if on_cpu else jax.vmap(function)(xs)


def _rows(x: Array) -> Array:
    return jnp.arange(x.shape[0], dtype=jnp.uint32)


@jax.custom_vjp
def select_per_row(words: Array, logits: Array, x: Array, temperature: Array) -> Array:
    """``z[b] = M_b x[b]``, ``(B, K)``, with an independent sample ``M_b`` for each row.

    Args:
      words: ``(2,)`` uint32 key words, see :func:`fsjax.engine.kernels.random.key_words`. The
        noise of row b is row b of ``jax.random.gumbel(key, (B, K, D))``.
      logits: ``(K, D)``.
      x: ``(B, D)``.
      temperature: scalar, positive; its gradient is defined as zero.
    """
    row = partial(_relax_row, words, logits, temperature)
    return _over_rows(lambda args: row(*args)[2], (_rows(x), x))


def _select_forward(words, logits, x, temperature):
    if x.shape[0] * logits.size > KEEP_LIMIT:
        z = select_per_row(words, logits, x, temperature)
        return z, (words, logits, x, temperature, z, None)
    row = partial(_relax_row, words, logits, temperature)
    weights, inverse_sum, z = _over_rows(lambda args: row(*args), (_rows(x), x))
    return z, (words, logits, x, temperature, z, (weights, inverse_sum))


def _select_backward(residuals, grad_z):
    # dz[b,k]/dlogits[k,d] = M_b[k,d] (x[b,d] - z[b,k]) / T, and dz[b,k]/dx[b,d] = M_b[k,d].
    words, logits, x, temperature, z, kept = residuals

    def body(total, row):
        index, x_row, z_row, grad_row, sample = row
        if sample is None:
            sample = _relax_row(words, logits, temperature, index, x_row)[:2]
        weights, inverse_sum = sample
        scaled = (grad_row * inverse_sum)[:, None]
        return total + weights * ((x_row - z_row[:, None]) * scaled), scaled[:, 0] @ weights

    rows = (_rows(x), x, z, grad_z, kept)
    if jax.default_backend() == "cpu" or kept is None:
        total, grad_x = jax.lax.scan(body, jnp.zeros(logits.shape, grad_z.dtype), rows)
    else:
        totals, grad_x = jax.vmap(partial(body, 0.0))(rows)
        total = totals.sum(axis=0)
    grad_logits = (total / temperature).astype(logits.dtype)
    return None, grad_logits, grad_x.astype(x.dtype), jnp.zeros_like(temperature)


select_per_row.defvjp(_select_forward, _select_backward)
