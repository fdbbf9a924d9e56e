"""Training on rows that are read from disk: the host feeds compiled steps with batches.

The epochs are those of :mod:`fsjax.engine.loop`, so the results are the same as for a table in
memory. While the device works on some batches, a thread reads, scales and transfers the next ones.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.engine import epoch_metrics, loop
from fsjax.engine.epoch_metrics import EVALUATION_ROWS
from fsjax.engine.loop import MAX_EPOCHS_PER_CALL
from fsjax.engine.programs import ONCE, program, run
from fsjax.engine.rows import Arrays, DeviceRows, Rows, as_batch, batch_indices, whole_table
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.registry import Fixed, MethodStructure
from fsjax.tables.stored_rows import StoredRows

#: The largest number of table entries in one transfer to the device, unless a batch has more.
ENTRIES = 2**24

#: Rows on disk with their targets and weights in memory.
StoredPart = Rows[StoredRows, np.ndarray]

#: Rows that were read and transferred to the device.
ReadRows = Rows[Array, Array]


class _Ahead:
    """A reader that fetches the next rows in a thread while the current ones are used."""

    def __init__(self, pieces: Iterator[ReadRows]) -> None:
        self._pieces, self._pool = pieces, ThreadPoolExecutor(1)
        self._coming = self._pool.submit(next, pieces)

    @property
    def ready(self) -> bool:
        """Whether the next rows have arrived."""
        return self._coming.done()

    def take(self) -> ReadRows:
        """Returns the next rows, after waiting for them if necessary."""
        piece = self._coming.result()
        self._coming = self._pool.submit(next, self._pieces)
        return piece

    def close(self) -> None:
        """Ends the thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Place(NamedTuple):
    """A row of the states, and the number of its epoch, from 0."""

    row: int
    epoch: int


class StreamedEpochs:
    """Replaces the compiled ``train_seeds`` for rows on disk; seeds take turns.

    It is the :class:`fsjax.engine.loop.Feed` of the seed whose turn it is. States keep a leading
    axis of one seed, ``(1, ...)``, so that a run of one seed does not copy them.

    Attributes:
      arrays: the rows.
      names: names of the recorded values.
      waited: seconds in which the device waited for rows.
      compiled: seconds of compilation.
    """

    def __init__(
        self,
        structure: MethodStructure | Fixed,
        spec: Spec,
        arrays: Arrays[StoredPart],
        states: TrainState,
        work: float,
    ) -> None:
        self.structure, self.spec, self.arrays, self.work = structure, spec, arrays, work
        self.num_real = int((arrays.train.weight > 0).sum())
        self.keys = np.asarray(states.key)
        self.waited = self.compiled = 0.0
        self.names = sorted(_recorded(structure, arrays, states))
        self._ahead: _Ahead | None = None
        self._next: _Place | None = None
        self._turns: list[int] = []

    def __call__(
        self, states: TrainState, _: Arrays[DeviceRows], epochs: np.ndarray
    ) -> tuple[TrainState, dict[str, np.ndarray], np.ndarray]:
        """Trains like :func:`fsjax.engine.seeds.train_seeds`."""
        number = len(epochs)
        by_seed = _split(states, number)
        recorded = {
            name: np.zeros((number, MAX_EPOCHS_PER_CALL), np.float32) for name in self.names
        }
        for i in range(int(epochs.max(initial=0))):
            turns = [
                row
                for row in range(number)
                if i < epochs[row] and not bool(np.asarray(by_seed[row].done)[0])
            ]
            for row in turns:
                place = _Place(row, int(np.asarray(by_seed[row].epoch)[0]))
                self._aim(place, turns)
                by_seed[row], metrics = loop.run_epoch(self, by_seed[row])
                self._next = self._after(place, turns)
                for name, value in metrics.items():
                    recorded[name][row, i] = np.asarray(value)
        states = _joined(by_seed)
        return states, recorded, np.asarray(states.epoch)

    def close(self) -> None:
        """Ends the thread that reads ahead."""
        if self._ahead is not None:
            self._ahead.close()
        self._ahead = None

    def inspect(
        self,
        part: Callable[..., Any],
        state: TrainState,
        *args: Any,
        donate: Sequence[int] = (),
    ) -> Any:
        """As in :class:`fsjax.engine.loop.Feed`."""
        started = time.perf_counter()
        static = (part, self.structure)
        compiled = program(_of_seed, static, (state, *args), donate=donate, work=self.work)
        self.compiled += time.perf_counter() - started
        return compiled(state, *args)

    def advance(self, part: Callable[..., Any], state: TrainState, *args: Any) -> Any:
        """As in :class:`fsjax.engine.loop.Feed`."""
        return self.inspect(part, state, *args, donate=(0,))

    def steps(
        self, state: TrainState, key_order: Array, key_steps: Array
    ) -> tuple[TrainState, dict[str, Array]]:
        """As in :class:`fsjax.engine.loop.Feed`; the reading thread already knows the order."""
        recorded, done = [], 0
        while done < self.spec.steps_per_epoch:
            piece = self._take(state)
            state, of_piece = self.advance(_steps, state, key_steps, np.int32(done), piece)
            recorded.append(of_piece)
            done += _num_steps(self.spec, piece)
        return state, jax.tree.map(lambda *parts: jnp.concatenate(parts), *recorded)

    def evaluate(self, state: TrainState, rows: StoredPart) -> dict[str, Array]:
        """As in :class:`fsjax.engine.loop.Feed`; the rows come in parts."""
        num_blocks = len(_blocks(rows.x))
        if num_blocks == 1:
            return self.inspect(epoch_metrics.metrics_of_rows, state, self._take(state))
        parts = [
            self.inspect(epoch_metrics.outputs_of_part, state, self._take(state).x)
            for _ in range(num_blocks)
        ]
        outputs = jax.tree.map(lambda *blocks: np.concatenate(blocks), *parts)
        return self.inspect(epoch_metrics.evaluate_outputs, state, outputs, rows)

    def _take(self, state: TrainState) -> ReadRows:
        """Returns the next rows; counts the time in which the device waits for them."""
        assert self._ahead is not None
        if not self._ahead.ready:
            jax.block_until_ready(state)
            started = time.perf_counter()
            piece = self._ahead.take()
            self.waited += time.perf_counter() - started
            return piece
        # One piece is in use and one is being read; this limits memory to these two.
        jax.block_until_ready(state)
        return self._ahead.take()

    def _aim(self, place: _Place, turns: list[int]) -> None:
        """Starts reading from a place, unless the reader is there already."""
        if self._ahead is not None and self._next == place and self._turns == turns:
            return
        self.close()
        self._turns = turns
        self._ahead = _Ahead(self._pieces(place, turns))

    @staticmethod
    def _after(place: _Place, turns: list[int]) -> _Place:
        turn = turns.index(place.row) + 1
        if turn < len(turns):
            return _Place(turns[turn], place.epoch)
        return _Place(turns[0], place.epoch + 1)

    def _pieces(self, place: _Place, turns: list[int]) -> Iterator[ReadRows]:
        """Yields the rows of all epochs from a place on, in the order in which they are used."""
        while True:
            yield from self._train_pieces(place)
            for name in loop.EVALUATED:
                rows = getattr(self.arrays, name)
                for block in _blocks(rows.x):
                    yield _read(rows, block)
            place = self._after(place, turns)

    def _train_pieces(self, place: _Place) -> Iterator[ReadRows]:
        spec, rows = self.spec, self.arrays.train
        if whole_table(spec):
            indices, real = np.arange(spec.num_rows)[None], np.ones((1, spec.num_rows), np.float32)
        else:
            arguments = (self.keys[place.row], np.int32(place.epoch), np.int32(self.num_real))
            indices, real = map(np.asarray, run(_order, (spec,), arguments, work=ONCE))
        most = max(ENTRIES // (spec.batch_size * spec.num_columns), 1)
        calls = -(-spec.steps_per_epoch // most)
        size = -(-spec.steps_per_epoch // calls)
        for start in range(0, spec.steps_per_epoch, size):
            steps = slice(start, start + size)
            piece = _read(rows, indices[steps].ravel())
            yield piece._replace(weight=piece.weight * real[steps].ravel())


def predict_streamed(
    structure: MethodStructure | Fixed, states: TrainState, x: StoredRows
) -> np.ndarray | dict[str, np.ndarray]:
    """Outputs ``(S, N, C)`` for rows on disk.

    If the rows are their own target and do not fit into one block, ``tasks.row_metrics`` instead.
    """
    blocks = _blocks(x)
    by_seed = _split(states, len(np.asarray(states.epoch)))
    part = epoch_metrics.predict_rows if len(blocks) == 1 else epoch_metrics.outputs_of_part
    outputs = []
    for block in blocks:
        rows = x.read(block)
        of_block = [run(_of_seed, (part, structure), (state, rows), work=ONCE) for state in by_seed]
        outputs.append(jax.tree.map(lambda *of_seeds: np.stack(of_seeds), *of_block))
    return jax.tree.map(lambda *of_blocks: np.concatenate(of_blocks, axis=1), *outputs)


def _blocks(x: StoredRows) -> list[np.ndarray]:
    """The row numbers of each block that is evaluated together."""
    size = min(EVALUATION_ROWS, max(ENTRIES // x.shape[1], 1))
    return [np.arange(start, min(start + size, len(x))) for start in range(0, len(x), size)]


def _read(rows: StoredPart, places: np.ndarray) -> ReadRows:
    """Reads rows and transfers them to the device."""
    return jax.device_put(Rows(rows.x.read(places), rows.y[places], rows.weight[places]))


def _split(states: TrainState, number: int) -> list[TrainState]:
    """The states ``(1, ...)`` of each seed."""
    if number == 1:
        return [states]
    return [jax.tree.map(lambda x, row=row: x[row : row + 1], states) for row in range(number)]


def _joined(states: list[TrainState]) -> TrainState:
    if len(states) == 1:
        return states[0]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states)


def _of_seed(
    part: Callable[..., Any], structure: MethodStructure | Fixed, states: TrainState, *args: Any
) -> Any:
    """Runs a part of an epoch on states ``(1, ...)``; nothing else has this leading axis."""
    state = jax.tree.map(lambda leaf: leaf[0], states)
    result = part(structure.bind(state.hyper), state, *args)
    return jax.tree.map(
        lambda leaf: _stacked(leaf) if isinstance(leaf, TrainState) else leaf,
        result,
        is_leaf=lambda leaf: isinstance(leaf, TrainState),
    )


def _stacked(state: TrainState) -> TrainState:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)


def _recorded(
    structure: MethodStructure | Fixed, arrays: Arrays[StoredPart], states: TrainState
) -> dict[str, Any]:
    """The shapes of the values that an epoch records, without reading any rows."""

    def like(rows: StoredPart) -> Rows[jax.ShapeDtypeStruct, np.ndarray]:
        return Rows(jax.ShapeDtypeStruct(rows.x.shape, jnp.float32), rows.y, rows.weight)

    epoch = functools.partial(_of_seed, loop.train_epoch, structure)
    return jax.eval_shape(epoch, states, Arrays(*map(like, arrays)))[1]


def _order(spec: Spec, key: Array, epoch: Array, num_real: Array) -> tuple[Array, Array]:
    """``batch_indices`` of an epoch."""
    return batch_indices(spec, loop.epoch_keys(key, epoch)[0], num_real)


def _num_steps(spec: Spec, piece: ReadRows) -> int:
    return len(piece.weight) // spec.batch_size


def _steps(
    method: Method, state: TrainState, key: Array, first: Array, rows: ReadRows
) -> tuple[TrainState, dict[str, Array]]:
    """Runs steps from number ``first`` on, one per batch in ``rows``; returns recorded values."""
    spec, together = state.spec, as_batch(state.spec.task, rows)
    count = _num_steps(spec, rows)
    if count == 1:
        state, recorded = loop.train_step(method, state, together, jax.random.fold_in(key, first))
        return state, jax.tree.map(lambda value: jnp.asarray(value)[None], recorded)

    def batch_of(number: Array) -> Batch[Array]:
        return together.take(number * spec.batch_size + jnp.arange(spec.batch_size))

    numbers = jnp.arange(count)
    return loop.train_steps(method, state, key, first + numbers, batch_of, numbers)
