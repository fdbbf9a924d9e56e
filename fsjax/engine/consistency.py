"""What a method's functions look at and change, found by tracing them: nothing is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fsjax.engine.loop import Arrays, as_batch, init_state, keeps_snapshot
from fsjax.engine.prepare import Prepared
from fsjax.errors import ConfigError
from fsjax.method import Method, Spec


def check_shapes_and_scores(method: Method, spec: Spec, prepared: Prepared) -> None:
    """Traces the functions of a method once, before anything is trained.

    Args:
      method: the method.
      spec: static facts of the run.
      prepared: the data.

    Raises:
      ConfigError: if ``init`` refuses the shapes, or ``select`` reads what only ``after_epoch``
        writes, so that the kept epoch would have the scores of the epoch before.
    """
    arrays: Arrays = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[prepared.own_arrays :], leaf.dtype),
        prepared.arrays,
    )
    data = jax.eval_shape(lambda rows: as_batch(spec.task, rows), arrays.train)
    units = jax.ShapeDtypeStruct((spec.num_units,), jnp.bool_)
    seed = jax.ShapeDtypeStruct((), jnp.uint32)
    state = jax.eval_shape(
        lambda seed, rows, mask: init_state(method, spec, seed, rows, mask), seed, data, units
    )
    changes = method.after_epoch is not Method._field_defaults["after_epoch"]
    if not keeps_snapshot(method, spec) or not changes or not jax.tree.leaves(state.extra):
        return

    def with_extra(function: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
        def traced(extra: Any, rows: Any, words: Any) -> Any:
            key = jax.random.wrap_key_data(words, impl="threefry2x32")
            return function(state_of(extra), rows, key)

        return traced

    # Other fields as constants: what is read and written of ``extra`` alone is asked.
    known = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), state.replace(extra=()))

    def state_of(extra: Any) -> Any:
        return known.replace(extra=extra)

    names = [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(state.extra)]
    args = (state.extra, data, jax.ShapeDtypeStruct((2,), jnp.uint32))
    written = _written(with_extra(lambda s, d, k: method.after_epoch(s, d, k).extra), args, names)
    read = _read(with_extra(lambda s, d, k: method.select(method.finish(s, d, k))), args, names)
    felt = _read(with_extra(lambda s, d, k: method.predict(s, d.x)), args, names)
    late = sorted(written & read - felt)
    if late:
        raise ConfigError(
            f"{method.name}: select reads extra{late[0]}, which after_epoch writes when the epoch "
            "is validated already, so the kept epoch would have that of the epoch before; make it "
            "in finish, or keep the last epoch with best_by='last'"
        )


def _jaxpr(function: Callable[..., Any], args: tuple) -> Any:
    return jax.make_jaxpr(function)(*args).jaxpr


def _read(function: Callable[..., Any], args: tuple, names: list[str]) -> set[str]:
    """Which of the first leaves a function looks at."""
    jaxpr = _jaxpr(function, args)
    used = {id(var) for equation in jaxpr.eqns for var in equation.invars}
    used |= {id(var) for var in jaxpr.outvars}
    return {name for name, var in zip(names, jaxpr.invars, strict=False) if id(var) in used}


def _written(function: Callable[..., Any], args: tuple, names: list[str]) -> set[str]:
    """Which of the leaves a function that returns them all gives another value."""
    jaxpr = _jaxpr(function, args)
    if len(jaxpr.outvars) != len(names):
        return set(names)
    pairs = zip(names, jaxpr.invars, jaxpr.outvars, strict=False)
    return {name for name, before, after in pairs if before is not after}
