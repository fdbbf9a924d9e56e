"""Parametrisations of the selectors' logits (IP-CAE, sections 2.3 and 4.2).

The concrete autoencoder learns its logits directly. IP-CAE learns an embedding psi (K, P) and a
linear map of it, ``logits = psi W + b``, which transforms every gradient (eq. 8, 9).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.engine.kernels.products import few_rows_times
from fsjax.errors import ConfigError, check_whole

Params = dict[str, Array]

#: Largest default of the embedding size P, which otherwise is D as in the papers.
MAX_EMBEDDING = 1024

PARAMETRISATIONS = ("direct", "full", "diagonal", "scalar")


class Parametrisation(NamedTuple):
    """A parametrisation of the logits of K selectors over D columns.

    Attributes:
      init: ``(key, K, D) -> params``.
      apply: ``(params) -> logits[K, D]``.
    """

    init: Callable[[Array, int, int], Params]
    apply: Callable[[Params], Array]


def default_embedding_dim(num_features: int) -> int:
    """P = D as in the papers, but at most 1024, because the map has P x D weights."""
    return min(num_features, MAX_EMBEDDING)


def near_zero(key: Array, shape: tuple[int, int]) -> Array:
    """Uniform rows divided by their sum, about 1/D each, as for the published CAE results."""
    uniform = jax.random.uniform(key, shape)
    return uniform / jnp.sum(uniform, axis=-1, keepdims=True)


#: Initialisers of logits that are parameters: those of IP-CAE's code, of the original CAE package,
#: and of that package's experiments.
LOGITS_INIT = {
    "near_zero": near_zero,
    "glorot_normal": jax.nn.initializers.glorot_normal(),
    "glorot_uniform": jax.nn.initializers.glorot_uniform(),
}


def parametrisation(
    name: str,
    *,
    embedding_dim: int | None = None,
    bias: bool = True,
    logits_init: str = "near_zero",
) -> Parametrisation:
    """The parametrisation of the given name.

    Args:
      name: ``direct``, ``full``, ``diagonal`` or ``scalar``.
      embedding_dim: P, at least 1, for ``full`` only. ``None`` takes D, but at most 1024.
      bias: whether to add a bias; ``direct`` has none.
      logits_init: initialisation, for ``direct`` only: ``near_zero``, ``glorot_normal`` or
        ``glorot_uniform``.

    Raises:
      ConfigError: for an unknown name, or an ``embedding_dim`` that is below 1 or does not apply.
    """
    if name not in PARAMETRISATIONS:
        raise ConfigError(f"parametrisation={name!r}; choose one of {', '.join(PARAMETRISATIONS)}")
    if embedding_dim is not None:
        if name != "full":
            raise ConfigError(
                f"embedding_dim={embedding_dim} does not apply to the {name!r} parametrisation; "
                "omit it or choose 'full'"
            )
        embedding_dim = check_whole("embedding_dim", embedding_dim)
    if name == "direct":
        return _direct(logits_init)
    return _full(embedding_dim, bias) if name == "full" else _scaled(name == "diagonal", bias)


def _direct(init: str) -> Parametrisation:
    """Logits as parameters (CAE)."""
    if init not in LOGITS_INIT:
        raise ConfigError(f"logits_init={init!r}; choose one of {', '.join(LOGITS_INIT)}")
    return Parametrisation(
        init=lambda key, k, d: {"logits": LOGITS_INIT[init](key, (k, d))},
        apply=lambda params: params["logits"],
    )


def _full(embedding_dim: int | None, bias: bool) -> Parametrisation:
    """A full matrix shared by all selectors, ``logits = psi W + b`` (eq. 6).

    psi (K, P) starts standard normal, W (P, D) and b (D) uniform within 1/sqrt(P).
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
        return few_rows_times(params["psi"], params["kernel"]) + params.get("bias", 0.0)

    return Parametrisation(init, apply)


def _scaled(per_column: bool, bias: bool) -> Parametrisation:
    """``W = diag(w)``, one factor per column, or ``W = w I``, one for all (section 4.2); P = D.

    psi, w and b start standard normal.
    """

    def init(key: Array, k: int, d: int) -> Params:
        key_psi, key_scale, key_bias = jax.random.split(key, 3)
        params = {
            "psi": jax.random.normal(key_psi, (k, d)),
            "scale": jax.random.normal(key_scale, (d,) if per_column else ()),
        }
        if bias:
            params["bias"] = jax.random.normal(key_bias, (d,))
        return params

    def apply(params: Params) -> Array:
        return params["psi"] * params["scale"] + params.get("bias", 0.0)

    return Parametrisation(init, apply)
