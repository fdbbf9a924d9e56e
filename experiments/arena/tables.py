"""The tables of the arena, by name: what they are, how they are read, and how they are split."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

from experiments.arena import generated
from experiments.arena.generated import Drawn
from fsjax.data import Dataset, add_columns, load, ring_xor_sum
from fsjax.errors import DataError

#: Share of the rows on which selections are judged.
TEST = 0.3

#: Numbers of columns at which a selection is judged, as far as the table has more columns.
SIZES = (5, 10, 25, 50)

#: A table with more rows is sampled, unless its line says otherwise.
MAX_ROWS = 1000


class Table(NamedTuple):
    """A line of the catalogue.

    Attributes:
      read: gives the table.
      shape: ``narrow``, ``wide`` (at least 500 columns), ``long`` (at least 100,000 rows),
        ``grouped`` (split by groups or by time) or ``noise`` (no column matters, not rated).
      metric: ``accuracy`` in percent, ``auc`` or ``r2`` times 100.
      rows: at most so many, drawn at random.
      by: how rows are split: ``rows`` (at random, by class), ``groups`` or ``time``.
    """

    read: Callable[[], Drawn]
    shape: str = "narrow"
    metric: str = "accuracy"
    rows: int = MAX_ROWS
    by: str = "rows"


class Split(NamedTuple):
    """Rows that selectors learn from, ``(n, D)`` and ``(n,)``, and rows that judge."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def _drawn(data: Dataset, groups: np.ndarray | None = None) -> Drawn:
    if not isinstance(data.X, np.ndarray) or data.y is None:
        raise DataError(f"{data.name} is not a dense table with a target")
    informative = np.zeros(0, int) if data.informative is None else np.array(data.informative)
    return Drawn(data.X.astype(np.float32), data.y, informative, groups)


def of_sklearn(name: str) -> Drawn:
    """A data set of scikit-learn, by the name of its loader."""
    bunch = getattr(datasets, f"load_{name}")()
    kind = np.float32 if name == "diabetes" else np.int32
    return Drawn(bunch.data.astype(np.float32), bunch.target.astype(kind), np.zeros(0, int))


def extended(name: str, kind: str) -> Drawn:
    """A data set of scikit-learn, standardised, with three columns for each of its own.

    Cherepanova et al. (NeurIPS 2023): columns of noise, corrupted ones, or products of two.
    """
    table = of_sklearn(name)
    X = (table.X - table.X.mean(axis=0)) / table.X.std(axis=0)
    return _drawn(add_columns(Dataset(name, X, table.y), kind, share=0.75))


def of_library(name: str, **options: Any) -> Drawn:
    """A data set that ``fsjax.data.load`` knows; it may have to be downloaded."""
    return _drawn(load(name, **options))


def in_blocks(name: str, sizes: tuple[int, ...], **options: Any) -> Drawn:
    """A data set whose groups follow each other in blocks of rows of these sizes."""
    return of_library(name, **options)._replace(groups=np.repeat(np.arange(len(sizes)), sizes))


def pairs(rule: str, columns: int) -> Table:
    """Passemiers et al. (2024): two uniform columns for each part of a rule."""
    return Table(lambda: _drawn(ring_xor_sum(rule=rule, num_features=columns)))


def _wide(name: str, rows: int = MAX_ROWS) -> Table:
    return Table(functools.partial(of_library, name), "wide", rows=rows)


def _draw(
    draw: Callable[..., Drawn], *sizes: float, **options: float | bool
) -> Callable[[], Drawn]:
    return functools.partial(draw, *sizes, **options)


_SKLEARN = {
    "wine": Table(functools.partial(of_sklearn, "wine")),
    "breast_cancer": Table(functools.partial(of_sklearn, "breast_cancer")),
    "diabetes": Table(functools.partial(of_sklearn, "diabetes"), metric="r2"),
    "digits": Table(functools.partial(of_library, "digits")),
    "wine+second_order": Table(functools.partial(extended, "wine", "second_order")),
    "wine+corrupted": Table(functools.partial(extended, "wine", "corrupted")),
    "breast_cancer+random": Table(functools.partial(extended, "breast_cancer", "random")),
    "breast_cancer+corrupted": Table(functools.partial(extended, "breast_cancer", "corrupted")),
    "diabetes+random": Table(functools.partial(extended, "diabetes", "random"), metric="r2"),
}

_KNOWN = {
    "ring 128": pairs("ring", 128),
    "xor 128": pairs("xor", 128),
    "sum 128": pairs("sum", 128),
    "ring+xor+sum 32": pairs("ring+xor+sum", 32),
    "hypercube 200": Table(
        lambda: of_library("madelon_like", num_samples=1000, num_features=200, num_redundant=0)
    ),
    "sines 100": Table(_draw(generated.sines, 1000, 100, 5), metric="r2"),
    "linear 200": Table(_draw(generated.linear, 400, 200, 10, rho=0.6), metric="r2"),
    "copies 100": Table(_draw(generated.copies, 500, 100, 5, 8)),
    "tails 100": Table(_draw(generated.linear, 400, 100, 5, tails=True, positives=0.5, noise=0.5)),
    "imbalanced 100": Table(
        _draw(generated.linear, 1000, 100, 5, positives=0.05, noise=0.5), metric="auc"
    ),
    "noise 100": Table(_draw(generated.noise, 300, 100), "noise"),
}

_GROUPED = {
    "patients 100": Table(_draw(generated.patients, 80, 100, 5, 20), "grouped", by="groups"),
    "patients 2000": Table(_draw(generated.patients, 60, 2000, 10, 400), "grouped", by="groups"),
    "drift 60": Table(_draw(generated.drifting, 600, 60, 5, 15), "grouped", "r2", by="time"),
    "drift 1000": Table(_draw(generated.drifting, 400, 1000, 8, 250), "grouped", "r2", by="time"),
    "mice by mouse": Table(
        lambda: in_blocks("mice_protein", (15,) * 72, impute="mean"), "grouped", by="groups",
        rows=1080,
    ),
    "isolet by speaker": Table(
        lambda: in_blocks("isolet", (1560, 1560, 1560, 1558, 1559)), "grouped", by="groups",
    ),
}  # fmt: skip

_REAL = {
    "mice": Table(functools.partial(of_library, "mice_protein", impute="mean")),
    "usps": Table(functools.partial(of_library, "usps")),
    "madelon": _wide("madelon", rows=1500),
    "mnist": _wide("mnist"),
    "isolet": _wide("isolet"),
    "coil20": _wide("coil20"),
    "allaml": _wide("allaml"),
    "arcene": _wide("arcene"),
    "pcmac": _wide("pcmac"),
    "basehock": _wide("basehock"),
    "cifar10": _wide("cifar10"),
    "dexter": _wide("dexter"),
}

_SHAPES = {
    "shift 100 x 5000": Table(_draw(generated.shifted, 100, 5000, 50, 0.5), "wide"),
    "classes 150 x 3000": Table(_draw(generated.shifted, 150, 3000, 30, 0.5, classes=4), "wide"),
    "shift 60 x 20000": Table(_draw(generated.shifted, 60, 20000, 50, 0.7), "wide"),
    "linear 100000 x 50": Table(
        _draw(generated.linear, 100_000, 50, 10, rho=0.8, noise=3.0, positives=0.3),
        "long", "auc", rows=100_000,
    ),
    "linear 1000000 x 20": Table(
        _draw(generated.linear, 1_000_000, 20, 5, rho=0.8, noise=5.0, positives=0.5),
        "long", "auc", rows=1_000_000,
    ),
}  # fmt: skip

#: By name.
TABLES: dict[str, Table] = {**_SKLEARN, **_KNOWN, **_GROUPED, **_REAL, **_SHAPES}

#: Tables of the suite for new selectors: all are built in, and cheap.
SMALL = (
    "wine", "breast_cancer", "diabetes", "digits", "wine+corrupted", "breast_cancer+random",
    "ring+xor+sum 32", "xor 128", "sines 100", "copies 100", "tails 100", "imbalanced 100",
    "patients 100", "drift 60", "noise 100",
)  # fmt: skip

#: Names of tables by suite.
SUITES: dict[str, tuple[str, ...]] = {"small": SMALL, "all": tuple(TABLES)}


@functools.lru_cache(maxsize=1)
def read(name: str) -> Drawn:
    """A table with at most its number of rows, float32 without missing values.

    Raises:
      DataError: if it is not here and cannot be downloaded.
    """
    table = TABLES[name]
    data = table.read()
    X, y, groups = data.X, data.y, data.groups
    if len(y) > table.rows:
        rows = np.sort(np.random.default_rng(0).choice(len(y), table.rows, replace=False))
        X, y, groups = X[rows], y[rows], None if groups is None else groups[rows]
    return data._replace(X=np.ascontiguousarray(X), y=y, groups=groups)


def split(table: Table, data: Drawn, seed: int) -> Split:
    """Training and test rows, and no row in both.

    Tables in time are split at a moment: the test rows are those after it, a tenth of all rows
    earlier for each ``seed`` above 0. The rows of a group are on one side.
    """
    rows = len(data.y)
    if table.by == "time":
        end = rows - int(rows * 0.1 * seed)
        first = end - int(TEST * rows)
        return Split(data.X[:first], data.y[:first], data.X[first:end], data.y[first:end])
    classes = table.metric != "r2"
    kind = StratifiedShuffleSplit if classes else ShuffleSplit
    if table.by == "groups":
        kind = GroupShuffleSplit
    splitter = kind(n_splits=1, test_size=TEST, random_state=seed)
    train, test = next(splitter.split(np.zeros(rows), data.y, data.groups))
    return Split(data.X[train], data.y[train], data.X[test], data.y[test])


def sizes(columns: int) -> tuple[int, ...]:
    """The numbers of columns at which selections from so many columns are judged."""
    return tuple(size for size in SIZES if size < columns)
