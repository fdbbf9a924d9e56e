"""AutoNFS: one random mask per batch, from logits that a small layer makes of an embedding.

Wydmanski and Smieja, "AutoNFS: Automatic Neural Feature Selection", arXiv 2503.13304 (version 1:
"GFSNetwork: Differentiable Feature Selection via Gumbel-Sigmoid Relaxation").
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.arguments import Count, Fraction, NonNegative, Positive
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
from fsjax.methods.shared.network import PLAIN, NetworkOptions, keep_stats
from fsjax.registry import register
from fsjax.tables.groups import expand
from fsjax.tasks import SUPERVISED

#: The smallest gate of an open column.
HALF = 0.5

#: The lowest temperature; gradients of much colder masks are not finite.
COLDEST = 1e-6


@register(
    estimator="AutoNFS",
    paper="Wydmanski and Smieja, 2025",
    optimises="the loss on randomly masked inputs plus the mean of the masks",
    num_epochs=200,
    batch_size=32,
    training={"min_steps_per_epoch": 10},
    small={"hidden": (6,), "learning_rate": 0.03, "strength": 0.3},
    options=replace(PLAIN, hidden=(32, 32), learning_rate=3e-4),
    without=("finetune_epochs", "finetune_learning_rate"),
)
def auto_nfs(
    num_features: Count | None = None,
    *,
    strength: NonNegative = 1.0,
    embedding_dim: Count = 32,
    temperature: Positive = 2.0,
    decay: Fraction = 0.997,
    mask_learning_rate: Positive = 4e-3,
    opened: Literal["by_masks", "by_logit"] = "by_masks",
    **options: Any,
) -> Method:
    """A network behind a random mask of the inputs, whose mean is penalised.

    The logits of the columns are ``w = e V + c``, with a fixed normal embedding e, weights V that
    start at 0, and intercepts c. Each step draws one mask ``m_d = sigmoid((w_d + g_d) / tau)``
    with Gumbel noise g, and minimises ``L(f(m * x), y) + lambda mean_d m_d``. The temperature tau
    falls by a constant factor after each epoch. The number of open columns follows from lambda,
    and predictions use these columns alone.

    Adam moves each entry of V by about its rate, so that a logit moves by about
    ``sum_i |e_i|`` times the rate: an embedding of 32 entries takes the place of a rate about 26
    times as high. The authors' package, whose defaults these are except for its batches of a single
    row, also keeps e fixed; it weights the classes, which is not done here.

    Args:
      num_features: K; ``None`` leaves it to ``fit``. Columns are then ranked by their logits.
      strength: lambda, at least 0.
      embedding_dim: number of entries of e.
      temperature: tau in the first epoch, above 0.
      decay: factor of tau per epoch, in (0, 1]; tau does not fall below 1e-6.
      mask_learning_rate: of Adam, for V and c.
      opened: which columns are open. ``by_masks``: those that at least one of S masks without
        temperature, ``[w_d + g_d > 0]``, has with a probability of 1/2 or more, where S is the
        number of steps per epoch; the package draws these masks. ``by_logit``: ``w_d >= 0``, as in
        the paper, which are fewer.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`, for the network.

    Returns:
      The method; the score of a column is its logit, and its gate is that probability, or
      ``sigmoid(w_d)``.
    """
    body = NetworkOptions(**options)

    def logits(params: PyTree, state: TrainState) -> Array:
        mask = params["mask"]
        return state.extra["embedding"] @ mask["kernel"] + mask["bias"]

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_network, key_embedding, key_bias = jax.random.split(key, 3)
        weights, stats = body.init(key_network, spec)
        # PyTorch's intercepts of a layer with as many inputs.
        bound = embedding_dim**-0.5
        mask = {
            "kernel": jnp.zeros((embedding_dim, spec.num_units)),
            "bias": jax.random.uniform(key_bias, (spec.num_units,), minval=-bound, maxval=bound),
        }
        extra = {"stats": stats, "embedding": jax.random.normal(key_embedding, (embedding_dim,))}
        return create_state(spec, {"weights": weights, "mask": mask}, extra=extra)

    def loss(
        params: PyTree, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict[str, Any]]:
        key_noise, key_network = jax.random.split(key)
        values = logits(params, state)
        tau = jnp.maximum(temperature * decay ** state.epoch.astype(jnp.float32), COLDEST)
        mask = jax.nn.sigmoid((values + jax.random.gumbel(key_noise, values.shape)) / tau)
        # Constant columns are never selected, so the network does not see them.
        seen = expand(mask * state.feature_mask, state.spec.groups)
        value, aux = body.train(params["weights"], state, batch, key_network, seen)
        return value + strength * jnp.mean(mask), aux

    def optimizer(spec: Spec) -> optax.GradientTransformation:
        of_mask = optax.adam(mask_learning_rate)
        parts = {"weights": "weights", "mask": "mask"}
        return optax.partition({"weights": body.tx(spec), "mask": of_mask}, parts)

    def gates(state: TrainState) -> Array:
        values = logits(state.params, state)
        if opened == "by_logit":
            return jax.nn.sigmoid(values)
        return probability_of_any(values, state.spec.steps_per_epoch)

    def predict(state: TrainState, x: Array) -> Array:
        is_open = (gates(state) >= HALF) & state.feature_mask
        chosen = expand(is_open.astype(x.dtype), state.spec.groups)
        return body.predict(state.params["weights"], state, x, chosen)

    def monitor(state: TrainState) -> dict[str, Array]:
        return {"num_selected": jnp.sum(gates(state) >= HALF, dtype=jnp.float32)}

    return Method(
        About(
            tasks=SUPERVISED,
            num_features=num_features,
            takes_groups=True,
            gates=True,
            sparse=True,
            merges_copies=body.merges_copies,
        ),
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=predict,
        select=lambda state: Selection(logits(state.params, state), gates=gates(state)),
        after_step=keep_stats,
        keep="last",
        monitor=monitor,
    )


def probability_of_any(logits: Array, masks: int) -> Array:
    """The probability that ``logits + g > 0`` in at least one of ``masks`` draws of Gumbel noise.

    One draw has it with ``1 - exp(-exp(w))``; the result has the shape of ``logits``.
    """
    return -jnp.expm1(-masks * jnp.exp(logits))
