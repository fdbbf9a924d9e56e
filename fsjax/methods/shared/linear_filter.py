"""Filters that score a column by its weights in a linear model of the labels."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
from jax import Array

from fsjax.method import Method, Spec, TrainingRows
from fsjax.methods.shared.fixed_columns import filter_method
from fsjax.methods.shared.on_host import on_host

#: ``(x (N, D), targets (N, C), weight (N,), *values) -> W (D, C)``, all of them NumPy arrays.
Solver = Callable[..., np.ndarray]


def linear_filter(solve: Solver, *values: float, low: float) -> Method:
    """A filter that scores column d by the norm ``||W_d||`` in a linear model of all classes.

    Args:
      solve: computes W.
      *values: float arguments of the method, which may be traced, for ``solve``.
      low: the target of a class in the rows of other classes; in its own rows it is 1.
    """

    def score_rows(x: np.ndarray, y: np.ndarray, weight: np.ndarray, *values: float) -> np.ndarray:
        return np.linalg.norm(solve(x, y, weight, *values), axis=1)

    def scores(key: Array, spec: Spec, data: TrainingRows) -> Array:
        del key
        targets = low + (1.0 - low) * jax.nn.one_hot(data.y, spec.num_outputs)
        return on_host(score_rows, data._replace(y=targets), *values)

    return filter_method(scores, ("classification",))
