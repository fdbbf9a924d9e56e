"""Optax optimisers that carry their learning rate in the state, so that sweeps do not recompile."""

from __future__ import annotations

import optax


def adam(learning_rate: float) -> optax.GradientTransformation:
    """Adam with Optax's defaults (0.9, 0.999, 1e-8) and the learning rate in its state."""
    static = ("b1", "b2", "eps", "eps_root", "nesterov", "mu_dtype")
    return optax.inject_hyperparams(optax.adam, static_args=static)(learning_rate=learning_rate)
