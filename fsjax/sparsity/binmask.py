"""BinMask for the parameters of any network: binary masks with trainable latent values.

Jia and Rinard, "Effective Neural Network L0 Regularization With BinMask", section 3.1. The code of
the network does not change: parameters chosen by path are multiplied by their masks before the
forward pass::

    params = init_binmask(model.init(key, x)["params"])
    tx = binmask_optimizer(optax.sgd(0.1), num_epochs=20, steps_per_epoch=100)

    def loss(params):
        outputs = model.apply({"params": masked_weights(params)}, x)
        return cross_entropy(outputs, y) + strength * mask_penalty(params.latents)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from fsjax.arguments import NonNegative, Positive, Rate, check
from fsjax.sparsity.masks import Where, filled_leaves, is_kernel
from fsjax.sparsity.probmask import times_masks
from fsjax.sparsity.schedules import active_between, clip_params, cosine_by_epoch
from fsjax.typing import PyTree


@jax.custom_vjp
def quantize(latents: Array) -> Array:
    """The binary mask of latent values: 1 where they are at least 0, else 0 (equations 2 to 5).

    The gradient is that of the identity (straight-through estimator): latent values get the
    gradient of the mask unchanged. Any shape; the type stays the same.
    """
    return (latents >= 0).astype(latents.dtype)


def _quantize_forward(latents: Array) -> tuple[Array, None]:
    return quantize(latents), None


def _quantize_backward(residuals: None, cotangent: Array) -> tuple[Array]:
    return (cotangent,)


quantize.defvjp(_quantize_forward, _quantize_backward)


class Masked(NamedTuple):
    """Parameters and the latent values of their masks.

    Attributes:
      weights: parameters of the network.
      latents: latent values, in the shape of the parameter that they mask, by its path, for
        example ``Dense_0/kernel``.
    """

    weights: PyTree
    latents: dict[str, Array]


def init_binmask(weights: PyTree, where: Where = is_kernel, initial: float = 0.3) -> Masked:
    """Adds masks, all open, to chosen parameters.

    Args:
      weights: any tree of parameters.
      where: ``(path, leaf) -> bool``, or patterns of paths: which parameters are masked; by default
        those of :func:`fsjax.sparsity.is_kernel`.
      initial: initial latent value (alpha_0 of Algorithm 1), at least 0; the closer to 0, the
        sooner masks close.

    Raises:
      ConfigError: if no parameter is chosen, or ``initial`` is negative.

    Examples:
      >>> weights = {"kernel": jax.random.normal(jax.random.key(0), (6, 2)), "bias": jnp.zeros(2)}
      >>> # sparsity.Masked: weights and latents
      >>> params = sparsity.init_binmask(weights, where=sparsity.is_kernel)
      >>> tx = sparsity.binmask_optimizer(optax.sgd(0.1), num_epochs=20, steps_per_epoch=10)
      >>> opt_state = tx.init(params)
      >>> x, y = jnp.asarray(data.X), jnp.asarray(data.y)
      >>> def loss(params):
      ...     masked = sparsity.masked_weights(params)
      ...     logits = x @ masked["kernel"] + masked["bias"]
      ...     loss = optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
      ...     return loss + 1e-3 * sparsity.mask_penalty(params.latents)
      >>> updates, opt_state = tx.update(jax.grad(loss)(params), opt_state, params)
      >>> params = optax.apply_updates(params, updates)
      >>> print(sparsity.mask_sparsity(params.latents), sparsity.layer_sparsity(params.latents))
      >>> print(sparsity.quantize(jnp.array([-0.5, 0.5])))  # with a straight-through gradient
    """
    check(NonNegative, initial=initial)
    return Masked(weights, filled_leaves(weights, where, initial))


def masked_weights(params: Masked) -> PyTree:
    """The parameters times their masks; gradients flow to both, straight through the masks."""
    masks = {path: quantize(latents) for path, latents in params.latents.items()}
    return times_masks(params.weights, masks)


def mask_penalty(latents: Mapping[str, Array]) -> Array:
    """The penalty: half the sum of the squared masks, a scalar (section 3.1).

    Its value is half the number of open entries. Its gradient is the mask itself, so closed entries
    are not pushed further down.
    """
    squares = [jnp.sum(jnp.square(quantize(values))) for values in latents.values()]
    return jnp.asarray(0.5 * sum(squares))


def binmask_optimizer(
    weights: optax.GradientTransformation,
    *,
    num_epochs: int,
    steps_per_epoch: int,
    warmup: float = 0.1,
    learning_rate: float = 1e-3,
    final_learning_rate: float = 1e-5,
    clip: float = 1.0,
    end_epoch: int | None = None,
) -> optax.GradientTransformation:
    """The optimiser of :class:`Masked` parameters: yours for the weights, Adam for the masks.

    The masks are frozen in the first epochs. Then their learning rate decays along a cosine from
    epoch to epoch, as in the text of the paper; line 18 of Algorithm 1, as printed, increases it.

    Args:
      weights: any optimiser of the weights; it sees neither the masks nor their gradients.
      num_epochs: length E of the masks' schedule in epochs, at least 1.
      steps_per_epoch: optimiser steps per epoch, at least 1.
      warmup: share of the epochs in which the masks are frozen, in [0, 1).
      learning_rate: initial learning rate of the masks, above 0.
      final_learning_rate: learning rate of the masks in the last epoch.
      clip: bound alpha_1 of Algorithm 1, above 0: latent values stay within ``[-clip, clip]``.
      end_epoch: the masks are frozen again from this epoch on, for fine-tuning; by default never.

    Raises:
      ConfigError: if a value is outside its range.
    """
    check(Rate, warmup=warmup)
    check(Positive, clip=clip)
    frozen_epochs = int(warmup * num_epochs + 1e-3)  # As 0.29 x 100 is a little below 29.
    schedule = cosine_by_epoch(
        learning_rate, final_learning_rate, num_epochs - frozen_epochs, steps_per_epoch
    )
    end = None if end_epoch is None else end_epoch * steps_per_epoch
    latents = active_between(
        optax.chain(optax.adam(schedule), clip_params(clip)), frozen_epochs * steps_per_epoch, end
    )
    return optax.partition({"weights": weights, "latents": latents}, Masked._make(Masked._fields))


def layer_sparsity(latents: Mapping[str, Array]) -> dict[str, float]:
    """Share of closed entries of each mask, in [0, 1], by path."""
    return {path: float(np.mean(np.asarray(values) < 0)) for path, values in latents.items()}


def mask_sparsity(latents: Mapping[str, Array]) -> Array:
    """Share of closed entries over all masks, a scalar in [0, 1]."""
    size = sum(values.size for values in latents.values())
    closed = [jnp.sum((values < 0).astype(jnp.float32)) for values in latents.values()]
    return jnp.asarray(sum(closed) / size)
