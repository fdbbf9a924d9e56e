"""Networks for images, whose inputs are rows of pixels: LeNet-5, VGG and residual networks."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from fsjax.arguments import check
from fsjax.errors import ConfigError
from fsjax.nets.convolution import Conv, conv3x3, max_pool_2x2
from fsjax.nets.mlp import FanInDense, batch_norm

#: Channels of the convolutions of each stage of VGG-19, configuration E.
VGG19_STAGES = ((64,) * 2, (128,) * 2, (256,) * 4, (512,) * 4, (512,) * 4)


def to_images(x: Array, image_shape: tuple[int, ...], image_order: str = "C") -> Array:
    """Reshapes rows ``(B, D)`` to images ``(B, H, W, C)``, with C = 1 for images without channels.

    Args:
      x: ``(B, D)``.
      image_shape: ``(H, W)`` or ``(H, W, C)``.
      image_order: ``'C'`` or ``'F'``: the order of the pixels in a row, as in ``numpy.reshape``.

    Raises:
      ConfigError: if the shape does not have D entries.
    """
    if x.shape[-1] != math.prod(image_shape):
        raise ConfigError(
            f"image_shape={image_shape} has {math.prod(image_shape)} entries, but there are "
            f"{x.shape[-1]} columns; give all columns, with unused ones set to 0"
        )
    shape = (*image_shape, 1)[:3]
    if image_order == "F":
        return x.reshape(-1, *shape[::-1]).transpose(0, 3, 2, 1)
    return x.reshape(-1, *shape)


class ImageNetwork(nn.Module):
    """A network for rows that are images; subclasses define ``label`` and :meth:`of_images`.

    Attributes:
      num_outputs: width of the output.
      image_shape: ``(H, W)`` or ``(H, W, C)`` of a row; ConfigError if images are too small.
      image_order: ``'C'`` or ``'F'``, as in ``numpy.reshape``.
    """

    num_outputs: int
    image_shape: tuple[int, ...]
    image_order: str = "C"

    #: Name of the network in error messages.
    label: ClassVar[str]

    def __post_init__(self) -> None:
        shape, min_side = self.image_shape, self.min_side()
        if len(shape) not in (2, 3):
            raise ConfigError(f"image_shape={shape}; choose (H, W) or (H, W, C)")
        if min(shape[:2]) < min_side:
            raise ConfigError(
                f"{self.label} needs images of at least {min_side}x{min_side} pixels, but these "
                f"have {shape[0]}x{shape[1]}; choose a network for smaller images, or 'mlp'"
            )
        check(Literal["C", "F"], image_order=self.image_order)
        super().__post_init__()

    # Flax must not wrap this method, because it is called before the module is set up.
    @nn.nowrap
    def min_side(self) -> int:
        """The smallest H and W that the network accepts, in pixels."""
        return 1

    def __call__(self, x: Array, *, train: bool = False, weight: Array | None = None) -> Array:
        """The outputs ``(B, num_outputs)`` for a batch.

        Args:
          x: ``(B, D)``.
          train: whether to normalise by the statistics of the batch; the collection
            ``batch_stats`` has to be mutable then.
          weight: ``(B,)`` weights; rows of weight 0 are excluded from the batch statistics.
        """
        x = to_images(x, self.image_shape, self.image_order)
        return self.of_images(x, train=train, weight=weight)

    def of_images(self, x: Array, *, train: bool, weight: Array | None) -> Array:
        """The outputs for images x ``(B, H, W, C)``; otherwise as :meth:`__call__`."""
        raise NotImplementedError


class LeNet5(ImageNetwork):
    """Two convolutions with batch normalisation, ReLU and max-pooling; three dense layers.

    LeCun et al., 1998, in the form of BinMask's MNIST-CNN (section 4.1). That paper says only
    "batch normalization after convolutional layers"; as in its other networks, ReLU and max-pooling
    replace the sigmoids and subsampling of 1998. Images have at least 4x4 pixels.
    """

    image_shape: tuple[int, ...] = (28, 28, 1)
    label = "lenet5"

    @nn.nowrap
    def min_side(self) -> int:
        return 4

    @nn.compact
    def of_images(self, x: Array, *, train: bool, weight: Array | None) -> Array:
        for features in (6, 16):
            # As in 1998, the second convolution has no padding, except for images so small that too
            # few pixels would be left for pooling.
            fits = min(x.shape[1:3]) >= 6
            x = Conv(features, 5, padding=0 if features == 16 and fits else 2)(x)
            x = nn.relu(batch_norm(x, train=train, weight=weight))
            x = max_pool_2x2(x)
        x = x.reshape(x.shape[0], -1)
        for width in (120, 84):
            x = nn.relu(FanInDense(width)(x))
        return FanInDense(self.num_outputs)(x)


class VGG(ImageNetwork):
    """Stages of 3x3 convolutions, batch normalisation and ReLU, each pooled; a dense output.

    Simonyan & Zisserman, 2014, configuration E, in the form that is usual for images of 32x32
    pixels, the smallest for five stages: one dense layer instead of three (the name VGG-19 has
    remained), and no biases before batch normalisation, which would cancel them. It has 20,035,018
    parameters for ten classes.

    Attributes:
      stages: channels of the convolutions of each stage.
    """

    image_shape: tuple[int, ...] = (32, 32, 3)
    stages: tuple[tuple[int, ...], ...] = VGG19_STAGES
    label = "vgg19"

    @nn.nowrap
    def min_side(self) -> int:
        return 2 ** len(self.stages)

    @nn.compact
    def of_images(self, x: Array, *, train: bool, weight: Array | None) -> Array:
        for stage in self.stages:
            for features in stage:
                x = nn.relu(batch_norm(conv3x3(x, features), train=train, weight=weight))
            x = max_pool_2x2(x)
        # Of 32x32 pixels one is left; with the mean the dense layer also fits larger images.
        return FanInDense(self.num_outputs)(x.mean(axis=(1, 2)))


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
