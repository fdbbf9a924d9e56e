"""Methods and data that the tests of the engine share."""

from __future__ import annotations

import jax
import jax.numpy as jnp

import fsjax
from fsjax.engine.prepare import Prepared, prepare
from fsjax.method import Batch, Method, Spec, create_state


def counting_method() -> Method:
    """Records what the engine does: params follow a fixed path, no learning."""
    import optax

    def init(key: jax.Array, spec: Spec):
        params = {"bias": jnp.zeros(spec.num_outputs)}
        extra = {"rows": jnp.zeros(spec.num_samples), "steps": jnp.zeros(())}
        return create_state(key, spec, params, optax.sgd(0.0), extra=extra)

    def after_step(state, grads, aux, batch: Batch, key):
        # The first column of X holds the row's number.
        rows = batch.x[:, 0].astype(jnp.int32)
        seen = state.extra["rows"].at[rows].add(batch.weight)
        return state.replace(extra={"rows": seen, "steps": state.extra["steps"] + 1})

    return Method(
        name="counting",
        init=init,
        loss=lambda p, s, b, k: (jnp.sum(p["bias"]) + b.weight.sum() * 0.0, {}),
        optimizer=optax.sgd(0.0),
        predict=lambda s, x: jnp.zeros((x.shape[0], s.spec.num_outputs)),
        score=lambda s: jnp.arange(s.spec.num_features, dtype=jnp.float32),
        after_step=after_step,
        num_features=2,
    )


STATIC = fsjax.methods.static_sparse(hidden=(8,), epsilon=2, learning_rate=0.1)


def prepared_by(data, protocol: str = "random", **changes) -> Prepared:
    dataset = fsjax.data.as_dataset(*data)
    options = dict(task="classification", num_features=3, seeds=(0,), split=protocol)
    return prepare(dataset, **options | changes)
