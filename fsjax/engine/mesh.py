"""The devices of a training: one mesh over those of all processes.

Its axis ``runs`` takes the stacked states, ``(S, ...)``; a second one, ``rows``, takes the rows of
each batch, where one run is to have several devices.
"""

from __future__ import annotations

import warnings

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from fsjax.engine.programs import run
from fsjax.errors import ConfigError, check_choice, check_whole
from fsjax.method import Batch, PyTree

#: The axes.
RUNS, ROWS = "runs", "rows"

SEED_AXES = ("auto", "vmap", "map", "shard")

#: Whether the user knows of devices without a run.
_told = False


def choose_seed_axis(requested: str, num_seeds: int, batch_devices: int = 1) -> str:
    """How many runs go together: ``vmap`` or ``map`` on one device, or ``shard`` over all.

    ``auto`` is ``shard`` when there are several processes, or devices for each batch, or several
    runs and several devices. Else it is ``vmap`` on an accelerator, which it fills, and ``map``
    on a CPU: small nets gain nothing from a batched program there, and one seed's arrays stay in
    the cache (``BENCHMARKS.md``). Each device of ``shard`` treats its share in the same way.

    Raises:
      ConfigError: for an unknown name, or one that leaves the other devices out.
    """
    check_choice("seed_axis", requested, SEED_AXES)
    several = jax.process_count() > 1 or batch_devices > 1
    if several and requested in ("vmap", "map"):
        raise ConfigError(
            f"seed_axis={requested!r} is of one device; runs on several processes, or with "
            "batch_devices, need 'shard' or 'auto'"
        )
    if requested != "auto":
        return requested
    if several or (jax.device_count() > 1 and num_seeds > 1):
        return "shard"
    return "map" if jax.default_backend() == "cpu" else "vmap"


def check_batch_devices(batch_devices: object, batch_size: int) -> int:
    """The number of devices for each batch.

    Raises:
      ConfigError: if it divides neither the devices nor the rows of a batch.
    """
    count = check_whole("batch_devices", batch_devices)
    if jax.device_count() % count:
        raise ConfigError(
            f"batch_devices={count} with {jax.device_count()} devices; choose a number that "
            "divides them"
        )
    if batch_size % count:
        raise ConfigError(
            f"batch_devices={count} with batches of {batch_size} rows; choose a batch_size that "
            "it divides"
        )
    return count


def mesh_of(batch_devices: int) -> Mesh:
    """The mesh, with the axis ``rows`` where a batch has several devices."""
    devices = np.array(jax.devices())
    if batch_devices == 1:
        return Mesh(devices, (RUNS,))
    return Mesh(devices.reshape(-1, batch_devices), (RUNS, ROWS))


def padded_runs(axis: str, num_runs: int, batch_devices: int = 1) -> int:
    """Runs with those that only fill up, so that every device of ``shard`` gets the same number.

    Says once where a job on several processes has more devices than runs.
    """
    global _told
    if axis != "shard":
        return num_runs
    places = jax.device_count() // batch_devices
    if jax.process_count() > 1 and places > num_runs and not _told:
        _told = True
        warnings.warn(
            f"{num_runs} runs for {places} places of the mesh: {places - num_runs} stay idle; "
            "fewer processes, or batch_devices, would do",
            stacklevel=2,
        )
    return -(-num_runs // places) * places


def place_runs(axis: str, tree: PyTree, batch_devices: int = 1) -> PyTree:
    """Stacked arrays laid out over the devices as the compiled epochs return them.

    Another layout would compile their program a second time.
    """
    if axis != "shard":
        return jax.device_put(tree)
    return _placed(tree, NamedSharding(mesh_of(batch_devices), PartitionSpec(RUNS)))


def place_everywhere(axis: str, tree: PyTree, batch_devices: int = 1) -> PyTree:
    """Arrays that all runs share, on each device."""
    if axis != "shard":
        return jax.device_put(tree)
    return _placed(tree, NamedSharding(mesh_of(batch_devices), PartitionSpec()))


def _placed(tree: PyTree, sharding: NamedSharding) -> PyTree:
    if jax.process_count() == 1:
        return jax.device_put(tree, sharding)

    def placed(leaf: jax.Array | np.ndarray) -> jax.Array:
        if isinstance(leaf, jax.Array) and leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
            return leaf
        # Each process has the whole: nothing travels. Arrays without entries need no looking at.
        host = np.asarray(leaf) if leaf.size else np.zeros(leaf.shape, leaf.dtype)
        return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

    return jax.tree.map(placed, tree)


def replicated(tree: PyTree, batch_devices: int = 1) -> PyTree:
    """Within a program: values that every process is going to read."""
    if jax.process_count() == 1:
        return tree
    everywhere = NamedSharding(mesh_of(batch_devices), PartitionSpec())
    return jax.lax.with_sharding_constraint(tree, everywhere)


def gathered(tree: PyTree, batch_devices: int = 1) -> PyTree:
    """Laid out arrays as a whole in every process, on its host; as they are where it is alone."""
    if jax.process_count() == 1:
        return tree
    leaves, structure = jax.tree.flatten(tree)
    filled = [leaf for leaf in leaves if leaf.size]
    full = iter(run(_everywhere, (batch_devices,), (filled,)))
    merged = [
        # Its entries are all here; arrays without any need no program.
        np.asarray(next(full)) if leaf.size else np.zeros(leaf.shape, leaf.dtype)
        for leaf in leaves
    ]
    return jax.tree.unflatten(structure, merged)


def _everywhere(batch_devices: int, leaves: list[jax.Array]) -> list[jax.Array]:
    return replicated(leaves, batch_devices)


def split_rows(batch: Batch[jax.Array]) -> Batch[jax.Array]:
    """The batch of one run, over the devices that the mesh has for its rows, if it has any."""
    if ROWS not in jax.sharding.get_abstract_mesh().axis_names:
        return batch
    return jax.tree.map(
        lambda leaf: jax.lax.with_sharding_constraint(leaf, PartitionSpec(ROWS)), batch
    )
