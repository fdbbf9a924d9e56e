"""Training on rows that are read while they are used: the host feeds compiled steps with batches.

An epoch is that of :func:`fsjax.engine.loop.train_epoch` in several programs, so the results are
those of a table in memory. While the device works on some batches, a thread reads, scales and
transfers the next ones.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from operator import itemgetter
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.engine import epoch_metrics, loop
from fsjax.engine.programs import program
from fsjax.engine.rows import (
    Arrays,
    DeviceRows,
    Rows,
    as_batch,
    batch_indices,
    take_rows,
    whole_table,
)
from fsjax.method import Batch, Method, PyTree, Spec, TrainState
from fsjax.registry import MethodStructure
from fsjax.tables.streamed_rows import StreamedRows

#: The largest number of table entries in one transfer to the device, unless a batch has more.
ENTRIES = 2**24

#: Rows that are read while they are used, with their targets and weights in memory.
StreamedPart = Rows[StreamedRows, np.ndarray]

#: Rows that were read and transferred to the device.
ReadRows = Rows[Array, Array]


def prefetched(chunks: Iterator[ReadRows]) -> Generator[ReadRows]:
    """The chunks, of which a thread reads the next one while the current one is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = pool.submit(next, chunks, None)
            yield chunk


class StreamedEpochs:
    """Replaces the compiled ``train_seeds`` for rows that are streamed; seeds take turns.

    Attributes:
      names: names of the recorded values.
      waited: seconds in which the device waited for rows.
      compiled: seconds of compilation.
    """

    def __init__(
        self,
        structure: MethodStructure,
        spec: Spec,
        arrays: Arrays[StreamedPart],
        states: TrainState,
        work: float,
    ) -> None:
        self.structure, self.spec, self.arrays, self.work = structure, spec, arrays, work
        self.evaluated = [name for name in loop.EVALUATED if len(getattr(arrays, name).x)]
        self._everything = as_batch(spec.task, cast("DeviceRows", arrays.train))
        self.names = sorted(_recorded(structure, arrays, states))
        self.waited = self.compiled = 0.0

    def __call__(
        self, states: TrainState, _: Arrays[DeviceRows], epochs: np.ndarray
    ) -> tuple[TrainState, dict[str, np.ndarray], np.ndarray]:
        """Trains like :func:`fsjax.engine.seeds.train_seeds`."""
        shape = (len(epochs), loop.MAX_EPOCHS_PER_CALL)
        recorded = {name: np.zeros(shape, np.float32) for name in self.names}
        trained = []
        for row, number in enumerate(epochs):
            state = jax.device_put(take_rows(states, row))
            first = int(state.epoch)
            chunks = self._chunks(np.asarray(state.key), range(first, first + number))
            with closing(prefetched(chunks)) as coming:
                for epoch in range(number):
                    if bool(state.done):
                        break
                    state, metrics = self._train_epoch(state, coming)
                    for name, value in metrics.items():
                        recorded[name][row, epoch] = np.asarray(value)
            trained.append(state)
        states = jax.tree.map(lambda *leaves: np.stack(leaves), *trained)
        return states, recorded, np.asarray(states.epoch)

    def _train_epoch(
        self, state: TrainState, coming: Iterator[ReadRows]
    ) -> tuple[TrainState, dict[str, Array]]:
        """:func:`fsjax.engine.loop.train_epoch`, with the next rows of ``coming``."""
        (key_steps, key_after), masks_before = self._run(_begin_epoch, state)
        recorded, done = [], 0
        while done < self.spec.steps_per_epoch:
            chunk = self._next(coming, state)
            args = (key_steps, np.int32(done), chunk)
            state, of_chunk = self._run(_train_chunk, state, *args, replaces=True)
            recorded.append(of_chunk)
            done += len(chunk.weight) // self.spec.batch_size
        of_steps = jax.tree.map(lambda *parts: jnp.concatenate(parts), *recorded)
        state, metrics = self._run(loop.end_steps, state, of_steps, replaces=True)
        for name in self.evaluated:
            of_split = self._evaluate(state, getattr(self.arrays, name), coming)
            metrics |= {f"{name}/{metric}": value for metric, value in of_split.items()}
        rest = (metrics, masks_before, key_after)
        return self._run(loop.end_epoch, state, self._everything, *rest, replaces=True)

    def _evaluate(
        self, state: TrainState, rows: StreamedPart, coming: Iterator[ReadRows]
    ) -> dict[str, Array]:
        """:func:`fsjax.engine.epoch_metrics.metrics_of_rows`, in blocks."""
        blocks = _blocks(rows.x)
        if len(blocks) == 1:
            return self._run(epoch_metrics.metrics_of_rows, state, self._next(coming, state))
        parts = [
            self._run(epoch_metrics.outputs_of_part, state, self._next(coming, state).x)
            for _ in blocks
        ]
        outputs = jax.tree.map(lambda *of_blocks: np.concatenate(of_blocks), *parts)
        return self._run(epoch_metrics.evaluate_outputs, state, outputs, rows)

    def _run(
        self, part: Callable[..., Any], state: TrainState, *args: Any, replaces: bool = False
    ) -> Any:
        """Runs ``part(method, state, *args)`` as a program, which may replace the state."""
        started, kind = time.perf_counter(), _replacing if replaces else _keeping
        static = {"part": part, "structure": self.structure}
        compiled = kind.compiled(state, *args, work=self.work, **static)
        self.compiled += time.perf_counter() - started
        return compiled(state, *args)

    def _next(self, coming: Iterator[ReadRows], state: TrainState) -> ReadRows:
        """The next rows, once the device has used those before: only two chunks are in memory."""
        jax.block_until_ready(state)
        started = time.perf_counter()
        chunk = next(coming)
        self.waited += time.perf_counter() - started
        return chunk

    def _chunks(self, key: np.ndarray, epochs: range) -> Iterator[ReadRows]:
        """The rows of some epochs, in the order in which they are used."""
        for epoch in epochs:
            yield from self._training_chunks(key, epoch)
            for name in self.evaluated:
                rows = getattr(self.arrays, name)
                for block in _blocks(rows.x):
                    yield _read(rows, block)

    def _training_chunks(self, key: np.ndarray, epoch: int) -> Iterator[ReadRows]:
        """Whole batches of an epoch, as many as :data:`ENTRIES` allows."""
        spec, rows = self.spec, self.arrays.train
        if whole_table(spec):
            indices, real = np.arange(spec.num_rows)[None], np.ones((1, spec.num_rows), np.float32)
        else:
            num_real = np.int32((rows.weight > 0).sum())
            order = _order(key, np.int32(epoch), num_real, spec=spec)
            indices, real = map(np.asarray, order)
        most = max(ENTRIES // (spec.batch_size * spec.num_columns), 1)
        calls = -(-spec.steps_per_epoch // most)
        size = -(-spec.steps_per_epoch // calls)
        for start in range(0, spec.steps_per_epoch, size):
            steps = slice(start, start + size)
            chunk = _read(rows, indices[steps].ravel())
            yield chunk._replace(weight=chunk.weight * real[steps].ravel())


def predict_streamed(
    structure: MethodStructure, states: TrainState, x: StreamedRows
) -> np.ndarray | dict[str, np.ndarray]:
    """Outputs ``(S, N, C)`` for rows that are streamed.

    If the rows are their own target and do not fit into one block, ``tasks.row_metrics`` instead.
    """
    blocks, outputs = _blocks(x), []
    part = epoch_metrics.predict_rows if len(blocks) == 1 else epoch_metrics.outputs_of_part
    by_seed = [take_rows(states, row) for row in range(len(states.epoch))]
    for block in blocks:
        rows = x.read(block)
        of_block = [_keeping(state, rows, part=part, structure=structure) for state in by_seed]
        outputs.append(jax.tree.map(lambda *of_seeds: np.stack(of_seeds), *of_block))
    return jax.tree.map(lambda *of_blocks: np.concatenate(of_blocks, axis=1), *outputs)


def validate_streamed(
    states: TrainState, rows: StreamedPart, *, structure: MethodStructure
) -> dict[str, np.ndarray]:
    """``metrics_of_rows`` of stacked states for rows that are streamed, ``(S,)`` by name."""
    outputs, metrics = predict_streamed(structure, states, rows.x), []
    for row in range(len(states.epoch)):
        state, of_seed = take_rows(states, row), jax.tree.map(itemgetter(row), outputs)
        part = epoch_metrics.evaluate_outputs
        metrics.append(_keeping(state, of_seed, rows, part=part, structure=structure))
    return jax.tree.map(lambda *of_seeds: np.stack(of_seeds), *metrics)


def _blocks(x: StreamedRows) -> list[np.ndarray]:
    """The row numbers of each block that is evaluated together."""
    size = min(epoch_metrics.EVALUATION_ROWS, max(ENTRIES // x.shape[1], 1))
    return [np.arange(start, min(start + size, len(x))) for start in range(0, len(x), size)]


def _read(rows: StreamedPart, places: np.ndarray) -> ReadRows:
    """Reads rows and transfers them to the device."""
    return jax.device_put(Rows(rows.x.read(places), rows.y[places], rows.weight[places]))


def _with_method(
    state: TrainState, *args: Any, part: Callable[..., Any], structure: MethodStructure
) -> Any:
    """Runs a part of an epoch with the method of a seed."""
    return part(structure.bind(state.hyper), state, *args)


#: Programs of parts that keep the state that they are given, and of parts that replace it.
_keeping = program(compile="fast")(_with_method)
_replacing = program(donate=(0,))(_with_method)


def _recorded(
    structure: MethodStructure, arrays: Arrays[StreamedPart], states: TrainState
) -> dict[str, Any]:
    """The shapes of the values that an epoch records, without reading any rows."""

    def like(rows: StreamedPart) -> Rows[jax.ShapeDtypeStruct, np.ndarray]:
        return Rows(jax.ShapeDtypeStruct(rows.x.shape, jnp.float32), rows.y, rows.weight)

    epoch = functools.partial(_with_method, part=loop.train_epoch, structure=structure)
    return jax.eval_shape(epoch, take_rows(states, 0), Arrays(*map(like, arrays)))[1]


def _begin_epoch(method: Method, state: TrainState) -> tuple[tuple[Array, Array], PyTree]:
    """The keys of the next epoch for its steps and its end, and a copy of the masks before it."""
    del method
    _, key_steps, key_after = loop.epoch_keys(state.key, state.epoch)
    return (key_steps, key_after), state.masks


@program(compile="fast")
def _order(key: Array, epoch: Array, num_real: Array, *, spec: Spec) -> tuple[Array, Array]:
    """``batch_indices`` of an epoch."""
    return batch_indices(spec, loop.epoch_keys(key, epoch)[0], num_real)


def _train_chunk(
    method: Method, state: TrainState, key: Array, first: Array, rows: ReadRows
) -> tuple[TrainState, dict[str, Array]]:
    """Runs steps from number ``first`` on, one per batch in ``rows``; returns recorded values."""
    spec, together = state.spec, as_batch(state.spec.task, rows)
    count = len(rows.weight) // spec.batch_size
    if count == 1:
        state, recorded = loop.train_step(method, state, together, jax.random.fold_in(key, first))
        return state, jax.tree.map(lambda value: jnp.asarray(value)[None], recorded)

    def batch_of(number: Array) -> Batch[Array]:
        return together.take(number * spec.batch_size + jnp.arange(spec.batch_size))

    numbers = jnp.arange(count)
    step = loop.numbered_step(method, key, batch_of)
    return jax.lax.scan(step, state, (first + numbers, numbers))
