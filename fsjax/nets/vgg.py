"""VGG networks with batch normalisation for small images."""

from __future__ import annotations

from flax import linen as nn
from jax import Array

from fsjax.nets.convolution import conv3x3, max_pool_2x2
from fsjax.nets.images import ImageNetwork
from fsjax.nets.mlp import FanInDense, batch_norm

#: Channels of the convolutions between the poolings: configuration E.
VGG19_STAGES = ((64,) * 2, (128,) * 2, (256,) * 4, (512,) * 4, (512,) * 4)


class VGG(ImageNetwork):
    """Stages of 3x3 convolutions, batch normalisation and ReLU, each pooled; a dense output.

    Simonyan & Zisserman, 2014, configuration E, in the form usual for 32x32 pixels, the fewest for
    five stages: one dense layer instead of three (VGG-19 by its name still), and no biases before
    batch normalisation, which would cancel them. 20,035,018 parameters for ten classes.

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
        # One pixel is left of 32x32; the mean lets larger images have the same dense layer.
        return FanInDense(self.num_outputs)(x.mean(axis=(1, 2)))
