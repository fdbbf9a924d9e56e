"""Cost of a network as the papers count it: number of connections and FLOPs."""

import jax
import numpy as np

from fsjax.errors import ConfigError
from fsjax.sparsity.connections import Connections, layer_masks
from fsjax.typing import PyTree


def count_connections(params: PyTree, masks: PyTree = ()) -> int:
    """Number of active weights, the papers' #params (WAST, eq. 5).

    The sum over layers of the L0 norm of the weight matrix. A connection is active if its mask is
    true, whatever its weight. Biases and other vectors do not count.

    Args:
      params: arrays of one network (one seed); those with two or more dimensions are weights.
      masks: boolean arrays with the structure and shapes of ``params``, or ``()`` if nothing is
        masked. Instead of a mask, a layer may have :class:`fsjax.sparsity.connections.Connections`.

    Raises:
      ConfigError: if ``masks`` has another structure or other shapes.

    Examples:
      >>> params = {"kernel": jnp.ones((64, 10)), "bias": jnp.zeros(10)}
      >>> connections = fsjax.evaluation.count_connections(params)  # 640
      >>> print(fsjax.evaluation.training_flops(connections, num_samples=1000, num_epochs=10))
    """
    leaves = layer_masks(masks)
    number = sum(leaf.rows.size for leaf in leaves if isinstance(leaf, Connections))
    if number:
        others = [leaf for leaf in leaves if not isinstance(leaf, Connections)]
        return number + count_connections(others, others)
    weights, structure = jax.tree.flatten(params)
    shapes = [np.shape(leaf) for leaf in weights]
    if isinstance(masks, tuple) and not masks:
        return sum(int(np.prod(shape)) for shape in shapes if len(shape) >= 2)
    active, other = jax.tree.flatten(masks)
    active_shapes = [np.shape(leaf) for leaf in active]
    # The annotations of JAX refer to a PyTreeDef that its stubs do not define.
    if other != structure or active_shapes != shapes:  # type: ignore[operator]
        raise ConfigError(
            f"masks {other} with shapes {active_shapes} do not match params {structure} with "
            f"shapes {shapes}; give one mask per array, or () for no masks"
        )
    return sum(int(np.count_nonzero(leaf)) for leaf in active if np.ndim(leaf) >= 2)


def training_flops(connections: int, num_samples: int, num_epochs: int, each: float = 6.0) -> float:
    """Number of floating-point operations of training, as in WAST's Table 3 (appendix A.2).

    Args:
      connections: number of connections, from :func:`count_connections`.
      num_samples: rows per epoch.
      num_epochs: number of epochs.
      each: operations per connection and row: by default 2 in the forward pass (a multiplication
        and an addition) and 4 in the backward pass.
    """
    return each * connections * num_samples * num_epochs
