"""Gates under a penalty that rises until K of them are open: one training in place of a search.

The state has four further ``extra``: ``strength``, of the penalty; ``kept`` ``(D,)`` bool, gates
that may be open; ``score`` ``(D,)``, the ``mu`` of all gates when the others than K were closed;
``closed_at``, the epoch after which that was, 0 before.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.method import Batch, TrainState

#: The factor by which the strength rises at most.
SPAN = 1e3

#: The ``mu`` below which a gate is closed, as :mod:`fsjax.engine.strengths` has it: a share of 0.2.
CLOSED = -0.3

#: The ``mu`` at which a gate is open: beyond it the penalty would have no slope that closes it.
OPEN = 0.5

#: Shares of the epochs: before the strength rises, until it ends, and after the others are closed.
BEFORE, UNTIL, AFTER = 0.05, 0.8, 0.2


def start(strength: Array | float, mu: Array) -> dict[str, Array]:
    """Entries of ``extra`` before the first step."""
    return {
        "strength": jnp.asarray(strength, jnp.float32),
        "kept": jnp.ones(mu.shape, bool),
        "score": mu,
        "closed_at": jnp.zeros((), jnp.int32),
    }


def after_step(state: TrainState) -> TrainState:
    """Keeps gates that are open where the penalty still has a slope."""
    params = {**state.params, "mu": jnp.minimum(state.params["mu"], OPEN)}
    return state.replace(params=params)


def after_epoch(num_features: int, state: TrainState, data: Batch, key: Array) -> TrainState:
    """Raises the strength, or closes all gates but the K with the largest ``mu``."""
    del data, key
    epochs, extra = state.spec.num_epochs, state.extra
    first, last, rest = (round(share * epochs) for share in (BEFORE, UNTIL, AFTER))
    growth = SPAN ** (1.0 / max(last - first, 1))
    closed = extra["closed_at"] > 0
    score = jnp.where(closed, extra["score"], state.params["mu"])
    best = _largest(num_features, score, state.feature_mask)
    others = jnp.where(best | ~state.feature_mask, -jnp.inf, score)
    closes = ~closed & ((jnp.max(others) < CLOSED) | (state.epoch >= last))
    risen = extra["strength"] * jnp.where(state.epoch > first, growth, 1.0)
    changed = {
        "strength": jnp.where(closed | closes, 0.0, risen),
        "kept": jnp.where(closes, best, extra["kept"]),
        "score": score,
        "closed_at": jnp.where(closes, state.epoch, extra["closed_at"]),
    }
    enough = closed & (state.epoch - extra["closed_at"] >= rest)
    return state.replace(extra={**extra, **changed}, done=state.done | enough)


def finish(num_features: int, state: TrainState, data: Batch, key: Array) -> TrainState:
    """Closes the others where training ended before that."""
    del data, key
    best = _largest(num_features, state.extra["score"], state.feature_mask)
    return state.replace(extra={**state.extra, "kept": best})


def _largest(num_features: int, score: Array, usable: Array) -> Array:
    """``(D,)`` bool: the K gates with the largest score."""
    _, best = jax.lax.top_k(jnp.where(usable, score, -jnp.inf), min(num_features, score.size))
    return jnp.zeros(score.shape, bool).at[best].set(True)
