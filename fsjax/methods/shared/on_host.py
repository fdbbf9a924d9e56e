"""Scores computed by NumPy, in float64 and on rows of positive weight, from compiled code."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fsjax.method import TrainingRows

#: ``(x (N, D), y, weight (N,), *values) -> scores (D,)``, all of them NumPy arrays.
HostScores = Callable[..., np.ndarray]


def on_host(scores: HostScores, data: TrainingRows, *values: Array | float) -> Array:
    """Calls a NumPy function of the training rows from compiled code.

    Args:
      scores: the function. It receives the rows of positive weight (``x (N, D)`` and
        ``weight (N,)`` in float64, ``y`` unchanged) and ``values`` as Python floats.
      data: all training rows.
      *values: float arguments of the method, which may be traced.

    Returns:
      ``(D,)`` float32.
    """

    def call(x: Array, y: Array, weight: Array, *values: Array) -> np.ndarray:
        rows = np.asarray(weight) > 0
        results = scores(
            np.asarray(x)[rows].astype(np.float64),
            np.asarray(y)[rows],
            np.asarray(weight)[rows].astype(np.float64),
            *(float(value) for value in values),
        )
        return np.asarray(results, np.float32)

    shape = jax.ShapeDtypeStruct((data.x.shape[1],), jnp.float32)
    return jax.pure_callback(call, shape, *data, *values, vmap_method="sequential")
