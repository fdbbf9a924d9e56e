"""Checks of the parameters and data of estimators, with messages that name the parameters."""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_class_weight

from fsjax.errors import ConfigError, check_whole, is_number, nearest
from fsjax.tables.checks import (
    check_column_names,
    check_dates,
    check_features,
    check_text,
    numeric_columns,
)
from fsjax.tables.scaling import KINDS
from fsjax.tables.user_arrays import plain_columns

#: Rows ``(N, D)`` of a table: an array, or CSR if the method takes sparse tables.
InputRows: TypeAlias = np.ndarray | csr_array

#: Larger seeds do not fit into PRNG keys.
SEED_LIMIT = 2**31


#: Fitted attributes that name classes and columns.
LABELS = ("classes_", "feature_names_in_")


def number_to_select(number: float | None, num_columns: int, what: str = "columns") -> int:
    """K, from ``n_features_to_select`` and D, the number of columns.

    Args:
      number: a whole number from 1 to D, a share in (0, 1] of the columns (rounded, at least one),
        or ``None`` for half of them, as in ``sklearn.feature_selection.RFE``.
      num_columns: D.
      what: name of the columns in messages.

    Raises:
      ConfigError: for any other number.
    """
    advice = f"choose a whole number from 1 to {num_columns}, or a share in (0, 1]"
    if number is None:
        return max(num_columns // 2, 1)
    whole = isinstance(number, Integral)
    if not is_number(number) or not number > 0 or (number > 1 and not whole):
        raise ConfigError(f"n_features_to_select={number!r}; {advice}")
    if not whole:
        return max(round(number * num_columns), 1)
    if number > num_columns:
        raise ConfigError(
            f"n_features_to_select={number} but X has {num_columns} {what}; choose at most "
            f"{num_columns}"
        )
    return int(number)


def check_frame(X: Any) -> None:
    """DataError, with the names, for columns that share a name or do not hold numbers."""
    check_column_names(X)
    if isinstance(X, pd.DataFrame):
        numeric_columns(plain_columns(X), "X", _holds_numbers)
    elif isinstance(X, np.ndarray):
        check_text(X)
    check_dates(X)


def _holds_numbers(column: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(column):
        try:
            column.to_numpy(float)
        except (TypeError, ValueError):
            return False
    return column.dtype.kind not in "mM"


def check_finite(X: InputRows, estimator: BaseEstimator, where: str = "X") -> None:
    """DataError for missing and infinite values in ``(N, D)``, with the names of the columns."""
    advice = (
        "put an imputer before it: make_pipeline(sklearn.impute.SimpleImputer(), "
        f"{type(estimator).__name__}(...))"
    )
    if where == "validation_data":
        advice = "impute them as in the rows of fit"
    check_features(X, getattr(estimator, "feature_names_in_", None), where, advice)


def check_labels(known: Mapping[str, Any], fitted: Mapping[str, Any]) -> None:
    """ConfigError if a network would continue with other classes or columns than it was trained on.

    Args:
      known: :data:`LABELS` of the network, ``None`` where it has none.
      fitted: those of the new rows.
    """
    for name in LABELS:
        before, now = known[name], fitted.get(name)
        if before is not None and now is not None and not np.array_equal(before, now):
            raise ConfigError(
                f"warm_start=True continues a network with {name}={before.tolist()[:10]}, but the "
                f"new rows have {now.tolist()[:10]}; give the same, or set warm_start=False"
            )


def first_seed(random_state: Any) -> int:
    """The seed ``random_state``, or one drawn from it if it is a NumPy generator or ``None``.

    Raises:
      ConfigError: for anything else, or a seed out of range.
    """
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(SEED_LIMIT))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(SEED_LIMIT))
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not whole or not 0 <= random_state <= SEED_LIMIT:
        raise ConfigError(
            f"random_state={random_state!r}; choose a seed from 0 to {SEED_LIMIT}, a NumPy "
            "generator, or None"
        )
    return int(random_state)


def scaling_of(standardize: bool | str) -> str:
    """The kind of :func:`fsjax.data.fit_scaler` for a parameter; ConfigError for an unknown one."""
    if isinstance(standardize, bool | np.bool_):
        return "standard" if standardize else "none"
    if standardize not in KINDS:
        raise ConfigError(
            f"standardize={standardize!r}; choose True, False, or a scaling by name: "
            f"{nearest(str(standardize), KINDS)}"
        )
    return standardize


def class_weights(class_weight: Any, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Weights ``(C,)`` of the classes.

    Args:
      class_weight: ``'balanced'``, or a weight of at least 0 by class, by default 1.
      classes: ``(C,)`` labels of the classes.
      y: ``(N,)`` numbers of the classes of the training rows.

    Raises:
      ConfigError: for anything else, unknown classes, or fewer than two classes with a weight.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        return compute_class_weight("balanced", classes=np.arange(len(classes)), y=y)
    if not isinstance(class_weight, dict):
        raise ConfigError(
            f"class_weight={class_weight!r}; choose 'balanced', a dictionary of weights by class, "
            "or None"
        )
    known = classes.tolist()
    for label, weight in class_weight.items():
        if label not in known:
            raise ConfigError(f"class_weight has the class {label!r}; y has {known[:10]}")
        if not is_number(weight) or not 0 <= weight < float("inf"):
            raise ConfigError(
                f"class_weight has {weight!r} for the class {label!r}; choose a number from 0"
            )
    weights = np.array([class_weight.get(label, 1.0) for label in known], float)
    if np.count_nonzero(weights) < 2:
        raise ConfigError(
            f"class_weight={class_weight!r} leaves fewer than two classes with a weight; give more "
            "classes a weight above 0"
        )
    return weights


def numbers_of_groups(groups: Any, num_columns: int) -> np.ndarray:
    """The group number of each column ``(D,)``; without groups, its own number.

    Raises:
      ConfigError: unless there is one label for each column.
    """
    if groups is None:
        return np.arange(num_columns)
    labels = np.asarray(groups)
    if labels.shape != (num_columns,):
        raise ConfigError(
            f"groups has shape {labels.shape}; give a label for each of the {num_columns} columns"
        )
    if pd.isna(labels).any():
        raise ConfigError("groups has missing labels; give a column without a group its own label")
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError:
        raise ConfigError("groups has labels of several types; give numbers, or text") from None


def shape_of_images(image_shape: Any, num_columns: int) -> tuple[int, ...] | None:
    """``(H, W)`` or ``(H, W, channels)`` as a tuple; ConfigError if it does not fit the columns."""
    if image_shape is None:
        return None
    shape: tuple[int, ...] = ()
    if isinstance(image_shape, Sequence | np.ndarray) and not isinstance(image_shape, str):
        shape = tuple(check_whole("a size of image_shape", size) for size in image_shape)
    if len(shape) not in (2, 3) or int(np.prod(shape)) != num_columns:
        raise ConfigError(
            f"image_shape={image_shape!r}; choose (height, width) or (height, width, channels) of "
            f"the {num_columns} columns"
        )
    return shape
