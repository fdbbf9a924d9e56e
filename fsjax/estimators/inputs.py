"""What users hand to estimators, checked; messages name the parameters of the estimators."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_sample_weight

from fsjax.errors import ConfigError, check_whole, is_number, nearest
from fsjax.tables.checks import check_features, check_names, check_text, numeric_columns
from fsjax.tables.nullable import plain_columns
from fsjax.tables.scaling import KINDS

#: Rows ``(N, D)`` of a table: an array, or CSR where the method takes sparse tables.
Rows: TypeAlias = np.ndarray | csr_array

#: Larger seeds do not fit into PRNG keys.
SEED_LIMIT = 2**31


def number_to_select(number: float | None, num_columns: int, what: str = "columns") -> int:
    """K, from what ``n_features_to_select`` is, and D, the number of columns or what they are.

    A whole number from 1 to D, a share in (0, 1] of the columns (rounded, at least one), or
    ``None`` for half of them, as in ``sklearn.feature_selection.RFE``; ConfigError for all else.
    """
    advice = f"choose a whole number from 1 to {num_columns}, or a share above 0, at most 1.0"
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
    """DataError, with names, for columns that share one or hold no numbers."""
    check_names(X)
    if isinstance(X, pd.DataFrame):
        numeric_columns(plain_columns(X), "X", _holds_numbers)
    elif isinstance(X, np.ndarray):
        check_text(X)


def _holds_numbers(column: pd.Series) -> bool:
    if not pd.api.types.is_numeric_dtype(column):
        try:
            column.to_numpy(float)
        except (TypeError, ValueError):
            return False
    return column.dtype.kind not in "mM"


def check_finite(X: Rows, estimator: BaseEstimator, where: str = "X") -> None:
    """Refuses missing and infinite values in ``(N, D)``, of an estimator or of validation data.

    DataError tells the columns at fault by name, and what to put before the estimator.
    """
    advice = (
        "put an imputer before it: make_pipeline(sklearn.impute.SimpleImputer(), "
        f"{type(estimator).__name__}(...))"
    )
    if where == "validation_data":
        advice = "impute them as in the rows of fit"
    check_features(X, getattr(estimator, "feature_names_in_", None), where, advice)


def first_seed(random_state: Any) -> int:
    """The seed that ``random_state`` is, or one drawn from it.

    ConfigError for anything but a whole number that fits, a NumPy generator, or ``None``.
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
    """The kind of :func:`fsjax.data.fit_scaler` that is meant; ConfigError for an unknown one."""
    if isinstance(standardize, bool | np.bool_):
        return "standard" if standardize else "none"
    if standardize not in KINDS:
        raise ConfigError(
            f"standardize={standardize!r}; choose True, False, or a scaling by name: "
            f"{nearest(str(standardize), KINDS)}"
        )
    return standardize


def class_weights(class_weight: Any, classes: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Weights ``(N,)`` of rows by the numbers of their classes ``(N,)``, which have labels.

    Given is ``'balanced'``, or at least 0 by class, where classes that are left out weigh 1;
    ConfigError for anything else.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        return compute_sample_weight("balanced", y)
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
            f"class_weight={class_weight!r} leaves fewer than two classes with a weight"
        )
    return weights[y]


def group_numbers(groups: Any, num_columns: int) -> np.ndarray:
    """``(D,)`` the number of each column's group; without groups, of the column.

    ConfigError if there is not one label for each column.
    """
    if groups is None:
        return np.arange(num_columns)
    labels = np.asarray(groups)
    if labels.shape != (num_columns,):
        raise ConfigError(
            f"groups has shape {labels.shape}; give a label for each of the {num_columns} columns"
        )
    if pd.isna(labels).any():
        raise ConfigError(
            "groups has missing labels; a column of no group needs a label of its own"
        )
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError:
        raise ConfigError("groups has labels of several types; give numbers, or text") from None


def shape_of_images(image_shape: Any, num_columns: int) -> tuple[int, ...] | None:
    """``(H, W)`` or ``(H, W, channels)`` as a tuple; ConfigError for all else, or other columns."""
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
