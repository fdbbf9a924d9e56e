"""The base class of networks for images, whose inputs are rows of pixels."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from flax import linen as nn
from jax import Array

from fsjax.arguments import check
from fsjax.errors import ConfigError


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
        shape, least = self.image_shape, self.least_side()
        if len(shape) not in (2, 3):
            raise ConfigError(f"image_shape={shape}; choose (H, W) or (H, W, C)")
        if min(shape[:2]) < least:
            raise ConfigError(
                f"{self.label} needs images of at least {least}x{least} pixels, but these have "
                f"{shape[0]}x{shape[1]}; choose a network for smaller images, or 'mlp'"
            )
        check(Literal["C", "F"], image_order=self.image_order)
        super().__post_init__()

    # Flax must not wrap this method, because it is called before the module is set up.
    @nn.nowrap
    def least_side(self) -> int:
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
