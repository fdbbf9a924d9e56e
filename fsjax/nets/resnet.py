"""Residual networks for small images (He et al., 2016, section 4.2)."""

from __future__ import annotations

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from fsjax.nets.convolution import conv3x3
from fsjax.nets.images import ImageNetwork
from fsjax.nets.mlp import FanInDense, batch_norm


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut without parameters (option A), added.

    Attributes:
      features: number of output channels, at least that of the input; the shortcut is 0 in
        additional channels.
      stride: stride of the first convolution and of the shortcut.
    """

    features: int
    stride: int = 1

    @nn.compact
    def __call__(self, x: Array, *, train: bool = False, weight: Array | None = None) -> Array:
        """``(B, H, W, C) -> (B, ceil(H / stride), ceil(W / stride), features)``."""
        y = conv3x3(x, self.features, self.stride)
        y = nn.relu(batch_norm(y, train=train, weight=weight))
        y = batch_norm(conv3x3(y, self.features), train=train, weight=weight)
        shortcut = x[:, :: self.stride, :: self.stride]
        new = self.features - x.shape[-1]
        if new:
            shortcut = jnp.pad(shortcut, ((0, 0), (0, 0), (0, 0), (0, new)))
        return nn.relu(y + shortcut)


class ResNet(ImageNetwork):
    """A convolution, three stages of residual blocks, the mean over the pixels, a dense output.

    It has ``6 * blocks_per_stage + 2`` layers. The defaults are the ResNet-32 of He et al., with
    464,154 parameters for ten classes. The code of ProbMask, whose settings BinMask's section 4.2
    uses, has ``width=32`` and, unlike here, convolutions as shortcuts between stages.

    Attributes:
      blocks_per_stage: number of residual blocks per stage; 5 for ResNet-32.
      width: number of channels of the first stage; each further stage has twice as many channels
        and half the height and width.
    """

    image_shape: tuple[int, ...] = (32, 32, 3)
    blocks_per_stage: int = 5
    width: int = 16
    label = "resnet"

    @nn.compact
    def of_images(self, x: Array, *, train: bool, weight: Array | None) -> Array:
        x = conv3x3(x, self.width)
        x = nn.relu(batch_norm(x, train=train, weight=weight))
        for stage in range(3):
            for number in range(self.blocks_per_stage):
                stride = 2 if stage and not number else 1
                block = ResidualBlock(self.width * 2**stage, stride)
                x = block(x, train=train, weight=weight)
        return FanInDense(self.num_outputs)(x.mean(axis=(1, 2)))
