"""Extraneous columns for a real table, as in the benchmark of Cherepanova et al. (2023)."""

from itertools import count, islice

import numpy as np

from fsjax.errors import ConfigError, DataError, check_choice
from fsjax.tables.dataset import Dataset

#: Kinds of extra columns.
EXTRA = ("random", "corrupted", "second_order")

#: Weight of the noise in corrupted columns.
CORRUPTION = 0.5


def add_columns(dataset: Dataset, kind: str, share: float = 0.5, seed: int = 0) -> Dataset:
    """Append extra columns to a table; its original columns become its ``informative`` ones.

    Cherepanova et al., "A Performance-Driven Benchmark for Feature Selection in Tabular Deep
    Learning" (NeurIPS 2023), section 3.1.

    Args:
        dataset: a dense table.
        kind: ``'random'``, standard normal; ``'corrupted'``, halfway between one of its columns
            and Gaussian noise of the same deviation; ``'second_order'``, products of two of its
            columns.
        share: of the extra columns in the new table, in (0, 1); their number is rounded down.
        seed: of the random columns.

    Returns:
        A data set with float32 ``X``.

    Raises:
        ConfigError: for an unknown kind or a share outside (0, 1).
        DataError: for a table that is sparse or on disk.

    Examples:
      >>> wider = fsjax.data.add_columns(data, "random", share=0.5, seed=0)
      >>> print(data.num_features, wider.num_features)
    """
    check_choice("kind", kind, EXTRA)
    if not 0 < share < 1:
        raise ConfigError(f"share={share}; choose a number above 0 and below 1")
    if not isinstance(dataset.X, np.ndarray):
        raise DataError(f"{dataset.name} is sparse or on disk; load it with dense=True")
    X = dataset.X.astype(np.float64)
    rows, num_columns = X.shape
    extra = int(num_columns * share / (1 - share) + 1e-9)
    rng = np.random.default_rng(seed)
    if kind == "random":
        more = rng.standard_normal((rows, extra))
    elif kind == "corrupted":
        more = X[:, rng.integers(num_columns, size=extra)]
        noise = rng.standard_normal(more.shape) * more.std(axis=0)
        more = (1 - CORRUPTION) * more + CORRUPTION * noise
    else:
        first, second = rng.integers(num_columns, size=(2, extra))
        more = X[:, first] * X[:, second]
    names = dataset.feature_names
    if names is not None:
        taken = set(names)
        numbered = (f"{kind} {number}" for number in count())
        free = (name for name in numbered if name not in taken)
        names = (*names, *islice(free, extra))
    return Dataset(
        name=f"{dataset.name}+{kind}",
        X=np.hstack([X, more]).astype(np.float32),
        y=dataset.y,
        feature_names=names,
        class_names=dataset.class_names,
        official_split=dataset.official_split,
        informative=tuple(range(num_columns)),
        source=f"{dataset.source}; {extra} {kind} columns, seed {seed}",
    )
