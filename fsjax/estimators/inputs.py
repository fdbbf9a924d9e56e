"""What users hand to estimators, checked; messages name the parameters of the estimators."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from fsjax.data.checks import name_some
from fsjax.errors import ConfigError, DataError, is_number


def number_to_select(given: float | None, num_columns: int, what: str = "columns") -> int:
    """K, from what ``n_features_to_select`` is, and D, the number of columns or what they are.

    A whole number from 1 to D, a share in (0, 1] of the columns (rounded, at least one), or
    ``None`` for half of them, as in ``sklearn.feature_selection.RFE``; ConfigError for all else.
    """
    advice = f"choose a whole number from 1 to {num_columns}, or a share above 0, at most 1.0"
    if given is None:
        return max(num_columns // 2, 1)
    if not is_number(given):
        raise ConfigError(f"n_features_to_select={given!r}; {advice}")
    whole = isinstance(given, Integral)
    if not given > 0 or (given > 1 and not whole):
        raise ConfigError(f"n_features_to_select={given}; {advice}")
    if not whole:
        return max(round(given * num_columns), 1)
    if given > num_columns:
        raise ConfigError(
            f"n_features_to_select={given} but X has {num_columns} {what}; choose at most "
            f"{num_columns}"
        )
    return int(given)


def check_frame(X: Any) -> None:
    """Refuses pandas frames with columns that are no numbers, or of one name.

    Raises:
      DataError: naming the columns.
    """
    if not isinstance(X, pd.DataFrame):
        return
    twice = X.columns[X.columns.duplicated()].unique()
    if len(twice):
        raise DataError(f"X has several columns called {name_some(twice)}; rename them")
    bad = [name for name, column in X.items() if not _holds_numbers(column)]
    if bad:
        raise DataError(
            f"X has {len(bad)} columns that hold no numbers ({name_some(bad)}); encode them, for "
            "example with pandas.get_dummies, or drop them"
        )


def _holds_numbers(column: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(column):
        try:
            column.to_numpy(float)
        except (TypeError, ValueError):
            return False
    return column.dtype.kind not in "mM"


def target_scale(y: np.ndarray, standardize: bool) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation ``(C,)`` or ``()`` of targets; 0 and 1 where they stay."""
    mean, deviation = y.mean(axis=0, dtype=np.float64), y.std(axis=0, dtype=np.float64)
    if not standardize:
        return np.zeros_like(mean), np.ones_like(deviation)
    return mean, np.where(deviation > 0, deviation, 1.0)


def check_finite(X: np.ndarray, estimator: Any, validates: bool = False) -> None:
    """Refuses missing and infinite values in ``(N, D)``, of an estimator or of validation data.

    DataError tells the columns at fault by name, and what to put before the estimator.
    """
    if X.dtype.kind != "f" or np.isfinite(X.sum(dtype=np.float64)) or np.isfinite(X).all():
        return
    missing, infinite = np.isnan(X).any(axis=0), np.isinf(X).any(axis=0)
    bad = np.flatnonzero(missing | infinite)
    names = getattr(estimator, "feature_names_in_", range(X.shape[1]))
    told = " and ".join(
        name for name, found in (("NaN", missing), ("infinity", infinite)) if found.any()
    )
    advice = (
        "put an imputer before it: make_pipeline(sklearn.impute.SimpleImputer(), "
        f"{type(estimator).__name__}(...)), or drop these columns or rows"
    )
    if validates:
        advice = "impute them as in the rows of fit"
    if infinite.any():
        advice = "replace infinite values by numbers or NaN; for NaN, " + advice
    where = "validation_data" if validates else "X"
    columns = f"{len(bad)} of {X.shape[1]} columns: {name_some([names[index] for index in bad])}"
    raise DataError(f"{where} contains {told} in {columns}; {advice}")


def validation_split(
    rows: int, fraction: float, seed: int, classes: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows that train and of those that validate; none where that is below one row.

    Args:
      rows: how many there are.
      fraction: share of them that validates, in [0, 1).
      seed: of the draw.
      classes: ``(rows,)``, kept in proportion where each has two rows and both parts are as large
        as the number of classes; every class keeps rows that train.

    Raises:
      ConfigError: if the share is outside [0, 1).
    """
    if not is_number(fraction) or not 0 <= fraction < 1:
        raise ConfigError(
            f"validation_fraction={fraction!r}; choose a share from 0 (no validation) to below 1"
        )
    everything = np.arange(rows)
    count = min(int(rows * fraction), rows - 1)
    if count < 1:
        return everything, everything[:0]
    kept, number = np.zeros(0, int), np.array([rows])
    if classes is not None:
        _, kept, number = np.unique(classes, return_index=True, return_counts=True)
    if number.min() >= 2 and min(count, rows - count) >= len(number):
        parts = train_test_split(everything, test_size=count, random_state=seed, stratify=classes)
        return tuple(map(np.sort, parts))
    # One row of every class trains, whatever is drawn.
    others = np.random.default_rng(seed).permutation(np.setdiff1d(everything, kept))
    valid = np.sort(others[:count])
    return np.setdiff1d(everything, valid), valid
