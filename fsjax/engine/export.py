"""The network behind a result as StableHLO, which runs without fsjax and without its methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export

from fsjax.engine.result import FitResult
from fsjax.environment.jax_settings import own_settings
from fsjax.errors import ConfigError
from fsjax.extras import require
from fsjax.storage.atomic_files import atomic_open
from fsjax.tables.scaling import is_single

#: What the program is lowered for.
PLATFORMS = ("cpu", "cuda", "tpu")


@own_settings
def export(
    result: FitResult,
    path: str | Path | None = None,
    *,
    seed: int | None = None,
    platforms: Sequence[str] = PLATFORMS,
) -> bytes:
    """Scaling and network of one seed as one program: raw rows ``(N, D)`` to outputs ``(N, C)``.

    ``jax.export.deserialize(data).call(rows)`` runs it, for any number of rows, in a process that
    knows JAX alone; ``jax.export`` tells what else reads StableHLO. Rows are float32.

    Args:
      result: of a method that predicts.
      path: file to write, or ``None``.
      seed: one of ``result.seeds``; ``None`` takes the first.
      platforms: what it is lowered for: ``'cpu'``, ``'cuda'``, ``'rocm'``, ``'tpu'``.

    Returns:
      The serialised program, as written to the file.

    Raises:
      ConfigError: for methods that predict nothing, an unknown seed, or without flatbuffers.
    """
    require("flatbuffers", "fsjax.export")
    if result.method.predict is None:
        raise ConfigError(f"{result.method.name} selects columns and predicts nothing")
    if seed is not None and seed not in result.seeds:
        raise ConfigError(f"seed={seed} is not one of the seeds {result.seeds}")
    row = 0 if seed is None else result.seeds.index(seed)
    if not is_single(result.scalers[row]):
        raise ConfigError(
            "the scaling of columns with values below 1e-38 does not fit into float32, in which "
            "the program takes its rows; multiply these columns before fit"
        )
    columns = result.states.spec.num_columns
    state = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[row]), result.states)
    shift, scale = (jnp.asarray(part, jnp.float32) for part in result.scalers[row])

    def predict(x: jax.Array) -> jax.Array:
        return result.method.predictor(state, (x - shift) * scale)

    (rows,) = jax_export.symbolic_shape("rows")
    shape = jax.ShapeDtypeStruct((rows, columns), jnp.float32)
    data = bytes(jax_export.export(jax.jit(predict), platforms=tuple(platforms))(shape).serialize())
    if path is not None:
        with atomic_open(path) as file:
            file.write(data)
    return data
