"""Export of a trained network as StableHLO, which runs without fsjax."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export as jax_export

from fsjax.engine.environment.jax_settings import own_settings
from fsjax.engine.kernels.products import rounds
from fsjax.engine.result import FitResult, place_of
from fsjax.errors import ConfigError
from fsjax.extras import require
from fsjax.storage.atomic_files import atomic_open
from fsjax.tables.scaling import is_single

#: The platforms for which the program is lowered by default.
PLATFORMS = ("cpu", "cuda", "tpu")

#: All platforms for which it can be lowered.
_KNOWN = ("cpu", "cuda", "rocm", "tpu")


@own_settings()
def export(
    result: FitResult,
    path: str | Path | None = None,
    *,
    seed: int | None = None,
    platforms: Sequence[str] = PLATFORMS,
) -> bytes:
    """Exports scaling and network of one seed: raw rows ``(N, D)`` to outputs ``(N, C)``.

    ``jax.export.deserialize(data).call(rows)`` runs the program for any number of float32 rows,
    with JAX alone; the documentation of ``jax.export`` says what else reads StableHLO.

    Args:
      result: the result of a method that predicts.
      path: file to write, or ``None``.
      seed: one of ``result.seeds``; ``None`` takes the first.
      platforms: the platforms to lower for: ``'cpu'``, ``'cuda'``, ``'rocm'``, ``'tpu'``.

    Returns:
      The serialised program, as written to the file.

    Raises:
      ConfigError: for methods that do not predict, for an unknown seed or platform, and without
        flatbuffers.

    Examples:
      >>> network = fsjax.methods.neural_network(hidden=(8,))
      >>> result = fsjax.fit(network, data, num_features=2, num_epochs=1)
      >>> fsjax.export(result, "network.bin")
    """
    require("flatbuffers", "fsjax.export")
    if result.method.predict is None:
        raise ConfigError(f"{result.method.name} only selects columns; it does not predict")
    if isinstance(platforms, str) or not platforms or set(platforms) - set(_KNOWN):
        raise ConfigError(f"platforms={platforms!r}; give a tuple of some of {', '.join(_KNOWN)}")
    row = place_of(seed, result.seeds)
    if not is_single(result.scalers[row]):
        raise ConfigError(
            "the scaling of columns with values below 1e-38 does not fit into float32, the type of "
            "the exported program; multiply these columns by a constant before fit"
        )
    columns = result.states.spec.num_columns
    state = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[row]), result.states)
    shift, scale = (jnp.asarray(part, jnp.float32) for part in result.scalers[row])

    def predict(x: jax.Array) -> jax.Array:
        predictor, inputs = result.method.predictor, (state, (x - shift) * scale)
        if not rounds():
            return predictor(*inputs)
        # Batched products in bfloat16 are of standard operations alone, which can be serialised.
        return jax.vmap(predictor)(*jax.tree.map(lambda leaf: leaf[None], inputs))[0]

    (rows,) = jax_export.symbolic_shape("rows")
    shape = jax.ShapeDtypeStruct((rows, columns), jnp.float32)
    data = bytes(jax_export.export(jax.jit(predict), platforms=tuple(platforms))(shape).serialize())
    if path is not None:
        with atomic_open(path) as file:
            file.write(data)
    return data
