"""A method with two networks, in a file outside the library.

After the idea of Wojtas and Chen (NeurIPS 2020): one network predicts from masked rows, the other
learns how large the loss under a mask is. The loss draws the masks, and no epoch is kept before the
end of a warm-up.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax

import fsjax
from fsjax.arguments import Count, Positive

#: Masks per step.
MASKS = 8


@fsjax.register(
    estimator="DualNetwork",
    paper="an example",
    optimises="the task under drawn masks, and the squared error of its prediction from the mask",
    num_epochs=20,
)
def dual_network(
    num_features: Count = 2, *, warmup: Count = 4, width: Count = 8, learning_rate: Positive = 0.02
):
    """A network under masks of K columns, and one that predicts how good a mask is.

    Args:
      num_features: K, the number of columns in a mask.
      warmup: epochs before the first that may be kept.
      width: width of the hidden layers.
      learning_rate: learning rate of Adam.
    """

    def networks(spec):
        return fsjax.nets.MLP(spec.num_outputs, (width,)), fsjax.nets.MLP(1, (width,))

    def init(key, spec, data):
        operator, selector = networks(spec)
        rows = jnp.zeros((1, spec.num_columns))
        keys = jax.random.split(key)
        params = {
            "operator": operator.init(keys[0], rows)["params"],
            "selector": selector.init(keys[1], rows)["params"],
        }
        return fsjax.create_state(spec, params)

    def predicted(params, spec, x):
        return networks(spec)[0].apply({"params": params["operator"]}, x)

    def guessed(params, spec, masks):
        return networks(spec)[1].apply({"params": params["selector"]}, masks)[:, 0]

    def drawn(key, columns):
        order = jnp.argsort(jax.random.uniform(key, (MASKS, columns)), axis=1)
        return (jnp.argsort(order, axis=1) < num_features).astype(jnp.float32)

    def loss(params, state, batch, key):
        spec, masks = state.spec, drawn(key, state.spec.num_columns)

        def under(mask):
            outputs = predicted(params, spec, batch.x * mask)
            return fsjax.tasks.loss(spec.task, outputs, batch.y, batch.weight)

        losses = jax.vmap(under)(masks)
        errors = guessed(params, spec, masks) - jax.lax.stop_gradient(losses)
        return jnp.mean(losses) + jnp.mean(jnp.square(errors)), {}

    def importances(state):
        # By how much the predicted loss is lower with each column.
        singles = jnp.eye(state.spec.num_columns)
        return -guessed(state.params, state.spec, singles)

    def predict(state, x):
        chosen = jax.lax.top_k(importances(state), num_features)[1]
        mask = jnp.zeros(state.spec.num_columns).at[chosen].set(1.0)
        return predicted(state.params, state.spec, x * mask)

    return fsjax.Method(
        fsjax.About(tasks=("classification", "regression"), num_features=num_features),
        init=init,
        loss=loss,
        optimizer=optax.adam(learning_rate),
        predict=predict,
        select=lambda state: fsjax.Selection(importances(state)),
        keep=lambda state: jnp.where(state.epoch <= warmup, jnp.inf, state.value),
    )
