"""ProbMask: sparse weights by learnt probabilities, the baseline of BinMask's section 4.2.

Zhou et al., "Effective Sparsification of Neural Networks with Global Sparsity Constraint", CVPR
2021.
"""

from __future__ import annotations

from collections.abc import Callable
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
    _check_order(sparsify_start, sparsify_end)
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
        # Rounded down to whole epochs, so that a run of one epoch also reaches the density; 0.29 x
        # 100 is a little below 29.
        return int(sparsify_start * epochs + 1e-3), int(sparsify_end * epochs + 1e-3)

    def temperature(state: TrainState) -> Array:
        progress = jnp.minimum(state.epoch / body.mask_epochs(state.spec), 1.0)
        return temperature_start + (temperature_end - temperature_start) * progress

    def init(key: Array, spec: Spec, data: TrainingRows) -> TrainState:
        key_network, key_masks = jax.random.split(key)
        weights, stats = body.init(key_network, spec)
        params = prob.init_probmask(weights)
        thresholds = draw(evaluation, key_masks, params.probabilities)
        return create_state(spec, params, extra={"stats": stats, "thresholds": thresholds})

    def loss(
        params: prob.Probable, state: TrainState, batch: Batch[Array], key: Array
    ) -> tuple[Array, dict]:
        def sampled(number: Array) -> tuple[Array, dict[str, PyTree]]:
            key_masks, key_network = jax.random.split(jax.random.fold_in(key, number))
            masks = prob.relaxed_masks(key_masks, params.probabilities, temperature(state))
            weights = prob.times_masks(params.weights, masks)
            return body.train(weights, state, batch, key_network)

        return mean_over_samples(sampled, samples)

    def after_step(state: TrainState, grads: PyTree, aux: dict[str, PyTree], *_: Any) -> TrainState:
        share = prob.density_at(state.epoch, density, *falling(state.spec))
        projected = project(share, state.params.probabilities)
        if body.finetune_epochs:
            # The fixed mask of fine-tuning may keep more weights than the budget allows.
            is_fixed = state.epoch >= body.mask_epochs(state.spec)
            projected = optax.tree.where(is_fixed, state.params.probabilities, projected)
        return keep_stats(with_probabilities(state, projected), grads, aux)

    def after_epoch(state: TrainState, data: TrainingRows, key: Array) -> TrainState:
        state = redraw(evaluation, state, key)
        begins = state.epoch == body.mask_epochs(state.spec)
        return fix_masks(begins, evaluation, state) if body.finetune_epochs else state

    return Method(
        About(tasks=SUPERVISED, sparse=True, weights=lambda params: params.weights),
        init=init,
        loss=loss,
        optimizer=optimizer,
        predict=lambda state, x: body.predict(open_weights(evaluation, state), state, x),
        select=lambda state: Selection(body.strength(open_weights(evaluation, state), state.spec)),
        after_step=after_step,
        after_epoch=after_epoch,
        keep="last",
        monitor=lambda state: {"sparsity": prob.mask_sparsity(state.params.probabilities)},
        phases=lambda spec: (budget_has_fallen(density, falling(spec)[1]),),
    )


def _check_order(start: float, end: float) -> None:
    if start > end:
        raise ConfigError(
            f"sparsify_start={start} is above sparsify_end={end}; "
            "choose 0 <= sparsify_start <= sparsify_end < 1"
        )


def mean_over_samples(function: Callable[[Array], PyTree], samples: int) -> PyTree:
    """The mean of what a function returns for the samples 0, 1, ..."""
    # One after another, because batched convolutions with different kernels are slow.
    _, values = jax.lax.scan(
        lambda _, number: (None, function(number)),
        None,
        jnp.arange(samples),
        unroll=samples <= UNROLLED,
    )
    return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), values)


def project(share: Array | float, probabilities: PyTree) -> PyTree:
    """Projects s onto the budget: a sum of ``share`` of the number of weights."""
    return prob.project(probabilities, share * prob.num_probabilities(probabilities))


def with_probabilities(state: TrainState, probabilities: PyTree) -> TrainState:
    """The state with other probabilities."""
    return state.replace(params=state.params._replace(probabilities=probabilities))


def draw(evaluation: str, key: Array, probabilities: PyTree) -> PyTree:
    """Thresholds of masks that are drawn from s; none for ``evaluation="most_probable"``."""
    return prob.draw_thresholds(key, probabilities) if evaluation == "sample" else {}


def redraw(evaluation: str, state: TrainState, key: Array) -> TrainState:
    """The state with new thresholds."""
    thresholds = draw(evaluation, key, state.params.probabilities)
    return state.replace(extra={**state.extra, "thresholds": thresholds})


def open_masks(evaluation: str, state: TrainState) -> PyTree:
    """The masks with which the network predicts, by the path of each kernel."""
    probabilities = state.params.probabilities
    if evaluation == "sample":
        return prob.masks_below(state.extra["thresholds"], probabilities)
    return prob.likely_masks(probabilities)


def fix_masks(begins: Array, evaluation: str, state: TrainState) -> TrainState:
    """Where fine-tuning begins, makes probabilities 1 and 0 of the masks of ``evaluation``."""
    masks = open_masks(evaluation, state)
    return with_probabilities(state, optax.tree.where(begins, masks, state.params.probabilities))


def open_weights(evaluation: str, state: TrainState) -> PyTree:
    """The weights with which the network predicts: 0 where the masks are closed."""
    return prob.times_masks(state.params.weights, open_masks(evaluation, state))


def budget_has_fallen(density: float, epoch: int) -> Phase:
    """The phase that ends in ``epoch``; a run of any length reaches it, the kept epoch may not."""
    return Phase(
        name=f"the budget has fallen to density={density}",
        epochs=epoch + 1,
        without="columns are ranked by weights that are to be removed",
    )
