"""Contract tests for methods and tasks, including your own: ``check_method``, ``check_task``."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_array

from fsjax.engine.fit import plan
from fsjax.engine.loop import keeps_snapshot
from fsjax.engine.method_checks import check_fields
from fsjax.engine.plan import Plan
from fsjax.engine.result import FitResult
from fsjax.engine.rows import HostRows, Rows, as_batch
from fsjax.method import Batch, Method, TrainState
from fsjax.registry import registration_of
from fsjax.storage import results
from fsjax.storage.checkpoints import Checkpoints
from fsjax.storage.trees import by_path
from fsjax.tables.splits import Split
from fsjax.tasks import TABLE, Task, name_of
from fsjax.tasks import loss as task_loss
from fsjax.tasks.contract import check_task as check_task
from fsjax.tasks.contract import require_that
from fsjax.tasks.examples import example

#: The number of columns of the table; no other axis has this size, so that axes over columns can
#: be recognised. The columns that determine the class, and the constant one.
NUM_COLUMNS, INFORMATIVE, CONSTANT = 13, (0, 4, 9), 7

#: The group of each column for the checks of groups: members are not adjacent, sizes differ.
GROUPS = (0, 1, 2, 3, 0, 1, 2, 4, 3, 0, 1, 2, 3)

#: The number of columns to select.
K = 4


#: The loss must fall below this share of its value before training.
LEARNT = 0.98

#: Among all pairs of an informative column and another one, the smallest share in which the
#: informative one must have the larger score. Scores with the wrong sign have a share near 0; a
#: short training does not reach 1.
IN_ORDER = 0.3

#: Tolerances between a vmapped run and another: sums are reassociated over some dozens of steps.
RTOL, ATOL = 1e-2, 2e-3


def check_method(
    method: Method, tasks: Sequence[str | Task] | None = None, num_epochs: int = 12
) -> None:
    """Checks that a method keeps the contract of :mod:`fsjax.method`.

    The method is trained on a table of 13 columns, one of them constant. The checks are:

    - functions return the right types and shapes (as :func:`fsjax.plan` checks);
    - the loss falls, and rows of weight 0 do not count;
    - ``init`` draws its random numbers from the key;
    - seeds give the same result vmapped and one after another;
    - training adds no connections;
    - ``select`` reads nothing that ``after_epoch`` writes only after an epoch has been kept;
    - scores are larger for informative columns, and are permuted when columns are permuted;
    - a method that selects during training uses the selected columns only;
    - an interrupted run resumes bit for bit, and a saved result can be loaded;
    - if the method supports them: groups, the search for exactly K gates, and sparse tables, which
      must give the same result as dense ones.

    Args:
      method: a method with small networks; if it is built for a fixed number of columns, at most
        12.
      tasks: the tasks to check, possibly registered ones; by default all of the method's. The
        method is trained for the first.
      num_epochs: epochs of each training.

    Raises:
      AssertionError: if a check fails; the message says which.
      ConfigError, DataError: if the engine refuses the method.
    """
    check_fields(method)
    task, *others = map(name_of, tasks or method.about.tasks)
    for other in others:
        _plan(method, other, num_epochs)
    planned = _plan(method, task, num_epochs)
    check_init(planned)
    check_scores_in_time(planned, _first(planned)[0])
    check_permutation(planned)
    result = check_training(planned)
    check_scores_in_time(planned, _seed(result, 0))
    check_padding(planned, result)
    check_selection(planned, result)
    check_resume(planned)
    if method.about.sparse:
        check_sparse(method, task, num_epochs, result)
    if registration_of(method) is not None:
        check_saving(result)
    if method.about.takes_groups:
        check_groups(method, task, num_epochs)
    if method.search is not None:
        check_search(method, task)


def check_init(planned: Plan) -> None:
    """Checks that ``init`` draws from its key alone: each trace gives the same state."""
    method, spec, data = planned.method, planned.spec, _rows(planned)
    if planned.structure.in_library:
        # The tests of the library check this of its methods.
        return
    # A new function each time, so that it is traced again.
    first, second = (
        jax.jit(lambda key: method.init(key, spec, data))(jax.random.key(5)) for _ in range(2)
    )
    others = by_path(second.params)
    for name, leaf in by_path(first.params).items():
        require_that(
            np.array_equal(leaf, others[name], equal_nan=True),
            f"init gives other {name} for the same key; draw all random numbers from its key",
        )


def check_scores_in_time(planned: Plan, state: TrainState) -> None:
    """Checks that the scores of a kept epoch do not need what ``after_epoch`` writes afterwards.

    What the validation of the next epoch uses too may be written then.
    """
    method, data = planned.method, _rows(planned)
    leaves, tree = jax.tree.flatten(state.extra)
    if method.loss is None or not leaves or not keeps_snapshot(method, planned.spec):
        return
    key = jax.random.key(1)

    @jax.jit
    def scores_and_outputs(extra: Any) -> tuple[jax.Array, jax.Array]:
        changed = state.replace(extra=extra)
        scores = method.select(method.finish(changed, data, key)).scores
        return scores, method.predictor(changed, data.x)

    before = scores_and_outputs(state.extra)
    written = jax.jit(method.after_epoch)(state, data, key).extra
    for place, (name, leaf) in enumerate(by_path(written).items()):
        changed = [*leaves[:place], leaf, *leaves[place + 1 :]]
        after = scores_and_outputs(jax.tree.unflatten(tree, changed))
        same = [np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after, strict=True)]
        require_that(
            same[0] or not same[1],
            f"select reads extra {name}, which after_epoch writes only after validation, so the "
            "kept epoch would have the value of the epoch before; compute it in finish",
        )


def check_padding(planned: Plan, result: FitResult) -> None:
    """Checks that rows of weight 0 do not change the loss, and that other rows do."""
    if planned.method.loss is None:
        return
    # Trained parameters: those of a linear model may start at 0, and its loss then ignores x.
    state, data = _seed(result, 0), _rows(planned)
    rows = len(data.x)
    few = data._replace(weight=(jnp.arange(rows) < rows // 2).astype(jnp.float32))
    other = few._replace(x=few.x.at[rows // 2 :].set(50.0), y=few.y.at[rows // 2 :].set(0))
    loss = jax.jit(
        lambda batch: planned.method.training_loss(state.params, state, batch, jax.random.key(2))[0]
    )
    half, changed, full = map(float, (loss(few), loss(other), loss(data)))
    same = np.isclose(half, changed, rtol=1e-4)
    require_that(same, f"rows of weight 0 change the loss: {half} to {changed}")
    require_that(not np.isclose(half, full, rtol=1e-6), "the loss does not look at the rows")


def check_permutation(planned: Plan) -> None:
    """Checks that permuting the columns permutes scores and picks, and keeps the outputs."""
    method, (state, data) = planned.method, _first(planned)
    order = np.random.default_rng(3).permutation(NUM_COLUMNS)

    def permute(leaf: Any) -> np.ndarray:
        permuted = np.asarray(leaf)
        for axis, size in enumerate(permuted.shape):
            if size == NUM_COLUMNS:
                permuted = np.take(permuted, order, axis=axis)
        return permuted

    # Compiled as a whole: operation by operation, JAX would compile dozens of small programs.
    select = jax.jit(method.select)
    state = jax.jit(method.finish)(state, data, jax.random.key(1))
    carried = ("params", "masks", "extra", "log", "feature_mask")
    shuffled = state.replace(**{n: jax.tree.map(permute, getattr(state, n)) for n in carried})
    first, second = select(state), select(shuffled)
    _close(second.scores, np.asarray(first.scores)[order], "permuted columns change the scores")
    if first.picks is not None:
        same = np.array_equal(order[np.asarray(second.picks)], np.asarray(first.picks))
        require_that(same, "permuted columns change the picks")
    if method.predict is not None:
        predict = jax.jit(method.predict)
        before, after = predict(state, data.x), predict(shuffled, permute(data.x))
        _close(after, permute(before), "permuted columns change the outputs")


def check_training(planned: Plan) -> FitResult:
    """Trains; checks that ``vmap`` agrees, the loss falls, and no connections are added."""
    result = _fit(planned)
    if planned.method.loss is None:
        return result
    first = _untrained(planned)
    other = _fit(dataclasses.replace(planned, axis="vmap"))
    _close(other.history["train/loss"][:, :2], result.history["train/loss"][:, :2], "vmap differs")
    params, before = by_path(result.states.params), by_path(first.masks)
    for name, mask in by_path(result.states.masks).items():
        added = np.sum(mask.astype(int) - before[name], axis=tuple(range(1, mask.ndim)))
        require_that((added <= 0).all(), f"training adds {added.tolist()} connections to {name}")
        require_that(not params[name][~mask].any(), f"inactive weights of {name} are not 0")
    _check_learnt(planned, result, first)
    return result


def _check_learnt(planned: Plan, result: FitResult, first: TrainState) -> None:
    """Checks that the validation loss of seed 0 falls; ``first`` holds the untrained states."""
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[0], first)
    task = planned.spec.task
    rows = as_batch(task, _on_device(planned.prepared.arrays.valid))

    @jax.jit
    def loss(state: TrainState, rows: Batch[jax.Array]) -> jax.Array:
        return task_loss(task, planned.method.predictor(state, rows.x), rows.y, rows.weight)

    before = float(loss(state, rows))
    lowest = float(np.nanmin(result.history["valid/loss"][0]))
    fault = f"training does not lower the validation loss: {before:.4g} to {lowest:.4g} at best"
    require_that(lowest < LEARNT * before, fault)


def check_selection(planned: Plan, result: FitResult) -> None:
    """Checks scores, ranking, gates and picks, and that only picked columns reach the network."""
    usable = planned.usable
    for scores, mask in zip(result.scores, usable, strict=True):
        require_that(np.isfinite(scores).all(), "scores are not finite")
        require_that(len(np.unique(scores[mask])) > 1, "all columns have the same score")
    if TABLE[planned.spec.task].target.supervised and planned.spec.groups is None:
        _check_order(result.scores, usable)
    for ranking in result.ranking:
        units = planned.spec.num_units
        require_that(
            sorted(ranking.tolist()) == list(range(units)), "the ranking has a column twice"
        )
        require_that(ranking[-1] == CONSTANT, "a constant column is preferred to others")
    if result.gates is not None:
        require_that(((result.gates >= 0) & (result.gates <= 1)).all(), "gates are outside [0, 1]")
    picks = jax.jit(planned.method.select)(_seed(result, 0)).picks
    if picks is not None:
        chosen = np.asarray(picks)
        require_that(usable[0][chosen].all(), "a column that may not be selected is picked")
        first = np.isin(chosen, result.ranking[0][: len(chosen)]).all()
        require_that(first, "the picks are not the first of the ranking")
        _check_seen(planned, _seed(result, 0), chosen)


def _check_order(scores: np.ndarray, usable: np.ndarray) -> None:
    """Checks that informative columns have larger scores than others, in enough of the pairs."""
    matters = np.isin(np.arange(NUM_COLUMNS), INFORMATIVE)
    shares = [
        np.mean(of_seed[matters][:, None] > of_seed[mask & ~matters])
        for of_seed, mask in zip(scores, usable, strict=True)
    ]
    message = (
        f"columns that matter have a larger score than others in only {100 * np.mean(shares):.0f} "
        "% of the pairs; a larger score must mean a more important column"
    )
    require_that(np.mean(shares) >= IN_ORDER, message)


def _check_seen(planned: Plan, state: TrainState, chosen: np.ndarray) -> None:
    """Checks that the network depends on the chosen columns (or groups), and on no others."""
    others = sorted(_seen_units(planned, state) - set(chosen.tolist()))
    require_that(not others, f"the network sees {others}, which are not selected")
    # All columns at once: ReLU units may be inactive, so a single column need not have an effect.
    x = np.asarray(planned.prepared.arrays.valid.x)
    units = planned.spec.groups or range(NUM_COLUMNS)
    moved = x + np.isin(units, chosen) * np.linspace(1.0, 3.0, len(units))
    before, after = (_outputs(planned, state, rows) for rows in (x, moved.astype(x.dtype)))
    changes = not np.allclose(after, before, rtol=1e-5)
    require_that(
        changes or not len(chosen), "the network does not see the columns that are selected"
    )


def _seen_units(planned: Plan, state: TrainState) -> set[int]:
    """The columns (or groups) that change the outputs of the network."""
    x = np.asarray(planned.prepared.arrays.valid.x)
    units = planned.spec.groups or range(NUM_COLUMNS)
    before = _outputs(planned, state, x)
    moved = (x + step for step in 3.0 * np.eye(NUM_COLUMNS, dtype=x.dtype))
    return {
        unit
        for unit, rows in zip(units, moved, strict=True)
        if not np.allclose(_outputs(planned, state, rows), before, rtol=1e-5, atol=1e-6)
    }


def _outputs(planned: Plan, state: TrainState, x: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(planned.method.predictor)(state, x))


def check_resume(planned: Plan) -> None:
    """Checks that a run interrupted after a checkpoint repeats an uninterrupted one bit for bit."""
    if planned.method.loss is None:
        return

    class Interrupted(Exception):
        pass

    saved = Checkpoints.save

    def save_then_die(self: Checkpoints, *args: Any) -> None:
        saved(self, *args)
        raise Interrupted

    uninterrupted = planned.train()
    with tempfile.TemporaryDirectory() as folder:
        again = dataclasses.replace(planned, checkpoint_dir=Path(folder))
        dying = mock.patch.object(Checkpoints, "save", save_then_die)
        with dying, contextlib.suppress(Interrupted):
            again.train()
        resumed = again.train()
    fewer = resumed.cost["trained_epochs"] < uninterrupted.cost["trained_epochs"]
    require_that(fewer or not resumed.history, "the run began anew")
    expected = by_path(uninterrupted.states)
    for name, values in by_path(resumed.states).items():
        same = np.array_equal(values, expected[name], equal_nan=values.dtype.kind == "f")
        require_that(same, f"a resumed run has another {name}")


def check_saving(result: FitResult) -> None:
    """Checks that a result is the same after packing for a file and unpacking."""
    back = results.unpack(*results.pack(result))
    same = np.array_equal(back.selected, result.selected)
    require_that(same, "a saved result selects other columns")
    if result.method.predict is not None:
        x = np.linspace(-1, 1, 3 * NUM_COLUMNS).reshape(3, NUM_COLUMNS)
        _close(back.predict(x), result.predict(x), "a saved result has other predictions")


def check_sparse(method: Method, task: str, num_epochs: int, dense: FitResult) -> None:
    """Checks that a sparse table gives the scores, selection and metrics of the dense one."""
    result = _fit(_plan(method, task, num_epochs, sparse=True))
    _close(result.scores, dense.scores, "the scores of the sparse table differ")
    chosen = np.array_equal(result.selected, dense.selected)
    require_that(chosen, "the selection from the sparse table differs")
    for name, values in dense.metrics.items():
        _close(result.metrics[name], values, f"{name} of the sparse table differs")


def check_groups(method: Method, task: str, num_epochs: int) -> None:
    """Checks that groups of columns that are not adjacent are selected as a whole."""
    # Long enough for methods that remove groups one by one.
    planned = _plan(method, task, max(num_epochs, 45), groups=GROUPS)
    result = _fit(planned)
    same = result.scores.shape[1] == max(GROUPS) + 1
    require_that(same, f"there are {result.scores.shape[1]} scores for {max(GROUPS) + 1} groups")
    _check_learnt(planned, result, _untrained(planned))
    state = _seed(result, 0)
    select = jax.jit(planned.method.select)
    selection = select(state)
    if selection.picks is not None:
        _check_seen(planned, state, np.asarray(selection.picks))
    elif selection.gates is not None and method.search is not None:
        # Close half of the groups, whatever their gates are after training.
        closed = method.search.close(state, jnp.median(selection.gates))
        gates = np.asarray(select(closed).gates)
        _check_seen(planned, closed, np.flatnonzero(gates > 0))
    else:
        seen = _seen_units(planned, state)
        first = set(result.ranking[0][: len(seen)].tolist())
        fault = f"the network sees the groups {seen}, but the ranking begins with {first}"
        require_that(seen == first, fault)


def check_search(method: Method, task: str) -> None:
    """Checks that the search leaves exactly K gates open and the network sees nothing else."""
    planned = _plan(method, task, 40, num_features=method.about.num_features or K)
    result = _fit(planned)
    exact = result.metrics["exact_selection"]
    k, select = result.num_features, jax.jit(method.select)
    require_that(
        (exact == 100).all(), f"exactly {k} open gates: {exact.tolist()} (100 where found)"
    )
    for row in range(len(result.seeds)):
        state = _seed(result, row)
        chosen = np.flatnonzero(np.asarray(select(state).gates))
        require_that(len(chosen) == k, f"{len(chosen)} gates are open, not {k}")
        _check_seen(planned, state, chosen)


def table(task: str) -> tuple[np.ndarray, np.ndarray | None]:
    """The table of the checks: 72 rows, three informative columns, one constant column."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(72, NUM_COLUMNS))
    y = np.arange(72) % 3
    x[np.arange(72), np.asarray(INFORMATIVE)[y]] += 3.0
    x[:, CONSTANT] = 1.0
    # The column that a class raises is the largest, so the example's classes are y again.
    return x, example(TABLE[task], rng, x[:, INFORMATIVE])


def _plan(method: Method, task: str, num_epochs: int, sparse: bool = False, **options: Any) -> Plan:
    rows, about = np.arange(72), method.about
    x, y = table(task)
    if about.num_features is None and not about.gates:
        options.setdefault("num_features", K)
    return plan(
        method,
        (csr_array(x) if sparse else x, y),
        task=task,
        seeds=(0, 1),
        num_epochs=num_epochs,
        batch_size=8,
        split=Split(rows[:45], rows[45:60], rows[60:]),
        scaling="standard",
        seed_axis="map",
        checkpoint_every=max(num_epochs // 3, 1),
        **options,
    )


def _fit(planned: Plan) -> FitResult:
    with warnings.catch_warnings():
        # check_selection reports it as a failure instead.
        warnings.filterwarnings("ignore", message=".*the same score.*")
        return planned.fit()[0]


def _untrained(planned: Plan) -> TrainState:
    """The states of all seeds before their first step."""
    return planned.train(idle=[True] * len(planned.seeds)).states


def _first(planned: Plan) -> tuple[TrainState, Batch[jax.Array]]:
    """The state of a seed before its first step, and all training rows."""
    state = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[0]), _untrained(planned))
    return state, _rows(planned)


def _rows(planned: Plan) -> Batch[jax.Array]:
    """All training rows."""
    return as_batch(planned.spec.task, _on_device(planned.prepared.arrays.train))


def _on_device(rows: HostRows) -> Rows[jax.Array, jax.Array]:
    """The rows, which are dense, as arrays on the device."""
    return jax.tree.map(jnp.asarray, rows)


def _seed(result: FitResult, row: int) -> TrainState:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[row]), result.states)


def _close(first: Any, second: Any, message: str) -> None:
    np.testing.assert_allclose(first, second, rtol=RTOL, atol=ATOL, err_msg=message)
