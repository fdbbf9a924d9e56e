"""LeNet-5 with batch normalisation."""

from __future__ import annotations

from flax import linen as nn
from jax import Array

from fsjax.nets.convolution import Conv, max_pool_2x2
from fsjax.nets.images import ImageNetwork
from fsjax.nets.mlp import FanInDense, batch_norm


class LeNet5(ImageNetwork):
    """Two convolutions with batch normalisation, ReLU and max-pooling; three dense layers.

    LeCun et al., 1998, in the form of BinMask's MNIST-CNN (section 4.1). That paper says only
    "batch normalization after convolutional layers"; as in its other networks, ReLU and max-pooling
    replace the sigmoids and subsampling of 1998. Images have at least 4x4 pixels.
    """

    image_shape: tuple[int, ...] = (28, 28, 1)
    label = "lenet5"

    @nn.nowrap
    def least_side(self) -> int:
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
