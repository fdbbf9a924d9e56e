"""Networks by name, all with the same signature."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import jax
from flax import linen as nn
from jax import Array

from fsjax.arguments import check
from fsjax.errors import ConfigError
from fsjax.nets.images import VGG, LeNet5, ResNet
from fsjax.nets.mlp import MLP

#: Names for :func:`build_network`.
NETWORKS = ("mlp", "lenet5", "resnet32", "vgg19")


def build_network(
    network: str,
    num_outputs: int,
    *,
    hidden: Sequence[int] = (64, 20),
    activation: str = "tanh",
    batch_norm: bool = False,
    layer_norm: bool = False,
    dropout: float = 0.0,
    image_shape: tuple[int, ...] | None = None,
    image_order: str = "C",
) -> nn.Module:
    """A network of the experiments of BinMask (section 4).

    Args:
      network: a name in :data:`NETWORKS`, else ConfigError.
      hidden: widths of the hidden layers. The arguments from here to ``dropout`` are for ``mlp``
        only, see :class:`~fsjax.nets.mlp.MLP`; the other networks are fixed.
      activation: activation of the hidden layers.
      batch_norm: batch normalisation after each activation.
      layer_norm: LayerNorm before each activation.
      dropout: rate in [0, 1) after each activation.
      image_shape: ``(H, W)`` or ``(H, W, C)`` of a row, which all networks but ``mlp`` need;
        ConfigError if it is missing or too small.
      image_order: ``'C'`` if rows contain pixels line by line, ``'F'`` column by column.

    Returns:
      A module whose ``__call__(x, *, train=False, weight=None)`` maps rows ``(B, D)`` to
      ``(B, num_outputs)``. With ``train`` it may need the rng stream ``dropout``, and updates the
      collection ``batch_stats`` if it has one, without rows of ``weight`` ``(B,)`` 0.
    """
    check(Literal[NETWORKS], network=network)
    if network == "mlp":
        return MLP(
            num_outputs,
            tuple(hidden),
            layer_norm=layer_norm,
            dropout=dropout,
            activation=activation,
            batch_norm=batch_norm,
        )
    if image_shape is None:
        raise ConfigError(
            f"{network} needs images, but the data set has no image_shape; choose network='mlp'"
        )
    image_networks = {"lenet5": LeNet5, "resnet32": ResNet, "vgg19": VGG}
    return image_networks[network](num_outputs, tuple(image_shape), image_order)


def outputs_of(network: nn.Module, variables: Mapping[str, Any], x: Array, **options: Any) -> Array:
    """The outputs ``(B, num_outputs)`` of a network, without updating any collection.

    Args:
      network: a module that maps rows to outputs.
      variables: its collections, including ``params``.
      x: ``(B, D)``.
      **options: further arguments of ``network.apply``, except ``mutable``.
    """
    # Flax's annotation includes updated collections, which are returned only with ``mutable``.
    return cast(Array, network.apply(variables, x, **options))


def count_parameters(params: Any) -> int:
    """Counts the values in a tree of arrays, or of their shapes (``jax.eval_shape``)."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(params))
