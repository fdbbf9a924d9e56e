"""Scaled rows as the engine trains on them: training, validation and test rows, and batches."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar, cast, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax import tasks
from fsjax.method import About, Batch, PyTree, Spec, TrainingRows
from fsjax.tables.scaled import DeviceTable, HostTable
from fsjax.tables.sparse_rows import SparseRows
from fsjax.tables.streamed_rows import StreamedRows

#: Arrays on the device, or NumPy arrays on the host.
AnyArray = Array | np.ndarray

#: The types of the inputs of rows, and of their other arrays.
X = TypeVar("X", covariant=True)
Y = TypeVar("Y", covariant=True)


class Rows(NamedTuple, Generic[X, Y]):
    """Scaled rows, on the host or in compiled code.

    Attributes:
      x: ``(N, D)`` float32, or the rows of a sparse table or of a table on disk.
      y: ``(N,)`` classes or ``(N, C)`` numbers; not used for reconstruction.
      weight: ``(N,)`` float32, 0 for the padding rows at the end.
    """

    x: X
    y: Y
    weight: Y


HostRows = Rows[HostTable, np.ndarray]
DeviceRows = Rows[DeviceTable, Array]

#: Rows in memory, the input of compiled epochs.
MemoryRows = Rows[Array | SparseRows, Array]

R = TypeVar("R", bound=Rows, covariant=True)


class Arrays(NamedTuple, Generic[R]):
    """The rows of a run; validation and test rows may be empty.

    The test rows are only for the metrics that are recorded after each epoch, and empty if none
    are.
    """

    train: R
    valid: R
    test: R


@overload
def as_batch(task: str, rows: Rows[Array, Array]) -> Batch[Array]: ...


@overload
def as_batch(task: str, rows: DeviceRows) -> TrainingRows: ...


def as_batch(task: str, rows: DeviceRows) -> TrainingRows:
    """All rows as one batch; for reconstruction the targets are the inputs."""
    # Rows on disk raise an error when they are read, so methods need not know about them.
    x = cast("Array | SparseRows", rows.x)
    return Batch(x, rows.y if tasks.TABLE[task].target.supervised else x, rows.weight)


def has_own_rows(arrays: Arrays[Rows[AnyArray | SparseRows | StreamedRows, AnyArray]]) -> bool:
    """Whether each seed has its own rows, so that ``arrays`` has a leading seed axis."""
    return arrays.train.x.ndim == 3


def take_rows(tree: PyTree, rows: np.ndarray | int) -> PyTree:
    """Takes one row of stacked arrays, or several, on the host, where nothing is compiled."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[rows], tree)


def whole_table(spec: Spec) -> bool:
    """Whether an epoch has one batch of all rows, including padding."""
    return spec.batch_size == spec.num_rows and spec.steps_per_epoch == 1 and spec.repeats == 1


def batch_at(
    about: About, spec: Spec, everything: TrainingRows, rows: Array, real: Array
) -> Batch[Array]:
    """A batch, of rows and their factors ``real`` ``(B,)`` from :func:`batch_indices`.

    By ``About.merges_copies`` it may be a table of fewer rows, whose weights count the copies.
    """
    # A loss that replaces the task's may read weights in another way.
    merges = about.merges_copies and spec.loss is None and spec.registered_task is None
    if not merges or spec.batch_size <= spec.num_rows:
        batch = everything.take(rows)
        return batch._replace(weight=batch.weight * real)
    copies = jnp.where(rows[:, None] == jnp.arange(spec.num_rows), real[:, None], 0.0)
    return everything.take(slice(None))._replace(weight=everything.weight * jnp.sum(copies, axis=0))


def batch_indices(spec: Spec, key: Array, num_real: Array) -> tuple[Array, Array]:
    """The rows of every batch of the next epoch; only the first ``num_real`` rows are not padding.

    Each row has random bits of its own, so the order does not depend on the amount of padding.

    Returns:
      ``(steps, B)`` int32 row indices, and ``(steps, B)`` float32, 0 where an index is padding of
      the last batch and 1 elsewhere.
    """
    visits = jnp.arange(spec.num_rows * spec.repeats, dtype=jnp.int32)
    if spec.shuffle:
        bits = jax.random.bits(key, visits.shape) >> 1
        visits = jnp.argsort(jnp.where(visits < num_real * spec.repeats, bits, jnp.uint32(2**31)))
    slots = jnp.arange(spec.steps_per_epoch * spec.batch_size)
    shape = (spec.steps_per_epoch, spec.batch_size)
    real = (slots < num_real * spec.repeats).astype(jnp.float32)
    rows = visits[jnp.minimum(slots, visits.size - 1)] % num_real
    return rows.reshape(shape), real.reshape(shape)
