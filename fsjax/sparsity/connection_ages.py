"""Adam's bias correction per connection, counted from the step at which each was grown."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.arguments import Rate, Whole, check
from fsjax.typing import PyTree


class BiasCorrectionState(NamedTuple):
    """State of :func:`bias_correction`.

    Attributes:
      step: int32, updates so far.
      ages: int32 in the structure and shapes of the parameters: updates of each connection since
        it was grown. A change of connections resets them like moments.
    """

    step: Array
    ages: PyTree


def bias_correction(
    b1: float = 0.9, b2: float = 0.999, warm_up: int = 0
) -> optax.GradientTransformation:
    """Corrects the steps of Adam for connections that were grown during the training.

    Adam divides its moments by ``1 - b ** t`` at step t, as they begin at 0 (Kingma and Ba, 2015,
    section 3). Those of a connection grown at a later step begin at 0 then, while t goes on. Late
    in a training, its first step is ``(1 - b1) / sqrt(1 - b2)``, 3.2 times that of a new Adam, and
    its twelfth 6.6 times. Put behind such an optimiser, this multiplies each update by the factor
    that makes it Adam's with steps counted from the growth, up to ``eps``:

        ``(1 - b1^t) / (1 - b1^k) * sqrt((1 - b2^k) / (1 - b2^t)) * min(k / warm_up, 1)``

    for a connection of age k, counted from its first update that is not 0. It fits optimisers
    whose update is the corrected mean of the gradients over the root of the corrected mean of their
    squares: ``optax.adam``, ``adamw`` (the factor then also applies to the decay), ``adabelief``.
    For those that correct nothing, such as ``sgd`` and ``lion``, ``b1=0, b2=0`` leave the warm-up
    alone. Those that use t otherwise (``nadam``, ``radam``, ``lamb``) are corrected only roughly.

    It is not part of :func:`fsjax.sparsity.sparse`, because the longer first steps let new
    connections catch up: without the correction RigL and SET are more accurate
    (``docs/sparse-training/moving.md`` has the numbers).

    Args:
      b1, b2: decays of the two moments of the optimiser, in [0, 1); 0 is for a moment that is not
        corrected.
      warm_up: steps over which the updates of a new connection grow linearly; 0 for none. The
        connections of the first step warm up too.

    Raises:
      ConfigError: for values outside these ranges.

    Examples:
      >>> inner = optax.chain(optax.adam(1e-3), sparsity.bias_correction())
      >>> tx = sparsity.sparse(inner, sparsity.rigl(0.1), jax.random.key(0))
      >>> opt_state = tx.init({"kernel": jnp.ones((64, 10))})
    """
    check(Rate, b1=b1)
    check(Rate, b2=b2)
    check(Whole, warm_up=warm_up)

    def init(params: PyTree) -> BiasCorrectionState:
        ages = jax.tree.map(lambda leaf: jnp.zeros_like(leaf, dtype=jnp.int32), params)
        return BiasCorrectionState(jnp.zeros([], jnp.int32), ages)

    def weight_of_zero(age: Array, decay: float) -> Array:
        """``1 - decay ** age``, exact for decays near 1."""
        return -jnp.expm1(age * jnp.log(jnp.float32(decay)))

    def update(
        updates: PyTree, state: BiasCorrectionState, params: PyTree | None = None
    ) -> tuple[PyTree, BiasCorrectionState]:
        count = optax.safe_increment(state.step)
        first = count == 1

        def older(age: Array, move: Array) -> Array:
            # A change that does not replace the step is followed by one that leaves new
            # connections at their initial value.
            waits = (age == 0) & (move == 0) & ~first
            return jnp.where(waits, 0, optax.safe_increment(age))

        ages = jax.tree.map(older, state.ages, updates)

        def corrected(move: Array, age: Array) -> Array:
            steps = jnp.maximum(age, 1)
            factor = weight_of_zero(count, b1) / weight_of_zero(steps, b1)
            factor *= jnp.sqrt(weight_of_zero(steps, b2) / weight_of_zero(count, b2))
            # Connections as old as the training have exactly the optimiser's own step.
            factor = jnp.where(age == count, 1, factor)
            if warm_up:
                factor *= jnp.minimum(steps / warm_up, 1)
            return (move * factor).astype(move.dtype)

        return jax.tree.map(corrected, updates, ages), BiasCorrectionState(count, ages)

    return optax.GradientTransformation(init, update)
