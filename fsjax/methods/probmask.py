"""ProbMask: sparse weights by learnt probabilities, the baseline of BinMask's section 4.2.

Zhou et al., "Effective Sparsification of Neural Networks with Global Sparsity Constraint", CVPR
2021.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import optax
from jax import Array

from fsjax.arguments import STATIC, Count, Fraction, Positive, Rate, Share
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
from fsjax.methods.shared.network import TRAINING, NetworkOptions, keep_stats
from fsjax.registry import register
from fsjax.sparsity import probmask as prob
from fsjax.tasks import SUPERVISED

#: Up to this many samples the loop over them is unrolled, which is faster.
UNROLLED = 4


@register(
    estimator="ProbMask",
    paper="Zhou et al., CVPR 2021",
    optimises="the expected loss over random masks of the weights, under a budget",
    num_epochs=30,
    small={"hidden": (6, 5), "density": 0.3, "finetune_epochs": 1, "batch_norm": True},
    options=NetworkOptions(),
    **TRAINING,
)
def probmask(
    *,
    density: Fraction = 0.03,
    samples: Count = 2,
    temperature_start: Positive = 1.0,
    temperature_end: Positive = 0.03,
    score_learning_rate: Positive = 6e-3,
    sparsify_start: Annotated[Share, STATIC] = 0.16,
    sparsify_end: Annotated[Rate, STATIC] = 0.6,
    max_norm: Positive | None = 3.0,
    evaluation: Literal["sample", "most_probable"] = "sample",
    **options: Any,
) -> Method:
    """Learns the probability s of keeping each weight of all dense and convolutional kernels.

    It minimises the expected loss over random masks subject to ``sum(s) <= rho n`` for the n
    weights. A step averages the loss over relaxed samples of the masks, updates the weights and s,
    and projects s onto the budget, which falls from n to ``rho n`` during training. The defaults
    are those of the authors' code. Before fine-tuning, that code draws ten masks and keeps the one
    that is best on the training rows; here one mask is drawn. The first epochs are dense, so choose
    ``best_by="last"``.

    Args:
      density: rho, the share of the weights of all kernels together that is kept, in (0, 1].
      samples: number of masks per step, at least 1; each is applied to all rows of the batch.
      temperature_start: temperature of the relaxed samples in the first epoch, above 0. It falls
        linearly from epoch to epoch.
      temperature_end: the temperature that would follow the last epoch, above 0.
      score_learning_rate: learning rate of Adam for s in the first epoch, above 0; it falls to 0
        along half a cosine.
      sparsify_start: share of the epochs before the budget begins to fall, in [0, 1).
      sparsify_end: share of the epochs after which the budget is ``rho n``, in [0, 1), at least
        ``sparsify_start``.
      max_norm: largest joint norm of the gradients of the weights and of s, above 0; larger ones
        are scaled down. ``None`` for no limit.
      evaluation: ``sample`` predicts with masks that are drawn from s after each epoch;
        ``most_probable`` keeps the weights with the largest s, as many as the sum of s.
      **options: those of :class:`fsjax.methods.shared.network.NetworkOptions`. The shares of the
        epochs above do not include those of fine-tuning, which begins by fixing one mask of
        ``evaluation``.

    Returns:
      The method; the score of a column is the sum of the absolute masked weights of its input
      neuron. Batch statistics are averaged over the samples.
    """
    if sparsify_start > sparsify_end:
        raise ConfigError(
            f"sparsify_start={sparsify_start} is above sparsify_end={sparsify_end}; "
            "choose 0 <= sparsify_start <= sparsify_end < 1"
        )
    body = NetworkOptions(**options)

    def optimizer(spec: Spec) -> optax.GradientTransformation:
        epochs = body.mask_epochs(spec)
        return prob.probmask_optimizer(
            body.tx(spec),
            num_epochs=epochs,
            steps_per_epoch=spec.steps_per_epoch,
            learning_rate=score_learning_rate,
            max_norm=max_norm,
            end_epoch=epochs if body.finetune_epochs else None,
        )

    def falling(spec: Spec) -> tuple[int, int]:
        """The epochs in which the budget begins and ends to fall."""
        epochs = body.mask_epochs(spec)
        # Rounded down to whole epochs, so that a run of one epoch also reaches the density.
        return int(sparsify_start * epochs), int(sparsify_end * epochs)

    def phases(spec: Spec) -> tuple[Phase, ...]:
        # A run of any length reaches it, the kept epoch perhaps not.
        reached = Phase(
            name=f"the budget has fallen to density={density}",
            epochs=falling(spec)[1] + 1,
            without="columns are ranked by weights that are to be removed",
        )
        return (reached,)

    def draw(key: Array, probabilities: PyTree) -> PyTree:
        return prob.draw_thresholds(key, probabilities) if evaluation == "sample" else {}

    def open_masks(probabilities: PyTree, thresholds: PyTree) -> PyTree:
        if evaluation == "sample":
            return prob.masks_below(thresholds, probabilities)
        return prob.likely_masks(probabilities)

    def open_weights(state: TrainState) -> PyTree:
        masks = open_masks(state.params.probabilities, state.extra["thresholds"])
        return prob.times_masks(state.params.weights, masks)

    def budget(state: TrainState) -> Array:
        share = prob.density_at(state.epoch, density, *falling(state.spec))
        return share * prob.num_probabilities(state.params.probabilities)

    def temperature(state: TrainState) -> Array:
        progress = jnp.minimum(state.epoch / body.mask_epochs(state.spec), 1.0)
        return temperature_start + (temperature_end - temperature_start) * progress

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_network, key_masks = jax.random.split(key)
        weights, stats = body.init(key_network, spec)
        params = prob.init_probmask(weights)
        extra = {"stats": stats, "thresholds": draw(key_masks, params.probabilities)}
        return create_state(spec, params, extra=extra)

    def loss(
        params: prob.Probable, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        def sampled(_: None, number: Array) -> tuple[None, tuple[Array, dict[str, PyTree]]]:
            key_masks, key_network = jax.random.split(jax.random.fold_in(key, number))
            masks = prob.relaxed_masks(key_masks, params.probabilities, temperature(state))
            weights = prob.times_masks(params.weights, masks)
            return None, body.train(weights, state, batch, key_network)

        # One after another, because batched convolutions with different kernels are slow.
        _, (values, aux) = jax.lax.scan(
            sampled, None, jnp.arange(samples), unroll=samples <= UNROLLED
        )
        return jnp.mean(values), jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), aux)

    def after_step(state: TrainState, grads: PyTree, aux: dict[str, PyTree], *_: Any) -> TrainState:
        projected = prob.project(state.params.probabilities, budget(state))
        if body.finetune_epochs:
            # The fixed mask of fine-tuning may keep more weights than the budget allows.
            is_fixed = state.epoch >= body.mask_epochs(state.spec)
            projected = optax.tree.where(is_fixed, state.params.probabilities, projected)
        state = state.replace(params=state.params._replace(probabilities=projected))
        return keep_stats(state, grads, aux)

    def after_epoch(state: TrainState, data: TrainingRows, key: Array) -> TrainState:
        params = state.params
        thresholds = draw(key, params.probabilities)
        if body.finetune_epochs:
            begins = state.epoch == body.mask_epochs(state.spec)
            fixed = open_masks(params.probabilities, thresholds)
            params = params._replace(
                probabilities=optax.tree.where(begins, fixed, params.probabilities)
            )
        return state.replace(params=params, extra={**state.extra, "thresholds": thresholds})

    def predict(state: TrainState, x: Array) -> Array:
        return body.predict(open_weights(state), state, x)

    def select(state: TrainState) -> Selection:
        return Selection(body.strength(open_weights(state), state.spec))

    def monitor(state: TrainState) -> dict[str, Array]:
        return {"sparsity": prob.mask_sparsity(state.params.probabilities)}

    return Method(
        About(tasks=SUPERVISED, sparse=True, weights=lambda params: params.weights),
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=predict,
        select=select,
        after_step=after_step,
        after_epoch=after_epoch,
        keep="last",
        monitor=monitor,
        phases=phases,
    )
