"""What a method's functions look at and change, found by tracing them: nothing is computed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.engine.loop import as_batch, init_state, keeps_snapshot
from fsjax.engine.prepare import Prepared
from fsjax.engine.seeds import has_own_rows
from fsjax.errors import ConfigError
from fsjax.jax_settings import own_settings
from fsjax.method import Batch, Method, Spec, TrainState
from fsjax.sparse_rows import SparseRows
from fsjax.stored_rows import StoredRows


@own_settings
def check_shapes_and_scores(method: Method, spec: Spec, prepared: Prepared) -> None:
    """Traces the functions of a method once, before anything is trained.

    Raises:
      ConfigError: if ``init`` refuses the shapes, or ``select`` reads what only ``after_epoch``
        writes, so that the kept epoch would have the scores of the epoch before.
    """
    rows = prepared.arrays.train
    if has_own_rows(prepared.arrays):
        rows = jax.tree.map(lambda leaf: leaf[0], rows)
    data = as_batch(spec.task, rows)
    units = np.ones(spec.num_units, bool)
    state = jax.eval_shape(functools.partial(init_state, method, spec), np.uint32(0), data, units)
    if isinstance(rows.x, StoredRows):
        key = jax.random.key(0, impl="threefry2x32")
        for function in (method.after_epoch, method.finish):
            jax.eval_shape(function, state, data, key)
    changes = method.after_epoch is not Method._field_defaults["after_epoch"]
    if not keeps_snapshot(method, spec) or not changes or not jax.tree.leaves(state.extra):
        return

    # Other fields as constants: what is read and written of ``extra`` alone is asked.
    known = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), state.replace(extra=()))
    args = (state.extra, data, jax.random.key(0, impl="threefry2x32"))
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(state.extra)]

    def traced(function: Callable[[TrainState, Batch, Array], Any]) -> Any:
        of_extra = jax.make_jaxpr(lambda extra, *more: function(known.replace(extra=extra), *more))
        return of_extra(*args).jaxpr

    written = _written(traced(lambda s, d, k: method.after_epoch(s, d, k).extra), names)
    read = _read(traced(lambda s, d, k: method.select(method.finish(s, d, k))), names)
    felt = _read(traced(lambda s, d, k: method.predict(s, _dense(d.x))), names)
    late = sorted(written & read - felt)
    if late:
        raise ConfigError(
            f"{method.name}: select reads extra{late[0]}, which after_epoch writes when the epoch "
            "is validated already, so the kept epoch would have that of the epoch before; make it "
            "in finish, or keep the last epoch with best_by='last'"
        )


def _dense(x: Array | SparseRows | StoredRows) -> Array:
    return jnp.zeros((1, x.shape[1])) if isinstance(x, StoredRows) else x[:]


def _read(jaxpr: Any, names: list[str]) -> set[str]:
    """Which of the first leaves a function looks at."""
    used = {id(var) for equation in jaxpr.eqns for var in equation.invars}
    used |= {id(var) for var in jaxpr.outvars}
    return {name for name, var in zip(names, jaxpr.invars, strict=False) if id(var) in used}


def _written(jaxpr: Any, names: list[str]) -> set[str]:
    """Which of the leaves a function that returns them all gives another value."""
    if len(jaxpr.outvars) != len(names):
        return set(names)
    pairs = zip(names, jaxpr.invars, jaxpr.outvars, strict=False)
    return {name for name, before, after in pairs if before is not after}
