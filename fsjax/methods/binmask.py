"""BinMask (Jia and Rinard): L0 regularisation by binary masks and straight-through gradients.

On the inputs it selects features (sections 3.2 and 4.1), on the weights it makes the network
sparse (4.2) or regularises it (4.3).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax.numpy as jnp
import optax
from jax import Array

from fsjax import sparsity
from fsjax.arguments import STATIC, Count, NonNegative, Positive, Rate, known
from fsjax.errors import ConfigError
from fsjax.groups import expand
from fsjax.method import (
    About,
    Batch,
    Method,
    Search,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
)
from fsjax.methods.shared.network import TRAINING, NetworkOptions, close, keep_stats
from fsjax.registry import register
from fsjax.tasks import SUPERVISED

#: alpha_0 by what is masked (Algorithm 1, and section 4.1 for the inputs).
INITIAL = {"inputs": 0.02, "weights": 0.3}

#: How much the latent value counts beside the smoothed mask, to tell columns of equal ones apart.
TIE_BREAK = 1e-4

#: The threshold of masks that no search has closed.
HALF = 0.5


@register(
    estimator="BinMask",
    paper="Jia and Rinard, 2023",
    optimises="the loss plus a price for every open input (or weight)",
    num_epochs=100,
    small={"hidden": (6,), "warmup": 0.0},
    options=NetworkOptions(),
    **TRAINING,
)
def binmask(
    num_features: Count | None = None,
    *,
    masked: Literal["inputs", "weights"] = "inputs",
    strength: NonNegative = 1e-3,
    search: bool = True,
    initial: NonNegative | None = None,
    clip: Positive = 1.0,
    mask_learning_rate: Positive = 1e-3,
    mask_final_learning_rate: Positive = 1e-5,
    warmup: Annotated[Rate, STATIC] = 0.1,
    smoothing: Rate = 0.9,
    **options: Any,
) -> Method:
    """BinMask on the inputs or the weights of a network.

    Args:
      num_features: K; ``None`` leaves it to ``fit``.
      masked: ``inputs``, or ``weights``: all kernels of dense and convolutional layers.
      strength: lambda, from 0: the price of an open mask in the loss; the first one to be tried
        in a search.
      search: for masked inputs, whether to look for the strength that keeps exactly K (section
        3.2); otherwise there is one training, and K of its columns are taken by their masks.
      initial: alpha_0, at least 0; by default 0.02 for inputs and 0.3 for weights.
      clip: alpha_1: latent values stay within ``[-clip, clip]``.
      mask_learning_rate: eta_0 of the masks' Adam.
      mask_final_learning_rate: eta_1, in the last epoch.
      warmup: share of the epochs in which the masks rest, in [0, 1).
      smoothing: gamma of equation 6, in [0, 1).
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`.

    Returns:
      The method. With masked inputs the score of a column is its smoothed mask, and the network
      predicts with the columns whose smoothed mask reaches the threshold; with masked weights it
      is the sum of the absolute weights of its input neuron.
    """
    on_inputs = masked == "inputs"
    search = search and on_inputs
    if search and known(strength) and strength == 0:
        raise ConfigError("a search cannot start at strength=0; choose a value above 0")
    initial = INITIAL[masked] if initial is None else initial
    body = NetworkOptions(**options)
    if on_inputs and body.finetune_epochs:
        raise ConfigError("finetune_epochs is for masked weights; use the retrain protocol instead")

    def optimizer(spec: Spec) -> optax.GradientTransformation:
        epochs = body.mask_epochs(spec)
        return sparsity.binmask_optimizer(
            body.tx(spec),
            num_epochs=epochs,
            steps_per_epoch=spec.steps_per_epoch,
            warmup=warmup,
            learning_rate=mask_learning_rate,
            final_learning_rate=mask_final_learning_rate,
            clip=clip,
            end_epoch=epochs if body.finetune_epochs else None,
        )

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        weights, stats = body.init(key, spec)
        if not on_inputs:
            params = sparsity.init_binmask(weights, initial=initial)
            return create_state(spec, params, extra={"stats": stats})
        latents = jnp.full((spec.num_units,), initial, jnp.float32)
        extra = {
            "stats": stats,
            "smoothed": jnp.zeros((spec.num_units,)),
            "threshold": jnp.asarray(-1.0),
        }
        return create_state(spec, sparsity.Masked(weights, {"inputs": latents}), extra=extra)

    def loss(
        params: sparsity.Masked, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        if not on_inputs:
            value, aux = body.train(sparsity.masked_weights(params), state, batch, key)
        else:
            mask = sparsity.quantize(params.latents["inputs"])
            weights, x = body.gate(params.weights, batch.x, expand(mask, state.spec.groups))
            value, aux = body.train(weights, state, batch._replace(x=x), key)
            aux = {**aux, "mask": mask}
        return value + strength * sparsity.mask_penalty(params.latents), aux

    def after_step(state: TrainState, grads: Any, aux: dict[str, Any], *_: Any) -> TrainState:
        state = keep_stats(state, grads, aux)
        if not on_inputs:
            return state
        # b^ <- gamma b^ + (1 - gamma) b (eq. 6).
        smoothed = smoothing * state.extra["smoothed"] + (1.0 - smoothing) * aux["mask"]
        return state.replace(extra={**state.extra, "smoothed": smoothed})

    def predict(state: TrainState, x: Array) -> Array:
        if not on_inputs:
            return body.predict(sparsity.masked_weights(state.params), state, x)
        threshold = state.extra["threshold"]
        kept = state.extra["smoothed"] >= jnp.where(threshold < 0, HALF, threshold)
        kept = expand(kept.astype(x.dtype), state.spec.groups)
        weights, x = body.gate(state.params.weights, x, kept)
        return body.predict(weights, state, x)

    def select(state: TrainState) -> Selection:
        if not on_inputs:
            return Selection(body.strength(sparsity.masked_weights(state.params), state.spec))
        smoothed = state.extra["smoothed"]
        scores = smoothed + TIE_BREAK * state.params.latents["inputs"]
        gates = jnp.where(smoothed >= state.extra["threshold"], smoothed, 0.0)
        return Selection(scores, gates=gates)

    def monitor(state: TrainState) -> dict[str, Array]:
        if not on_inputs:
            return {"sparsity": sparsity.mask_sparsity(state.params.latents)}
        kept = state.extra["smoothed"] >= HALF
        return {"num_selected": jnp.sum(kept.astype(jnp.float32))}

    return Method(
        About(
            tasks=SUPERVISED,
            num_features=num_features,
            takes_groups=on_inputs,
            gates=on_inputs,
            sparse=True,
            weights=lambda params: params.weights,
        ),
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=predict,
        select=select,
        after_step=after_step,
        keep="last",
        monitor=monitor,
        search=Search("strength", close) if search else None,
    )
