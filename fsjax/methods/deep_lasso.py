"""Deep Lasso: Cherepanova et al., "A Performance-Driven Benchmark for Feature Selection in Tabular
Deep Learning", NeurIPS 2023."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from fsjax import tasks
from fsjax.arguments import NonNegative
from fsjax.method import About, Batch, Method, PyTree, Selection, Spec, TrainState, create_state
from fsjax.methods.shared.network import PLAIN, NetworkOptions, keep_stats
from fsjax.registry import register

#: Under the roots, as a norm has no gradient where it is 0; that of the authors' code.
SMOOTHING = 1e-8


@register(
    estimator="DeepLasso",
    paper="Cherepanova et al., NeurIPS 2023",
    optimises="the loss plus the norms of its gradient by each column",
    num_epochs=100,
    batch_size=128,
    training={"min_steps_per_epoch": 10},
    small={"hidden": (6,)},
    options=replace(PLAIN, hidden=(200,), optimizer="adamw", weight_decay=2e-4),
    without=("finetune_epochs", "finetune_learning_rate"),
)
def deep_lasso(
    *,
    penalty: NonNegative = 0.1,
    **options: Any,
) -> Method:
    """A network whose loss is to feel few columns: the lasso, on gradients instead of weights.

    It minimises ``L + lambda sum_j ||(dL / dx_1j, ..., dL / dx_Bj)||_2`` over the B rows of a
    batch, where L is their mean loss. Of a linear regression that is a group lasso whose weights
    are multiplied by the size of the residuals.

    Args:
      penalty: lambda, at least 0. The authors' code weighs the two terms by 1 - w and w, which is
        ``lambda = w / (1 - w)``, and looks for w between 0.01 and 0.5. Norms over B rows of a mean
        fall with the root of B, so that larger batches need a larger one.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`; rate and decay are
        the authors', but for the steps in which their rate falls.

    Returns:
      The method, for classification and regression; its score of a column is the norm of the
      gradient over all training rows.

    Raises:
      ConfigError: for an unknown option or a value outside its range.
    """
    body = NetworkOptions(**options)

    def init(key: Array, spec: Spec, data: Batch) -> TrainState:
        del data
        weights, stats = body.init(key, spec)
        extra = {"stats": stats, "norms": jnp.zeros(spec.num_columns)}
        return create_state(spec, weights, extra=extra)

    def loss(
        params: PyTree, state: TrainState, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Any]]:
        def felt(x: Array) -> tuple[Array, dict[str, PyTree]]:
            rows = batch._replace(x=x)
            return body.train(params, state, rows, key)

        (value, aux), slopes = jax.value_and_grad(felt, has_aux=True)(batch.x)
        norms = jnp.sqrt(jnp.sum(jnp.square(slopes), axis=0) + SMOOTHING)
        return value + penalty * jnp.sum(norms), aux

    def predict(state: TrainState, x: Array) -> Array:
        return body.predict(state.params, state, x)

    def finish(state: TrainState, data: Batch, key: Array) -> TrainState:
        del key

        def felt(x: Array) -> Array:
            return tasks.loss(state.spec.task, predict(state, x), data.y, data.weight)

        norms = jnp.linalg.norm(jax.grad(felt)(data.x), axis=0)
        return state.replace(extra={**state.extra, "norms": norms})

    return Method(
        # Forward 2, the gradient by the inputs 2, and twice as much backward through either.
        About(tasks=tasks.SUPERVISED, flops=12.0),
        init=init,
        loss=loss,
        optimizer=body.tx,
        predict=predict,
        select=lambda state: Selection(state.extra["norms"]),
        after_step=keep_stats,
        finish=finish,
    )
