"""Parameters of two layers, noisy gradients, and the other inputs of rules."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 25
RNG = np.random.default_rng(0)
SIMILARITY = jnp.asarray(RNG.random((12, 6)), jnp.float32)
IMPORTANCE = jnp.asarray(RNG.random((12, 1)), jnp.float32)


def normal(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


START = {
    "conv": {"bias": normal(4), "kernel": normal(3, 3, 1, 4)},
    "dense": {"bias": normal(6), "kernel": normal(12, 6)},
}
SMALL = {"dense": START["dense"]}  # For what compiles often.
NOISE = jax.tree.map(lambda leaf: normal(STEPS + 1, *leaf.shape), START)


def only_dense(path: tuple[str, ...], leaf: jax.Array) -> bool:
    return path == ("dense", "kernel")


@jax.jit
def noisy_gradient(params: Any, step: jax.Array) -> Any:
    """The gradient of a quadratic loss with noise; nonzero at inactive connections too."""
    noise = {name: NOISE[name] for name in params}
    return jax.tree.map(lambda p, e: (p - 0.5 + e[step]).astype(p.dtype), params, noise)
