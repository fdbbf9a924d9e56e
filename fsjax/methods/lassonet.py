"""LassoNet: a network that loses its features one by one (Lemhadri et al., JMLR 2021)."""

from __future__ import annotations

from typing import Annotated, Any

import jax.numpy as jnp
from jax import Array

from fsjax import tasks
from fsjax.arguments import Count, Fraction, Layers, NonNegative, Positive, Rate, Whole, Within
from fsjax.errors import ConfigError
from fsjax.method import (
    About,
    Batch,
    Method,
    Phase,
    PyTree,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
)
from fsjax.methods.shared import lassonet_path as paths
from fsjax.methods.shared.phase_optimizer import adam_then_sgd, to_sgd
from fsjax.nets import SkipNetwork, outputs_of
from fsjax.registry import register
from fsjax.sparsity.hier_prox import hier_prox

#: Larger than any number of epochs; see ``keep_first``.
_FAR = 1e7


@register(
    estimator="LassoNet",
    paper="Lemhadri et al., JMLR 2021",
    optimises="the loss plus a penalty on a column's linear weights, which bound its hidden ones",
    num_epochs=50_000,
    batch_size=None,
    training={"shuffle": False},
    small={
        "num_features": 4,
        "hidden": (6, 5),
        "dense_epochs": 2,
        "path_epochs": 1,
        "path_multiplier": 2.0,
    },
)
def lassonet(
    num_features: Count = 50,
    *,
    hidden: Layers = (100,),
    hierarchy: NonNegative = 10.0,
    dense_epochs: Count = 1000,
    dense_patience: Count = 100,
    path_epochs: Count = 100,
    path_patience: Count = 10,
    learning_rate: Positive = 1e-3,
    path_learning_rate: Positive = 1e-3,
    momentum: Rate = 0.9,
    path_start: Positive | None = None,
    path_multiplier: Annotated[float, Within(above=1)] = 1.02,
    tolerance: Fraction = 0.99,
    until: Whole | None = None,
) -> Method:
    """A network with a skip layer, trained under a growing penalty until K features are left.

    The outputs are a linear map of the inputs (the skip layer, weights theta) plus a ReLU network
    with first-layer weights W. It minimises ``L + lambda sum_j ||theta_j||_2`` subject to
    ``||W_j||_inf <= M ||theta_j||_2``, by a proximal step after every gradient step
    (:func:`fsjax.sparsity.hier_prox.hier_prox`). A feature whose skip weights are all 0 has
    therefore left the network.

    Training begins with a dense phase (lambda = 0, Adam). The path follows (gradient descent with
    momentum): lambda grows by a factor, and training continues from the current weights. A lambda
    ends after ``path_patience`` epochs in which validation loss plus penalty did not improve, or
    after ``path_epochs``. Allow as many epochs as the path may take, which are thousands; the
    method stops by itself. If the run ends before the path does, the features are still ranked, and
    ``train/path_finished`` in the history is 0.

    Constant columns are excluded from the network from the first step.

    Args:
      num_features: K.
      hidden: widths of the hidden layers, at least one, as a tuple.
      hierarchy: M, at least 0. With 0 the model is linear.
      dense_epochs: largest number of epochs of the dense phase.
      dense_patience: number of epochs without improvement that ends the dense phase.
      path_epochs: largest number of epochs for each lambda.
      path_patience: number of epochs without improvement that ends a lambda.
      learning_rate: of Adam in the dense phase.
      path_learning_rate: of gradient descent on the path.
      momentum: of gradient descent, in [0, 1); its buffer is kept from one lambda to the next.
      path_start: the first lambda, above 0; ``None`` finds one that is too small to remove a
        feature.
      path_multiplier: ratio of each lambda to the one before, above 1.
      tolerance: an epoch improves if its value is below this share of the best one, in (0, 1].
      until: number of features at which the path ends, at most K; ``None`` for K. Below K, the
        network that predicts is the first one on the path with at most K features.

    Returns:
      The method. Its score orders the features by when they left the network, and those still in
      it by the norm of their skip weights; :func:`importances` returns the lambdas.
    """
    until = num_features if until is None else until
    if until > num_features:
        raise ConfigError(f"until={until} is above num_features={num_features}; choose at most K")

    def apply(params: PyTree, state: TrainState, x: Array) -> Array:
        return outputs_of(SkipNetwork(state.spec.num_outputs, hidden), {"params": params}, x)

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        if spec.best_by not in ("loss", "last"):
            raise ConfigError(
                f"best_by={spec.best_by!r}, but lassonet stops by the validation loss; choose "
                "'loss' or 'last'"
            )
        inputs = jnp.zeros((1, spec.num_columns))
        params = SkipNetwork(spec.num_outputs, hidden).init(key, inputs)["params"]
        return create_state(spec, params, log=paths.first_path(spec))

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        outputs = apply(params, state, batch.x)
        return state.spec.loss_of(outputs, batch.y, batch.weight), {}

    def after_step(state: TrainState, *_: Any) -> TrainState:
        rate = jnp.where(state.log.started, path_learning_rate, learning_rate)
        return proximal_step(state, state.log.penalty * rate, hierarchy)

    def judge(state: TrainState) -> tuple[paths.Path, Array]:
        patience = jnp.where(state.log.started, path_patience, dense_patience)
        limit = jnp.where(state.log.started, path_epochs, dense_epochs)
        return paths.judge(state, patience, limit, tolerance)

    def keep_first(state: TrainState) -> Array:
        """Value of an epoch, of which the lowest is kept.

        Lowest at the end of the first lambda with at most K features; before that, the latest
        epoch has the lowest value so far.
        """
        path, over = judge(state)
        reached = over & path.started & (paths.count_selected(state) <= num_features)
        return jnp.where(reached, state.epoch - _FAR, -state.epoch.astype(jnp.float32))

    def after_epoch(state: TrainState, data: TrainingRows, key: Array) -> TrainState:
        path, over = judge(state)
        entering = over & ~path.started
        first: Array | float | None = path_start
        if first is None:
            first = paths.first_lambda(state, entering, hierarchy, path_learning_rate)
        path, finished = paths.next_lambda(path, state, over, first, until, path_multiplier)
        opt_state = to_sgd(state.opt_state, entering)
        return state.replace(log=path, opt_state=opt_state, done=finished)

    return Method(
        About(tasks=tasks.TASKS, num_features=num_features, takes_groups=True, validates=True),
        init=init,
        loss=loss,
        optimizer=adam_then_sgd(learning_rate, path_learning_rate, momentum),
        predict=lambda state, x: apply(state.params, state, x),
        select=order_of_exit,
        after_step=after_step,
        after_epoch=after_epoch,
        keep=keep_first if until < num_features else "last",
        monitor=lambda state: path_metrics(state, until),
        phases=lambda spec: dense_phase_and_path(dense_epochs, dense_patience, until),
    )


def proximal_step(state: TrainState, strength: Array, hierarchy: float | Array) -> TrainState:
    """Shrinks skip weights by ``strength``, and first-layer weights to at most M times those."""
    groups, kernel = state.spec.groups, state.params["kernel"]
    skip = paths.columns_to_groups(state.params["skip"], groups)
    # Without skip weights, the proximal step also clears a column's first-layer weights.
    skip = jnp.where(state.feature_mask[:, None], skip, 0.0)
    skip, new = hier_prox(skip, paths.columns_to_groups(kernel, groups), strength, hierarchy)
    skip = paths.groups_to_columns(skip, groups, state.spec.num_outputs)
    kernel = paths.groups_to_columns(new, groups, kernel.shape[1])
    return state.replace(params={**state.params, "skip": skip, "kernel": kernel})


def order_of_exit(state: TrainState) -> Selection:
    """Scores features by when they left the network, and higher by skip weights those still in."""
    norms = paths.skip_norms(state.params, state.spec.groups)
    largest = jnp.max(norms)
    share = norms / jnp.where(largest > 0, largest, 1.0)
    inside = (state.epoch + 1) * (1.0 + share)
    return Selection(jnp.where(jnp.isinf(state.log.vanished), inside, state.log.last_seen))


def path_metrics(state: TrainState, until: int) -> dict[str, Array]:
    """What the history records of the path, which ends with ``until`` features."""
    path, count = state.log, paths.count_selected(state)
    done = path.started & (count <= until)
    numbers = {"lambda": path.penalty, "num_selected": count, "path_finished": done}
    return {name: value.astype(jnp.float32) for name, value in numbers.items()}


def dense_phase_and_path(dense_epochs: int, dense_patience: int, until: int) -> tuple[Phase, Phase]:
    """What a run of enough epochs reaches; arguments as of :func:`lassonet`."""
    begins = Phase(
        name=f"the path begins (after at most dense_epochs={dense_epochs})",
        epochs=dense_epochs + 1,
        without="no column has left the network: they are ranked by weights of a dense network",
        instead="a smaller dense_epochs or dense_patience",
        soonest=min(dense_epochs, dense_patience + 1) + 1,
        recorded="lambda",
    )
    ends = Phase(
        name=f"the path ends (with until={until} columns)",
        epochs=begins.epochs,
        without="columns that are still in the network are ranked by their weights",
        instead="a larger path_multiplier or a smaller path_patience",
        soonest=begins.soonest,
        recorded="path_finished",
    )
    return begins, ends


def importances(state: TrainState) -> Array:
    """The lambda at which each feature left the network: the authors' importance.

    A feature that returns counts as if it had not left.

    Args:
      state: state of one seed, for example ``jax.tree.map(lambda leaf: leaf[0], result.states)``.

    Returns:
      ``(D,)``, or ``(G,)`` for groups: infinity for features that never left, 0 for constant
      columns.
    """
    return state.log.vanished
