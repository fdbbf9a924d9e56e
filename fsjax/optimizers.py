"""Optax optimisers that carry their learning rate in the state, so that sweeps do not recompile."""

from __future__ import annotations

import optax

from fsjax.errors import ConfigError


def adam(learning_rate: float) -> optax.GradientTransformation:
    """Adam with Optax's defaults (0.9, 0.999, 1e-8) and the learning rate in its state.

    Raises:
      ConfigError: unless the learning rate is positive.
    """
    if not learning_rate > 0:
        raise ConfigError(f"learning_rate={learning_rate}; choose a value above 0")
    static = ("b1", "b2", "eps", "eps_root", "nesterov", "mu_dtype")
    return optax.inject_hyperparams(optax.adam, static_args=static)(learning_rate=learning_rate)
