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
    """Check that ``X`` is a non-empty numeric table without NaN or infinity.

    Args:
        X: what was given, meant to be (N, D).
        feature_names: D names for the message, or None.
        where: the name of the table, for the message.

    Raises:
        DataError: naming the columns at fault, at most five of them.
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
            ``'reconstruction'`` (needs no target).

    Returns:
        The data set itself; for regression on whole numbers that were read as classes, a copy
        whose ``y`` holds the original numbers as (N,) float32.

    Raises:
        ConfigError: for an unknown task.
        DataError: if the target does not fit the task.
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
    """Check the number of columns to select against the number there are.

    Args:
        num_features: how many columns are wanted, 1 to ``D``.
        D: how many columns X has.

    Raises:
        ConfigError: if it is no whole number, below 1, or above ``D``.
    """
    whole = isinstance(num_features, Integral) and not isinstance(num_features, bool)
    if not whole or num_features < 1:
        raise ConfigError(f"num_features={num_features!r}; choose a whole number from 1 to {D}")
    if num_features > D:
        raise ConfigError(f"num_features={num_features} but X has {D} columns; choose at most {D}")


def numeric_columns(frame: pd.DataFrame, where: str) -> tuple[str, ...]:
    """The names of the columns of a frame that holds nothing but numbers and truth values.

    Args:
        frame: N rows and D columns.
        where: the name of the table, for the message.

    Raises:
        DataError: naming the columns at fault, at most five of them, and what they hold.
    """
    bad = [
        index
        for index, kind in enumerate(frame.dtypes)
        if not is_numeric_dtype(kind) or is_complex_dtype(kind)
    ]
    if bad:
        shown = ", ".join(
            f"{str(frame.columns[index])!r} (such as {_first_text(frame.iloc[:, index])!r})"
            for index in bad[:_NAMED]
        )
        more = f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
        raise DataError(
            f"{where} has {len(bad)} of {frame.shape[1]} columns that are not numbers: {shown}"
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
    if dataset.class_names is None:
        numbers = dataset.y.astype(np.float32)
    else:
        try:
            originals = np.array([float(name) for name in dataset.class_names], np.float32)
        except ValueError:
            raise DataError(
                f"task=regression needs numbers, but the target of {dataset.name} holds the "
                f"classes {name_some(dataset.class_names)}; choose task=classification"
            ) from None
        numbers = originals[dataset.y]
    return dataclasses.replace(dataset, y=numbers, class_names=None)
