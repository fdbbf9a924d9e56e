"""Reads the data of estimators: rows, targets, weights, validation data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_X_y,
    validate_data,
)

from fsjax.engine.control import Progress
from fsjax.errors import ConfigError, DataError, nearest
from fsjax.estimators import inputs
from fsjax.estimators.inputs import InputRows
from fsjax.registry import Registration, about_of
from fsjax.tables.dataset import CheckedDataset, Dataset
from fsjax.tables.sparse import as_csr, joined_rows, stays_sparse
from fsjax.tables.splits import Split, validation_split
from fsjax.tables.user_arrays import check_masked, check_row_order, plain_columns
from fsjax.tasks import TABLE, Task, name_of
from fsjax.tasks.registry import is_registered, resembled
from fsjax.tasks.targets import numbered, warn_of_numbers


class Reader(BaseEstimator):
    """Base of :class:`fsjax.estimators.base.Selector` that checks data and converts it to arrays.

    Attributes:
      classes_: the labels, for classification; for multilabel ``(L, 2)``, 0 and 1 for each label.
      n_features_in_, feature_names_in_: the columns of ``fit``.
    """

    #: Registration of the method.
    registration: ClassVar[Registration]

    # The parameters that all estimators have; ``__init__`` of each class sets them.
    n_features_to_select: float | None
    task: str | Task
    num_epochs: int
    batch_size: int | None
    n_seeds: int
    random_state: int | np.random.RandomState | np.random.Generator | None
    validation_fraction: float
    validation_data: tuple[ArrayLike, ArrayLike | None] | None
    standardize: bool | str
    class_weight: Mapping[Any, float] | str | None
    early_stopping: int | None
    max_time: float | None
    keep_partial: bool
    warm_start: bool
    callback: Callable[[Progress], Any] | None
    verbose: bool

    classes_: np.ndarray
    n_features_in_: int

    #: Mean and deviation of the targets, if the task scales them.
    _target: tuple[np.ndarray, np.ndarray]

    @property
    def _entry(self) -> Task:
        """The task; an unknown one, which fit reports, counts as classification."""
        try:
            return TABLE[name_of(self.task)]
        except ConfigError:
            return TABLE["classification"]

    @property
    def _has_units(self) -> bool:
        """Whether predictions are turned back into the units and the shape of the targets."""
        return self._entry.target.scale is not None or self._entry.like == "regression"

    def _rows(
        self, X: ArrayLike, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[InputRows, np.ndarray | None, np.ndarray | None]:
        """The rows with a weight above 0, their targets as the network predicts them, weights."""
        entry = self._entry
        check_row_order(X, y=y, sample_weight=sample_weight)
        rows, targets = self._validate(X, y)
        weight = self._weights(rows, targets, sample_weight)
        if weight is not None and not (weight > 0).all():
            kept = weight > 0
            rows, weight = rows[kept], weight[kept]
            if targets is not None:
                targets = self._counted(targets[kept])
        if self._has_units and targets is not None:
            scale = entry.target.scale
            if scale is not None and inputs.scaling_of(self.standardize) != "none":
                self._target = scale(targets)
            else:
                self._target = 0.0 * targets[0], 0.0 * targets[0] + 1.0
            targets = self._scaled(targets)
        return rows, targets, weight

    def _counted(self, targets: np.ndarray) -> np.ndarray:
        """The targets of the rows with a weight above 0, checked again."""
        where = "in the rows with a weight above 0"
        if self._entry.target.classes:
            return self._numbered(self.classes_[targets], f" {where}")
        return self._entry.target.check(targets, None, f"y {where}")[0]

    def _validate(self, X: ArrayLike, y: ArrayLike | None) -> tuple[InputRows, np.ndarray | None]:
        """X as rows, y as an array; for classes, y as their numbers."""
        self._check_task()
        inputs.check_frame(X)
        table, target = plain_columns(X), plain_columns(y)
        check_masked(table, "X")
        check_masked(target, "y")
        checks: dict[str, Any] = {"ensure_all_finite": False, "ensure_min_samples": 2}
        entry = self._entry
        if not entry.target.supervised:
            rows = self._table(table, **checks)
            inputs.check_finite(rows, self)
            return rows, None
        if target is not None and not entry.target.classes:
            target, _ = entry.target.read(target)
        rows, target = self._table(
            table, y=target, multi_output=entry.target.multi_output, **checks
        )
        inputs.check_finite(rows, self)
        if entry.target.classes:
            classes = self._class_numbers(target)
            # With more classes than half of the rows, scikit-learn warns.
            if len(self.classes_) <= len(classes) / 2:
                warn_of_numbers(self.classes_[classes])
            return rows, classes
        numbers = entry.target.check(target, None, "y")[0].astype(np.float64)
        if not np.isfinite(numbers).all():
            raise DataError("y has NaN or infinite values; leave these rows out")
        if entry.outputs.estimator_type == "classifier":
            # One row per label: scikit-learn's scorers take ``(L,)`` for the classes of one target.
            self.classes_ = np.tile([0, 1], (numbers[0].size, 1))
        return rows, numbers

    def _class_numbers(self, labels: np.ndarray) -> np.ndarray:
        """The numbers ``(N,)`` of labels; DataError for missing labels or a continuous target."""
        if labels.dtype.kind in "OMm" and pd.isna(labels).any():
            raise DataError("y has missing labels; leave these rows out")
        try:
            check_classification_targets(labels)
        except ValueError as error:
            advice = "For numbers, choose task='regression' in an estimator that supports it."
            raise DataError(f"{error} {advice}") from None
        return self._numbered(labels)

    def _check_task(self) -> None:
        """ConfigError for a task that the method does not support."""
        task, tasks = self.task, about_of(self.registration).tasks
        known = isinstance(task, Task) or (isinstance(task, str) and is_registered(task))
        if task in tasks or (known and resembled(name_of(task)) in tasks):
            return
        name = type(self).__name__
        raise ConfigError(f"task={task!r} for {name}: {nearest(str(task), tasks)}")

    def _table(self, X: ArrayLike, reset: bool = True, **options: Any) -> Any:
        """``validate_data``, which leaves sparse tables sparse (CSR) if the method takes them."""
        table = plain_columns(X)
        if not about_of(self.registration).sparse or not stays_sparse(table):
            return validate_data(self, table, reset=reset, **options)
        # Names first, as they are lost once a frame is a matrix.
        validate_data(self, table, reset=reset, skip_check_array=True)
        check = check_X_y if "y" in options else check_array
        return check(as_csr(table), accept_sparse="csr", estimator=self, **options)

    def _numbered(self, y: np.ndarray, where: str = "") -> np.ndarray:
        """Numbers of the labels, which become ``classes_``."""
        self.classes_, numbers = numbered(y)
        if len(self.classes_) < 2:
            raise DataError(f"y holds one class only{where}; give at least two")
        return numbers.astype(np.int32)

    def _scaled(self, y: np.ndarray) -> np.ndarray:
        """Targets as the network predicts them."""
        mean, deviation = self._target
        return ((y - mean) / deviation).astype(np.float32)

    def _weights(
        self, X: InputRows, y: np.ndarray | None, sample_weight: ArrayLike | None
    ) -> np.ndarray | None:
        weight = None
        if sample_weight is not None:
            try:
                weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            except (TypeError, ValueError) as error:
                raise DataError(f"sample_weight: {error}; give a number for each row") from None
        if self.class_weight is None:
            return weight
        if y is None or not self._entry.target.classes:
            raise ConfigError(f"class_weight={self.class_weight!r} needs task='classification'")
        by_class = inputs.class_weights(self.class_weight, self.classes_, y)[y]
        return by_class if weight is None else weight * by_class

    def _data(
        self, X: InputRows, y: np.ndarray | None, weight: np.ndarray | None, seed: int
    ) -> tuple[Dataset, Split, np.ndarray | None]:
        """The table, training and validation rows, and the weights of all rows."""
        rows = X.shape[0]
        if self.validation_data is None:
            strata = None if y is None else self._entry.target.strata(y)
            train, valid = validation_split(rows, self.validation_fraction, seed, strata)
        else:
            X, y, weight = self._with_validation_data(X, y, weight)
            train, valid = np.arange(rows), np.arange(rows, X.shape[0])
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else tuple(map(str, names))
        shape = inputs.shape_of_images(getattr(self, "image_shape", None), self.n_features_in_)
        dataset = CheckedDataset("table", X, y, feature_names=names, image_shape=shape)
        return dataset, Split(train, valid, np.zeros(0, np.int32)), weight

    def _with_validation_data(
        self, X: InputRows, y: np.ndarray | None, weight: np.ndarray | None
    ) -> tuple[InputRows, np.ndarray | None, np.ndarray | None]:
        validation_data = self.validation_data
        if not isinstance(validation_data, tuple | list) or len(validation_data) != 2:
            raise ConfigError(
                "validation_data is not a pair; give (X, y), where y is None for reconstruction"
            )
        check_row_order(validation_data[0], "the X of validation_data", y=validation_data[1])
        try:
            X_valid = self._table(validation_data[0], reset=False, ensure_all_finite=False)
        except ValueError as error:
            raise DataError(f"validation_data: {error}") from None
        rows = joined_rows(X, X_valid, ("X", "validation_data"))
        inputs.check_finite(X_valid, self, "validation_data")
        entry, of_valid = self._entry, np.ones(X_valid.shape[0])
        if y is not None:
            y_valid = (
                _one_label_per_row(validation_data[1])
                if entry.target.classes
                else entry.target.read(validation_data[1])[0]
            )
            if y_valid.shape[:1] != X_valid.shape[:1] or (
                entry.target.classes and y_valid.ndim > 1
            ):
                raise DataError(
                    f"validation_data has {X_valid.shape[0]} rows in X and a y of shape "
                    f"{y_valid.shape}; give one target for each row"
                )
            if entry.target.classes:
                unknown = np.setdiff1d(y_valid, self.classes_)
                if len(unknown):
                    raise DataError(f"validation_data has classes that y lacks: {unknown[:5]}")
                y_valid = np.searchsorted(self.classes_, y_valid).astype(np.int32)
                if self.class_weight is not None:
                    of_valid = inputs.class_weights(self.class_weight, self.classes_, y)[y_valid]
            else:
                y_valid, _ = entry.target.check(y_valid, None, "validation_data")
                y_valid = y_valid.astype(np.float64).reshape(-1, *y.shape[1:])
                if self._has_units:
                    y_valid = self._scaled(y_valid)
            y = np.concatenate([y, y_valid.astype(y.dtype)])
        if weight is not None:
            weight = np.concatenate([weight, of_valid])
        return rows, y, weight


def _one_label_per_row(y: Any) -> np.ndarray:
    """The labels ``(N,)`` of ``(N,)`` or ``(N, 1)``; others as they are, for the check of rows."""
    labels = np.asarray(y)
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
