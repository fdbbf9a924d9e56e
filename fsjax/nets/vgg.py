"""VGG networks with batch normalisation for small images."""

from __future__ import annotations

from flax import linen as nn
from jax import Array

from fsjax.nets.convolution import conv3x3, max_pool_2x2
from fsjax.nets.images import ImageNetwork
from fsjax.nets.mlp import FanInDense, batch_norm

#: Channels of the convolutions of each stage in configuration E.
VGG19_STAGES = ((64,) * 2, (128,) * 2, (256,) * 4, (512,) * 4, (512,) * 4)


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
    def least_side(self) -> int:
        return 2 ** len(self.stages)

    @nn.compact
    def of_images(self, x: Array, *, train: bool, weight: Array | None) -> Array:
        for stage in self.stages:
            for features in stage:
                x = nn.relu(batch_norm(conv3x3(x, features), train=train, weight=weight))
            x = max_pool_2x2(x)
        # Of 32x32 pixels one is left; with the mean the dense layer also fits larger images.
        return FanInDense(self.num_outputs)(x.mean(axis=(1, 2)))
