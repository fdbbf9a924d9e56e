"""Importance of columns beside all others, tested on rows that the model has not seen.

:func:`conditional_importance` draws a column anew given the others, and keeps the model (CFI;
Chamma, Engemann and Thirion, NeurIPS 2023). :func:`loco_importance` leaves a column out, and fits
the model again (LOCO; Lei et al., JASA 2018). Both ask by how much the loss grows on test rows.

The losses of rows are skewed, so that the smallest p values are too small: of the columns that a
linear model of 200 columns and 333 rows finds at a false discovery rate of 0.1 on 167 test rows, 11
to 17 % were false (CFI, ``docs/tables/discoveries.md``). ``fsjax.select`` and
``fsjax.false_discoveries`` keep the rate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf

from fsjax.arguments import Positive, check
from fsjax.errors import DataError

#: From a fitted model, ``(n, D)`` rows and their targets to ``(n,)`` losses. The rows are a pandas
#: frame of the same column names where the test rows are a frame.
RowLoss = Callable[[Any, Any, np.ndarray], ArrayLike]

#: Added to the variances, so that columns which repeat others have a regression, too.
_RIDGE = 1e-6

#: Losses relative to their mean below which differences are rounding.
_ROUNDING = 1e-12


class ImportanceTest(NamedTuple):
    """Importance of D columns beside all others.

    Attributes:
      importances: ``(D,)``, by how much the mean loss grows; negative where it falls.
      standard_errors: ``(D,)``, over test rows, or groups of them.
      p_values: ``(D,)`` of one-sided t tests that the loss does not grow; 1 where no loss changes.
      q_values: ``(D,)``, the false discovery rate of all columns with a p value at most this one,
        by Benjamini and Hochberg.
    """

    importances: np.ndarray
    standard_errors: np.ndarray
    p_values: np.ndarray
    q_values: np.ndarray


def row_loss(model: Any, X: ArrayLike, y: np.ndarray) -> np.ndarray:
    """Logarithmic loss of a classifier's ``predict_proba``, else the squared error, ``(n,)``.

    Raises:
      DataError: for a class that the classifier has not seen, or another number of outputs.
    """
    if not hasattr(model, "predict_proba"):
        # Predictions of one output may be (n, 1), which (n,) would broadcast to (n, n).
        predicted = np.reshape(model.predict(X), (len(y), -1)).astype(float)
        target = np.reshape(y, (len(y), -1)).astype(float)
        if predicted.shape != target.shape:
            raise DataError(
                f"the model predicts {predicted.shape[1]} outputs, but y_test has "
                f"{target.shape[1]}; give the targets of fit"
            )
        return np.square(predicted - target).sum(axis=1)
    if np.ndim(y) != 1:
        raise DataError(f"y_test has shape {np.shape(y)}; give one class per row, or another loss")
    classes = list(model.classes_)
    if unknown := sorted(set(np.asarray(y).tolist()) - set(classes)):
        raise DataError(f"the model does not know the classes {unknown} of the test rows")
    known = {label: index for index, label in enumerate(classes)}
    probabilities = np.asarray(model.predict_proba(X), float)
    own = probabilities[np.arange(len(y)), [known[label] for label in np.asarray(y).tolist()]]
    return -np.log(np.maximum(own, np.finfo(float).eps))


def conditional_importance(
    model: Any,
    X_train: ArrayLike,
    X_test: ArrayLike,
    y_test: ArrayLike,
    *,
    loss: RowLoss = row_loss,
    num_draws: int = 10,
    groups: ArrayLike | None = None,
    seed: int = 0,
) -> ImportanceTest:
    """Conditional feature importance: how much a fitted model loses when a column is drawn anew.

    A column is the sum of what the others tell about it, by a linear regression, and of a residual;
    the residuals are permuted among the test rows. All regressions come from one inverse of the
    covariance of ``X_train`` (Ledoit and Wolf's). ``num_draws * n * D`` numbers are held in memory.

    The p values test the losses of rows, as in the paper; draws are averaged, and more of them do
    not make a column more certain. They hold for columns whose dependence on the others is linear,
    and for a model that was fitted without the test rows.

    Args:
      model: fitted; what ``loss`` needs, by default ``predict_proba`` or ``predict``.
      X_train: ``(m, D)`` finite numbers, from which the dependence of the columns is estimated.
      X_test: ``(n, D)``, at least 3 rows that the model has not seen.
      y_test: ``(n,)`` their targets, or ``(n, 1)``; ``(n, C)`` if the loss takes several.
      loss: of each row.
      num_draws: permutations of each column, at least 1.
      groups: ``(n,)`` labels of test rows that depend on each other; the test is over groups.
      seed: of the permutations.

    Raises:
      DataError: for shapes or columns that do not match, values or losses that are not finite, or
        fewer than 3 rows or groups.
      ConfigError: for ``num_draws`` below 1.
    """
    check(Positive, num_draws=num_draws)
    X_train, X, y, units = _checked(X_train, X_test, y_test, groups)
    names = _names(X_test)
    shift, scale = X_train.mean(axis=0), X_train.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    covariance, _ = ledoit_wolf((X_train - shift) / scale, assume_centered=True)
    precision = np.linalg.inv(covariance + _RIDGE * np.eye(len(covariance)))
    residuals = (X - shift) / scale @ precision / np.diag(precision) * scale
    drawn, targets = np.tile(X, (num_draws, 1)), np.concatenate([y] * num_draws)
    # Of as many rows as those after a draw, because sums in float32 depend on the number of rows.
    before = _losses(loss, model, _named(drawn, names), targets)
    differences = np.empty((X.shape[1], len(y)))
    for column, residual in enumerate(residuals.T):
        rng = np.random.default_rng((seed, column))
        rows = np.concatenate([rng.permutation(len(y)) for _ in range(num_draws)])
        own = drawn[:, column].copy()
        drawn[:, column] += residual[rows] - np.tile(residual, num_draws)
        after = _losses(loss, model, _named(drawn, names), targets)
        drawn[:, column] = own
        differences[column] = (after - before).reshape(num_draws, -1).mean(axis=0)
    return _test(differences, before, units)


def loco_importance(
    model: Any,
    X_train: ArrayLike,
    y_train: ArrayLike,
    X_test: ArrayLike,
    y_test: ArrayLike,
    *,
    loss: RowLoss = row_loss,
    groups: ArrayLike | None = None,
) -> ImportanceTest:
    """Leave one covariate out: how much worse a model predicts that is fitted without a column.

    A clone of ``model`` is fitted to all columns, and one to all but each; D + 1 fits in all. The
    p values are those of the two fitted models on the test rows (Lei et al. 2018, section 6), here
    by a t test.

    Args:
      model: with the interface of scikit-learn; it is cloned.
      X_train: ``(m, D)`` finite numbers, at least 2 columns.
      y_train: ``(m,)`` targets, in a form that ``y_test`` may have.
      X_test: ``(n, D)``, at least 3 rows.
      y_test: ``(n,)`` their targets, or ``(n, 1)``; ``(n, C)`` if the loss takes several.
      loss: of each row.
      groups: ``(n,)`` labels of test rows that depend on each other; the test is over groups.

    Raises:
      DataError: for shapes or columns that do not match, values or losses that are not finite,
        fewer than 3 rows or groups, or fewer than 2 columns.
    """
    X_train, X, y, units = _checked(X_train, X_test, y_test, groups)
    y_train = _targets(y_train)
    if len(y_train) != len(X_train):
        raise DataError(f"X_train has {len(X_train)} rows, y_train {len(y_train)}")
    if X.shape[1] < 2:
        raise DataError("X_train has one column; leaving it out leaves none")
    names = _names(X_test)

    def losses(columns: np.ndarray) -> np.ndarray:
        own = None if names is None else names[columns]
        fitted = clone(model).fit(_named(X_train[:, columns], own), y_train)
        return _losses(loss, fitted, _named(X[:, columns], own), y)

    columns = np.arange(X.shape[1])
    before = losses(columns)
    differences = np.stack([losses(np.delete(columns, column)) - before for column in columns])
    return _test(differences, before, units)


def _losses(loss: RowLoss, model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """The checked losses ``(n,)`` of the rows."""
    values = np.asarray(loss(model, X, y), float)
    if values.shape != (len(y),):
        raise DataError(f"loss returned shape {values.shape}; return one for each of {len(y)} rows")
    if not np.isfinite(values).all():
        raise DataError(
            f"{np.sum(~np.isfinite(values))} of {len(y)} losses are not finite; leave out rows "
            "without a target, and check what the model predicts"
        )
    return values


def _targets(y: ArrayLike) -> np.ndarray:
    """Targets as an array, ``(n,)`` if they are one column of a table."""
    values = np.asarray(y)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _names(X: Any) -> np.ndarray | None:
    """Names of the columns of a frame, so that models which know them are given them."""
    return np.asarray(X.columns) if hasattr(X, "columns") else None


def _named(X: np.ndarray, names: np.ndarray | None) -> Any:
    return X if names is None else pd.DataFrame(X, columns=names, copy=False)


def _checked(
    X_train: ArrayLike, X_test: ArrayLike, y_test: ArrayLike, groups: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Both tables as float64 ``(m, D)`` and ``(n, D)``, the targets, and a unit of each row."""
    train, test, y = np.asarray(X_train, float), np.asarray(X_test, float), _targets(y_test)
    if train.ndim != 2 or test.ndim != 2 or train.shape[1] != test.shape[1] or not train.size:
        raise DataError(
            f"X_train and X_test have shapes {train.shape} and {test.shape}; give two tables with "
            "the same columns"
        )
    names, others = _names(X_train), _names(X_test)
    if names is not None and others is not None and list(names) != list(others):
        raise DataError("X_test has other columns than X_train, or in another order; align them")
    if not (np.isfinite(train).all() and np.isfinite(test).all()):
        raise DataError("X_train or X_test has missing or infinite values; impute them first")
    units = np.arange(len(test)) if groups is None else np.asarray(groups)
    if len(y) != len(test) or len(units) != len(test):
        raise DataError(f"X_test has {len(test)} rows, y_test {len(y)}, groups {len(units)}")
    units = np.unique(units, return_inverse=True)[1].ravel()
    if len(test) == 0 or units.max() < 2:
        kind = "rows" if groups is None else "groups of rows"
        raise DataError(f"X_test has fewer than 3 {kind}, which cannot be tested")
    return train, test, y, units


def _test(differences: np.ndarray, before: np.ndarray, units: np.ndarray) -> ImportanceTest:
    """Tests differences of losses ``(D, n)``; rows of a unit count together."""
    number = units.max() + 1
    # What each unit adds to the mean over rows, so that units of more rows count more.
    sums = np.stack([np.bincount(units, row, number) for row in differences]) * number / len(units)
    means = sums.mean(axis=1)
    errors = sums.std(axis=1, ddof=1) / np.sqrt(number)
    changed = np.abs(differences).max(axis=1) > _ROUNDING * max(np.abs(before).max(), 1e-300)
    statistic = means / np.where(errors > 0, errors, 1.0)
    statistic = np.where(errors > 0, statistic, np.where(means > 0, np.inf, -np.inf))
    p_values = np.where(changed, stats.t.sf(statistic, number - 1), 1.0)
    q_values = stats.false_discovery_control(p_values)
    return ImportanceTest(np.where(changed, means, 0.0), errors, p_values, q_values)
