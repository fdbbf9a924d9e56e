"""LassoNet: a network whose features leave one by one (Lemhadri et al., JMLR 2021)."""

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

#: Above any number of epochs: the value of epochs that a path keeps begins as much lower.
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
    """
    until = num_features if until is None else until
    if until > num_features:
        raise ConfigError(
            f"until={until} is above num_features={num_features}; the path ends at K or below"
        )

    def apply(params: PyTree, state: TrainState, x: Array) -> Array:
        return outputs_of(SkipNetwork(state.spec.num_outputs, hidden), {"params": params}, x)

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        if spec.best_by not in ("loss", "last"):
            raise ConfigError(
                f"lassonet stops by the validation loss; use best_by='last' in place of "
                f"{spec.best_by!r}"
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
        groups, kernel = state.spec.groups, state.params["kernel"]
        skip = paths.by_group(state.params["skip"], groups)
        # Columns that are ruled out have no skip weights; the proximal step clears the others.
        skip = jnp.where(state.feature_mask[:, None], skip, 0.0)
        strength = state.log.penalty * rate
        skip, new = hier_prox(skip, paths.by_group(kernel, groups), strength, hierarchy)
        skip = paths.by_column(skip, groups, state.spec.num_outputs)
        kernel = paths.by_column(new, groups, kernel.shape[1])
        return state.replace(params={**state.params, "skip": skip, "kernel": kernel})

    def judge(state: TrainState) -> tuple[paths.Path, Array]:
        patience = jnp.where(state.log.started, path_patience, dense_patience)
        limit = jnp.where(state.log.started, path_epochs, dense_epochs)
        return paths.judge(state, patience, limit, tolerance)

    def keep_first(state: TrainState) -> Array:
        """The end of the first lambda with at most K features; before it, the newest epoch."""
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

    def select(state: TrainState) -> Selection:
        norms = paths.skip_norms(state.params, state.spec.groups)
        largest = jnp.max(norms)
        share = norms / jnp.where(largest > 0, largest, 1.0)
        inside = (state.epoch + 1) * (1.0 + share)
        return Selection(jnp.where(jnp.isinf(state.log.vanished), inside, state.log.last_seen))

    def monitor(state: TrainState) -> dict[str, Array]:
        path, count = state.log, paths.count_selected(state)
        done = path.started & (count <= until)
        numbers = {"lambda": path.penalty, "num_selected": count, "path_finished": done}
        return {name: value.astype(jnp.float32) for name, value in numbers.items()}

    return Method(
        About(
            tasks=tasks.SUPERVISED,
            num_features=num_features,
            takes_groups=True,
            validates=True,
        ),
        init=init,
        loss=loss,
        optimizer=adam_then_sgd(learning_rate, path_learning_rate, momentum),
        predict=lambda state, x: apply(state.params, state, x),
        select=select,
        after_step=after_step,
        after_epoch=after_epoch,
        keep=keep_first if until < num_features else "last",
        monitor=monitor,
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
    return state.log.vanished
