"""What the networks for images share: rows as images, and the call."""

from __future__ import annotations

import math
from typing import ClassVar

import jax
from flax import linen as nn

from fsjax.errors import ConfigError, nearest


def check_images(
    network: str, image_shape: tuple[int, ...], image_order: str, least: int = 1
) -> None:
    """Raises ConfigError unless the network can take such images.

    Args:
      network: its name, for the message.
      image_shape: ``(H, W)`` or ``(H, W, C)``.
      image_order: ``'C'`` or ``'F'``, as in ``numpy.reshape``.
      least: the fewest pixels that H and W may have.
    """
    if len(image_shape) not in (2, 3):
        raise ConfigError(f"image_shape={image_shape}; choose (H, W) or (H, W, C)")
    if min(image_shape[:2]) < least:
        raise ConfigError(
            f"{network} needs images of at least {least}x{least} pixels; these have "
            f"{image_shape[0]}x{image_shape[1]}; choose a network for smaller images, or 'mlp'"
        )
    if image_order not in ("C", "F"):
        raise ConfigError(f"image_order={image_order!r}: {nearest(image_order, 'CF')}")


def to_images(x: jax.Array, image_shape: tuple[int, ...], image_order: str = "C") -> jax.Array:
    """Rows as images.

    Args:
      x: ``(B, D)``.
      image_shape: ``(H, W)`` or ``(H, W, C)``, of D entries.
      image_order: ``'C'`` or ``'F'``: the order of the entries of one row, as in
        ``numpy.reshape``.

    Returns:
      ``(B, H, W, C)``, with C = 1 where the image has no channels.

    Raises:
      ConfigError: if the rows have another number of entries.
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
      image_shape: ``(H, W)`` or ``(H, W, C)`` of a row.
      image_order: ``'C'`` or ``'F'``, as in ``numpy.reshape``.

    Raises:
      ConfigError: if the network cannot take such images.
    """

    num_outputs: int
    image_shape: tuple[int, ...]
    image_order: str = "C"

    #: What messages call the network.
    label: ClassVar[str]

    def __post_init__(self) -> None:
        check_images(self.label, self.image_shape, self.image_order, self.least_side())
        super().__post_init__()

    # Not wrapped by Flax, as it is called before the module is set up.
    @nn.nowrap
    def least_side(self) -> int:
        """The fewest pixels that H and W may have."""
        return 1

    def __call__(
        self, x: jax.Array, *, train: bool = False, weight: jax.Array | None = None
    ) -> jax.Array:
        """The outputs for a batch.

        Args:
          x: ``(B, D)``.
          train: normalises by the batch statistics (to be made mutable: ``batch_stats``).
          weight: ``(B,)`` of the rows; those of weight 0 do not enter the batch statistics.

        Returns:
          ``(B, num_outputs)``.
        """
        images = to_images(x, self.image_shape, self.image_order)
        return self.of_images(images, train=train, weight=weight)

    def of_images(self, x: jax.Array, *, train: bool, weight: jax.Array | None) -> jax.Array:
        """:meth:`__call__` of images ``(B, H, W, C)``."""
        raise NotImplementedError
