"""``Dataset``, which every loader returns: a table and what is known about it."""

import functools
import math
from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.sparse import issparse

from fsjax.errors import DataError, check_whole
from fsjax.tables.base import RawTable, Table, as_table
from fsjax.tables.sparse import canonical
from fsjax.tables.splits import PaperSettings
from fsjax.tables.streamed import StreamedTable, streamed_if_large
from fsjax.tables.user_arrays import check_masked


def default_names(num_columns: int) -> tuple[str, ...]:
    """``x0``, ``x1``, ...: the names of columns that have none."""
    return tuple(f"x{index}" for index in range(num_columns))


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table of samples by features, and what is known about it.

    Attributes:
        name: the registered name, or the file name of the user's own table.
        X: (N, D) float32, float64 where float32 is too coarse for a column, or a compact integer
            type (cast it before arithmetic). Never NaN or infinite if it comes from
            :func:`fsjax.data.load`. Sparse tables of any SciPy format become a
            ``scipy.sparse.csr_array``. A table whose rows are read while they are used is a
            :class:`fsjax.tables.streamed.StreamedTable`; a ``numpy.memmap`` or an array of another
            library (h5py, zarr, Dask) becomes one if it takes more than half of the free memory.
        y: (N,) int32 classes numbered from 0, or (N,) or (N, C) floats, or None.
            ``fsjax.tasks`` says what each task takes; for survival, time and event.
        feature_names: D names, or None.
        class_names: one name per class, in the order of the class numbers, or None.
        official_split: (N,) uint8, 0 for training rows and 1 for test rows, or None.
        image_shape: ``(H, W)`` or ``(H, W, C)`` where a row is an image, or None.
        image_order: ``'C'`` when rows hold pixels line by line, ``'F'`` column by column.
        informative: for generated data, the columns that carry the signal (informative and
            redundant ones), ascending; None where it is not known.
        source: where the data came from, one line.
        paper: how the papers split and scale it, for ``split='paper'`` and ``scaling='paper'``.

    Raises:
        DataError: if the lengths of the parts do not agree, if column names are repeated, or if a
            part is not an array or has masked values.
        ConfigError: if a size of ``image_shape`` is not a whole number above 0.
    """

    name: str
    X: RawTable
    y: np.ndarray | None
    feature_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    official_split: np.ndarray | None = None
    image_shape: tuple[int, ...] | None = None
    image_order: Literal["C", "F"] = "C"
    informative: tuple[int, ...] | None = None
    source: str = ""
    paper: PaperSettings = PaperSettings()

    def __post_init__(self) -> None:
        # Assignment is refused because the class is frozen.
        X = canonical(streamed_if_large(self.X), f"X of {self.name}")
        object.__setattr__(self, "X", X)
        for label, part in (("X", self.X), ("y", self.y), ("official_split", self.official_split)):
            _check_array(part, f"{label} of {self.name}")
        if self.y is not None and self.y.dtype == bool:
            object.__setattr__(self, "y", self.y.astype(np.int32))
        if self.X.ndim != 2:
            raise DataError(
                f"{self.name}: X has shape {self.X.shape}; give a table of (rows, columns)"
            )
        rows, columns = self.X.shape
        for label, part in (("official_split", self.official_split), ("y", self.y)):
            if part is None:
                continue
            # y may hold several numeric targets.
            several = label == "y" and part.dtype.kind == "f" and part.ndim == 2 and part.shape[1]
            shape = (rows, part.shape[1]) if several else (rows,)
            if part.shape != shape:
                raise DataError(
                    f"{self.name}: {label} has shape {part.shape}, expected {shape}, "
                    f"one value per row of X {self.X.shape}"
                )
        if self.official_split is not None and not np.isin(self.official_split, (0, 1)).all():
            raise DataError(
                f"{self.name}: official_split holds {np.unique(self.official_split)[:5]}; give 0 "
                "for training and 1 for test rows"
            )
        if self.feature_names is not None:
            self._check_feature_names(self.feature_names)
        if self.class_names is not None and len(self.class_names) < self.num_classes:
            raise DataError(
                f"{self.name}: {len(self.class_names)} class names for {self.num_classes} classes; "
                "give one name per class"
            )
        if self.image_shape is None:
            return
        sizes = tuple(check_whole("a size of image_shape", size) for size in self.image_shape)
        object.__setattr__(self, "image_shape", sizes)
        if math.prod(sizes) != columns:
            raise DataError(
                f"{self.name}: image_shape={self.image_shape} does not hold {columns} columns"
            )

    def _check_feature_names(self, names: tuple[str, ...]) -> None:
        if len(names) != self.num_features:
            raise DataError(
                f"{self.name}: {len(names)} feature names for {self.num_features} columns; give "
                "one name per column"
            )
        if len(set(names)) < self.num_features:
            repeated = [name for name, count in Counter(names).items() if count > 1]
            raise DataError(f"{self.name}: several columns are called {repeated[0]!r}; rename them")

    def __repr__(self) -> str:
        target = "no target"
        if self.y is not None:
            target = f"{self.num_classes} classes" if self.num_classes else "a numeric target"
        return (
            f"Dataset({self.name!r}, {self.num_samples} rows, {self.num_features} columns, "
            f"{target}, source={self.source!r})"
        )

    @functools.cached_property
    def table(self) -> Table:
        """X through the common interface of all forms of tables."""
        return as_table(self.X)

    @property
    def num_samples(self) -> int:
        """Number of rows, N."""
        return int(self.X.shape[0])

    @property
    def num_features(self) -> int:
        """Number of columns, D."""
        return int(self.X.shape[1])

    @property
    def num_classes(self) -> int:
        """Number of classes; 0 without a target or with a numeric (regression) one."""
        if self.y is None or not np.issubdtype(self.y.dtype, np.integer):
            return 0
        return int(self.y.max()) + 1

    @property
    def column_names(self) -> tuple[str, ...]:
        """D names: ``feature_names``, or ``x0``, ``x1``, ... where the data has none."""
        if self.feature_names is not None:
            return self.feature_names
        return default_names(self.num_features)

    def as_image(self, values: np.ndarray) -> np.ndarray:
        """Arrange one value per column, (D,), on the pixel grid ``image_shape``.

        DataError if the data set has no such grid.
        """
        if self.image_shape is None:
            raise DataError(
                f"{self.name} is not an image data set: it has no image_shape; load an image data "
                "set, or give image_shape"
            )
        return np.asarray(values).reshape(self.image_shape, order=self.image_order)


def _check_array(part: object, where: str) -> None:
    """DataError unless a part is a real array without masked values."""
    absent = part is None and not where.startswith("X ")
    if absent or issparse(part) or isinstance(part, StreamedTable):
        return
    if not isinstance(part, np.ndarray):
        raise DataError(f"{where} is of the type {type(part).__name__}; give a NumPy array")
    check_masked(part, where)
    if not where.startswith("X ") and part.dtype.kind not in "iufb":
        raise DataError(
            f"{where} has the type {part.dtype}; give numbers (fsjax.data.as_dataset takes labels)"
        )


class CheckedDataset(Dataset):
    """A data set whose target has been checked for its task, and may have been scaled since."""
