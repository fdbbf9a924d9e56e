"""The device mesh for training, over the devices of all processes.

Its axis ``runs`` splits the stacked states, ``(S, ...)``; if one run uses several devices, a second
axis ``rows`` splits the rows of each batch.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from fsjax.engine.programs import program
from fsjax.engine.rows import take_rows
from fsjax.errors import ConfigError, check_choice, check_whole
from fsjax.method import Batch, PyTree, TrainState

#: The axes of the mesh.
RUNS, ROWS = "runs", "rows"

SEED_AXES = ("auto", "vmap", "map", "shard")

#: Whether the warning about idle devices has been given.
_has_warned = False


def choose_seed_axis(requested: str, num_seeds: int, batch_devices: int = 1) -> str:
    """How the seeds run: by ``vmap`` or ``map`` on one device, or by ``shard`` over all devices.

    ``auto`` is ``shard`` if there are several processes, several devices per batch, or several
    runs and several devices. Otherwise it is ``vmap`` on an accelerator, to fill it, and ``map`` on
    a CPU, where a batched program is no faster for small networks and the arrays of one seed stay
    in the cache (``BENCHMARKS.md``). With ``shard``, each device runs its seeds in the same way.

    Raises:
      ConfigError: for an unknown name, or one that cannot use all the devices that are needed.
    """
    check_choice("seed_axis", requested, SEED_AXES)
    several = jax.process_count() > 1 or batch_devices > 1
    if several and requested in ("vmap", "map"):
        raise ConfigError(
            f"seed_axis={requested!r} uses one device, but there are several processes or "
            "batch_devices; choose 'shard' or 'auto'"
        )
    if requested != "auto":
        return requested
    if several or (jax.device_count() > 1 and num_seeds > 1):
        return "shard"
    return "map" if jax.default_backend() == "cpu" else "vmap"


def check_batch_devices(batch_devices: object, batch_size: int) -> int:
    """Checks the number of devices per batch and returns it.

    Raises:
      ConfigError: unless it divides both the number of devices and the rows of a batch.
    """
    count = check_whole("batch_devices", batch_devices)
    if jax.device_count() % count:
        raise ConfigError(
            f"batch_devices={count} does not divide the {jax.device_count()} devices; choose a "
            "number that does"
        )
    if batch_size % count:
        raise ConfigError(
            f"batch_devices={count} does not divide batches of {batch_size} rows; choose another "
            "batch_size"
        )
    return count


def mesh_of(batch_devices: int) -> Mesh:
    """The mesh, with the axis ``rows`` if a batch has several devices."""
    devices = np.array(jax.devices())
    if batch_devices == 1:
        return Mesh(devices, (RUNS,))
    return Mesh(devices.reshape(-1, batch_devices), (RUNS, ROWS))


class Placement(NamedTuple):
    """How R runs are laid out: an axis of :data:`SEED_AXES`, devices per batch, and R."""

    axis: str
    batch_devices: int
    num_runs: int

    @property
    def rows(self) -> np.ndarray:
        """The run of each place; ``shard`` repeats the last run to give each device equally many.

        Warns once if a job on several processes has more devices than runs.
        """
        global _has_warned
        runs, places = self.num_runs, jax.device_count() // self.batch_devices
        if self.axis != "shard":
            return np.arange(runs)
        if jax.process_count() > 1 and places > runs and not _has_warned:
            _has_warned = True
            warnings.warn(
                f"{runs} runs for {places} places of the mesh: {places - runs} stay idle; "
                "use fewer processes, or more batch_devices",
                stacklevel=2,
            )
        return np.minimum(np.arange(-(-runs // places) * places), runs - 1)

    def place(self, tree: PyTree, *, shared: bool = False) -> PyTree:
        """Places stacked arrays of the runs, or arrays that all runs share, on the devices.

        The layout is that which compiled epochs return; another one would compile the program a
        second time.
        """
        if self.axis != "shard":
            return jax.device_put(tree)
        spec = PartitionSpec() if shared else PartitionSpec(RUNS)
        sharding = NamedSharding(mesh_of(self.batch_devices), spec)
        if jax.process_count() == 1:
            return jax.device_put(tree, sharding)

        def placed(leaf: jax.Array | np.ndarray) -> jax.Array:
            if isinstance(leaf, jax.Array) and leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
                return leaf
            # Each process has the whole array, so nothing is sent. Empty arrays are not read.
            host = np.asarray(leaf) if leaf.size else np.zeros(leaf.shape, leaf.dtype)
            return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])

        return jax.tree.map(placed, tree)

    def padded(self, states: TrainState) -> TrainState:
        """The states on the devices, one for each place."""
        rows = self.rows
        return self.place(take_rows(states, rows) if len(rows) > self.num_runs else states)

    def unpadded(self, states: TrainState) -> TrainState:
        """The states of the R runs without padding, in every process."""
        states = gathered(states, self.batch_devices)
        is_padded = len(self.rows) > self.num_runs
        return take_rows(states, np.arange(self.num_runs)) if is_padded else states


def replicated(tree: PyTree, batch_devices: int = 1) -> PyTree:
    """Within a program, replicates values that every process is going to read."""
    if jax.process_count() == 1:
        return tree
    everywhere = NamedSharding(mesh_of(batch_devices), PartitionSpec())
    return jax.lax.with_sharding_constraint(tree, everywhere)


def gathered(tree: PyTree, batch_devices: int = 1) -> PyTree:
    """Gathers distributed arrays on the host of every process; a single process keeps them."""
    if jax.process_count() == 1:
        return tree
    leaves, structure = jax.tree.flatten(tree)
    nonempty = [leaf for leaf in leaves if leaf.size]
    full = iter(_everywhere(nonempty, batch_devices=batch_devices))
    merged = [
        # Replicated arrays have all their entries here; empty arrays need no program.
        np.asarray(next(full)) if leaf.size else np.zeros(leaf.shape, leaf.dtype)
        for leaf in leaves
    ]
    return jax.tree.unflatten(structure, merged)


@program()
def _everywhere(leaves: list[jax.Array], *, batch_devices: int) -> list[jax.Array]:
    return replicated(leaves, batch_devices)


def split_rows(batch: Batch[jax.Array]) -> Batch[jax.Array]:
    """Splits the rows of a batch over the mesh axis ``rows``, if there is one."""
    if ROWS not in jax.sharding.get_abstract_mesh().axis_names:
        return batch
    return jax.tree.map(
        lambda leaf: jax.lax.with_sharding_constraint(leaf, PartitionSpec(ROWS)), batch
    )
