"""The SVM protocol: accuracy of a support vector machine on only the selected columns."""

from __future__ import annotations

from typing import Final

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from fsjax.arguments import NonNegative, check
from fsjax.errors import ConfigError, DataError
from fsjax.tables.dataset import Dataset
from fsjax.tables.splits import Split

#: Advice for a data set that the protocol cannot evaluate.
NEEDS_CLASSES: Final = (
    "the SVM protocol needs class labels; leave 'svm' out of evaluation.protocols"
)

#: Megabytes for rows of the kernel, which affect the time but not the result.
CACHE_SIZE: Final = 1000


def svm_accuracy(
    dataset: Dataset,
    split: Split,
    columns: np.ndarray,
    *,
    noise_std: float = 0.0,
    seed: int = 42,
) -> float:
    """Test accuracy of scikit-learn's default SVM on some columns (WAST, A.2 and its code).

    ``SVC()`` (RBF kernel, C = 1, ``gamma='scale'``) is trained on the training and validation rows
    together. Each column is standardised by its mean and standard deviation in these rows; columns
    that are constant there are only centred.

    Args:
      dataset: a data set with classes.
      split: the rows; those of ``train`` and ``valid`` are sorted for training.
      columns: ``(K,)`` different column numbers; their order does not matter.
      noise_std: standard deviation, at least 0, of Gaussian noise on the standardised training
        rows (WAST, appendix G; 0.2 to 0.8 there). Test rows have no noise.
      seed: of the noise. Each column has its own stream, so that its noise does not depend on
        the other columns.

    Returns:
      The accuracy in percent of the test rows.

    Raises:
      DataError: if the data set has no classes, or only one in the training rows, or if there are
        no test rows.
      ConfigError: for columns that do not exist or are repeated, an empty selection, or a negative
        ``noise_std``.
    """
    check(NonNegative, noise_std=noise_std)
    if dataset.y is None or not dataset.num_classes:
        kind = "no target" if dataset.y is None else "a numeric target"
        raise DataError(f"{dataset.name} has {kind}; {NEEDS_CLASSES}")
    columns = _checked(columns, dataset.num_features)
    if not len(split.test):
        raise DataError(f"the split of {dataset.name} has no test rows; give at least one")
    rows = np.sort(np.concatenate([split.train, split.valid]))
    y = dataset.y[rows]
    if np.unique(y).size < 2:
        raise DataError(
            f"the {len(rows)} training rows of {dataset.name} have only one class; give more rows, "
            "or choose data.split=stratified"
        )
    scaler = StandardScaler()
    x = scaler.fit_transform(_rows(dataset, rows, columns))
    if noise_std > 0:
        x += noise_std * _noise(len(rows), columns, seed)
    model = SVC(cache_size=CACHE_SIZE).fit(x, y)
    x_test = scaler.transform(_rows(dataset, split.test, columns))
    return 100.0 * float(np.mean(model.predict(x_test) == dataset.y[split.test]))


def _checked(columns: np.ndarray, num_columns: int) -> np.ndarray:
    """The columns in ascending order, so that the result depends only on the set."""
    columns = np.sort(np.asarray(columns))
    if columns.ndim != 1 or columns.size == 0 or columns.dtype.kind not in "iu":
        raise ConfigError(
            f"columns of shape {columns.shape} and type {columns.dtype}; give (K,) column numbers"
        )
    if columns[0] < 0 or columns[-1] >= num_columns:
        raise ConfigError(
            f"columns from {columns[0]} to {columns[-1]}, but X has {num_columns}; choose from 0 "
            f"to {num_columns - 1}"
        )
    if (repeated := columns[1:][columns[1:] == columns[:-1]]).size:
        raise ConfigError(f"columns has {repeated[0]} twice; give each column once")
    return columns


def _rows(dataset: Dataset, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return dataset.table.block(rows, columns).astype(np.float64)


def _noise(num_rows: int, columns: np.ndarray, seed: int) -> np.ndarray:
    """Standard normal noise ``(num_rows, K)``."""
    streams = (np.random.default_rng((seed, int(column))) for column in columns)
    return np.stack([stream.standard_normal(num_rows) for stream in streams], axis=1)
