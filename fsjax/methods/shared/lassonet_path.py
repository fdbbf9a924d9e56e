"""The path of LassoNet: where a run is on it, when it goes on and where it begins."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.groups import Groups, gather, scatter
from fsjax.method import PyTree, Spec, TrainState
from fsjax.sparsity.hier_prox import hier_prox

#: The automatic start of the path, as in the authors' code: the first value that is tried, the
#: change that ends the proximal steps of a trial, the most of them, and the final divisor.
FIRST_TRIAL, TRIAL_TOLERANCE, TRIAL_STEPS, START_DIVISOR = 1e-6, 1e-5, 10_000, 10.0


class Path(NamedTuple):
    """Where a run is on its path, and what it has seen (``TrainState.log``).

    Attributes:
      penalty: float32, the current lambda; 0 in the dense phase.
      started: bool, whether the dense phase is over.
      epochs: int32, epochs at the current lambda (or in the dense phase).
      waited: int32, the last ones of them without improvement.
      best: float32, the objective that has to be improved on.
      vanished: ``(D,)`` lambda at which each feature left; infinite for those that are in.
      last_seen: ``(D,)`` float32, the last epoch after which each feature was in.
    """

    penalty: Array
    started: Array
    epochs: Array
    waited: Array
    best: Array
    vanished: Array
    last_seen: Array


def first_path(spec: Spec) -> Path:
    """The dense phase, before its first epoch."""
    return Path(
        penalty=jnp.float32(0),
        started=jnp.bool_(False),
        epochs=jnp.int32(0),
        waited=jnp.int32(0),
        best=jnp.float32(jnp.inf),
        vanished=jnp.full((spec.num_units,), jnp.inf, jnp.float32),
        last_seen=jnp.zeros((spec.num_units,), jnp.float32),
    )


def judge(
    state: TrainState, patience: Array, limit: Array, tolerance: Array | float
) -> tuple[Path, Array]:
    """Records an epoch: which features are in, and whether it improved the objective.

    Returns the path, and whether (bool) the epoch is the last one at this lambda or of the dense
    phase: after ``patience`` epochs that did not bring it below the share ``tolerance`` of the
    best value, or ``limit`` epochs.
    """
    path, inside = state.log, _selected(state)
    left = jnp.where(jnp.isinf(path.vanished), path.penalty, path.vanished)
    objective = _objective(state, path.penalty)
    improved = objective < tolerance * path.best
    path = path._replace(
        epochs=path.epochs + 1,
        waited=jnp.where(improved, 0, path.waited + 1),
        best=jnp.where(improved, objective, path.best),
        vanished=jnp.where(inside, jnp.inf, left),
        last_seen=jnp.where(inside, state.epoch.astype(jnp.float32), path.last_seen),
    )
    return path, (path.waited >= patience) | (path.epochs >= limit)


def next_lambda(
    path: Path,
    state: TrainState,
    over: Array,
    first: Array | float,
    until: int,
    multiplier: Array | float,
) -> tuple[Path, Array]:
    """Goes to the next lambda, or ends the path when at most ``until`` features are in.

    ``path`` and ``over`` are those of :func:`judge`; where ``over`` is false nothing changes. The
    lambda ``first`` follows the dense phase. Returns the path, and whether (bool) it has ended.
    """
    finished = over & path.started & (count_selected(state) <= until)
    growing = over & ~finished
    following = jnp.where(path.started, path.penalty * multiplier, first)
    penalty = jnp.where(growing, following, path.penalty)
    path = path._replace(
        penalty=penalty,
        started=path.started | over,
        epochs=jnp.where(growing, 0, path.epochs),
        waited=jnp.where(growing, 0, path.waited),
        # The same weights under the new lambda are what has to be improved on.
        best=jnp.where(growing, _objective(state, penalty), path.best),
    )
    return path, finished


def _objective(state: TrainState, penalty: Array) -> Array:
    return state.value + penalty * jnp.sum(skip_norms(state.params, state.spec.groups))


def first_lambda(
    state: TrainState, wanted: Array, hierarchy: Array | float, rate: Array | float
) -> Array:
    """The lambda after the dense phase: :func:`automatic_start` by the step size, and a tenth.

    It means nothing where ``wanted`` (bool) is false.
    """
    skip, kernel = (by_group(state.params[name], state.spec.groups) for name in ("skip", "kernel"))
    strength = automatic_start(skip, kernel, hierarchy, state.feature_mask, wanted)
    return strength / rate / START_DIVISOR


def automatic_start(
    skip: Array, kernel: Array, hierarchy: Array | float, may_leave: Array, wanted: Array
) -> Array:
    """A strength too small to remove a feature: the one that the authors' code finds.

    For each of 1e-6, 2e-6, 4e-6, ... the proximal step alone is repeated until it comes to rest.
    The result is the first strength whose double removes a feature in this way. What removes it
    does so at larger strengths too, as results of the step grow with the weights and fall with
    the strength; hence the search comes from above, where trials are short.

    Args:
      skip: ``(D, C)``.
      kernel: ``(D, H)``.
      hierarchy: M.
      may_leave: ``(D,)`` bool, features that count.
      wanted: scalar bool; where false, nothing is computed (also under ``vmap``, unlike the
        branches of ``lax.cond``) and the result means nothing.
    """

    def removes(strength: Array) -> Array:
        def goes_on(carry: tuple) -> Array:
            _, _, rests, removed, steps = carry
            return ~rests & ~removed & (steps < TRIAL_STEPS)

        def shrink(carry: tuple) -> tuple:
            before, u, _, _, steps = carry
            after, u = hier_prox(before, u, strength, hierarchy)
            # As a negation, so that NaN rests.
            rests = ~(jnp.max(jnp.abs(after - before)) >= TRIAL_TOLERANCE)
            after = jnp.where(rests, before, after)
            # What is 0 stays 0, so the first feature that leaves decides.
            removed = jnp.any(may_leave & jnp.all(after == 0, axis=1))
            return after, u, rests, removed, steps + 1

        no = jnp.zeros((), bool)
        return jax.lax.while_loop(goes_on, shrink, (skip, kernel, no, no, 0))[3]

    def strength_of(exponent: Array) -> Array:
        return jnp.ldexp(jnp.asarray(FIRST_TRIAL, jnp.float32), exponent)

    def goes_on(carry: tuple[Array, Array]) -> Array:
        exponent, removed = carry
        return wanted & removed & (exponent > 0)

    def halve(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        exponent, _ = carry
        removed = removes(strength_of(exponent))
        return jnp.where(removed, exponent - 1, exponent), removed

    # This much removes a feature in one step.
    enough = jnp.linalg.norm(skip, axis=1) + hierarchy * jnp.sum(jnp.abs(kernel), axis=1)
    enough = jnp.min(jnp.where(may_leave, enough, jnp.inf))
    highest = jnp.clip(jnp.ceil(jnp.log2(enough / FIRST_TRIAL)), 0, 100).astype(jnp.int32)
    return strength_of(jax.lax.while_loop(goes_on, halve, (highest, jnp.ones((), bool)))[0])


def by_group(weights: Array, groups: Groups) -> Array:
    """``(D, C)`` to ``(G, L C)``: the weights of all columns of a group, side by side."""
    gathered = gather(weights, groups)
    return gathered.reshape(gathered.shape[0], -1)


def by_column(weights: Array, groups: Groups, width: int) -> Array:
    """The inverse of :func:`by_group`, for C = ``width``."""
    return scatter(weights.reshape(weights.shape[0], -1, width), groups)


def skip_norms(params: PyTree, groups: Groups = None) -> Array:
    """``(D,)`` Euclidean norms of the skip weights of each feature, or ``(G,)`` of each group."""
    return jnp.sqrt(jnp.sum(jnp.square(by_group(params["skip"], groups)), axis=1))


def count_selected(state: TrainState) -> Array:
    """int32, the number of features, or groups, that have skip weights."""
    return jnp.sum(_selected(state), dtype=jnp.int32)


def _selected(state: TrainState) -> Array:
    return jnp.any(by_group(state.params["skip"], state.spec.groups) != 0, axis=1)
