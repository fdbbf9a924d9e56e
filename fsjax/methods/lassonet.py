"""LassoNet: a network whose features leave one by one (Lemhadri et al., JMLR 2021)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from fsjax import tasks
from fsjax.errors import ConfigError, check_whole
from fsjax.method import Array, Batch, Method, PyTree, Spec, TrainState, create_state
from fsjax.methods.cached import cached_method
from fsjax.methods.lassonet_path import (
    by_column,
    by_group,
    choose,
    count_selected,
    first_lambda,
    first_path,
    judge,
    next_lambda,
    put_back,
    record,
    skip_norms,
)
from fsjax.methods.sparse_network import check_at_least_0, check_hidden
from fsjax.nets import SkipNetwork
from fsjax.phase_optimizer import adam_then_sgd, to_sgd
from fsjax.sparsity.hier_prox import hier_prox


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
        extra = first_path(params, until < num_features, spec)
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
        groups, skip, kernel = state.spec.groups, state.params["skip"], state.params["kernel"]
        new_skip, new_kernel = hier_prox(
            _allowed_skip(state), by_group(kernel, groups), strength, state.hyper["hierarchy"]
        )
        skip = by_column(new_skip, groups, skip.shape[1])
        kernel = by_column(new_kernel, groups, kernel.shape[1])
        return state.replace(params={**state.params, "skip": skip, "kernel": kernel})

    def after_epoch(state: TrainState, data: Batch, key: Array) -> TrainState:
        del data, key
        path, over = judge(record(state), state, patience, limit)
        entering = over & ~path.started
        first = first_lambda(state, entering) if path_start is None else state.hyper["path_start"]
        if until < num_features:
            path = choose(path, state, over, num_features)
        path = next_lambda(path, state, over, first, until)
        rate = state.hyper["path_learning_rate"]
        state = state.replace(extra=path, opt_state=to_sgd(state.opt_state, rate, entering))
        return put_back(state) if until < num_features else state

    def score(state: TrainState) -> Array:
        norms = skip_norms(state.params, state.spec.groups)
        largest = jnp.max(norms)
        share = norms / jnp.where(largest > 0, largest, 1.0)
        inside = (state.epoch + 1) * (1.0 + share)
        return jnp.where(jnp.isinf(state.extra.vanished), inside, state.extra.last_seen)

    def monitor(state: TrainState) -> dict[str, Array]:
        path, count = state.extra, count_selected(state)
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
        takes_groups=True,
        tasks=("classification", "regression"),
    )


def importances(state: TrainState) -> Array:
    """Lambda at which each feature left the network, as the authors define importance.

    A feature that comes back counts as if it had not left.

    Args:
      state: of one seed, such as ``jax.tree.map(lambda leaf: leaf[0], result.states)``.

    Returns:
      ``(D,)``, or ``(G,)`` for groups; infinite for features that never left, 0 for constant
      columns.
    """
    return state.extra.vanished


def _allowed_skip(state: TrainState) -> Array:
    """Skip weights, 0 in columns that are ruled out; the proximal step then clears the others."""
    skip = by_group(state.params["skip"], state.spec.groups)
    return jnp.where(state.feature_mask[:, None], skip, 0.0)


def _check_positive(label: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ConfigError(f"{label}={value}; choose a value above 0")
