"""BinMask on the parameters of any network (Jia and Rinard, "Effective Neural Network L0
Regularization With BinMask", section 3.1): binary masks with latent values that are trained.

The network's code stays as it is: its parameters are chosen by path and multiplied by their masks
before they go in::

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
from fsjax.optimizers import active_between, clip_params, cosine_by_epoch
from fsjax.sparsity.masks import Where, filled_leaves, is_kernel
from fsjax.sparsity.probmask import times_masks
from fsjax.typing import PyTree


@jax.custom_vjp
def quantize(latents: Array) -> Array:
    """1 where a latent value is at least 0, else 0, in the same type (equations 2 to 5).

    Its gradient is that of the identity: what arrives at the mask goes on to the latent values as
    it is. Any shape.
    """
    return (latents >= 0).astype(latents.dtype)


def _quantize_forward(latents: Array) -> tuple[Array, None]:
    return quantize(latents), None


def _quantize_backward(residuals: None, cotangent: Array) -> tuple[Array]:
    return (cotangent,)


quantize.defvjp(_quantize_forward, _quantize_backward)


class Masked(NamedTuple):
    """Parameters with latent masks.

    Attributes:
      weights: parameters of the network, as its ``init`` gave them.
      latents: latent values by the path of the parameter that they mask, such as
        ``Dense_0/kernel``, in its shape.
    """

    weights: PyTree
    latents: dict[str, Array]


def init_binmask(weights: PyTree, where: Where = is_kernel, initial: float = 0.3) -> Masked:
    """Masks, all open, over chosen parameters.

    Args:
      weights: any tree of parameters.
      where: ``(path, leaf) -> bool``: which of them are masked, by default all of two or more
        dimensions; ConfigError if none is.
      initial: alpha_0 of Algorithm 1, from 0 (else ConfigError): the nearer to 0, the sooner a mask
        closes.
    """
    check(NonNegative, initial=initial)
    return Masked(weights, filled_leaves(weights, where, initial))


def masked_weights(params: Masked) -> PyTree:
    """The parameters times their masks; gradients reach both, straight through the latter."""
    masks = {path: quantize(latents) for path, latents in params.latents.items()}
    return times_masks(params.weights, masks)


def mask_penalty(latents: Mapping[str, Array]) -> Array:
    """Half the sum of the squared masks, whose gradient is the mask itself (section 3.1).

    Its value is half the number of open entries; closed ones are not pushed any further.
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
    """The optimiser of :class:`Masked` parameters: one for the weights, Adam for the masks.

    The masks rest during the first epochs, then move at a rate that falls along a cosine from
    epoch to epoch: the text of the paper, not line 18 of Algorithm 1, which rises as printed.
    A value outside its range is a ConfigError.

    Args:
      weights: any optimiser of the weights; it sees neither the masks nor their gradients.
      num_epochs: E, of the masks' schedule, at least 1.
      steps_per_epoch: optimiser steps in an epoch, at least 1.
      warmup: share of the epochs, in [0, 1), before the masks move.
      learning_rate: of the masks at first, above 0.
      final_learning_rate: of the masks in the last epoch.
      clip: alpha_1 of Algorithm 1: latent values stay within ``[-clip, clip]``.
      end_epoch: the masks rest again from this epoch on, for fine-tuning; by default never.
    """
    check(Rate, warmup=warmup)
    check(Positive, clip=clip)
    resting = int(warmup * num_epochs)
    schedule = cosine_by_epoch(
        learning_rate, final_learning_rate, num_epochs - resting, steps_per_epoch
    )
    end = None if end_epoch is None else end_epoch * steps_per_epoch
    latents = active_between(
        optax.chain(optax.adam(schedule), clip_params(clip)), resting * steps_per_epoch, end
    )
    return optax.partition({"weights": weights, "latents": latents}, Masked._make(Masked._fields))


def layer_sparsity(latents: Mapping[str, Array]) -> dict[str, float]:
    """The share of closed entries, in [0, 1], by the path of the parameter."""
    return {path: float(np.mean(np.asarray(values) < 0)) for path, values in latents.items()}


def mask_sparsity(latents: Mapping[str, Array]) -> Array:
    """The share of closed entries of all masks together, a scalar in [0, 1]."""
    size = sum(values.size for values in latents.values())
    closed = [jnp.sum((values < 0).astype(jnp.float32)) for values in latents.values()]
    return jnp.asarray(sum(closed) / size)
