"""How large and how many the weights of a network are (BinMask, Table 1)."""

from typing import Final

import jax
import numpy as np

from fsjax.errors import ConfigError
from fsjax.method import PyTree
from fsjax.sparsity.binmask import Masked, masked_weights

#: Weights whose absolute value is at least this count for L0 (Table 1, notes).
NONZERO: Final = 1e-4


def mean_weight_norms(weights: PyTree) -> dict[str, float]:
    """Mean weight norms of one network, as the notes of BinMask's Table 1 define them.

    Over the n entries of all kernels together, those arrays with two or more dimensions. Biases
    are left out, as BinMask masks and the L1 term of ``NetworkOptions`` counts kernels alone.

    Args:
      weights: arrays of one network (one seed), or its ``Masked`` parameters, whose weights are
        multiplied by their masks first.

    Returns:
      ``l0``, the share, in [0, 1], of the weights with ``|w| >= 1e-4``; ``l1`` and ``l2``, the
      mean over the weights of ``|w|^p``, to the power of ``1/p``; at least 0.

    Raises:
      ConfigError: if there is no kernel.
    """
    if isinstance(weights, Masked):
        weights = masked_weights(weights)
    leaves = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(weights)]
    kernels = [leaf.ravel() for leaf in leaves if leaf.ndim >= 2]
    if not kernels:
        raise ConfigError("there are no kernels; give weights with two or more dimensions")
    absolute = np.abs(np.concatenate(kernels))
    # In float32, as the weights are, so that one of 1e-4 counts.
    nonzero = absolute >= np.float32(NONZERO)
    absolute = absolute.astype(np.float64)
    return {
        "l0": float(nonzero.mean()),
        "l1": float(absolute.mean()),
        "l2": float(np.sqrt(np.square(absolute).mean())),
    }
