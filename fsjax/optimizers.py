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


def sgd(learning_rate: float, momentum: float) -> optax.GradientTransformation:
    """Gradient descent with Nesterov's momentum and the learning rate in its state.

    Raises:
      ConfigError: unless the learning rate is positive and the momentum in [0, 1).
    """
    if not learning_rate > 0:
        raise ConfigError(f"learning_rate={learning_rate}; choose a value above 0")
    if not 0 <= momentum < 1:
        raise ConfigError(f"momentum={momentum}; choose a value from 0 to below 1")
    static = ("momentum", "nesterov", "accumulator_dtype")
    return optax.inject_hyperparams(optax.sgd, static_args=static)(
        learning_rate=learning_rate, momentum=momentum, nesterov=True
    )
