"""Many seeds in one compiled program: the seed axis as ``vmap``, ``map`` or ``shard``.

The functions here are compiled for a structure (:mod:`fsjax.registry`) and not for a method: each
seed has its own values of the float arguments, from which its method is built inside the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from fsjax.engine.loop import (
    Arrays,
    as_batch,
    at_kept,
    init_state,
    key_of,
    predict_rows,
    train_epochs,
)
from fsjax.errors import ConfigError, nearest
from fsjax.method import Array, PyTree, Spec, TrainState
from fsjax.registry import Fixed, Structure
from fsjax.selection import distinct_top_k

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
        raise ConfigError(f"seed_axis={requested!r}: {nearest(str(requested), SEED_AXES)}")
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
        return jax.device_put(states)
    return jax.device_put(states, NamedSharding(_mesh(), PartitionSpec("seeds")))


def take_rows(tree: PyTree, rows: np.ndarray) -> PyTree:
    """Rows of stacked arrays, possibly repeated, on the host: nothing is compiled."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[rows], tree)


def init_seeds(
    structure: Structure | Fixed,
    spec: Spec,
    own_arrays: bool,
    seeds: Array,
    hyper: Mapping[str, Array],
    mask: Array,
    arrays: Arrays,
) -> TrainState:
    """Stacked initial states ``(S, ...)``.

    Args:
      structure: of the method.
      spec: static facts of the run.
      own_arrays: whether ``arrays`` has a leading seed axis.
      seeds: ``(S,)`` uint32.
      hyper: values of the traced arguments, ``(S,)`` by name.
      mask: ``(S, D)`` bool, the columns that may be selected, or ``(S, G)`` groups.
      arrays: the rows, of which those of training are looked at.
    """

    def one(of_seed: tuple) -> TrainState:
        seed, values, usable, own = of_seed
        data = as_batch(spec.task, (own if own_arrays else arrays).train)
        method = structure.bind(values)
        return init_state(method, spec, seed, data, usable).replace(hyper=dict(values))

    # One seed after another: the same bits whether a seed runs alone or with others.
    return jax.lax.map(one, (seeds, dict(hyper), mask, arrays if own_arrays else ()))


def train_seeds(
    structure: Structure | Fixed,
    axis: str,
    own_arrays: bool,
    states: TrainState,
    arrays: Arrays,
    num_epochs: Array,
) -> tuple[TrainState, dict[str, Array]]:
    """:func:`train_epochs` for all seeds.

    Args:
      structure: of the method.
      axis: ``vmap``, ``map`` or ``shard``.
      own_arrays: whether each seed has its own split, so that ``arrays`` has a leading seed axis.
      states: stacked states, ``(S, ...)``; their memory is reused.
      arrays: the data, shared or stacked.
      num_epochs: ``(S,)`` int32.

    Returns:
      The new states and the history, ``(S, MAX_EPOCHS_PER_CALL)`` by name.
    """

    def one(state: TrainState, data: Arrays, epochs: Array):
        return train_epochs(structure.bind(state.hyper), state, data, epochs)

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


class Chosen(NamedTuple):
    """What the kept states of S seeds say.

    Attributes:
      states: after ``Method.finish``; without the state of the optimiser and the snapshot.
      scores: ``(S, D)``.
      ranking: ``(S, D)`` int32, all columns in order of importance, the method's own picks first
        and those that may not be selected last.
      gates: ``(S, D)`` before a search closed any, those of unusable columns as 0; or ``None``.
      closed: the same afterwards.
      outputs: ``(S, N, C)`` for the test rows, or ``None``.
    """

    states: TrainState
    scores: Array
    ranking: Array
    gates: Array | None
    closed: Array | None
    outputs: Array | None


def finish_seeds(
    structure: Structure | Fixed,
    own_arrays: bool,
    own_test: bool,
    states: TrainState,
    arrays: Arrays,
    x_test: Array | None,
    threshold: Array | None,
) -> Chosen:
    """Selection and test outputs of all seeds.

    Args:
      structure: of the method.
      own_arrays, own_test: whether ``arrays`` and ``x_test`` have a leading seed axis.
      states: stacked states after the last epoch.
      arrays: the data, shared or stacked.
      x_test: ``(N, D)`` or ``(S, N, D)`` scaled rows; ``None`` for no outputs.
      threshold: ``(S,)``, which gates have to reach to stay open; ``None`` closes none.
    """

    def one(of_seed: tuple) -> Chosen:
        state, own, x, limit = of_seed
        method = structure.bind(state.hyper)
        data = as_batch(state.spec.task, (own if own_arrays else arrays).train)
        # Epochs and steps are numbered far below this, so no other key is like it.
        key = jax.random.fold_in(key_of(state), jnp.uint32(2**32 - 1))
        state = method.finish(at_kept(method, state), data, key)
        state = state.replace(opt_state=(), best=state.best._replace(params=(), masks=(), extra=()))
        selection = method.select(state)
        gates = closed = selection.gates
        if threshold is not None:
            state = method.search.close(state, limit)
            closed = method.select(state).gates
        if gates is not None:
            gates, closed = (values * state.feature_mask for values in (gates, closed))
        ranking = distinct_top_k(
            selection.scores, selection.scores.shape[0], selection.picks, state.feature_mask
        )
        rows = x if own_test else x_test
        outputs = None if rows is None else predict_rows(method, state, rows)
        return Chosen(state, selection.scores, ranking, gates, closed, outputs)

    mapped = (arrays if own_arrays else (), x_test if own_test else (), threshold)
    return jax.lax.map(one, (states, *mapped))


def predict_seed(structure: Structure | Fixed, states: TrainState, row: Array, x: Array) -> Array:
    """Outputs ``(N, C)`` of seed number ``row`` of stacked states for ``(N, D)`` scaled rows."""
    state = jax.tree.map(lambda leaf: leaf[row], states)
    return structure.bind(state.hyper).predict(state, x)
