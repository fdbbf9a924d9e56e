"""BinMask (Jia and Rinard): L0 regularisation by binary masks and straight-through gradients.

On the inputs it selects features (sections 3.2 and 4.1), on the weights it makes the network
sparse (4.2) or regularises it (4.3).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from fsjax.errors import ConfigError, check_whole
from fsjax.groups import expand
from fsjax.method import Array, Batch, Method, PyTree, Spec, TrainState, create_state
from fsjax.methods.cached import cached_method
from fsjax.methods.checks import check_above_0, check_choice, check_optimizer
from fsjax.methods.network import network_options
from fsjax.sparsity.binmask import (
    Masked,
    binmask_optimizer,
    init_binmask,
    mask_penalty,
    mask_sparsity,
    masked_weights,
)
from fsjax.sparsity.ste import quantize

MASKED = ("inputs", "weights")

#: alpha_0 by what is masked (Algorithm 1, and section 4.1 for the inputs).
INITIAL = {"inputs": 0.02, "weights": 0.3}

#: How much the latent value counts beside the smoothed mask, to tell columns of equal ones apart.
TIE_BREAK = 1e-4


@cached_method
def binmask(
    num_features: int | None = None,
    *,
    masked: str = "inputs",
    strength: float = 1e-3,
    search: bool = True,
    initial: float | None = None,
    clip: float = 1.0,
    mask_learning_rate: float = 1e-3,
    mask_final_learning_rate: float = 1e-5,
    warmup: float = 0.1,
    smoothing: float = 0.9,
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
      **options: those of :class:`fsjax.methods.network.NetworkOptions`.

    Returns:
      The method. With masked inputs the score of a column is its smoothed mask, and the network
      predicts with the columns whose smoothed mask reaches the threshold; with masked weights it
      is the sum of the absolute weights of its input neuron.

    Raises:
      ConfigError: for an unknown option or a value outside its range.
    """
    check_choice("masked", masked, MASKED)
    if num_features is not None:
        check_whole("num_features", num_features)
    if not strength >= 0:
        raise ConfigError(f"strength={strength}; choose a value from 0")
    if not 0 <= smoothing < 1:
        raise ConfigError(f"smoothing={smoothing}; choose a value from 0 to below 1")
    check_above_0(
        mask_learning_rate=mask_learning_rate, mask_final_learning_rate=mask_final_learning_rate
    )
    on_inputs = masked == "inputs"
    search = search and on_inputs
    if search and strength == 0:
        raise ConfigError("a search cannot start at strength=0; choose a value above 0")
    initial = INITIAL[masked] if initial is None else initial
    body = network_options(**options)
    if on_inputs and body.finetune_epochs:
        raise ConfigError("finetune_epochs is for masked weights; use the retrain protocol instead")

    def optimizer(spec: Spec):
        epochs = body.mask_epochs(spec)
        return binmask_optimizer(
            body.tx(spec),
            num_epochs=epochs,
            steps_per_epoch=spec.steps_per_epoch,
            warmup=warmup,
            learning_rate=mask_learning_rate,
            final_learning_rate=mask_final_learning_rate,
            clip=clip,
            end_epoch=epochs if body.finetune_epochs else None,
        )

    check_optimizer(optimizer, body)

    def init(key: Array, spec: Spec) -> TrainState:
        key_train, key_network = jax.random.split(key)
        weights, stats = body.init(key_network, spec)
        extra: dict[str, Any] = {"stats": stats}
        if on_inputs:
            params = Masked(weights, {"inputs": jnp.full((spec.num_units,), initial, jnp.float32)})
            extra["smoothed"] = jnp.zeros((spec.num_units,))
        else:
            params = init_binmask(weights, initial=initial)
        hyper = {"strength": strength, "threshold": 0.5}
        return create_state(key_train, spec, params, optimizer(spec), hyper=hyper, extra=extra)

    def loss(
        params: Masked, state: TrainState, batch: Batch, key: Array
    ) -> tuple[Array, dict[str, Any]]:
        aux: dict[str, Any] = {}
        if on_inputs:
            aux["mask"] = quantize(params.latents["inputs"])
            mask = expand(aux["mask"], state.spec.groups)
            weights, x = body.gate(params.weights, batch.x, mask)
            batch = batch._replace(x=x)
        else:
            weights = masked_weights(params)
        value, _, aux["stats"] = body.train(weights, state.extra["stats"], state.spec, batch, key)
        return value + state.hyper["strength"] * mask_penalty(params.latents), aux

    def after_step(state: TrainState, grads: PyTree, aux: dict[str, Any], *_: Any) -> TrainState:
        del grads
        extra = {**state.extra, "stats": aux["stats"]}
        if on_inputs:
            extra["smoothed"] = smoothing * extra["smoothed"] + (1.0 - smoothing) * aux["mask"]
        return state.replace(extra=extra)

    def predict(state: TrainState, x: Array) -> Array:
        weights = state.params.weights
        if on_inputs:
            kept = state.extra["smoothed"] >= state.hyper["threshold"]
            kept = expand(kept.astype(x.dtype), state.spec.groups)
            weights, x = body.gate(weights, x, kept)
        else:
            weights = masked_weights(state.params)
        return body.predict(weights, state.extra["stats"], state.spec, x)

    def score(state: TrainState) -> Array:
        if on_inputs:
            return state.extra["smoothed"] + TIE_BREAK * state.params.latents["inputs"]
        return body.strength(masked_weights(state.params), state.spec.num_features)

    def monitor(state: TrainState) -> dict[str, Array]:
        if not on_inputs:
            return {"sparsity": mask_sparsity(state.params.latents)}
        kept = state.extra["smoothed"] >= 0.5
        return {"num_selected": jnp.sum(kept.astype(jnp.float32))}

    return Method(
        name="binmask",
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=predict,
        score=score,
        after_step=after_step,
        monitor=monitor,
        gates=(lambda state: state.extra["smoothed"]) if on_inputs else None,
        search_from=strength if search else None,
        num_features=num_features,
        best_by="last",
        takes_groups=on_inputs,
        tasks=("classification", "regression"),
    )
