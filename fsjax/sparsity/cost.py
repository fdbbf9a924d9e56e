"""Memory and computation of a network as the papers count them: connections and FLOPs."""

import jax
import numpy as np

from fsjax.errors import ConfigError
from fsjax.sparsity.connections import is_connections
from fsjax.typing import PyTree


def count_connections(params: PyTree, masks: PyTree = ()) -> int:
    """Number of active weights, the papers' #params (WAST, eq. 5).

    The sum over layers of the L0 norm of the weight matrix, where a connection counts as active by
    its mask, whatever its weight. Biases and other vectors do not count.

    Args:
      params: arrays of one network (one seed); those with two or more dimensions are weights.
      masks: boolean arrays in the structure and shapes of ``params``, or ``()`` where nothing is
        masked; with connections (:mod:`fsjax.sparsity.connections`) in place of some.

    Raises:
      ConfigError: if ``masks`` has another structure or other shapes.
    """
    # Connections in place of a mask tell their number by themselves.
    held = jax.tree.leaves(masks, is_leaf=is_connections)
    number = sum(leaf.rows.size for leaf in held if is_connections(leaf))
    if number:
        others = [leaf for leaf in held if not is_connections(leaf)]
        return number + count_connections(others, others)
    weights, structure = jax.tree.flatten(params)
    shapes = [np.shape(leaf) for leaf in weights]
    if isinstance(masks, tuple) and not masks:
        return sum(int(np.prod(shape)) for shape in shapes if len(shape) >= 2)
    active, other = jax.tree.flatten(masks)
    active_shapes = [np.shape(leaf) for leaf in active]
    # JAX's types name a PyTreeDef that its stubs do not define.
    if other != structure or active_shapes != shapes:  # type: ignore[operator]
        raise ConfigError(
            f"masks {other} with shapes {active_shapes} do not match params {structure} with "
            f"shapes {shapes}; give one mask for each array, or () for none"
        )
    return sum(int(np.count_nonzero(leaf)) for leaf in active if np.ndim(leaf) >= 2)


def training_flops(connections: int, num_samples: int, num_epochs: int, each: float = 6.0) -> float:
    """Floating-point operations of training, as WAST's Table 3 has them (A.2).

    For each connection of :func:`count_connections` and row of an epoch: two in the forward pass,
    a multiplication and an addition, and twice as many in the backward pass.
    """
    return each * connections * num_samples * num_epochs
