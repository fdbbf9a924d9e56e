"""Parametrisations of the selector's logits (IP-CAE, sections 2.3 and 4.2).

The concrete autoencoder learns its logits directly. IP-CAE learns an embedding psi (K, P) and a
map from it to the logits, ``logits = psi W + b``, which transforms every gradient (eq. 8, 9).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.errors import ConfigError, check_whole

Params = dict[str, Array]

#: Largest default embedding size P; below it P = D, the papers' choice.
MAX_EMBEDDING = 1024

PARAMETRISATIONS = ("direct", "full", "diagonal", "scalar")
LOGITS_INIT = ("near_zero", "glorot_normal", "glorot_uniform")


class Parametrisation(NamedTuple):
    """A way to hold the logits of K selectors over D columns.

    Attributes:
      init: ``(key, K, D) -> params``.
      apply: ``(params) -> logits[K, D]``.
    """

    init: Callable[[Array, int, int], Params]
    apply: Callable[[Params], Array]


def default_embedding_dim(num_features: int) -> int:
    """P = D as in the papers, but at most 1024: the map has P x D weights, which does not scale."""
    return min(num_features, MAX_EMBEDDING)


def near_zero(key: Array, k: int, d: int) -> Array:
    """Uniform rows over their sum, about 1/D each: the start of the published CAE tables."""
    uniform = jax.random.uniform(key, (k, d))
    return uniform / jnp.sum(uniform, axis=-1, keepdims=True)


def direct(init: str = "near_zero") -> Parametrisation:
    """Logits as parameters (CAE).

    ``init`` is ``near_zero`` (IP-CAE's code), ``glorot_normal`` (the original CAE package) or
    ``glorot_uniform`` (its experiments).
    """
    if init not in LOGITS_INIT:
        raise ConfigError(f"logits_init={init!r}; choose one of {', '.join(LOGITS_INIT)}")

    def start(key: Array, k: int, d: int) -> Params:
        if init == "near_zero":
            return {"logits": near_zero(key, k, d)}
        return {"logits": getattr(jax.nn.initializers, init)()(key, (k, d))}

    return Parametrisation(start, apply=lambda params: params["logits"])


def full(embedding_dim: int | None = None, bias: bool = True) -> Parametrisation:
    """A full matrix shared by all selectors, ``logits = psi W + b`` (eq. 6); b is learnt if
    ``bias``.

    psi (K, P) starts standard normal, W (P, D) and b (D) uniform within 1/sqrt(P). P is
    ``embedding_dim``; ``None`` takes D, at most 1024.
    """

    def init(key: Array, k: int, d: int) -> Params:
        p = embedding_dim or default_embedding_dim(d)
        key_psi, key_kernel, key_bias = jax.random.split(key, 3)
        bound = 1.0 / math.sqrt(p)
        params = {
            "psi": jax.random.normal(key_psi, (k, p)),
            "kernel": jax.random.uniform(key_kernel, (p, d), minval=-bound, maxval=bound),
        }
        if bias:
            params["bias"] = jax.random.uniform(key_bias, (d,), minval=-bound, maxval=bound)
        return params

    def apply(params: Params) -> Array:
        return params["psi"] @ params["kernel"] + params.get("bias", 0.0)

    return Parametrisation(init, apply)


def _scaled(width: Callable[[int], tuple[int, ...]], bias: bool) -> Parametrisation:
    """``logits = w * psi + b`` with w of the given shape, b (D,); all start standard normal."""

    def init(key: Array, k: int, d: int) -> Params:
        key_psi, key_scale, key_bias = jax.random.split(key, 3)
        params = {
            "psi": jax.random.normal(key_psi, (k, d)),
            "scale": jax.random.normal(key_scale, width(d)),
        }
        if bias:
            params["bias"] = jax.random.normal(key_bias, (d,))
        return params

    def apply(params: Params) -> Array:
        return params["psi"] * params["scale"] + params.get("bias", 0.0)

    return Parametrisation(init, apply)


def diagonal(bias: bool = True) -> Parametrisation:
    """``W = diag(w)``, one factor per column (section 4.2); P = D."""
    return _scaled(lambda d: (d,), bias)


def scalar(bias: bool = True) -> Parametrisation:
    """``W = w I``, one factor for all (section 4.2); P = D."""
    return _scaled(lambda d: (), bias)


def parametrisation(
    name: str,
    *,
    embedding_dim: int | None = None,
    bias: bool = True,
    logits_init: str = "near_zero",
) -> Parametrisation:
    """The parametrisation of the given name.

    Args:
      name: ``direct``, ``full``, ``diagonal`` or ``scalar``, else ConfigError.
      embedding_dim: P, for ``full`` only; ConfigError for others, or below 1.
      bias: whether the indirect ones add a bias.
      logits_init: initialisation, for ``direct`` only.
    """
    if embedding_dim is not None:
        if name != "full":
            raise ConfigError(
                f"embedding_dim={embedding_dim} does not apply to the {name!r} parametrisation; "
                "leave it out or choose 'full'"
            )
        check_whole("embedding_dim", embedding_dim)
    if name not in PARAMETRISATIONS:
        raise ConfigError(f"parametrisation={name!r}; choose one of {', '.join(PARAMETRISATIONS)}")
    if name == "direct":
        return direct(logits_init)
    if name == "full":
        return full(embedding_dim, bias)
    return diagonal(bias) if name == "diagonal" else scalar(bias)
