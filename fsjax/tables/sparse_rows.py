"""Rows of a sparse table on the device: the type of ``data.x`` if X is sparse.

Columns and values of all non-zeros are stored row by row, so that memory does not depend on the
longest row. Only the rows that are indexed become dense: ``data.x[rows]`` is ``(B, D)`` for sparse
and dense tables alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import Array
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from typing_extensions import TypeIs

#: Entries of dense rows that are in memory at once, where the number of rows is free.
ENTRIES_AT_ONCE = 2**22

#: Non-zeros are placed in passes of this many times the mean number in as many rows.
PASS = 1.25


class SparseRows(struct.PyTreeNode):
    """Scaled rows ``(N, D)`` as their non-zeros; with a leading seed axis where seeds differ.

    Scaling turns 0 into another value in each column, so that values are set and not added.

    Attributes:
      values: ``(Z,)`` float32, scaled; the last values may be padding.
      columns: ``(Z,)`` int32, ascending in each row; D for padding.
      starts: ``(N,)`` int32, where the non-zeros of each row begin.
      counts: ``(N,)`` int32, the number of non-zeros of each row.
      base: ``(D,)`` float32, what 0 becomes in each column by scaling.
    """

    # NumPy arrays on the host.
    values: Array | np.ndarray
    columns: Array | np.ndarray
    starts: Array | np.ndarray
    counts: Array | np.ndarray
    base: Array | np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """``(N, D)``, or ``(S, N, D)``."""
        return (*self.starts.shape, self.base.shape[-1])

    @property
    def ndim(self) -> int:
        """Number of axes of :attr:`shape`."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """The type of the dense rows."""
        return self.values.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        """Dense rows ``(B, D)`` by a slice, or by ``(B,)`` indices from 0 to N - 1 that may repeat.

        Raises:
          TypeError: for any other index, because there is no dense table to index.
        """
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        if getattr(rows, "ndim", 0) != 1 or not jnp.issubdtype(rows.dtype, jnp.integer):
            raise TypeError(
                "rows of a sparse table are indexed by (B,) whole numbers or a slice only"
            )
        return _dense(self, jnp.asarray(rows, jnp.int32))

    def only(self, rows: Array) -> SparseRows:
        """The rows with ``(B,)`` indices, still sparse."""
        return self.replace(starts=self.starts[rows], counts=self.counts[rows])

    def __jax_array__(self) -> Array:
        raise TypeError(_NOT_DENSE)


_NOT_DENSE = (
    "the method uses the whole table at once, which is sparse here; take rows by data.x[rows], or "
    "give X.toarray()"
)


def dense(rows: Array | SparseRows) -> Array:
    """The rows themselves where they have to be dense, as targets of supervised tasks are.

    Raises:
      TypeError: for sparse rows.
    """
    if is_sparse(rows):
        raise TypeError(_NOT_DENSE)
    return rows


def _dense(x: SparseRows, rows: Array) -> Array:
    # NumPy arrays cannot be indexed by traced arrays.
    x = jax.tree.map(jnp.asarray, x)
    columns, mean = x.shape[1], x.values.size / max(len(x), 1)
    wave = max(int(PASS * mean * rows.size), 8)
    ends = jnp.cumsum(x.counts[rows])
    begins = ends - x.counts[rows]

    def place(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        first, dense = carry
        slot = first + jnp.arange(wave, dtype=jnp.int32)
        row = jnp.minimum(jnp.searchsorted(ends, slot, side="right"), rows.size - 1)
        index = jnp.where(slot < ends[-1], x.starts[rows[row]] + slot - begins[row], 0)
        column = jnp.where(slot < ends[-1], x.columns[index], columns)
        return first + wave, dense.at[row, column].set(x.values[index], mode="drop")

    # Usually one pass; rows far above the mean take more passes, not more memory.
    start = (jnp.zeros((), jnp.int32), jnp.broadcast_to(x.base, (rows.size, columns)))
    return jax.lax.while_loop(lambda carry: carry[0] < ends[-1], place, start)[1]


def rows_at_once(x: Array | SparseRows, max_rows: int) -> int:
    """The number of rows to take at a time: ``max_rows``, or fewer for a wide sparse table."""
    if not is_sparse(x):
        return max_rows
    return min(max_rows, max(ENTRIES_AT_ONCE // x.shape[-1], 8))


def map_rows(function: Callable[[Array], Any], x: Array | SparseRows, max_rows: int) -> Any:
    """Apply ``function`` to dense rows ``(B, D)`` chunk by chunk; joins its arrays ``(B, ...)``."""
    if not is_sparse(x):
        return _map_dense(function, x, max_rows)
    size = min(rows_at_once(x, max_rows), len(x))
    chunks = -(-len(x) // size)

    def map_chunk(chunk: Array) -> Any:
        # The last row is repeated to fill the last chunk.
        return function(x[jnp.minimum(chunk * size + jnp.arange(size), len(x) - 1)])

    outputs = jax.lax.map(map_chunk, jnp.arange(chunks))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[: len(x)], outputs)


def _map_dense(function: Callable[[Array], Any], x: Array, size: int) -> Any:
    """:func:`map_rows` of an array, whose last rows are a smaller part."""
    chunks, rest = divmod(x.shape[0], size)
    outputs_of_parts = []
    if chunks:
        parts = x[: chunks * size].reshape(chunks, size, *x.shape[1:])
        outputs = jax.lax.map(function, parts)
        outputs_of_parts.append(
            jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), outputs)
        )
    if rest or not chunks:
        outputs_of_parts.append(function(x[chunks * size :]))
    if len(outputs_of_parts) == 1:
        return outputs_of_parts[0]
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *outputs_of_parts)


def chosen_rows(x: Array | SparseRows, rows: Array) -> Array | SparseRows:
    """Some of the rows, ``(B,)`` numbers, in the same form."""
    return x.only(rows) if is_sparse(x) else x[rows]


def is_sparse(rows: Any) -> TypeIs[SparseRows]:
    """Whether rows are sparse; also of a leaf, for ``jax.tree.map(..., is_leaf=is_sparse)``."""
    return isinstance(rows, SparseRows)


def filled_sparse(x: SparseRows, num_rows: int, num_values: int) -> SparseRows:
    """Pad with empty rows and unused values to these numbers, on the host."""
    rows, values = num_rows - len(x), num_values - x.values.size
    return x.replace(
        values=np.pad(x.values, (0, values)),
        columns=np.pad(x.columns, (0, values), constant_values=x.shape[-1]),
        starts=np.pad(x.starts, (0, rows)),
        counts=np.pad(x.counts, (0, rows)),
    )


def stacked(parts: Sequence[SparseRows]) -> SparseRows:
    """Stack tables with equal numbers of rows along a leading seed axis, on the host."""
    num_values = max(part.values.size for part in parts)
    filled = [filled_sparse(part, len(part), num_values) for part in parts]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *filled)


def only_columns(x: SparseRows, columns: np.ndarray, zero_others: bool) -> SparseRows:
    """Rows with only the columns ``(M,)``, or with zeros in place of the others, on the host."""
    starts = np.append(x.starts, x.values.size)
    if not zero_others:
        part = csr_array((x.values, x.columns, starts), shape=x.shape)[:, columns]
        counts = np.diff(part.indptr).astype(np.int32)
        begins = part.indptr[:-1].astype(np.int32)
        return SparseRows(part.data, part.indices.astype(np.int32), begins, counts, x.base[columns])
    kept = np.zeros(x.shape[1], bool)
    kept[columns] = True
    stays = kept[x.columns]
    before = np.append(0, np.cumsum(stays)).astype(np.int32)[starts]
    return SparseRows(
        x.values[stays],
        x.columns[stays],
        before[:-1],
        np.diff(before),
        np.where(kept, x.base, np.float32(0)),
    )


def no_rows(x: SparseRows) -> SparseRows:
    """The same columns without rows."""
    return x.replace(**{name: getattr(x, name)[:0] for name in _OF_ROWS})


_OF_ROWS = ("values", "columns", "starts", "counts")
