"""Many seeds in one compiled program: the seed axis as ``vmap``, ``map`` or ``shard``."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from fsjax.engine.loop import Arrays, train_epochs
from fsjax.errors import ConfigError, nearest
from fsjax.method import Array, Method, TrainState

SEED_AXES = ("auto", "vmap", "map", "shard")


def choose_seed_axis(requested: str, num_seeds: int) -> str:
    """The seed axis to use.

    ``auto`` is ``vmap`` on accelerators, where it fills the device. On a CPU it is ``shard`` when
    JAX has several CPU devices (see :func:`fsjax.engine.compilation.use_cpu_devices`) and there
    are several seeds, else ``map``: small nets gain nothing from a batched program there, and one
    seed's arrays stay in the cache (``BENCHMARKS.md``).

    Raises:
      ConfigError: for an unknown name.
    """
    if requested not in SEED_AXES:
        raise ConfigError(f"seed_axis={requested!r}: {nearest(requested, SEED_AXES)}")
    if requested != "auto":
        return requested
    if jax.default_backend() != "cpu":
        return "vmap"
    return "shard" if jax.device_count() > 1 and num_seeds > 1 else "map"


def padded_seeds(axis: str, num_seeds: int) -> int:
    """Seeds to run so that every device of a ``shard`` axis gets the same number."""
    if axis != "shard":
        return num_seeds
    devices = jax.device_count()
    return -(-num_seeds // devices) * devices


def _mesh() -> Mesh:
    return Mesh(np.array(jax.devices()), ("seeds",))


def place_seeds(axis: str, states: TrainState) -> TrainState:
    """Stacked states laid out over the devices as :func:`train_seeds` returns them.

    Another layout would compile its program a second time.
    """
    if axis != "shard":
        return states
    return jax.device_put(states, NamedSharding(_mesh(), PartitionSpec("seeds")))


def take_seeds(states: TrainState, rows: np.ndarray) -> TrainState:
    """Rows of stacked states, possibly repeated, as in padding for a ``shard`` axis."""

    def take(leaf: Array) -> Array:
        if not jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return leaf[rows]
        # By their words: a padding seed repeats a key on purpose.
        words = jax.random.key_data(leaf)[rows]
        return jax.random.wrap_key_data(words, impl=jax.random.key_impl(leaf))

    return jax.tree.map(take, states)


@partial(jax.jit, static_argnames=("method", "axis", "own_arrays"), donate_argnames=("states",))
def train_seeds(
    method: Method,
    axis: str,
    own_arrays: bool,
    states: TrainState,
    arrays: Arrays,
    num_epochs: Array,
) -> tuple[TrainState, dict[str, Array]]:
    """:func:`train_epochs` for all seeds.

    Args:
      method: the method.
      axis: ``vmap``, ``map`` or ``shard``.
      own_arrays: whether each seed has its own split, so that ``arrays`` has a leading seed axis.
      states: stacked states, ``(S, ...)``; their memory is reused.
      arrays: the data, shared or stacked.
      num_epochs: scalar int32, or ``(S,)`` where seeds train for different numbers of epochs.

    Returns:
      The new states and the history, ``(S, MAX_EPOCHS_PER_CALL)`` by name.
    """

    num_epochs = jnp.broadcast_to(num_epochs, states.step.shape)

    def one(state: TrainState, data: Arrays, epochs: Array):
        return train_epochs(method, state, data, epochs)

    def one_after_another(states: TrainState, arrays: Arrays, epochs: Array):
        if own_arrays:
            return jax.lax.map(lambda row: one(*row), (states, arrays, epochs))
        return jax.lax.map(lambda row: one(row[0], arrays, row[1]), (states, epochs))

    if axis == "vmap":
        in_axes = (0, 0 if own_arrays else None, 0)
        return jax.vmap(one, in_axes=in_axes)(states, arrays, num_epochs)
    if axis == "map":
        return one_after_another(states, arrays, num_epochs)
    seeds, everywhere = PartitionSpec("seeds"), PartitionSpec()
    return jax.shard_map(
        one_after_another,
        mesh=_mesh(),
        in_specs=(seeds, seeds if own_arrays else everywhere, seeds),
        out_specs=seeds,
        check_vma=False,
    )(states, arrays, num_epochs)
