"""What the networks for images share: rows as images, and the call."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from flax import linen as nn
from jax import Array

from fsjax.arguments import check
from fsjax.errors import ConfigError


def to_images(x: Array, image_shape: tuple[int, ...], image_order: str = "C") -> Array:
    """Rows ``(B, D)`` as images ``(B, H, W, C)``, with C = 1 where the image has no channels.

    Args:
      x: ``(B, D)``.
      image_shape: ``(H, W)`` or ``(H, W, C)``, of D entries, else ConfigError.
      image_order: ``'C'`` or ``'F'``: the order of the entries of one row, as in
        ``numpy.reshape``.
    """
    if x.shape[-1] != math.prod(image_shape):
        raise ConfigError(
            f"image_shape={image_shape} does not hold {x.shape[-1]} columns; "
            "set the columns that are not used to 0 rather than leave them out"
        )
    shape = (*image_shape, 1)[:3]
    if image_order == "F":
        return x.reshape(-1, *shape[::-1]).transpose(0, 3, 2, 1)
    return x.reshape(-1, *shape)


class ImageNetwork(nn.Module):
    """A network whose rows are images. A subclass has a ``label`` and :meth:`of_images`.

    Attributes:
      num_outputs: width of the output.
      image_shape: ``(H, W)`` or ``(H, W, C)`` of a row; ConfigError if the network cannot take it.
      image_order: ``'C'`` or ``'F'``, as in ``numpy.reshape``.
    """

    num_outputs: int
    image_shape: tuple[int, ...]
    image_order: str = "C"

    #: What messages call the network.
    label: ClassVar[str]

    def __post_init__(self) -> None:
        shape, least = self.image_shape, self.least_side()
        if len(shape) not in (2, 3):
            raise ConfigError(f"image_shape={shape}; choose (H, W) or (H, W, C)")
        if min(shape[:2]) < least:
            raise ConfigError(
                f"{self.label} needs images of at least {least}x{least} pixels; these have "
                f"{shape[0]}x{shape[1]}; choose a network for smaller images, or 'mlp'"
            )
        check(Literal["C", "F"], image_order=self.image_order)
        super().__post_init__()

    # Not wrapped by Flax, as it is called before the module is set up.
    @nn.nowrap
    def least_side(self) -> int:
        """The fewest pixels that H and W may have."""
        return 1

    def __call__(self, x: Array, *, train: bool = False, weight: Array | None = None) -> Array:
        """The outputs ``(B, num_outputs)`` for a batch.

        Args:
          x: ``(B, D)``.
          train: normalises by the batch statistics (to be made mutable: ``batch_stats``).
          weight: ``(B,)`` of the rows; those of weight 0 do not enter the batch statistics.
        """
        x = to_images(x, self.image_shape, self.image_order)
        return self.of_images(x, train=train, weight=weight)

    def of_images(self, x: Array, *, train: bool, weight: Array | None) -> Array:
        """:meth:`__call__` of images ``(B, H, W, C)``."""
        raise NotImplementedError
