"""Many seeds in one compiled program, by ``vmap``, ``map`` or ``shard``.

The functions here are compiled for the structure of a method (:mod:`fsjax.registry`). Each seed has
its own values of the float arguments, from which its method is built inside the program. ``states``
are stacked over S seeds, ``(S, ...)``; ``arrays`` are shared by all seeds, or stacked too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import Array
from jax.sharding import PartitionSpec

from fsjax.engine import loop
from fsjax.engine.epoch_metrics import metrics_of_rows, outputs_of_rows
from fsjax.engine.kernels.distinct_columns import distinct_top_k
from fsjax.engine.mesh import RUNS, mesh_of, replicated
from fsjax.engine.programs import program
from fsjax.engine.rows import AnyArray, Arrays, DeviceRows, MemoryRows, as_batch, has_own_rows
from fsjax.errors import ConfigError
from fsjax.method import Method, PyTree, Search, Spec, TrainState
from fsjax.registry import MethodStructure
from fsjax.tables.sparse_rows import SparseRows
from fsjax.tables.streamed_rows import StreamedRows


def _in_turn(function: Callable[..., Any], own_rows: bool, data: PyTree, of_seeds: PyTree) -> Any:
    """Maps ``function(data, row)`` over the rows of ``of_seeds``, possibly with data per row.

    The result of a seed is bitwise the same whether it runs alone or with others.
    """
    if own_rows:
        return jax.lax.map(lambda both: function(*both), (data, of_seeds))
    return jax.lax.map(functools.partial(function, data), of_seeds)


@program(compile="fast")
def init_seeds(
    seeds: Array,
    hyper: Mapping[str, Array],
    mask: Array,
    arrays: Arrays[DeviceRows],
    *,
    structure: MethodStructure,
    spec: Spec,
) -> TrainState:
    """Creates the stacked initial states ``(S, ...)``.

    Args:
      seeds: ``(S,)`` uint32.
      hyper: values of the traced arguments, ``(S,)`` by name.
      mask: ``(S, D)`` bool, the columns that may be selected, or ``(S, G)`` groups.
      arrays: the rows; only those for training are used.
    """

    def init(arrays: Arrays[DeviceRows], row: tuple[Array, dict[str, Array], Array]) -> TrainState:
        seed, values, usable = row
        data = as_batch(spec.task, arrays.train)
        state = loop.init_state(structure.bind(values), spec, seed, data, usable)
        return state.replace(hyper=values)

    return _in_turn(init, has_own_rows(arrays), arrays, (seeds, dict(hyper), mask))


@program(donate=(0,))
def train_seeds(
    states: TrainState,
    arrays: Arrays[MemoryRows],
    num_epochs: Array,
    *,
    structure: MethodStructure,
    axis: str,
    batch_devices: int,
) -> tuple[TrainState, dict[str, Array], Array]:
    """:func:`fsjax.engine.loop.train_epochs` for all seeds; the memory of the states is reused.

    Returns:
      The new states; the history, ``(S, MAX_EPOCHS_PER_CALL)`` by name, and the epochs done,
      ``(S,)`` int32, both replicated so that every process can read them.
    """

    train = functools.partial(loop.train_epochs, structure)
    own_rows = has_own_rows(arrays)
    together = jax.vmap(train, in_axes=(0 if own_rows else None, 0))
    in_turn = functools.partial(_in_turn, train, own_rows)
    train_all = together if axis == "vmap" else in_turn
    if axis == "shard":
        train_all = in_turn if jax.default_backend() == "cpu" else together
        runs, everywhere = PartitionSpec(RUNS), PartitionSpec()
        train_all = jax.shard_map(
            train_all,
            mesh=mesh_of(batch_devices),
            in_specs=(runs if own_rows else everywhere, runs),
            out_specs=runs,
            axis_names={RUNS},
            check_vma=False,
        )
    states, history = train_all(arrays, (states, num_epochs))
    if axis == "shard":
        return states, *replicated((history, states.epoch), batch_devices)
    return states, history, states.epoch


def search_of(method: Method) -> Search:
    """``method.search``, which is not ``None``; ConfigError for a method without a search."""
    if method.search is None:
        raise ConfigError(f"{method.name} cannot search for a number of open gates")
    return method.search


class Chosen(NamedTuple):
    """The selections of S seeds and their outputs for the test rows.

    Attributes:
      states: the kept states after ``Method.finish``, without optimiser state and snapshot.
      scores: ``(S, D)``.
      ranking: ``(S, D)`` int32, all columns in order of importance, the method's own picks first
        and those that may not be selected last.
      picks: ``(S, K)`` the method's own picks, or ``None``.
      gates: ``(S, D)`` before a search closes any, 0 for columns that may not be selected; or
        ``None``.
      closed: the same after the search.
      outputs: ``(S, N, C)`` for the test rows, or ``None``. If sparse rows are their own target,
        ``tasks.row_metrics``, ``(S, N)`` by name. NumPy arrays if the rows are on disk.
      validated: ``(S,)`` by name, the metrics of the validation rows after a search closed gates;
        empty without a search or such rows.
    """

    states: TrainState
    scores: Array
    ranking: Array
    picks: Array | None
    gates: Array | None
    closed: Array | None
    outputs: AnyArray | Mapping[str, AnyArray] | None
    validated: Mapping[str, AnyArray]


@program(compile="fast")
def finish_seeds(
    states: TrainState,
    arrays: Arrays[DeviceRows],
    x_test: Array | SparseRows | None,
    threshold: Array | None,
    *,
    structure: MethodStructure,
) -> Chosen:
    """The selections of all seeds and their outputs for the test rows.

    Args:
      arrays: the rows; those for testing are not used.
      x_test: ``(N, D)`` scaled rows, or ``(S, N, D)`` if ``arrays`` are stacked; ``None`` for no
        outputs.
      threshold: ``(S,)``, gates below it are closed; ``None`` closes none.
    """

    def finish(
        rows: tuple[Arrays[DeviceRows], Array | SparseRows | None],
        of_seed: tuple[TrainState, Array | None],
    ) -> Chosen:
        (arrays, x), (state, limit) = rows, of_seed
        method = structure.bind(state.hyper)
        data = as_batch(state.spec.task, arrays.train)
        # Epochs and steps have much smaller numbers, so this key is not used anywhere else.
        key = jax.random.fold_in(loop.key_of(state.key), jnp.uint32(2**32 - 1))
        state = method.finish(loop.at_kept(method, state), data, key)
        state = state.replace(opt_state=(), best=state.best._replace(params=(), masks=(), extra=()))
        selection = method.select(state)
        gates = closed = selection.gates
        if limit is not None:
            state = search_of(method).close(state, limit)
            closed = method.select(state).gates
        gates, closed = (
            None if values is None else values * state.feature_mask for values in (gates, closed)
        )
        ranking = distinct_top_k(
            selection.scores, selection.scores.shape[0], selection.picks, state.feature_mask
        )
        outputs = None if x is None else outputs_of_rows(method, state, x)
        validated = {} if limit is None else _validated(method, state, arrays.valid)
        scores, picks = selection.scores, selection.picks
        return Chosen(state, scores, ranking, picks, gates, closed, outputs, validated)

    return _in_turn(finish, has_own_rows(arrays), (arrays, x_test), (states, threshold))


@program()
def predict_seed(states: TrainState, row: Array, x: Array, *, structure: MethodStructure) -> Array:
    """Outputs ``(N, C)`` of seed number ``row`` of stacked states for ``(N, D)`` scaled rows."""
    state = jax.tree.map(lambda leaf: leaf[row], states)
    return structure.bind(state.hyper).predictor(state, x)


def _validated(method: Method, state: TrainState, rows: DeviceRows) -> dict[str, Array]:
    """The metrics of validation rows in memory."""
    if method.predict is None or isinstance(rows.x, StreamedRows) or not rows.x.shape[0]:
        return {}
    return metrics_of_rows(method, state, cast("MemoryRows", rows))
