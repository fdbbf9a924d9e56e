"""LassoNet: a network whose features leave one by one (Lemhadri et al., JMLR 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn

from fsjax import tasks
from fsjax.errors import ConfigError, check_whole
from fsjax.method import Array, Batch, Method, PyTree, Spec, TrainState, create_state
from fsjax.methods.cached import cached_method
from fsjax.methods.sparse_network import check_at_least_0, check_hidden
from fsjax.nets.mlp import MLP, fan_in_uniform
from fsjax.sparsity.hier_prox import hier_prox

#: The automatic start of the path, as in the authors' code: the first value that is tried, the
#: change that ends the proximal steps of a trial, the most of them, and the final divisor.
FIRST_TRIAL, TRIAL_TOLERANCE, TRIAL_STEPS, START_DIVISOR = 1e-6, 1e-5, 10_000, 10.0


class Path(NamedTuple):
    """Where a run is on its path, and what it has seen (``TrainState.extra``).

    Attributes:
      penalty: float32, the current lambda; 0 in the dense phase.
      started: bool, whether the dense phase is over.
      finished: bool, whether the path has reached its end.
      epochs: int32, epochs at the current lambda (or in the dense phase).
      waited: int32, the last ones of them without improvement.
      best: float32, the objective that has to be improved on.
      vanished: ``(D,)`` lambda at which each feature left; infinite for those that are in.
      last_seen: ``(D,)`` float32, the last epoch after which each feature was in.
      chosen: parameters when no more than K features were in for the first time, for paths that
        go on from there; else ``()``.
      has_chosen: bool, whether ``chosen`` is set.
    """

    penalty: Array
    started: Array
    finished: Array
    epochs: Array
    waited: Array
    best: Array
    vanished: Array
    last_seen: Array
    chosen: PyTree
    has_chosen: Array


class PhaseState(NamedTuple):
    """State of :func:`adam_then_sgd`.

    Attributes:
      hyperparams: ``learning_rate`` of the current phase.
      adaptive: bool, whether the phase is Adam's.
      count: int32, steps in the current phase.
      moment: Adam's first moment, or the momentum buffer.
      square: Adam's second moment; at rest in the second phase.
    """

    hyperparams: dict[str, Array]
    adaptive: Array
    count: Array
    moment: PyTree
    square: PyTree


def adam_then_sgd(learning_rate: float, momentum: float) -> optax.GradientTransformation:
    """Adam (0.9, 0.999, 1e-8), and after :func:`to_sgd` gradient descent with momentum.

    Both are one formula with traced coefficients: a step is a single pass over the parameters,
    with nothing to branch on under ``vmap``.

    Args:
      learning_rate: of Adam.
      momentum: of gradient descent; not Nesterov's.
    """

    def init(params: PyTree) -> PhaseState:
        zeros = jax.tree.map(jnp.zeros_like, params)
        rate = {"learning_rate": jnp.asarray(learning_rate, jnp.float32)}
        return PhaseState(rate, jnp.ones((), bool), jnp.zeros((), jnp.int32), zeros, zeros)

    def update(
        grads: PyTree, state: PhaseState, params: PyTree | None = None
    ) -> tuple[PyTree, PhaseState]:
        del params
        adaptive, count = state.adaptive, state.count + 1
        # A new phase forgets the moment of the one before.
        decay = jnp.where(state.count == 0, 0.0, jnp.where(adaptive, 0.9, momentum))
        gain = jnp.where(adaptive, 0.1, 1.0)
        decay_square, gain_square = jnp.where(adaptive, 0.999, 1.0), jnp.where(adaptive, 1e-3, 0.0)
        moment = jax.tree.map(lambda m, g: decay * m + gain * g, state.moment, grads)
        square = jax.tree.map(
            lambda s, g: decay_square * s + gain_square * jnp.square(g), state.square, grads
        )
        rate = state.hyperparams["learning_rate"]
        rate = jnp.where(adaptive, rate / (1 - 0.9**count), rate)
        unbias = 1 / (1 - 0.999**count)

        def move(m: Array, s: Array) -> Array:
            return -rate * m / jnp.where(adaptive, jnp.sqrt(s * unbias) + 1e-8, 1.0)

        updates = jax.tree.map(move, moment, square)
        return updates, state._replace(count=count, moment=moment, square=square)

    return optax.GradientTransformation(init, update)


def to_sgd(state: PhaseState, learning_rate: Array, when: Array) -> PhaseState:
    """Enters the second phase of :func:`adam_then_sgd` where ``when`` (bool) is true."""
    rate = jnp.where(when, learning_rate, state.hyperparams["learning_rate"])
    return state._replace(
        hyperparams={"learning_rate": rate},
        adaptive=state.adaptive & ~when,
        count=jnp.where(when, 0, state.count),
    )


@jax.custom_vjp
def _input_product(x: Array, weights: Array) -> Array:
    """``x @ weights`` with a gradient that is cheaper on a CPU where x is a large table."""
    return x @ weights


def _input_product_forward(x: Array, weights: Array) -> tuple[Array, tuple[Array, Array]]:
    return x @ weights, (x, weights)


def _input_product_backward(kept: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
    x, weights = kept
    # XLA would transpose x, the large one, inside a product of half the speed.
    fixed = jax.lax.optimization_barrier
    return slope @ weights.T, fixed(fixed(slope.T) @ x).T


_input_product.defvjp(_input_product_forward, _input_product_backward)


class SkipNetwork(nn.Module):
    """A ReLU network and a linear layer from the inputs to the outputs, added up.

    Initial values are PyTorch's. The parameters of the layers on the inputs are ``skip`` (D, C)
    and, for the first hidden layer, ``kernel`` (D, H) and ``bias`` (H).

    Attributes:
      num_outputs: C.
      hidden: widths of the hidden layers, at least one.
    """

    num_outputs: int
    hidden: Sequence[int]

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """``(B, D) -> (B, C)``."""
        columns, width = x.shape[-1], self.hidden[0]
        init = fan_in_uniform(columns)
        skip = self.param("skip", init, (columns, self.num_outputs), jnp.float32)
        kernel = self.param("kernel", init, (columns, width), jnp.float32)
        bias = self.param("bias", init, (width,), jnp.float32)
        # One product for both: a narrow one costs half as much as a wide one.
        both = _input_product(x, jnp.concatenate([kernel, skip], axis=1))
        first = nn.relu(both[:, :width] + bias)
        rest = MLP(self.num_outputs, tuple(self.hidden[1:]), layer_norm=False, activation="relu")
        return both[:, width:] + rest(first)


@cached_method
def lassonet(
    num_features: int = 50,
    *,
    hidden: Sequence[int] = (100,),
    hierarchy: float = 10.0,
    dense_epochs: int = 1000,
    dense_patience: int = 100,
    path_epochs: int = 100,
    path_patience: int = 10,
    learning_rate: float = 1e-3,
    path_learning_rate: float = 1e-3,
    momentum: float = 0.9,
    path_start: float | None = None,
    path_multiplier: float = 1.02,
    tolerance: float = 0.99,
    until: int | None = None,
) -> Method:
    """A network with a skip layer, trained under a penalty that grows until K features are left.

    The outputs are a linear map of the inputs plus a ReLU network. The penalty is lambda times
    the sum over features of the norm of their skip weights, and no first-layer weight of a feature
    may exceed M times that norm (:func:`fsjax.sparsity.hier_prox.hier_prox` after every step): a
    feature without skip weights is out of the network.

    A dense phase with Adam (lambda 0) comes first, then the path with gradient descent: one lambda
    after the other, each from the weights of the one before. A lambda is over after
    ``path_patience`` epochs without improvement of the validation loss plus penalty, or after
    ``path_epochs``. Train with as many epochs as the path may take, thousands: the method stops by
    itself. A run that ends before its path still ranks the features; the recorded
    ``train/path_finished`` is then 0.

    Constant columns are kept out of the network from the first step.

    Args:
      num_features: K.
      hidden: widths of the hidden layers, at least one, as a tuple.
      hierarchy: M, at least 0. With 0 the model is linear.
      dense_epochs: most epochs of the dense phase.
      dense_patience: epochs without improvement that end it.
      path_epochs: most epochs for each lambda.
      path_patience: epochs without improvement that end a lambda.
      learning_rate: of Adam, in the dense phase.
      path_learning_rate: of gradient descent, on the path.
      momentum: of gradient descent, in [0, 1), kept along the path.
      path_start: the first lambda, above 0; ``None`` finds one small enough to remove nothing.
      path_multiplier: from one lambda to the next, above 1.
      tolerance: an improvement is below this share of the best value, in (0, 1].
      until: features left at the end of the path, at most K. Where it is below K, the network with
        the first selection of at most K features is the one that predicts.

    Returns:
      The method. Its score orders the features by when they left the network, and those still in
      it by the norm of their skip weights; :func:`importances` gives the lambdas.

    Raises:
      ConfigError: for a value outside its range.
    """
    num_features = check_whole("num_features", num_features)
    until = num_features if until is None else check_whole("until", until, least=0)
    if until > num_features:
        raise ConfigError(f"until={until} but num_features={num_features}; choose at most that")
    hidden = check_hidden(hidden)
    limit = check_whole("dense_epochs", dense_epochs), check_whole("path_epochs", path_epochs)
    patience = (
        check_whole("dense_patience", dense_patience),
        check_whole("path_patience", path_patience),
    )
    check_at_least_0("hierarchy", hierarchy)
    _check_positive("learning_rate", learning_rate)
    _check_positive("path_learning_rate", path_learning_rate)
    if path_start is not None:
        _check_positive("path_start", path_start)
    if not 0 <= momentum < 1:
        raise ConfigError(f"momentum={momentum}; choose a value from 0 to below 1")
    if not 1 < path_multiplier < float("inf"):
        raise ConfigError(f"path_multiplier={path_multiplier}; choose a value above 1")
    if not 0 < tolerance <= 1:
        raise ConfigError(f"tolerance={tolerance}; choose a value above 0, at most 1")
    optimizer = adam_then_sgd(learning_rate, momentum)
    hyper = {
        "hierarchy": hierarchy,
        "path_learning_rate": path_learning_rate,
        "path_multiplier": path_multiplier,
        "tolerance": tolerance,
    }
    if path_start is not None:
        hyper["path_start"] = path_start

    def apply(params: PyTree, state: TrainState, x: Array) -> Array:
        return SkipNetwork(state.spec.num_outputs, hidden).apply({"params": params}, x)

    def init(key: Array, spec: Spec) -> TrainState:
        if spec.best_by not in ("loss", "last"):
            raise ConfigError(
                f"lassonet stops by the validation loss; use best_by='last' in place of "
                f"{spec.best_by!r}"
            )
        key_train, key_network = jax.random.split(key)
        inputs = jnp.zeros((1, spec.num_features))
        params = SkipNetwork(spec.num_outputs, hidden).init(key_network, inputs)["params"]
        extra = _first_path(params, keeps=until < num_features)
        return create_state(key_train, spec, params, optimizer, hyper=hyper, extra=extra)

    def loss(
        params: PyTree, state: TrainState, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Array]]:
        del key
        outputs = apply(params, state, batch.x)
        return tasks.loss(state.spec.task, outputs, batch.y, batch.weight), {}

    def after_step(
        state: TrainState, grads: PyTree, aux: dict[str, Array], batch: Batch, key: Array
    ) -> TrainState:
        del grads, aux, batch, key
        strength = state.extra.penalty * state.opt_state.hyperparams["learning_rate"]
        skip, kernel = hier_prox(
            _allowed_skip(state), state.params["kernel"], strength, state.hyper["hierarchy"]
        )
        return state.replace(params={**state.params, "skip": skip, "kernel": kernel})

    def after_epoch(state: TrainState, data: Batch, key: Array) -> TrainState:
        del data, key
        path, over = _judge(_record(state), state, patience, limit)
        entering = over & ~path.started
        first = _start(state, entering) if path_start is None else state.hyper["path_start"]
        if until < num_features:
            path = _choose(path, state.params, over, num_features)
        path = _next_lambda(path, state, over, first, until)
        rate = state.hyper["path_learning_rate"]
        state = state.replace(extra=path, opt_state=to_sgd(state.opt_state, rate, entering))
        return _put_back(state) if until < num_features else state

    def score(state: TrainState) -> Array:
        norms = skip_norms(state.params)
        largest = jnp.max(norms)
        share = norms / jnp.where(largest > 0, largest, 1.0)
        inside = (state.epoch + 1) * (1.0 + share)
        return jnp.where(jnp.isinf(state.extra.vanished), inside, state.extra.last_seen)

    def monitor(state: TrainState) -> dict[str, Array]:
        path, count = state.extra, _count_selected(state.params)
        done = path.started & (count <= until)
        numbers = {"lambda": path.penalty, "num_selected": count, "path_finished": done}
        return {name: value.astype(jnp.float32) for name, value in numbers.items()}

    return Method(
        name="lassonet",
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=lambda state, x: apply(state.params, state, x),
        score=score,
        after_step=after_step,
        after_epoch=after_epoch,
        finished=lambda state: state.extra.finished,
        monitor=monitor,
        num_features=num_features,
        best_by="last",
        tasks=("classification", "regression"),
    )


def importances(state: TrainState) -> Array:
    """Lambda at which each feature left the network, as the authors define importance.

    A feature that comes back counts as if it had not left.

    Args:
      state: of one seed, such as ``jax.tree.map(lambda leaf: leaf[0], result.states)``.

    Returns:
      ``(D,)``; infinite for features that never left, 0 for constant columns.
    """
    return state.extra.vanished


def automatic_start(
    skip: Array, kernel: Array, hierarchy: Array, may_leave: Array, wanted: Array
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


def skip_norms(params: PyTree) -> Array:
    """``(D,)`` Euclidean norms of the skip weights of each feature."""
    return jnp.sqrt(jnp.sum(jnp.square(params["skip"]), axis=1))


def _selected(params: PyTree) -> Array:
    return jnp.any(params["skip"] != 0, axis=1)


def _count_selected(params: PyTree) -> Array:
    return jnp.sum(_selected(params), dtype=jnp.int32)


def _allowed_skip(state: TrainState) -> Array:
    """Skip weights, 0 in columns that are ruled out; the proximal step then clears the others."""
    return jnp.where(state.feature_mask[:, None], state.params["skip"], 0.0)


def _first_path(params: PyTree, keeps: bool) -> Path:
    features = params["skip"].shape[0]
    none, no = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    return Path(
        penalty=jnp.zeros((), jnp.float32),
        started=no,
        finished=no,
        epochs=none,
        waited=none,
        best=jnp.full((), jnp.inf, jnp.float32),
        vanished=jnp.full((features,), jnp.inf, jnp.float32),
        last_seen=jnp.zeros((features,), jnp.float32),
        chosen=params if keeps else (),
        has_chosen=no,
    )


def _record(state: TrainState) -> Path:
    """Which features are in after this epoch."""
    path, inside = state.extra, _selected(state.params)
    left = jnp.where(jnp.isinf(path.vanished), path.penalty, path.vanished)
    return path._replace(
        vanished=jnp.where(inside, jnp.inf, left),
        last_seen=jnp.where(inside, state.epoch.astype(jnp.float32), path.last_seen),
    )


def _start(state: TrainState, wanted: Array) -> Array:
    """The first lambda: :func:`automatic_start` in units of the path's step size, and a tenth."""
    params = state.params
    strength = automatic_start(
        params["skip"], params["kernel"], state.hyper["hierarchy"], state.feature_mask, wanted
    )
    return strength / state.hyper["path_learning_rate"] / START_DIVISOR


def _judge(
    path: Path, state: TrainState, patience: tuple[int, int], limit: tuple[int, int]
) -> tuple[Path, Array]:
    """Counts an epoch; whether it is the last one at this lambda, or of the dense phase."""
    objective = state.value + path.penalty * jnp.sum(skip_norms(state.params))
    improved = objective < state.hyper["tolerance"] * path.best
    path = path._replace(
        epochs=path.epochs + 1,
        waited=jnp.where(improved, 0, path.waited + 1),
        best=jnp.where(improved, objective, path.best),
    )
    most_waited, most_epochs = (
        jnp.where(path.started, on_path, dense) for dense, on_path in (patience, limit)
    )
    return path, (path.waited >= most_waited) | (path.epochs >= most_epochs)


def _choose(path: Path, params: PyTree, over: Array, most: int) -> Path:
    """Copies the parameters when at most so many features are in at the end of a lambda."""
    now = over & path.started & ~path.has_chosen & (_count_selected(params) <= most)
    chosen = jax.tree.map(lambda new, old: jnp.where(now, new, old), params, path.chosen)
    return path._replace(chosen=chosen, has_chosen=path.has_chosen | now)


def _next_lambda(path: Path, state: TrainState, over: Array, first: Array, until: int) -> Path:
    """Goes to the next lambda where ``over`` is true, or ends the path."""
    finished = over & path.started & (_count_selected(state.params) <= until)
    growing = over & ~finished
    following = jnp.where(path.started, path.penalty * state.hyper["path_multiplier"], first)
    penalty = jnp.where(growing, following, path.penalty)
    # The same weights under the new lambda are what has to be improved on.
    objective = state.value + penalty * jnp.sum(skip_norms(state.params))
    return path._replace(
        penalty=penalty,
        started=path.started | over,
        finished=finished,
        epochs=jnp.where(growing, 0, path.epochs),
        waited=jnp.where(growing, 0, path.waited),
        best=jnp.where(growing, objective, path.best),
    )


def _put_back(state: TrainState) -> TrainState:
    """The chosen parameters, once nothing more will be trained."""
    path = state.extra
    now = path.has_chosen & (path.finished | (state.epoch >= state.spec.num_epochs))
    params = jax.tree.map(lambda new, old: jnp.where(now, new, old), path.chosen, state.params)
    return state.replace(params=params)


def _check_positive(label: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ConfigError(f"{label}={value}; choose a value above 0")
