"""Training on rows that are read from disk: compiled steps, fed by the host a batch or more ahead.

The steps, their order and their keys are those of :mod:`fsjax.engine.loop`, so that the results are
those of the table in memory. While the device works on some batches, a thread reads, scales and
hands over the next ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.engine import loop
from fsjax.engine.compile_effort import ONCE
from fsjax.engine.loop import (
    EVALUATION_ROWS,
    MAX_EPOCHS_PER_CALL,
    Arrays,
    DeviceRows,
    HostRows,
    Rows,
)
from fsjax.engine.programs import program, run
from fsjax.method import PyTree, Spec, TrainState
from fsjax.registry import Fixed, Structure
from fsjax.tables.stored_rows import StoredRows
from fsjax.tasks import TABLE

#: Entries of the rows that the device gets at once, unless a batch has more.
ENTRIES = 2**24

#: Rows on disk, of which targets and weights are in memory.
StoredPart = Rows[StoredRows, np.ndarray]

#: Rows that were read and lie on the device.
ReadRows = Rows[Array, Array]

#: The part that rows are of, the number of their steps or of themselves, and the rows.
Piece = tuple[str, int, ReadRows]


def is_on_disk(arrays: Arrays[HostRows]) -> TypeGuard[Arrays[StoredPart]]:
    """Whether the rows of a run are read from disk, those of each part."""
    return isinstance(arrays.train.x, StoredRows)


class _Ahead:
    """Pieces of which the next one is read by a thread while this one is used."""

    def __init__(self, items: Iterator[Piece]) -> None:
        self._items, self._pool = items, ThreadPoolExecutor(1)
        self._coming = self._pool.submit(next, items)

    @property
    def ready(self) -> bool:
        """Whether the next piece is there."""
        return self._coming.done()

    def take(self) -> Piece:
        """The next piece, waited for if need be."""
        piece = self._coming.result()
        self._coming = self._pool.submit(next, self._items)
        return piece

    def close(self) -> None:
        """Ends the thread."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Place(NamedTuple):
    """Which row of the states, and which epoch of it, from 0."""

    row: int
    epoch: int


class StreamedEpochs:
    """Takes the place of the compiled ``train_seeds`` for rows on disk; seeds take turns.

    Attributes:
      names: of the recorded values.
      waited: seconds in which the device had nothing to do for want of rows.
      compiled: seconds of compilation.
    """

    def __init__(
        self,
        structure: Structure | Fixed,
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
        """As :func:`fsjax.engine.seeds.train_seeds`."""
        number = len(epochs)
        each = _split(states, number)
        recorded = {
            name: np.zeros((number, MAX_EPOCHS_PER_CALL), np.float32) for name in self.names
        }
        for i in range(int(epochs.max(initial=0))):
            turns = [
                row
                for row in range(number)
                if i < epochs[row] and not bool(np.asarray(each[row].done)[0])
            ]
            for row in turns:
                each[row], metrics = self._epoch(each[row], row, turns)
                for name, value in metrics.items():
                    recorded[name][row, i] = np.asarray(value)[0]
        states = _joined(each)
        return states, recorded, np.asarray(states.epoch)

    def close(self) -> None:
        """Ends reading ahead."""
        if self._ahead is not None:
            self._ahead.close()
        self._ahead = None

    def _epoch(
        self, state: TrainState, row: int, turns: list[int]
    ) -> tuple[TrainState, dict[str, Array]]:
        """One epoch of one seed, whose state is ``(1, ...)``."""
        place = _Place(row, int(np.asarray(state.epoch)[0]))
        ahead = self._aim(place, turns)
        masks = jax.tree.map(jnp.copy, state.masks)
        keys, recorded, steps = self._run(_keys, state), [], 0
        while steps < self.spec.steps_per_epoch:
            _, count, piece = self._take(ahead, state)
            state, some = self._run(_steps, state, keys, np.int32(steps), piece, donate=(0,))
            recorded.append(some)
            steps += count
        recorded = jax.tree.map(lambda *parts: jnp.concatenate(parts), *recorded)
        state, metrics = self._run(_end_steps, state, recorded, donate=(0,))
        for name, rows in self._evaluated():
            if len(rows.x):
                of_split = self._evaluate(ahead, state, rows)
                metrics |= {f"{name}/{metric}": value for metric, value in of_split.items()}
        arguments = (keys, metrics, masks, self.arrays.train)
        state, metrics = self._run(_end_epoch, state, *arguments, donate=(0,))
        self._next = self._after(place, turns)
        return state, metrics

    def _evaluated(self) -> tuple[tuple[str, StoredPart], ...]:
        """The rows on which epochs are evaluated, in the order in which they are read."""
        return ("valid", self.arrays.valid), ("test", self.arrays.test)

    def _evaluate(self, ahead: _Ahead, state: TrainState, rows: StoredPart) -> dict[str, Array]:
        """``loop.evaluate`` of rows that come in parts."""
        blocks = _blocks(rows.x)
        if len(blocks) == 1:
            return self._run(_evaluate, state, self._take(ahead, state)[2])
        parts = []
        for _ in blocks:
            parts.append(self._run(_outputs, state, self._take(ahead, state)[2]))
        outputs = jax.tree.map(lambda *some: np.concatenate(some, axis=1), *parts)
        return self._run(_evaluate_outputs, state, outputs, rows)

    def _run(self, function: Callable[..., Any], *args: Any, donate: Sequence[int] = ()) -> Any:
        started = time.perf_counter()
        compiled = program(function, (self.structure,), args, donate=donate, work=self.work)
        self.compiled += time.perf_counter() - started
        return compiled(*args)

    def _take(self, ahead: _Ahead, state: TrainState) -> Piece:
        """The next rows; counts the time in which neither they nor work are there."""
        if not ahead.ready:
            jax.block_until_ready(state)
            started = time.perf_counter()
            piece = ahead.take()
            self.waited += time.perf_counter() - started
            return piece
        # One piece is worked on and one is read: no third lies in between.
        jax.block_until_ready(state)
        return ahead.take()

    def _aim(self, place: _Place, turns: list[int]) -> _Ahead:
        """The pieces from here on, which are read ahead already if epochs follow each other."""
        if self._ahead is not None and self._next == place and self._turns == turns:
            return self._ahead
        self.close()
        self._next, self._turns = place, turns
        self._ahead = _Ahead(self._pieces(place, turns))
        return self._ahead

    @staticmethod
    def _after(place: _Place, turns: list[int]) -> _Place:
        at = turns.index(place.row) + 1
        return (
            _Place(turns[at], place.epoch) if at < len(turns) else _Place(turns[0], place.epoch + 1)
        )

    def _pieces(self, place: _Place, turns: list[int]) -> Iterator[Piece]:
        """The rows of all epochs from a place on, in the order in which they are used."""
        while True:
            yield from self._train_pieces(place)
            for name, rows in self._evaluated():
                for block in _blocks(rows.x):
                    yield name, len(block), _read(rows, block)
            place = self._after(place, turns)

    def _train_pieces(self, place: _Place) -> Iterator[Piece]:
        spec, rows = self.spec, self.arrays.train
        whole = loop.whole_table(spec)
        if whole:
            indices, real = np.arange(spec.num_rows)[None], np.ones((1, spec.num_rows), np.float32)
        else:
            arguments = (self.keys[place.row], np.int32(place.epoch), np.int32(self.num_real))
            indices, real = map(np.asarray, run(_order, (spec,), arguments, work=ONCE))
        most = max(ENTRIES // (spec.batch_size * spec.num_columns), 1)
        calls = -(-spec.steps_per_epoch // most)
        size = -(-spec.steps_per_epoch // calls)
        for start in range(0, spec.steps_per_epoch, size):
            some = slice(start, start + size)
            piece = _read(rows, indices[some].ravel())
            weight = piece.weight * real[some].ravel()
            yield "train", len(indices[some]), piece._replace(weight=weight)


def predict_streamed(
    structure: Structure | Fixed, states: TrainState, x: StoredRows
) -> np.ndarray | dict[str, np.ndarray]:
    """Outputs ``(S, N, C)`` for rows on disk; ``tasks.row_metrics`` where they are their own target
    and more than are held at once.
    """
    blocks = _blocks(x)
    number = len(np.asarray(states.epoch))
    each = _split(states, number)
    whole = len(blocks) == 1
    outputs = []
    for block in blocks:
        rows = Rows(x.read(block), np.zeros(len(block), np.int32), np.ones(len(block), np.float32))
        function = _plain_outputs if whole else _outputs
        parts = [run(function, (structure,), (state, rows), work=ONCE) for state in each]
        outputs.append(jax.tree.map(lambda *some: np.concatenate(some), *parts))
    return jax.tree.map(lambda *some: np.concatenate(some, axis=1), *outputs)


def _blocks(x: StoredRows) -> list[np.ndarray]:
    """Numbers of the rows that are evaluated together."""
    size = min(EVALUATION_ROWS, max(ENTRIES // x.shape[1], 1))
    return [np.arange(at, min(at + size, len(x))) for at in range(0, len(x), size)]


def _read(rows: StoredPart, places: np.ndarray) -> ReadRows:
    """Some rows on the device."""
    return jax.device_put(Rows(rows.x.read(places), rows.y[places], rows.weight[places]))


def _split(states: TrainState, number: int) -> list[TrainState]:
    """States ``(1, ...)`` of every seed."""
    if number == 1:
        return [states]
    return [jax.tree.map(lambda x, row=row: x[row : row + 1], states) for row in range(number)]


def _joined(states: list[TrainState]) -> TrainState:
    if len(states) == 1:
        return states[0]
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states)


def _one(states: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[0], states)


def _stacked(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], tree)


def _recorded(
    structure: Structure | Fixed, arrays: Arrays[StoredPart], states: TrainState
) -> Mapping[str, Any]:
    """What an epoch records, found without reading a row."""

    def epoch(states: TrainState, arrays: Arrays[ReadRows]) -> dict[str, Array]:
        state = _one(states)
        method = structure.bind(state.hyper)
        return loop.train_epoch(method, state, arrays)[1]

    def like(rows: StoredPart) -> Rows[jax.ShapeDtypeStruct, np.ndarray]:
        return Rows(jax.ShapeDtypeStruct(rows.x.shape, jnp.float32), rows.y, rows.weight)

    return jax.eval_shape(epoch, states, Arrays(*map(like, arrays)))


def _order(spec: Spec, key: Array, epoch: Array, num_real: Array) -> tuple[Array, Array]:
    """``loop.batch_indices`` of an epoch."""
    key = jax.random.wrap_key_data(key, impl="threefry2x32")
    order = jax.random.split(jax.random.fold_in(key, epoch), 3)[0]
    return loop.batch_indices(spec, order, num_real)


def _keys(structure: Structure | Fixed, states: TrainState) -> Array:
    """Words of the keys of an epoch."""
    return jax.random.key_data(loop.epoch_keys(_one(states)))


def _key(words: Array, number: int) -> Array:
    return jax.random.wrap_key_data(words[number], impl="threefry2x32")


def _steps(
    structure: Structure | Fixed, states: TrainState, keys: Array, first: Array, rows: ReadRows
) -> tuple[TrainState, dict[str, Array]]:
    """Steps from number ``first`` on, as many as there are rows for, and what they recorded."""
    state = _one(states)
    method, spec, key = structure.bind(state.hyper), state.spec, _key(keys, 1)
    together = loop.as_batch(spec.task, rows)
    count = len(rows.weight) // spec.batch_size
    if count == 1:
        state, recorded = loop.train_step(method, state, together, jax.random.fold_in(key, first))
        return _stacked(state), _stacked(recorded)

    def step(carry: TrainState, number: Array) -> tuple[TrainState, dict[str, Array]]:
        batch = together.take(number * spec.batch_size + jnp.arange(spec.batch_size))
        return loop.train_step(method, carry, batch, jax.random.fold_in(key, first + number))

    state, recorded = jax.lax.scan(step, state, jnp.arange(count))
    return _stacked(state), recorded


def _end_steps(
    structure: Structure | Fixed, states: TrainState, recorded: dict[str, Array]
) -> tuple[TrainState, dict[str, Array]]:
    state = _one(states)
    return _stacked(loop.end_steps(structure.bind(state.hyper), state, recorded))


def _end_epoch(
    structure: Structure | Fixed,
    states: TrainState,
    keys: Array,
    metrics: dict[str, Array],
    masks: PyTree,
    train: Rows[StoredRows, Array],
) -> tuple[TrainState, dict[str, Array]]:
    state, metrics, masks = map(_one, (states, metrics, masks))
    method = structure.bind(state.hyper)
    everything = loop.as_batch(state.spec.task, train)
    return _stacked(loop.end_epoch(method, state, everything, metrics, masks, _key(keys, 2)))


def _evaluate(structure: Structure | Fixed, states: TrainState, rows: ReadRows) -> dict[str, Array]:
    state = _one(states)
    return _stacked(loop.evaluate(structure.bind(state.hyper), state, rows))


def _outputs(
    structure: Structure | Fixed, states: TrainState, rows: ReadRows
) -> Array | dict[str, Array]:
    """``(1, B, C)``, or metrics ``(1, B)`` by name where rows are their own target."""
    state = _one(states)
    outputs = structure.bind(state.hyper).predictor(state, rows.x)
    if TABLE[state.spec.task].supervised:
        return _stacked(outputs)
    return _stacked(loop.row_metrics(state.spec, outputs, rows.x))


def _plain_outputs(structure: Structure | Fixed, states: TrainState, rows: ReadRows) -> Array:
    state = _one(states)
    return loop.predict_rows(structure.bind(state.hyper), state, rows.x)[None]


def _evaluate_outputs(
    structure: Structure | Fixed,
    states: TrainState,
    outputs: Array | dict[str, Array],
    rows: Rows[StoredRows, Array],
) -> dict[str, Array]:
    state, outputs = _one(states), _one(outputs)
    if isinstance(outputs, dict):
        return _stacked(loop.mean_of_rows(outputs, rows.weight))
    return _stacked(loop.evaluate_outputs(state, outputs, rows))
