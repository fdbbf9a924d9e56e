"""What a fit returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import jax
import numpy as np

from fsjax.data.scaling import Scaler
from fsjax.data.scaling import apply as apply_scaler
from fsjax.data.splits import Split
from fsjax.errors import DataError
from fsjax.method import Array, Method, TrainState


@partial(jax.jit, static_argnames=("method",))
def predict_seed(method: Method, states: TrainState, row: int, x: Array) -> Array:
    """Outputs ``(N, C)`` of seed number ``row`` of stacked states for ``(N, D)`` scaled rows."""
    return method.predict(jax.tree.map(lambda leaf: leaf[row], states), x)


@dataclass(frozen=True)
class FitResult:
    """The outcome of :func:`fsjax.fit` for S seeds.

    Attributes:
      method: the method that ran.
      dataset: name of the data set.
      task: what the network was trained for.
      num_features: K.
      seeds: the S seeds.
      selected: ``(S, K)`` int: distinct columns in order of importance.
      scores: ``(S, D)`` float: importance of every column at the best epoch.
      metrics: test metrics by name, ``(S,)`` each: ``embedded_accuracy`` (percent),
        ``reconstruction_frobenius``, ``mse``, ``auc``, ``r2`` as the task has them, of the
        jointly trained network with the discrete selection; ``unique_percentage`` of its picks.
      history: recorded values by ``split/metric`` name, ``(S, E)``.
      best_epoch: ``(S,)`` int, the epoch (from 1) with the lowest validation loss.
      cost: ``params`` (parameters per seed), ``train_flops`` (per seed, in the papers' sense:
        6 x parameters x training rows x epochs), ``train_seconds`` and ``compile_seconds`` (all
        seeds together), ``trained_epochs`` (fewer than asked for in a resumed run).
      states: stacked train states, with the best snapshot put back.
      scalers: the scaler of each seed.
      splits: the rows of each seed.
      constant_columns: number of columns that are constant in the training rows, a seed each.
    """

    method: Method
    dataset: str
    task: str
    num_features: int
    seeds: tuple[int, ...]
    selected: np.ndarray
    scores: np.ndarray
    metrics: Mapping[str, np.ndarray]
    history: Mapping[str, np.ndarray]
    best_epoch: np.ndarray
    cost: Mapping[str, float]
    states: TrainState = field(repr=False)
    scalers: tuple[Scaler, ...] = field(repr=False)
    splits: tuple[Split, ...] = field(repr=False)
    constant_columns: np.ndarray = field(repr=False)

    @property
    def selection_frequency(self) -> np.ndarray:
        """``(D,)``: share of the seeds, in [0, 1], that selected each column."""
        counts = np.bincount(self.selected.ravel(), minlength=self.scores.shape[1])
        return counts / len(self.seeds)

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Network outputs for raw (unscaled) rows, with the discrete selection.

        Args:
          x: ``(N, D)``.

        Returns:
          ``(S, N, C)``: class logits, reconstructions (scaled) or predictions.

        Raises:
          DataError: if the number of columns differs.
        """
        x = np.asarray(x)
        if x.ndim != 2 or x.shape[1] != self.scores.shape[1]:
            raise DataError(f"X has shape {x.shape}; expected (N, {self.scores.shape[1]})")
        outputs = [
            predict_seed(self.method, self.states, row, apply_scaler(scaler, x))
            for row, scaler in enumerate(self.scalers)
        ]
        return np.stack([np.asarray(out) for out in outputs])

    def transform(self, x: np.ndarray, seed: int | None = None) -> np.ndarray:
        """The selected columns of x, in order of importance.

        Args:
          x: ``(N, D)``.
          seed: one of ``seeds``; ``None`` takes the first.

        Returns:
          ``(N, K)``.
        """
        row = 0 if seed is None else self.seeds.index(seed)
        return np.asarray(x)[:, self.selected[row]]
