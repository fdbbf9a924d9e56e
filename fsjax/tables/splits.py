"""Splits of row numbers into training, validation and test rows."""

from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from fsjax.errors import ConfigError, is_number

DEFAULT_SEED = 42
"""The seed of the papers' splits, which all training seeds share."""


class Split(NamedTuple):
    """Row numbers (int32) of each part. The parts are disjoint, and ``valid`` may be empty."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


class PaperSettings(NamedTuple):
    """How the papers split and scale a data set; by default as a user's table.

    Attributes:
      protocol: the protocol of :func:`fsjax.data.make_split` that ``'paper'`` stands for.
      scaling: the kind of scaling, and the rows to which it is fitted, ``'train'`` or
        ``'train+valid'``.
      wast_official: whether WAST uses the official test rows (otherwise 80/20).
      share: of the rows, which the IP-CAE experiments use.
      torch: whether these draw rows by PyTorch (otherwise by scikit-learn).
    """

    protocol: str = "stratified"
    scaling: tuple[str, str] = ("standard", "train")
    wast_official: bool = False
    share: float = 1.0
    torch: bool = True

    def named(self, protocol: str) -> str:
        """A protocol, in place of one that depends on the data set.

        ``'paper'`` is that of the data set; ``'wast'`` is ``'official'`` where WAST used the
        official test rows. Others are returned unchanged.
        """
        protocol = self.protocol if protocol == "paper" else protocol
        return "official" if protocol == "wast" and self.wast_official else protocol


def validation_split(
    rows: int, fraction: float, seed: int, classes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Training and validation row numbers; without validation rows if the share is below one row.

    The proportions of classes ``(rows,)`` are kept if each class has two rows, both parts are at
    least as large as the number of classes, and no class would lose all training rows. Every class
    keeps a training row. ConfigError for a share outside [0, 1).
    """
    if not is_number(fraction) or not 0 <= fraction < 1:
        raise ConfigError(
            f"validation_fraction={fraction!r}; choose a share from 0 (no validation) to below 1"
        )
    everything = np.arange(rows)
    count = min(int(rows * fraction), rows - 1)
    if count < 1:
        return everything, everything[:0]
    kept, number = np.zeros(0, int), np.array([rows])
    if classes is not None:
        _, kept, number = np.unique(classes, return_index=True, return_counts=True)
    if number.min() >= 2 and min(count, rows - count) >= len(number):
        train, valid = train_test_split(
            everything, test_size=count, random_state=seed, stratify=classes
        )
        if classes is None or len(np.unique(classes[train])) == len(number):
            return np.sort(train), np.sort(valid)
    # One row of each class is a training row, whatever is drawn.
    others = np.random.default_rng(seed).permutation(np.setdiff1d(everything, kept))
    valid = np.sort(others[:count])
    return np.setdiff1d(everything, valid), valid
