"""Splits into training, validation and test rows: the papers' protocols and the usual ones."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from fsjax.errors import ConfigError, DataError, check_choice, check_whole, is_number
from fsjax.tables.dataset import Dataset
from fsjax.tables.splits import DEFAULT_SEED, Split
from fsjax.tables.torch_random import torch_random_split
from fsjax.tasks import TABLE, Task, name_of
from fsjax.tasks.from_arrays import check_task

#: The largest seed that the generators of scikit-learn take.
MAX_SEED = 2**32 - 1


class _SplitRequest(NamedTuple):
    dataset: Dataset
    task: str
    seed: int
    fractions: tuple[float, float, float]
    valid_fraction: float


def make_split(
    dataset: Dataset,
    protocol: str = "paper",
    task: str | Task = "classification",
    seed: int | None = None,
    fractions: tuple[float, float, float] = (0.6, 0.2, 0.2),
    valid_fraction: float | None = None,
) -> Split:
    """Split the rows of a data set; returns the row numbers of each part in the order drawn.

    Args:
        dataset: any data set.
        protocol: one of

            - ``'paper'``: the protocol below that ``dataset.paper`` names; ``'stratified'`` for
              users' tables.
            - ``'stratified'``: by ``fractions``, with the same proportions of classes (for
              survival, of events and censored rows) in each part; at random for other tasks.
            - ``'random'``: by ``fractions``, at random.
            - ``'official'``: the official test rows; validation rows are drawn from the rest.
            - ``'ip_cae'``: as the IP-CAE experiments (torch splits, 60/20/20, or 80/20 of the
              official training rows; MNIST and Fashion-MNIST reduced to 9,000 and 1,500 rows).
            - ``'wast'``: as the WAST experiments (80/20 unstratified, or the official split);
              validation rows are drawn from the training rows. The final SVM of the papers is
              trained on ``train`` and ``valid`` together.
        task: one of ``fsjax.tasks.TASKS``, or a registered task.
        seed: None for the papers' fixed 42; another number draws another split, but never
            changes official test rows.
        fractions: of training, validation and test rows, for ``'stratified'`` and ``'random'``;
            they sum to 1, and that of validation rows may be 0.
        valid_fraction: share of the training rows that become validation rows, from 0 (none) to
            below 1. None means 0.2, or what ``fractions`` says for ``'stratified'`` and
            ``'random'``. ``'ip_cae'`` without official test rows keeps its 60/20/20.

    Raises:
        ConfigError: for an unknown protocol or task, or fractions that do not fit.
        DataError: if the data set has too few rows, or lacks an official split.

    Examples:
      >>> print(list(fsjax.data.PROTOCOLS))
      >>> split = fsjax.data.make_split(data, "stratified", seed=0)  # a data.Split
      >>> print(len(split.train), len(split.valid), len(split.test))
    """
    check_choice("split protocol", protocol, PROTOCOLS)
    task = name_of(task)
    if valid_fraction is not None:
        if not is_number(valid_fraction) or not 0 <= valid_fraction < 1:
            raise ConfigError(
                f"valid_fraction={valid_fraction!r}; choose a share from 0 (no validation rows) to "
                "below 1"
            )
        _check_fractions(fractions)
        rest = 1.0 - fractions[2]
        fractions = (rest * (1.0 - valid_fraction), rest * valid_fraction, fractions[2])
    valid_fraction = 0.2 if valid_fraction is None else valid_fraction
    _check_fractions(fractions)
    if dataset.num_samples < 3:
        raise DataError(f"{dataset.name} has {dataset.num_samples} rows; a split needs 3 or more")
    seed = (
        DEFAULT_SEED if seed is None else check_whole("seed", seed, min_value=0, max_value=MAX_SEED)
    )
    parts = PROTOCOLS[protocol](_SplitRequest(dataset, task, seed, fractions, valid_fraction))
    for name, part in (("training", parts.train), ("test", parts.test)):
        if len(part) == 0:
            raise DataError(
                f"{dataset.name} ({dataset.num_samples} rows) leaves no {name} rows in this split; "
                "give more rows or other fractions"
            )
    return Split(*(np.asarray(part, dtype=np.int32) for part in parts))


def _paper(request: _SplitRequest) -> Split:
    return PROTOCOLS[request.dataset.paper.protocol](request)


def _stratified(request: _SplitRequest) -> Split:
    target, dataset = TABLE[request.task].target, request.dataset
    y = dataset.y
    # Whole numbers of a table that was read without a task are classes for this one.
    whole = y is not None and y.ndim == 1 and np.array_equal(y, np.round(y))
    if target.classes and not whole:
        raise DataError(
            f"a stratified split needs classes, but {dataset.name} has "
            f"{'no target' if y is None else 'a numeric target'}; choose protocol=random, "
            "or another task"
        )
    checked = dataset if y is None else check_task(dataset, request.task)
    strata = None if checked.y is None else target.strata(checked.y)
    return _by_fractions(request._replace(dataset=checked), strata)


def _official(request: _SplitRequest) -> Split:
    return _with_valid(request, *_official_rows(request))


def _wast(request: _SplitRequest) -> Split:
    if request.dataset.paper.wast_official and request.dataset.official_split is not None:
        return _official(request)
    rows = np.arange(request.dataset.num_samples)
    return _with_valid(request, *train_test_split(rows, test_size=0.2, random_state=request.seed))


def _ip_cae(request: _SplitRequest) -> Split:
    dataset, seed, share = request.dataset, request.seed, request.dataset.paper.share
    n = dataset.num_samples
    if not dataset.paper.torch:
        train, rest = train_test_split(np.arange(n), train_size=0.6, random_state=seed)
        return Split(train, *train_test_split(rest, train_size=0.5, random_state=seed))
    if share < 1 or dataset.official_split is not None:
        rest, test = _official_rows(request)
        if share < 1:
            rest, test = (_torch_two(part, share, seed)[0] for part in (rest, test))
        return Split(*_torch_two(rest, 1 - request.valid_fraction, seed), test)
    train, valid = int(0.6 * n), int(0.2 * n)
    return Split(*torch_random_split(n, (train, valid, n - train - valid), seed))


def _torch_two(rows: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    first = int(round(share * len(rows), 6))
    drawn, rest = torch_random_split(len(rows), (first, len(rows) - first), seed)
    return rows[drawn], rows[rest]


def _with_valid(request: _SplitRequest, rest: np.ndarray, test: np.ndarray) -> Split:
    """Draw the validation rows from those that are not test rows."""
    return Split(*_carve(rest, _count(request.valid_fraction, len(rest)), request.seed), test)


def _by_fractions(request: _SplitRequest, y: np.ndarray | None = None) -> Split:
    rows = np.arange(request.dataset.num_samples)
    _, valid_share, test_share = request.fractions
    num_valid, num_test = _count(valid_share, len(rows)), _count(test_share, len(rows))
    if num_valid + num_test >= len(rows):
        raise DataError(
            f"{request.dataset.name} has {len(rows)} rows, too few for fractions "
            f"{request.fractions}; give more rows"
        )
    if y is not None:
        _check_stratified(request, y, [count for count in (num_valid, num_test) if count])
    rest, test = _carve(rows, num_test, request.seed, y)
    if y is not None and num_valid:
        _check_classes(request, y, rest, parts=2)
    train, valid = _carve(rest, num_valid, request.seed, None if y is None else y[rest])
    return Split(train, valid, test)


PROTOCOLS: dict[str, Callable[[_SplitRequest], Split]] = {
    "paper": _paper,
    "stratified": _stratified,
    "random": _by_fractions,
    "official": _official,
    "ip_cae": _ip_cae,
    "wast": _wast,
}
"""Every protocol by its name."""


def _carve(
    rows: np.ndarray, count: int, seed: int, y: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw ``count`` of the rows; returns the other rows and those drawn."""
    if count == 0:
        return rows, rows[:0]
    if count >= len(rows):
        raise DataError(
            f"cannot draw {count} of {len(rows)} rows and keep a row; give more rows, or other "
            "fractions"
        )
    return tuple(train_test_split(rows, test_size=count, random_state=seed, stratify=y))


def _count(share: float, total: int) -> int:
    """The number of rows in a share of ``total``: 0 for a share of 0, otherwise at least 1."""
    return max(1, round(share * total)) if share > 0 else 0


def _official_rows(request: _SplitRequest) -> tuple[np.ndarray, np.ndarray]:
    mark = request.dataset.official_split
    if mark is None:
        raise DataError(
            f"{request.dataset.name} has no official split; choose protocol=stratified or random"
        )
    return np.flatnonzero(mark == 0), np.flatnonzero(mark == 1)


def _check_stratified(request: _SplitRequest, y: np.ndarray, counts: list[int]) -> None:
    dataset = request.dataset
    num_classes = _check_classes(request, y, np.arange(len(y)), len(counts) + 1)
    if min(*counts, dataset.num_samples - sum(counts)) < num_classes:
        raise DataError(
            f"{dataset.name} has {num_classes} classes, but a part of the split would have only "
            f"{min(counts)} rows; choose larger fractions than {request.fractions}, or "
            "protocol=random"
        )


def _check_classes(request: _SplitRequest, y: np.ndarray, rows: np.ndarray, parts: int) -> int:
    """The number of classes; DataError if the rows hold fewer of one of them than parts."""
    labels, numbers = np.unique(y, return_inverse=True)
    sizes = np.bincount(numbers[rows], minlength=len(labels))
    smallest = int(sizes.argmin())
    if sizes[smallest] < parts:
        label = labels[smallest]
        names = request.dataset.class_names or TABLE[request.task].target.strata_names
        shown = repr(names[label]) if names else label
        besides = " besides the test rows" if len(rows) < len(y) else ""
        raise DataError(
            f"class {shown} of {request.dataset.name} has {sizes[smallest]} row(s){besides}, but a "
            f"stratified split into {parts} parts needs at least {parts} of each class; drop or "
            "merge the class, or choose protocol=random"
        )
    return len(labels)


def _check_fractions(fractions: tuple[float, float, float]) -> None:
    several = isinstance(fractions, tuple | list) and len(fractions) == 3
    if not several or not all(map(is_number, fractions)) or not abs(sum(fractions) - 1) <= 1e-6:
        raise ConfigError(f"fractions={fractions}; give three numbers that sum to 1")
    if fractions[0] <= 0 or fractions[1] < 0 or fractions[2] <= 0:
        raise ConfigError(
            f"fractions={fractions}; choose a share above 0 for training and test rows, and of at "
            "least 0 for validation rows"
        )
