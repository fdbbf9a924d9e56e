"""The path of LassoNet: the state of a run on it, the change of lambda, and the first lambda."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from fsjax.engine.kernels.products import WIDE_TABLE
from fsjax.method import PyTree, Spec, TrainState
from fsjax.sparsity.hier_prox import hier_prox
from fsjax.tables.groups import Groups, gather, scatter

#: Constants of :func:`automatic_start`, from the authors' code: the smallest strength to try, the
#: change below which a trial ends, its largest number of proximal steps, and the divisor of the
#: result.
FIRST_TRIAL, TRIAL_TOLERANCE, TRIAL_STEPS, START_DIVISOR = 1e-6, 1e-5, 10_000, 10.0


class Path(NamedTuple):
    """The position of a run on its path and when the features left (``TrainState.log``).

    Attributes:
      penalty: float32, the current lambda; 0 in the dense phase.
      started: bool, whether the dense phase is over.
      epochs: int32, number of epochs at the current lambda (or in the dense phase).
      waited: int32, number of epochs since the last improvement.
      best: float32, the lowest objective at the current lambda.
      vanished: ``(D,)`` lambda at which each feature left; infinity while it is in the network.
      last_seen: ``(D,)`` float32, the last epoch after which each feature was in the network.
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
    """Records an epoch: which features are in the network, and whether the objective improved.

    Returns:
      The path, and whether (bool) this epoch ends the current lambda or the dense phase: after
      ``patience`` epochs without improvement, or ``limit`` epochs in all.
    """
    path, inside = state.log, _selected(state)
    left = jnp.where(jnp.isinf(path.vanished), path.penalty, path.vanished)
    objective = _objective(state, path.penalty)
    improved = improves(objective, path.best, tolerance)
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
    """Moves to the next lambda, or ends the path if at most ``until`` features are left.

    ``path`` and ``over`` are the results of :func:`judge`; where ``over`` is false, nothing
    changes. The first lambda after the dense phase is ``first``. Returns the path, and whether
    (bool) it has ended.
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
        # The objective of the current weights under the new lambda.
        best=jnp.where(growing, _objective(state, penalty), path.best),
    )
    return path, finished


def improves(objective: Array, best: Array, tolerance: Array | float) -> Array:
    """Whether an objective is below the share ``tolerance`` of the best.

    Where the best is negative, as with a loss of one's own, by ``1 - tolerance`` of its size.
    """
    return objective < jnp.where(best > 0, tolerance, 2.0 - tolerance) * best


def _objective(state: TrainState, penalty: Array) -> Array:
    return state.value + penalty * jnp.sum(skip_norms(state.params, state.spec.groups))


def first_lambda(
    state: TrainState, wanted: Array, hierarchy: Array | float, rate: Array | float
) -> Array:
    """The lambda after the dense phase: a tenth of :func:`automatic_start` over the step size.

    On few rows of many columns it is all of it, as the path to there would take most of the time.
    The result is meaningless where ``wanted`` (bool) is false.
    """
    skip, kernel = (
        columns_to_groups(state.params[name], state.spec.groups) for name in ("skip", "kernel")
    )
    strength = automatic_start(skip, kernel, hierarchy, state.feature_mask, wanted)
    few_rows = state.spec.num_columns >= WIDE_TABLE * state.spec.num_rows
    return strength / rate / (1.0 if few_rows else START_DIVISOR)


def automatic_start(
    skip: Array, kernel: Array, hierarchy: Array | float, may_leave: Array, wanted: Array
) -> Array:
    """The largest strength that is too small to remove a feature, as the authors' code finds it.

    A trial repeats the proximal step, without gradient steps, until the weights no longer change.
    Of the strengths 1e-6, 2e-6, 4e-6, ... the result is the last one before the first whose trial
    removes a feature. The removal is monotone: results of the step grow with the weights and fall
    with the strength. The search therefore starts from above, where trials are short.

    Args:
      skip: theta, ``(D, C)``.
      kernel: W, ``(D, H)``.
      hierarchy: M.
      may_leave: ``(D,)`` bool, the features whose removal counts.
      wanted: scalar bool; where it is false nothing is computed (also under ``vmap``, unlike the
        branches of ``lax.cond``) and the result is meaningless.
    """

    def removes(strength: Array) -> Array:
        """Whether a trial removes a feature."""

        def continues(carry: tuple) -> Array:
            _, _, converged, removed, steps = carry
            return ~converged & ~removed & (steps < TRIAL_STEPS)

        def shrink(carry: tuple) -> tuple:
            before, weights, _, _, steps = carry
            after, weights = hier_prox(before, weights, strength, hierarchy)
            # As a negation, so that NaN counts as converged.
            converged = ~(jnp.max(jnp.abs(after - before)) >= TRIAL_TOLERANCE)
            after = jnp.where(converged, before, after)
            # Weights of 0 stay 0, so the trial can end with the first feature that leaves.
            removed = jnp.any(may_leave & jnp.all(after == 0, axis=1))
            return after, weights, converged, removed, steps + 1

        no = jnp.zeros((), bool)
        return jax.lax.while_loop(continues, shrink, (skip, kernel, no, no, 0))[3]

    def trial_strength(exponent: Array) -> Array:
        return jnp.ldexp(jnp.asarray(FIRST_TRIAL, jnp.float32), exponent)

    def continues(carry: tuple[Array, Array]) -> Array:
        exponent, removed = carry
        return wanted & removed & (exponent > 0)

    def halve(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        exponent, _ = carry
        removed = removes(trial_strength(exponent))
        return jnp.where(removed, exponent - 1, exponent), removed

    # A strength that removes a feature in a single step, from which the search starts.
    enough = jnp.linalg.norm(skip, axis=1) + hierarchy * jnp.sum(jnp.abs(kernel), axis=1)
    enough = jnp.min(jnp.where(may_leave, enough, jnp.inf))
    highest = jnp.clip(jnp.ceil(jnp.log2(enough / FIRST_TRIAL)), 0, 100).astype(jnp.int32)
    return trial_strength(jax.lax.while_loop(continues, halve, (highest, jnp.ones((), bool)))[0])


def columns_to_groups(weights: Array, groups: Groups) -> Array:
    """``(D, C)`` to ``(G, L C)``: the weights of the L columns of each group, side by side."""
    gathered = gather(weights, groups)
    return gathered.reshape(gathered.shape[0], -1)


def groups_to_columns(weights: Array, groups: Groups, width: int) -> Array:
    """The inverse of :func:`columns_to_groups`, for C = ``width``."""
    return scatter(weights.reshape(weights.shape[0], -1, width), groups)


def skip_norms(params: PyTree, groups: Groups = None) -> Array:
    """``(D,)`` Euclidean norms of the skip weights of each feature, or ``(G,)`` of each group."""
    return jnp.sqrt(jnp.sum(jnp.square(columns_to_groups(params["skip"], groups)), axis=1))


def count_selected(state: TrainState) -> Array:
    """int32, the number of features (or groups) with non-zero skip weights."""
    return jnp.sum(_selected(state), dtype=jnp.int32)


def _selected(state: TrainState) -> Array:
    return jnp.any(columns_to_groups(state.params["skip"], state.spec.groups) != 0, axis=1)
