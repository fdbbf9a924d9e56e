"""From a data set to scaled arrays: split, scale, and find the columns that may be selected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from fsjax.data.checks import (
    check_features,
    check_num_features,
    check_task,
    constant_columns,
    name_some,
)
from fsjax.data.dataset import Dataset
from fsjax.data.scaling import Scaler, fit_scaler, paper_scaling
from fsjax.data.scaling import apply as apply_scaler
from fsjax.data.splits import DEFAULT_SEED, Split, make_split
from fsjax.engine.loop import Arrays
from fsjax.errors import ConfigError, DataError, check_whole, is_number


class Prepared(NamedTuple):
    """What the engine trains and tests on.

    Attributes:
      arrays: scaled training and validation rows as NumPy arrays; with a leading seed axis where
        each seed has its own split.
      x_test, y_test: scaled test rows and labels, one for each seed (the same objects where the
        split is shared).
      feature_mask: ``(S, D)`` bool, false for columns that are constant in the training rows.
      splits: the split of each seed.
      scalers: the scaler of each seed.
      own_arrays: whether each seed has its own split.
      num_outputs: classes, columns or targets.
    """

    arrays: Arrays
    x_test: tuple[np.ndarray, ...]
    y_test: tuple[np.ndarray, ...]
    feature_mask: np.ndarray
    splits: tuple[Split, ...]
    scalers: tuple[Scaler, ...]
    own_arrays: bool
    num_outputs: int


class _Part(NamedTuple):
    arrays: Arrays
    x_test: np.ndarray
    y_test: np.ndarray
    feature_mask: np.ndarray
    split: Split
    scaler: Scaler


def prepare(
    dataset: Dataset,
    *,
    task: str,
    num_features: int,
    seeds: Sequence[int],
    split: str | Split | Sequence[Split] = "paper",
    split_per_seed: bool = False,
    scaling: str = "paper",
    valid_fraction: float | None = None,
    noise_std: float = 0.0,
    sample_weight: np.ndarray | None = None,
    record_test: bool = False,
    columns: np.ndarray | None = None,
    zero_others: bool = False,
) -> Prepared:
    """Checks, splits and scales a data set.

    Args:
      dataset: the data.
      task: ``classification``, ``reconstruction`` or ``regression``.
      num_features: K, to be checked against the columns.
      seeds: the seeds, of which each gets its own split if ``split_per_seed``.
      split: a protocol of :func:`fsjax.data.make_split`, a split, or one for each seed.
      split_per_seed: whether the split differs by seed; the papers share one (random state 42).
      scaling: a kind of :func:`fsjax.data.fit_scaler`, or ``paper`` for the data set's own.
      valid_fraction: share of the training rows that validates, see :func:`fsjax.data.make_split`.
      noise_std: standard deviation of Gaussian noise added to the scaled training rows.
      sample_weight: ``(N,)`` weights of all rows, above 0; ``None`` weighs them the same.
      record_test: whether the test rows go into ``arrays`` as well.
      columns: ``(S, K)`` columns that each seed gets to see; ``None`` is all of them.
      zero_others: with ``columns``, whether the other columns stay in place as zeros, for
        convolutional networks; otherwise the K columns are all there is.

    Returns:
      The arrays. Scalers are fitted on the training rows; ``paper`` also on the validation rows
      where the published protocol did so.

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for settings that do not fit them.
    """
    check_features(dataset.X, dataset.feature_names, dataset.name)
    dataset = check_task(dataset, task)
    check_num_features(num_features, dataset.num_features)
    check_seeds(seeds)
    if not is_number(noise_std) or not 0 <= noise_std < float("inf"):
        raise ConfigError(f"noise_std={noise_std!r}; choose 0 for no noise, or a value above it")
    weight = _weights(sample_weight, dataset)
    split_seeds = [int(s) for s in seeds] if split_per_seed else [None] * len(seeds)
    splits = _splits(dataset, task, split, split_seeds, valid_fraction)
    own_splits = any(not _same(splits[0], other) for other in splits[1:])
    differ = own_splits or bool(split_per_seed and noise_std)
    own = len(seeds) > 1 and (differ or columns is not None)
    parts = [
        _part(dataset, task, splits[row], scaling, split_seeds[row], noise_std, weight, record_test)
        for row in range(len(seeds) if differ else 1)
    ]
    parts = parts if differ else parts * len(seeds)
    if columns is not None:
        parts = [_only(part, row, zero_others) for part, row in zip(parts, columns, strict=True)]
    if own:
        arrays = jax.tree.map(lambda *leaves: np.stack(leaves), *(p.arrays for p in parts))
    else:
        arrays = parts[0].arrays
    return Prepared(
        arrays=arrays,
        x_test=tuple(p.x_test for p in parts),
        y_test=tuple(p.y_test for p in parts),
        feature_mask=np.stack([p.feature_mask for p in parts]),
        splits=tuple(p.split for p in parts),
        scalers=tuple(p.scaler for p in parts),
        own_arrays=own,
        num_outputs=_num_outputs(dataset, task),
    )


def check_seeds(seeds: Sequence[int]) -> None:
    """Raises ConfigError unless these are distinct whole numbers that PRNG keys can take."""
    if not isinstance(seeds, Sequence | np.ndarray) or isinstance(seeds, str):
        raise ConfigError(f"seeds={seeds!r}; give several whole numbers, such as range(3)")
    if len(seeds) == 0:
        raise ConfigError("seeds is empty; give at least one whole number, such as seeds=(0, 1, 2)")
    for seed in seeds:
        if check_whole("a seed", seed, least=0) >= 2**32:
            raise ConfigError(f"a seed is {seed}; choose whole numbers below 2**32")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds={tuple(seeds)} repeats a seed; each should be given once")


def _splits(
    dataset: Dataset,
    task: str,
    split: str | Split | Sequence[Split],
    seeds: Sequence[int | None],
    valid_fraction: float | None,
) -> list[Split]:
    """The split of each seed."""
    if isinstance(split, Split):
        return [_check_split(split, dataset)] * len(seeds)
    if not isinstance(split, str):
        if not isinstance(split, Sequence) or not all(isinstance(one, Split) for one in split):
            raise ConfigError(
                f"split={split!r}; give the name of a protocol, an fsjax.data.Split, or one for "
                "each seed"
            )
        for one in split:
            _check_split(one, dataset)
        if len(split) != len(seeds):
            raise ConfigError(f"{len(split)} splits for {len(seeds)} seeds; give one for each")
        if len({tuple(map(len, one)) for one in split}) > 1:
            raise ConfigError("the splits of the seeds differ in size; make them equal")
        return list(split)
    made: dict[int | None, Split] = {}
    for seed in seeds:
        if seed not in made:
            made[seed] = make_split(dataset, split, task, seed, valid_fraction=valid_fraction)
    return [made[seed] for seed in seeds]


def _check_split(split: Split, dataset: Dataset) -> Split:
    """The split, unless its rows do not exist, are in two parts, or are missing."""
    rows = np.concatenate([np.asarray(part, np.int64) for part in split])
    if not len(split.train):
        raise ConfigError("a split needs training rows; valid and test may be empty")
    if rows.min() < 0 or rows.max() >= dataset.num_samples:
        raise ConfigError(
            f"a split has rows from {rows.min()} to {rows.max()}, but {dataset.name} has "
            f"{dataset.num_samples}; number them from 0"
        )
    if len(np.unique(rows)) < len(rows):
        raise ConfigError("a split has a row twice; each belongs to one part")
    return split


def _same(one: Split, other: Split) -> bool:
    return one is other or all(map(np.array_equal, one, other))


def _only(part: _Part, columns: np.ndarray, zero_others: bool) -> _Part:
    """The part with some columns alone."""
    kept = np.zeros(len(part.feature_mask), bool)
    kept[columns] = True

    def take(x: np.ndarray) -> np.ndarray:
        return np.where(kept, x, np.float32(0)) if zero_others else x[:, columns]

    arrays = part.arrays
    arrays = arrays._replace(
        x_train=take(arrays.x_train), x_valid=take(arrays.x_valid), x_test=take(arrays.x_test)
    )
    mask = part.feature_mask & kept if zero_others else part.feature_mask[columns]
    return part._replace(arrays=arrays, x_test=take(part.x_test), feature_mask=mask)


def _part(
    dataset: Dataset,
    task: str,
    split: Split,
    scaling: str,
    seed: int | None,
    noise_std: float,
    weight: np.ndarray | None,
    record_test: bool,
) -> _Part:
    kind, fit_rows = paper_scaling(dataset.name) if scaling == "paper" else (scaling, "train")
    rows = np.concatenate([split.train, split.valid]) if fit_rows == "train+valid" else split.train
    scaler = fit_scaler(kind, dataset.X[rows])
    x_train, x_valid, x_test = (apply_scaler(scaler, dataset.X[part]) for part in split)
    _check_range(x_train, dataset, kind)
    y = _labels(dataset, task)
    y_train, y_valid, y_test = (y[part] for part in split)
    if task == "classification" and np.unique(y_train).size < 2:
        raise DataError(
            f"the training rows of {dataset.name} hold one class only; classification needs at "
            "least 2: use more rows, or split='stratified'"
        )
    feature_mask = ~constant_columns(dataset.X[split.train])
    if not feature_mask.any():
        raise DataError(
            f"every column of {dataset.name} is constant in the training rows; there is nothing "
            "to select"
        )
    if noise_std:
        rng = np.random.default_rng(DEFAULT_SEED if seed is None else seed)
        x_train += noise_std * rng.standard_normal(x_train.shape, np.float32)
    recorded = len(x_test) if record_test else 0
    return _Part(
        Arrays(
            x_train,
            y_train,
            np.ones(len(x_train), np.float32) if weight is None else weight[split.train],
            x_valid,
            y_valid,
            x_test[:recorded],
            y_test[:recorded],
            None if weight is None else weight[split.valid],
        ),
        x_test,
        y_test,
        feature_mask,
        split,
        scaler,
    )


def _check_range(x_train: np.ndarray, dataset: Dataset, kind: str) -> None:
    """Raises DataError for scaled values that float32 does not hold."""
    with np.errstate(invalid="ignore"):
        if np.isfinite(x_train.sum(dtype=np.float64)):
            return
    bad = np.flatnonzero(~np.isfinite(x_train).all(axis=0))
    names = dataset.feature_names
    labels = [f"column {index}" if names is None else names[index] for index in bad]
    raise DataError(
        f"{dataset.name}: {name_some(labels)} has values above 3e38 after the scaling {kind!r}; "
        "choose the scaling 'standard', or divide such columns"
    )


def _weights(sample_weight: np.ndarray | None, dataset: Dataset) -> np.ndarray | None:
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, np.float32)
    except (TypeError, ValueError):
        raise ConfigError(
            f"sample_weight={sample_weight!r}; give a number above 0 for each row"
        ) from None
    if weight.shape != (dataset.num_samples,):
        raise ConfigError(
            f"sample_weight has shape {weight.shape}; give one for each of the "
            f"{dataset.num_samples} rows"
        )
    if not (np.isfinite(weight).all() and (weight > 0).all()):
        raise ConfigError(
            "sample_weight has values that are not above 0; drop these rows in place of that"
        )
    return weight


def _labels(dataset: Dataset, task: str) -> np.ndarray:
    if task == "reconstruction":
        # The targets are the inputs; labels, if there are any, play no part.
        return np.zeros(dataset.num_samples, np.int32)
    if task == "classification":
        return np.asarray(dataset.y, np.int32)
    return np.asarray(dataset.y, np.float32).reshape(dataset.num_samples, -1)


def _num_outputs(dataset: Dataset, task: str) -> int:
    if task == "classification":
        return dataset.num_classes
    if task == "reconstruction":
        return dataset.num_features
    return 1 if np.ndim(dataset.y) == 1 else dataset.y.shape[1]
