"""BinMask (Jia and Rinard): L0 regularisation by binary masks and straight-through gradients.

Masks on the inputs select features (sections 3.2 and 4.1); masks on the weights make a network
sparse (4.2) or regularise it (4.3).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import jax.numpy as jnp
import optax
from jax import Array

from fsjax import sparsity
from fsjax.arguments import STATIC, Count, NonNegative, Positive, Rate, known
from fsjax.errors import ConfigError
from fsjax.method import (
    About,
    Batch,
    Method,
    Phase,
    Search,
    Selection,
    Spec,
    TrainingRows,
    TrainState,
    create_state,
)
from fsjax.methods.shared.network import TRAINING, NetworkOptions, close, keep_stats
from fsjax.registry import register
from fsjax.tables.groups import expand
from fsjax.tasks import SUPERVISED

#: alpha_0 by what is masked (Algorithm 1, and section 4.1 for the inputs).
INITIAL = {"inputs": 0.02, "weights": 0.3}

#: Factor of the latent value in a score, which ranks columns of equal smoothed masks.
TIE_BREAK = 1e-4

#: Threshold of the smoothed mask for an open column, if no search has set one.
HALF = 0.5


@register(
    estimator="BinMask",
    paper="Jia and Rinard, 2023",
    optimises="the loss plus a penalty on each open input (or weight)",
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
    """A network whose inputs or weights are multiplied by binary masks under an L0 penalty.

    Each mask ``b = [beta >= 0]`` has a latent value beta, which receives the gradient of b as if it
    were its own (straight-through). The loss is ``L + lambda / 2 sum_i b_i^2``.

    Args:
      num_features: K; ``None`` leaves it to ``fit``.
      masked: ``inputs``, or ``weights``: all kernels of dense and convolutional layers.
      strength: lambda, at least 0; in a search, the first one that is tried, above 0.
      search: for masked inputs, whether to search for the lambda that keeps exactly K columns
        (section 3.2). Otherwise there is one training run, and K columns are selected by their
        smoothed masks.
      initial: alpha_0, the initial latent value, at least 0; ``None`` takes 0.02 for inputs and 0.3
        for weights.
      clip: alpha_1, above 0: latent values stay in ``[-clip, clip]``.
      mask_learning_rate: eta_0, the learning rate of Adam for the latent values in the first epoch.
      mask_final_learning_rate: eta_1, their learning rate in the last epoch.
      warmup: share of the epochs, in [0, 1), before latent values are trained.
      smoothing: gamma of equation 6, in [0, 1), for masked inputs.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`.

    Returns:
      The method. With masked inputs, the score of a column is its smoothed mask, and the network
      predicts from the columns whose smoothed mask reaches the threshold. With masked weights, it
      is the sum of the absolute masked weights of the column's input neuron.
    """
    body = NetworkOptions(**options)
    initial = INITIAL[masked] if initial is None else initial
    if masked == "weights":
        method = _masked_weights(body, strength, initial)
    else:
        if search and known(strength) and strength == 0:
            raise ConfigError("a search cannot start at strength=0; choose a value above 0")
        if body.finetune_epochs:
            raise ConfigError(
                f"finetune_epochs={body.finetune_epochs} needs masked='weights'; for masked inputs "
                "use the retrain protocol"
            )
        method = _masked_inputs(body, strength, initial, smoothing)
        method = method._replace(search=Search("strength", close) if search else None)

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

    about = method.about._replace(
        tasks=SUPERVISED,
        num_features=num_features,
        sparse=True,
        merges_copies=body.merges_copies,
        weights=lambda params: params.weights,
    )

    def phases(spec: Spec) -> tuple[Phase, ...]:
        steps = spec.steps_per_epoch
        return _closing(body.finetune_epochs, steps, warmup, initial, mask_learning_rate)

    return method._replace(about=about, optimizer=optimizer, keep="last", phases=phases)


def _closing(
    finetune_epochs: int, steps: int, warmup: float, initial: float, rate: float
) -> tuple[Phase, ...]:
    """The phase in which masks close: Adam moves a latent value by about its rate in each step.

    Args:
      steps: per epoch.
      warmup, initial, rate: as for :func:`binmask`; ``rate`` is that of the first epoch.
    """
    if not known(initial, rate):
        return ()
    needed = math.ceil(initial / rate / steps - 1e-6)
    # The warm-up is a share of the run, so that a longer run begins later.
    enough = needed
    while enough - int(warmup * enough + 1e-3) < needed:
        enough += 1
    ready = Phase(
        name=f"masks can close (latent values begin at {initial:g})",
        epochs=enough + finetune_epochs,
        without="all masks are open",
        instead="a smaller initial or warmup, or a larger mask_learning_rate",
        kept=False,
    )
    return (ready,)


def _masked_inputs(
    body: NetworkOptions, strength: float, initial: float, smoothing: float
) -> Method:
    """BinMask on the inputs, as a feature selector."""

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        weights, stats = body.init(key, spec)
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
        mask = sparsity.quantize(params.latents["inputs"])
        # Constant columns are never selected, so the network does not see them.
        seen = expand(mask * state.feature_mask, state.spec.groups)
        value, aux = body.train(params.weights, state, batch, key, seen, few=True)
        value = value + strength * sparsity.mask_penalty(params.latents)
        return value, {**aux, "mask": mask}

    def after_step(state: TrainState, grads: Any, aux: dict[str, Any], *_: Any) -> TrainState:
        state = keep_stats(state, grads, aux)
        # b^ <- gamma b^ + (1 - gamma) b (eq. 6).
        smoothed = smoothing * state.extra["smoothed"] + (1.0 - smoothing) * aux["mask"]
        return state.replace(extra={**state.extra, "smoothed": smoothed})

    def predict(state: TrainState, x: Array) -> Array:
        threshold = state.extra["threshold"]
        kept = state.extra["smoothed"] >= jnp.where(threshold < 0, HALF, threshold)
        kept = expand((kept & state.feature_mask).astype(x.dtype), state.spec.groups)
        return body.predict(state.params.weights, state, x, kept)

    def select(state: TrainState) -> Selection:
        smoothed = state.extra["smoothed"]
        scores = smoothed + TIE_BREAK * state.params.latents["inputs"]
        gates = jnp.where(smoothed >= state.extra["threshold"], smoothed, 0.0)
        return Selection(scores, gates=gates)

    def monitor(state: TrainState) -> dict[str, Array]:
        kept = state.extra["smoothed"] >= HALF
        return {"num_selected": jnp.sum(kept.astype(jnp.float32))}

    return Method(
        About(takes_groups=True, gates=True),
        init=init,
        loss=loss,
        predict=predict,
        select=select,
        after_step=after_step,
        monitor=monitor,
    )


def _masked_weights(body: NetworkOptions, strength: float, initial: float) -> Method:
    """BinMask on the weights, which makes the network sparse."""

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        weights, stats = body.init(key, spec)
        params = sparsity.init_binmask(weights, initial=initial)
        return create_state(spec, params, extra={"stats": stats})

    def loss(
        params: sparsity.Masked, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        value, aux = body.train(sparsity.masked_weights(params), state, batch, key)
        return value + strength * sparsity.mask_penalty(params.latents), aux

    def open_weights(state: TrainState) -> Any:
        return sparsity.masked_weights(state.params)

    return Method(
        About(),
        init=init,
        loss=loss,
        predict=lambda state, x: body.predict(open_weights(state), state, x),
        select=lambda state: Selection(body.strength(open_weights(state), state.spec)),
        after_step=keep_stats,
        monitor=lambda state: {"sparsity": sparsity.mask_sparsity(state.params.latents)},
    )
