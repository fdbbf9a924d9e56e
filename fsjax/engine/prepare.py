"""Preparation of the data: checks, splits, scaling, and the columns that may be selected."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fsjax.arguments import NonNegative, check
from fsjax.engine.options import DataOptions
from fsjax.engine.rows import Arrays, HostRows, Rows
from fsjax.errors import ConfigError, DataError, check_whole
from fsjax.tables.base import RawTable, as_table
from fsjax.tables.checks import check_features, is_constant
from fsjax.tables.dataset import Dataset
from fsjax.tables.rounding import check_target_range, single_or_double
from fsjax.tables.scaled import (
    HostTable,
    check_nonzero,
    check_range,
    filled_rows,
    scaled,
    stack_rows,
    with_columns,
    without_rows,
)
from fsjax.tables.scaling import Scaler, fit_scaler
from fsjax.tables.splits import DEFAULT_SEED, Split
from fsjax.tables.user_arrays import as_array
from fsjax.tasks import TABLE
from fsjax.tasks.from_arrays import check_task
from fsjax.tasks.split_protocols import make_split


class Prepared(NamedTuple):
    """The rows on which the engine trains and tests.

    Rows of a sparse table stay sparse, and rows of a table on disk stay there.

    Attributes:
      arrays: scaled training and validation rows as NumPy arrays, and test rows if they are
        recorded; with a leading seed axis if each seed has its own rows.
      x_test, y_test: scaled test rows and labels of each seed (the same objects if the split is
        shared).
      feature_mask: ``(S, D)`` bool, false for columns that are constant in the training rows.
      splits: the split of each seed.
      scalers: the scaler of each seed.
      num_rows: number of training rows, without padding.
      num_outputs: number of classes, columns or targets.
    """

    arrays: Arrays[HostRows]
    x_test: tuple[HostTable, ...]
    y_test: tuple[np.ndarray, ...]
    feature_mask: np.ndarray
    splits: tuple[Split, ...]
    scalers: tuple[Scaler, ...]
    num_rows: int
    num_outputs: int


class _SplitPart(NamedTuple):
    """The training, validation and test rows of one seed, with its mask, split and scaler."""

    train: HostRows
    valid: HostRows
    test: HostRows
    feature_mask: np.ndarray
    split: Split
    scaler: Scaler


def prepare(dataset: Dataset, task: str, seeds: Sequence[int], options: DataOptions) -> Prepared:
    """Checks, splits and scales a data set.

    Scalers are fitted on the training rows; ``paper`` also uses the validation rows if the
    published protocol did. Each seed gets its own split if ``split_per_seed`` is true.

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for settings that do not fit the data.
    """
    check_features(dataset.X, dataset.feature_names, dataset.name)
    dataset = check_task(dataset, task)
    check(NonNegative, noise_std=options.noise_std)
    weights = _weights(options.sample_weight, dataset)
    options = dataclasses.replace(options, sample_weight=weights)
    split_seeds = [int(s) for s in seeds] if options.split_per_seed else [None] * len(seeds)
    splits = _splits(dataset, task, options, split_seeds)
    parts = _parts(dataset, task, splits, split_seeds, options)
    separate = len({id(part.train.x) for part in parts}) > 1
    if separate and dataset.table.on_disk:
        raise ConfigError(
            f"{dataset.name} is read from disk, where all seeds must share one split; give neither "
            "split_per_seed nor a split per seed, or read the table with data.dense=true"
        )
    arrays = [_filled(part, options.record_test) for part in (parts if separate else parts[:1])]
    return Prepared(
        arrays=stack_rows(arrays) if separate else arrays[0],
        x_test=tuple(p.test.x for p in parts),
        y_test=tuple(p.test.y for p in parts),
        feature_mask=np.stack([p.feature_mask for p in parts]),
        splits=tuple(p.split for p in parts),
        scalers=tuple(p.scaler for p in parts),
        num_rows=len(parts[0].train.x),
        num_outputs=TABLE[task].outputs.num_outputs(dataset.y, dataset.num_features),
    )


def _filled(part: _SplitPart, record_test: bool) -> Arrays[HostRows]:
    """The padded rows of a seed, without test rows unless they are recorded."""
    x, y, weight = part.test
    test = part.test if record_test else Rows(without_rows(x), y[:0], weight[:0])

    def filled(rows: HostRows) -> HostRows:
        return Rows(filled_rows(rows.x), filled_rows(rows.y), filled_rows(rows.weight))

    return Arrays(filled(part.train), filled(part.valid), filled(test))


def check_seeds(seeds: Sequence[int]) -> None:
    """Raises ConfigError unless the seeds are distinct whole numbers from 0 to 2**32 - 1."""
    if not isinstance(seeds, Sequence | np.ndarray) or isinstance(seeds, str):
        raise ConfigError(f"seeds={seeds!r}; give several whole numbers, such as range(3)")
    if len(seeds) == 0:
        raise ConfigError("seeds is empty; give at least one whole number, such as seeds=(0, 1, 2)")
    for seed in seeds:
        if check_whole("a seed", seed, min_value=0) >= 2**32:
            raise ConfigError(f"a seed is {seed}; choose whole numbers below 2**32")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds={tuple(seeds)} repeats a seed; give each seed once")


def _splits(
    dataset: Dataset, task: str, options: DataOptions, seeds: Sequence[int | None]
) -> list[Split]:
    """The split of each seed."""
    split = options.split
    if isinstance(split, Split):
        return [_check_split(split, dataset)] * len(seeds)
    if isinstance(split, str):
        arguments = {
            seed: make_split(dataset, split, task, seed, valid_fraction=options.valid_fraction)
            for seed in dict.fromkeys(seeds)
        }
        return [arguments[seed] for seed in seeds]
    sequence = split if isinstance(split, Sequence) else ()
    splits = [item for item in sequence if isinstance(item, Split)]
    if not isinstance(split, Sequence) or len(splits) < len(split):
        raise ConfigError(
            f"split={split!r}; give the name of a protocol, an fsjax.data.Split, or one for "
            "each seed"
        )
    if len(splits) != len(seeds):
        raise ConfigError(f"{len(splits)} splits for {len(seeds)} seeds; give one for each")
    if len({tuple(map(len, of_seed)) for of_seed in splits}) > 1:
        raise ConfigError(
            "the splits of the seeds differ in size; give all parts the same number of rows"
        )
    return [_check_split(of_seed, dataset) for of_seed in splits]


def _parts(
    dataset: Dataset,
    task: str,
    splits: Sequence[Split],
    seeds: Sequence[int | None],
    options: DataOptions,
) -> list[_SplitPart]:
    """The rows of each seed, the same objects if seeds share them."""
    noisy = options.split_per_seed and options.noise_std
    parts: list[_SplitPart] = []
    for row, (split, seed) in enumerate(zip(splits, seeds, strict=True)):
        if row and not noisy and all(map(np.array_equal, splits[0], split)):
            parts.append(parts[0])
        else:
            parts.append(_part(dataset, task, split, seed, options))
    if options.columns is None:
        return parts
    chosen = check_columns(options.columns, len(parts), dataset.num_features)
    return [
        _only(part, columns, options.zero_others)
        for part, columns in zip(parts, chosen, strict=True)
    ]


def _check_split(split: Split, dataset: Dataset) -> Split:
    """Checks a split and returns it.

    Raises:
      ConfigError: if rows do not exist or are in two parts, or if there are no training rows.
    """
    rows = np.concatenate([_row_numbers(getattr(split, name), name) for name in Split._fields])
    if not len(split.train):
        raise ConfigError("a split needs training rows; valid and test may be empty")
    if rows.min() < 0 or rows.max() >= dataset.num_samples:
        raise ConfigError(
            f"a split has rows from {rows.min()} to {rows.max()}, but {dataset.name} has "
            f"{dataset.num_samples}; number them from 0"
        )
    if len(np.unique(rows)) < len(rows):
        raise ConfigError("a split has a row twice; put each row into one part only")
    return split


def _row_numbers(part: np.ndarray, name: str) -> np.ndarray:
    rows = as_array(part, f"the part {name!r} of a split")
    if rows.ndim == 1 and (rows.dtype.kind in "iu" or not rows.size):
        return rows.astype(np.int64)
    advice = "convert a mask by np.flatnonzero" if rows.dtype == bool else "number them from 0"
    raise ConfigError(
        f"the part {name!r} of a split has the type {rows.dtype} and the shape {rows.shape}; give "
        f"the numbers of its rows: {advice}"
    )


def check_columns(columns: np.ndarray, num_seeds: int, num_columns: int) -> np.ndarray:
    """Checks ``(S, M)`` distinct columns per seed; ConfigError for anything else."""
    chosen = as_array(columns, "columns")
    if (
        chosen.ndim != 2
        or len(chosen) != num_seeds
        or chosen.dtype.kind not in "iu"
        or not chosen.size
    ):
        raise ConfigError(
            f"columns has the shape {chosen.shape} and the type {chosen.dtype}; give an integer "
            f"array (seeds, columns) with the columns of each of the {num_seeds} seeds"
        )
    if chosen.min() < 0 or chosen.max() >= num_columns:
        raise ConfigError(
            f"columns has numbers from {chosen.min()} to {chosen.max()}, but X has {num_columns} "
            f"columns; choose numbers from 0 to {num_columns - 1}"
        )
    if any(len(np.unique(row)) < len(row) for row in chosen):
        raise ConfigError("columns has a column twice for one seed; give each column once")
    return chosen


def _only(part: _SplitPart, columns: np.ndarray, zero_others: bool) -> _SplitPart:
    """The rows restricted to some columns."""
    kept = np.zeros(len(part.feature_mask), bool)
    kept[columns] = True

    def take(rows: HostRows) -> HostRows:
        return rows._replace(x=with_columns(rows.x, columns, zero_others))

    mask = part.feature_mask & kept if zero_others else part.feature_mask[columns]
    train, valid, test = map(take, part[:3])
    return part._replace(train=train, valid=valid, test=test, feature_mask=mask)


def scaler_of(dataset: Dataset, split: Split, scaling: str) -> Scaler:
    """The scaler of the rows of a split, as :func:`prepare` fits it."""
    kind, rows = _scaling_of(dataset, split, scaling)
    return fit_scaler(kind, dataset.X[rows])


def _scaling_of(dataset: Dataset, split: Split, scaling: str) -> tuple[str, np.ndarray]:
    """The kind of a scaling, and the rows to which it is fitted."""
    kind, fit_rows = dataset.paper.scaling if scaling == "paper" else (scaling, "train")
    both = fit_rows == "train+valid"
    return kind, np.concatenate([split.train, split.valid]) if both else split.train


def _part(
    dataset: Dataset, task: str, split: Split, seed: int | None, options: DataOptions
) -> _SplitPart:
    kind, rows = _scaling_of(dataset, split, options.scaling)
    x_train = dataset.X[split.train]
    scaler = fit_scaler(kind, x_train if rows is split.train else dataset.X[rows])
    extremes = as_table(x_train).limits()
    feature_mask = ~is_constant(*extremes, x_train.dtype)
    y, weight = _labels(dataset, task), options.sample_weight

    def part_of(places: np.ndarray, x: RawTable) -> HostRows:
        of_rows = np.ones(len(places), np.float32) if weight is None else weight[places]
        return Rows(scaled(as_table(x), scaler), y[places], of_rows)

    train = part_of(split.train, x_train)
    valid = part_of(split.valid, dataset.X[split.valid])
    test = part_of(split.test, dataset.X[split.test])
    for name, part in (("training", train), ("validation", valid), ("test", test)):
        check_range(part.x, name, dataset, kind)
    check_nonzero(scaler, extremes, feature_mask, dataset, kind)
    if lacks := TABLE[task].target.trainable(train.y):
        raise DataError(
            f"the training rows of {dataset.name} hold {lacks}, so there is nothing to learn; use "
            "more rows, or split='stratified'"
        )
    if not feature_mask.any():
        raise DataError(
            f"every column of {dataset.name} is constant in the training rows; there is nothing "
            "to select"
        )
    if dataset.table.on_disk and (options.noise_std or options.columns is not None):
        raise ConfigError(
            f"{dataset.name} is read from disk, where noise_std and columns are not supported; "
            "leave them out, choose a method with input_noise, or read the table with "
            "data.dense=true"
        )
    if options.noise_std:
        if not isinstance(train.x, np.ndarray):
            raise ConfigError(
                f"noise_std={options.noise_std} would fill the zeros of the sparse table "
                f"{dataset.name}; leave it out, choose a method with input_noise, or give "
                "X.toarray()"
            )
        rng = np.random.default_rng(DEFAULT_SEED if seed is None else seed)
        noise = rng.standard_normal(train.x.shape, np.float32)
        train = train._replace(x=train.x + np.float32(options.noise_std) * noise)
    # Test metrics weight all rows equally.
    test = test._replace(weight=np.ones_like(test.weight))
    return _SplitPart(train, valid, test, feature_mask, split, scaler)


def _weights(sample_weight: np.ndarray | None, dataset: Dataset) -> np.ndarray | None:
    if sample_weight is None:
        return None
    try:
        weights = as_array(sample_weight, "sample_weight")
        if weights.dtype.kind == "c":
            raise TypeError
        weight = weights.astype(np.float32)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        shown = " ".join(repr(sample_weight).split())[:60]
        raise ConfigError(f"sample_weight={shown}; give a number above 0 for each row") from None
    if weight.shape != (dataset.num_samples,):
        raise ConfigError(
            f"sample_weight has shape {weight.shape}; give one for each of the "
            f"{dataset.num_samples} rows"
        )
    if not (np.isfinite(weight).all() and (weight > 0).all()):
        raise ConfigError(
            "sample_weight has values that are not finite numbers above 0; leave such rows out of "
            "the data instead"
        )
    return weight


def _labels(dataset: Dataset, task: str) -> np.ndarray:
    entry = TABLE[task]
    if not entry.target.supervised:
        # The targets are the inputs; labels, if there are any, are not used.
        return np.zeros(dataset.num_samples, entry.target.dtype)
    if dataset.y is None:
        raise DataError(f"task={task} needs a target, but {dataset.name} has none")
    exact = entry.target.as_rows(dataset.y)
    check_target_range(exact, f"the target of {dataset.name}")
    if single_or_double(exact).dtype == np.float64:
        raise DataError(
            f"float32 is too coarse for the target of {dataset.name}, which is between "
            f"{exact.min():.9g} and {exact.max():.9g}; subtract its mean first"
        )
    return exact.astype(entry.target.dtype)
