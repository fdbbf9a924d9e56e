"""An optimiser of two phases: Adam, then gradient descent with momentum (LassoNet)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.typing import PyTree


class PhaseState(NamedTuple):
    """State of :func:`adam_then_sgd`.

    Attributes:
      adaptive: bool, whether the current phase is that of Adam.
      count: int32, number of steps in the current phase.
      moment: Adam's first moment, or the momentum buffer.
      square: Adam's second moment; unchanged in the second phase.
    """

    adaptive: Array
    count: Array  # type: ignore[assignment]  # as Optax's states; nobody looks for tuple.count
    moment: PyTree
    square: PyTree


def adam_then_sgd(
    learning_rate: float, second_learning_rate: float, momentum: float
) -> optax.GradientTransformation:
    """Adam (0.9, 0.999, 1e-8), and after :func:`to_sgd` gradient descent with momentum.

    Both phases are one formula with traced coefficients, so that a step is a single pass over the
    parameters and has no branches under ``vmap``. ``momentum`` is that of gradient descent, without
    Nesterov's correction.
    """

    def init(params: PyTree) -> PhaseState:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return PhaseState(jnp.ones((), bool), jnp.zeros((), jnp.int32), zeros, zeros)

    def update(
        grads: PyTree, state: PhaseState, params: PyTree | None = None
    ) -> tuple[PyTree, PhaseState]:
        adaptive, count = state.adaptive, state.count + 1
        # A new phase starts without the moment of the previous one.
        decay = jnp.where(state.count == 0, 0.0, jnp.where(adaptive, 0.9, momentum))
        gain = jnp.where(adaptive, 0.1, 1.0)
        decay_square, gain_square = jnp.where(adaptive, 0.999, 1.0), jnp.where(adaptive, 1e-3, 0.0)
        moment = jax.tree.map(lambda m, g: decay * m + gain * g, state.moment, grads)
        square = jax.tree.map(
            lambda s, g: decay_square * s + gain_square * jnp.square(g), state.square, grads
        )
        rate = jnp.where(adaptive, learning_rate / (1 - 0.9**count), second_learning_rate)
        unbias = 1 / (1 - 0.999**count)

        def move(m: Array, s: Array) -> Array:
            return -rate * m / jnp.where(adaptive, jnp.sqrt(s * unbias) + 1e-8, 1.0)

        updates = jax.tree.map(move, moment, square)
        return updates, state._replace(count=count, moment=moment, square=square)

    return optax.GradientTransformation(init, update)


def to_sgd(state: PhaseState, when: Array) -> PhaseState:
    """Switches to the second phase of :func:`adam_then_sgd` where ``when`` (bool) is true."""
    return state._replace(adaptive=state.adaptive & ~when, count=jnp.where(when, 0, state.count))
