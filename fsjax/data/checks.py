"""Checks of what the user hands in, made once at the boundary. Each error says what to do."""

import dataclasses
from collections.abc import Sequence
from numbers import Integral

import numpy as np
import pandas as pd
from pandas.api.types import is_complex_dtype, is_numeric_dtype

from fsjax.data.dataset import Dataset
from fsjax.errors import ConfigError, DataError, check_choice
from fsjax.tasks import TASKS

_NAMED = 5
"""How many columns a message names."""


def check_features(X: np.ndarray, feature_names: Sequence[str] | None, where: str) -> None:
    """Check that ``X`` is a non-empty numeric (N, D) table without NaN or infinity.

    The DataError names the columns at fault, at most five, by the D ``feature_names`` if there are
    any, and the table as ``where``.
    """
    if X.ndim != 2:
        raise DataError(f"{where}: X has shape {X.shape}; give a table of (rows, columns)")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataError(f"{where} is empty: {X.shape[0]} rows and {X.shape[1]} feature columns")
    if X.dtype.kind not in "fiub":
        raise DataError(f"{where}: X has type {X.dtype}; give real numbers")
    if X.dtype.kind != "f" or np.isfinite(X).all():
        return
    missing, infinite = np.isnan(X).sum(axis=0), np.isinf(X).sum(axis=0)
    raise DataError(_not_finite(missing, infinite, feature_names, where))


def check_task(dataset: Dataset, task: str) -> Dataset:
    """Check that a data set can serve a task, and return it with the target that task wants.

    Args:
        dataset: any data set.
        task: ``'classification'`` (needs at least 2 classes), ``'regression'`` (needs numbers) or
            ``'reconstruction'`` (needs no target); others are a ConfigError.

    Returns:
        The data set itself; for regression on whole numbers that were read as classes, a copy whose
        ``y`` holds the original numbers as (N,) float32. DataError if the target does not fit.
    """
    check_choice("task", task, TASKS)
    if task == "reconstruction":
        return dataset
    if dataset.y is None:
        raise DataError(
            f"task={task} needs a target, but {dataset.name} has none; give y (data.target in a "
            "config), or choose task=reconstruction"
        )
    if task == "classification":
        _check_classes(dataset)
        return dataset
    return _numeric_target(dataset)


def check_num_features(num_features: int, D: int) -> None:
    """ConfigError unless the number of columns to select is whole and from 1 to ``D``, all of X."""
    if type(num_features) is bool or not isinstance(num_features, Integral) or num_features < 1:
        raise ConfigError(f"num_features={num_features!r}; choose a whole number from 1 to {D}")
    if num_features > D:
        raise ConfigError(f"num_features={num_features} but X has {D} columns; choose at most {D}")


def numeric_columns(frame: pd.DataFrame, where: str) -> tuple[str, ...]:
    """The names of the columns of a frame that holds nothing but numbers and truth values.

    The DataError names the table as ``where``, at most five columns at fault, and what they hold.
    """
    numeric = [is_numeric_dtype(kind) and not is_complex_dtype(kind) for kind in frame.dtypes]
    if not all(numeric):
        bad = frame.loc[:, np.logical_not(numeric)]
        shown = ", ".join(
            f"{str(name)!r} (such as {_first_text(column)!r})"
            for name, column in bad.iloc[:, :_NAMED].items()
        )
        count = bad.shape[1]
        more = f" and {count - _NAMED} more" if count > _NAMED else ""
        raise DataError(
            f"{where} has {count} of {frame.shape[1]} columns that are not numbers: {shown}"
            f"{more}; turn them into numbers (pandas.get_dummies does), drop them, or make one the "
            "target (y, or data.target in a config)"
        )
    return tuple(str(name) for name in frame.columns)


def constant_columns(X_train: np.ndarray) -> np.ndarray:
    """Which columns of (N, D) rows hold one value only; returns (D,) bool."""
    return X_train.min(axis=0) == X_train.max(axis=0)


def name_some(names: Sequence[object]) -> str:
    """Up to five names in quotes, then how many more there are."""
    text = ", ".join(repr(str(name)) for name in names[:_NAMED])
    return text if len(names) <= _NAMED else f"{text} and {len(names) - _NAMED} more"


def _not_finite(
    missing: np.ndarray, infinite: np.ndarray, names: Sequence[str] | None, where: str
) -> str:
    bad = np.flatnonzero(missing + infinite)
    labels = [names[index] if names is not None else f"column {index}" for index in bad]
    found = []
    advice = []
    if missing.any():
        found.append(f"{int(missing.sum())} missing values (NaN)")
        advice.append("fill them (data.impute=mean of a config, or scikit-learn's SimpleImputer)")
    if infinite.any():
        found.append(f"{int(infinite.sum())} infinite values")
        advice.append("replace infinities with numbers")
    return (
        f"{where} has {' and '.join(found)} in {len(bad)} of {len(missing)} columns: "
        f"{name_some(labels)}; {'; '.join(advice)}; or drop these columns or rows"
    )


def _first_text(column: pd.Series) -> str:
    numbers = pd.to_numeric(column, errors="coerce")
    text = column[numbers.isna() & column.notna()]
    return str((text if len(text) else column).iloc[0])


def _check_classes(dataset: Dataset) -> None:
    y = dataset.y
    if not np.issubdtype(y.dtype, np.integer):
        raise DataError(
            f"task=classification needs classes, but the target of {dataset.name} holds "
            f"{len(np.unique(y))} different numbers in {len(y)} rows; "
            "choose task=regression, or give class labels"
        )
    if len(np.unique(y)) < 2:
        raise DataError(
            f"task=classification needs at least 2 classes, but {dataset.name} has one only; "
            "choose another target, or task=reconstruction"
        )
    # Labels read from a table are always 0..C-1; a Dataset made by hand may have gaps below 0.
    if y.min() < 0:
        raise DataError(
            f"{dataset.name}: class numbers start at {int(y.min())}; number them from 0"
        )


def _numeric_target(dataset: Dataset) -> Dataset:
    if not np.issubdtype(dataset.y.dtype, np.integer):
        return dataset
    numbers = dataset.y.astype(np.float32)
    if dataset.class_names is not None:
        try:
            numbers = np.array(list(map(float, dataset.class_names)), np.float32)[dataset.y]
        except ValueError:
            raise DataError(
                f"task=regression needs numbers, but the target of {dataset.name} holds the "
                f"classes {name_some(dataset.class_names)}; choose task=classification"
            ) from None
    return dataclasses.replace(dataset, y=numbers, class_names=None)
