"""``FitResult``, the result of a fit: the selection, its scores, and the trained networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from fsjax.engine.epoch_metrics import CONNECTION_EPOCHS
from fsjax.engine.loop import keeps_snapshot
from fsjax.engine.seeds import predict_seed
from fsjax.engine.stability import consensus
from fsjax.errors import ConfigError, DataError, check_num_features, name_some
from fsjax.method import Method, TrainState
from fsjax.registry import structure_of
from fsjax.tables.checks import check_features
from fsjax.tables.scaled import check_new_rows
from fsjax.tables.scaling import Scaler
from fsjax.tables.scaling import apply as apply_scaler
from fsjax.tables.sparse_rows import ENTRIES_AT_ONCE
from fsjax.tables.splits import Split
from fsjax.tables.user_arrays import numbers_of

#: The smallest and the largest number of rows that are predicted at once.
SMALLEST_BLOCK, LARGEST_BLOCK = 64, 4096


@dataclass(frozen=True, repr=False)
class FitResult:
    """The outcome of :func:`fsjax.fit` for S seeds.

    Attributes:
      method: the method that ran.
      dataset: name of the data set.
      task: the task for which the network was trained.
      num_features: K.
      seeds: the S seeds.
      selected: ``(S, K)`` int: distinct columns in order of importance.
      ranking: ``(S, D)`` int: all columns in order of importance, the method's own picks first.
      scores: ``(S, D)`` float: importance of every column at the best epoch.
      gates: ``(S, D)`` float in [0, 1] for methods that open and close their inputs, else ``None``.
      metrics: test metrics by name, ``(S,)`` each. Those of the jointly trained network with the
        discrete selection depend on the task: ``embedded_accuracy`` (percent),
        ``reconstruction_frobenius``, ``mse``, ``auc``, ``r2``. ``unique_percentage`` is that of
        the method's picks.
      history: recorded values by ``split/metric`` name, ``(S, E)``. Networks with masks have
        ``train/sparsity``, in [0, 1], and ``train/topology_change``, the percentage of their
        connections that are new in the epoch.
      best_epoch: ``(S,)`` int, the epoch (from 1) whose state was kept.
      cost: ``params`` (connections per seed), ``train_flops`` (per seed; both in the papers'
        sense, see ``fsjax.sparsity.summary``), ``train_seconds`` and ``compile_seconds`` (all
        seeds together), ``trained_epochs`` (in a resumed run only the new ones); for a table on
        disk ``wait_seconds``, in which the device waited for rows.
      states: stacked train states ``(S, ...)`` of the kept epochs, without the optimiser's.
      scalers: the scaler of each seed.
      splits: the rows of each seed.
      constant_columns: ``(S,)`` int, the number of columns that are constant in the training rows.
      connection_epochs: epochs at which the connections of the inputs were counted; 0 is before
        training.
      input_connections: ``(S, T, D)`` connections of every input neuron at these epochs, or
        ``None`` for methods without masks on their input layer.
      unit_names: names of the D columns, or of the groups; ``None`` without names.
      judged_on: for a table on disk, the number of rows that the SVM and retrain protocols
        sampled; ``None`` if they used all rows.
      runs: what the S runs are: ``'seed'``, or ``'half'`` for :func:`fsjax.fit_subsamples`.
    """

    method: Method
    dataset: str
    task: str
    num_features: int
    seeds: tuple[int, ...]
    selected: np.ndarray
    ranking: np.ndarray
    scores: np.ndarray
    gates: np.ndarray | None
    metrics: Mapping[str, np.ndarray]
    history: Mapping[str, np.ndarray]
    best_epoch: np.ndarray
    cost: Mapping[str, float]
    states: TrainState
    scalers: tuple[Scaler, ...]
    splits: tuple[Split, ...]
    constant_columns: np.ndarray
    connection_epochs: tuple[int, ...] = ()
    input_connections: np.ndarray | None = None
    unit_names: tuple[str, ...] | None = None
    runs: str = "seed"
    judged_on: int | None = None

    def __repr__(self) -> str:
        about = [
            f"{self.method.name} on {self.dataset}",
            self.task,
            f"K={self.num_features}",
            f"{self.runs}s={self.seeds}" if self.runs == "seed" else f"halves={len(self.seeds)}",
        ]
        about += [
            f"{name}={np.mean(values):.4g} +- {np.std(values):.2g}"
            for name, values in self.metrics.items()
        ]
        return f"FitResult({', '.join(about)})"

    def select(self, num_features: int) -> np.ndarray:
        """Selects another number of columns, without training again.

        Args:
          num_features: K, from 1 to D. If the method has its own picks, they come first.

        Returns:
          ``(S, K)`` int, distinct columns in order of importance.

        Raises:
          ConfigError: if K is not a whole number from 1 to D.
        """
        check_num_features(num_features, self.scores.shape[1])
        return self.ranking[:, :num_features]

    @property
    def selection_frequency(self) -> np.ndarray:
        """``(D,)``, the share of the seeds, in [0, 1], that selected each column."""
        counts = np.bincount(self.selected.ravel(), minlength=self.scores.shape[1])
        return counts / len(self.seeds)

    def to_frame(self) -> pd.DataFrame:
        """A table with one row per column (or group), the most important first.

        Returns:
          A frame whose index is the number of the column, with these columns: ``column`` (or
          ``group``), its name, by default ``x0``, ``x1``, ...; ``rank``, from 1, by how many seeds
          selected it and then by the mean rank of its scores; ``selection_frequency``, the share
          of the seeds, in [0, 1], that selected it; ``score``, the mean over the seeds; for methods
          with gates also ``gate``, the mean over the seeds, in [0, 1].
        """
        units = self.scores.shape[1]
        names = self.unit_names or [f"x{number}" for number in range(units)]
        order = consensus(self.selected, self.scores, units)
        values = {
            self.unit: np.array(names, object),
            "rank": np.argsort(order) + 1,
            "selection_frequency": self.selection_frequency,
            "score": self.scores.mean(axis=0),
        }
        if self.gates is not None:
            values["gate"] = self.gates.mean(axis=0)
        return pd.DataFrame(values).iloc[order]

    @property
    def unit(self) -> str:
        """The kind of unit that is selected: ``'column'`` or ``'group'``."""
        grouped = self.states is not None and self.states.spec.groups is not None
        return "group" if grouped else "column"

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Network outputs for raw (unscaled) rows, with the discrete selection.

        Args:
          x: ``(N, D)``, dense or sparse.

        Returns:
          ``(S, N, C)``: class logits, reconstructions (scaled) or predictions.

        Raises:
          DataError: for other columns than those of ``fit``, and for values that it refuses:
            missing or infinite ones, and those beyond 1e18 after scaling.
          ConfigError: for methods that do not predict.
        """
        if self.method.predict is None:
            raise ConfigError(f"{self.method.name} only selects columns; it does not predict")
        x = self._rows_of(x)
        if x.shape[0]:
            check_features(x, self._column_names, "X", "impute them as in the rows of fit")
        if isinstance(x, np.ndarray):
            return self._predict_dense(x)
        size = max(ENTRIES_AT_ONCE // x.shape[1], SMALLEST_BLOCK)
        starts = range(0, max(x.shape[0], 1), size)
        parts = (x[start : start + size].toarray() for start in starts)
        return np.concatenate([self._predict_dense(part) for part in parts], axis=1)

    def _rows_of(self, x: Any) -> np.ndarray | csr_array:
        """The numbers ``(N, D)`` of rows that have the columns of ``fit``; DataError for others."""
        _check_names(x, self._column_names)
        rows, columns = numbers_of(x), self.states.spec.num_columns
        if rows.ndim != 2 or rows.shape[1] != columns:
            raise DataError(f"X has shape {rows.shape}; expected (N, {columns})")
        return rows

    def _predict_dense(self, x: np.ndarray) -> np.ndarray:
        scaled = [apply_scaler(scaler, x) for scaler in self.scalers]
        for rows in scaled:
            check_new_rows(rows, self._column_names, "X")
        return np.stack([self._predict_rows(seed, rows) for seed, rows in enumerate(scaled)])

    @property
    def _column_names(self) -> tuple[str, ...] | None:
        """The names of the columns; ``None`` without names, or if they are names of groups."""
        return self.unit_names if self.states.spec.groups is None else None

    def _predict_rows(self, seed: int, x: np.ndarray) -> np.ndarray:
        """Outputs ``(N, C)`` of seed number ``seed`` for scaled rows.

        Rows are padded to blocks of a few sizes, so that a new number of rows seldom compiles.
        """
        outputs, structure = [], structure_of(self.method)[0]
        for start in range(0, max(len(x), 1), LARGEST_BLOCK):
            block = x[start : start + LARGEST_BLOCK]
            size = SMALLEST_BLOCK
            while size < len(block):
                size *= 4
            padded = np.pad(block, ((0, size - len(block)), (0, 0)))
            predictions = predict_seed(self.states, np.int32(seed), padded, structure=structure)
            outputs.append(np.asarray(predictions)[: len(block)])
        return np.concatenate(outputs)

    def transform(self, x: np.ndarray, seed: int | None = None) -> np.ndarray:
        """The selected columns of x, in order of importance.

        Args:
          x: ``(N, D)``, dense or sparse; a DataError says if its columns are not those of ``fit``.
          seed: one of ``seeds``; ``None`` takes the first.

        Returns:
          ``(N, K)``, sparse if x is; with groups, all columns of the K groups in their order.
        """
        return self._rows_of(x)[:, self.columns_of(self.selected[place_of(seed, self.seeds)])]

    def columns_of(self, chosen: np.ndarray) -> np.ndarray:
        """The columns of some groups, group by group; without groups, the columns themselves."""
        groups = self.states.spec.groups
        if groups is None:
            return np.asarray(chosen)
        members = [np.flatnonzero(np.asarray(groups) == group) for group in chosen]
        return np.concatenate([np.zeros(0, int), *members])


def place_of(seed: int | None, seeds: Sequence[int]) -> int:
    """The place of a seed, 0 for ``None``; ConfigError for an unknown one."""
    if seed is not None and seed not in seeds:
        raise ConfigError(f"seed={seed} is not a seed of this result; choose from {seeds}")
    return 0 if seed is None else seeds.index(seed)


def _check_names(x: Any, names: Sequence[str] | None) -> None:
    """DataError for a frame with other columns than those of ``fit``, or in another order."""
    given = [str(name) for name in getattr(x, "columns", ())]
    numbered = given == [str(place) for place in range(len(given))]  # numbers from 0 are no names
    if names is None or numbered or given == list(names):
        return
    if sorted(given) == sorted(names):
        raise DataError("X has the columns of fit in another order; put them in that of fit")
    new = [name for name in given if name not in names]
    gone = [name for name in names if name not in given]
    parts = (("not seen in fit", new), ("missing now", gone))
    listed = "; ".join(f"{what}: {name_some(some)}" for what, some in parts if some)
    raise DataError(f"X has other columns than fit ({listed or 'some are repeated'})")


def kept_epochs(method: Method, states: TrainState) -> np.ndarray:
    """``(S,)`` int, the epochs whose states were kept."""
    best = keeps_snapshot(method, states.spec)
    return np.asarray(states.best.epoch if best else states.epoch)


def counted_connections(states: TrainState) -> tuple[tuple[int, ...], np.ndarray | None]:
    """T epochs, and the ``(S, T, D)`` connections of the inputs at them, or ``None``."""
    if isinstance(states.trace, tuple):
        return (), None
    epochs = tuple(epoch for epoch in CONNECTION_EPOCHS if epoch <= states.spec.num_epochs)
    return epochs, states.trace[:, : len(epochs)]
