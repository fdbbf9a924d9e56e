"""The tables on which selectors are compared, and the number of columns to select from each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from experiments.studies.known_arrays import dense_arrays
from fsjax.data import Dataset, add_columns, load
from fsjax.tables.datasets.catalog import paper_settings

#: A table with more rows than this is sampled.
MAX_ROWS = 1000

#: Share of the rows on which selections are judged.
TEST = 0.3


class Table(NamedTuple):
    """A table of the comparison.

    Attributes:
      read: gives the data set.
      k: columns to select; for generated tables those that matter.
      kind: ``ordinary``, ``wide`` (617 columns or more), ``generated``, or ``extended`` by columns
        that say nothing new.
      task: ``classification`` or ``regression``.
      rows: at most so many, drawn at random.
    """

    read: Callable[[], Dataset]
    k: int
    kind: str = "ordinary"
    task: str = "classification"
    rows: int = MAX_ROWS


class Split(NamedTuple):
    """Rows that selectors learn from, ``(n, D)`` and ``(n,)``, and rows that judge."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def of_sklearn(name: str) -> Dataset:
    """A data set of scikit-learn, by the name of its loader."""
    bunch = getattr(datasets, f"load_{name}")()
    y = bunch.target.astype(np.float32 if name == "diabetes" else np.int32)
    X, paper = bunch.data.astype(np.float32), paper_settings(name)
    return Dataset(name, X, y, source="scikit-learn", paper=paper)


def extended(name: str, kind: str) -> Dataset:
    """A data set of scikit-learn, standardised, with three extra columns for each of its own."""
    data = of_sklearn(name)
    X, y = dense_arrays(data)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return add_columns(Dataset(name, X, y), kind, share=0.75)


def nonlinear(rule: str, columns: int) -> Table:
    """A table of Passemiers et al., two columns for each part of the rule."""
    read = partial(load, "ring_xor_sum", rule=rule, num_features=columns)
    return Table(read, 2 * len(rule.split("+")), "generated")


#: By name, roughly the cheapest first.
TABLES: dict[str, Table] = {
    "wine": Table(partial(of_sklearn, "wine"), 5),
    "breast_cancer": Table(partial(of_sklearn, "breast_cancer"), 5),
    "diabetes": Table(partial(of_sklearn, "diabetes"), 4, task="regression"),
    "wine+second_order": Table(partial(extended, "wine", "second_order"), 5, "extended"),
    "wine+corrupted": Table(partial(extended, "wine", "corrupted"), 5, "extended"),
    "breast_cancer+random": Table(partial(extended, "breast_cancer", "random"), 5, "extended"),
    "digits": Table(partial(load, "digits"), 10),
    "ring+xor+sum, 128": nonlinear("ring+xor+sum", 128),
    "ring, 128": nonlinear("ring", 128),
    "xor, 128": nonlinear("xor", 128),
    "breast_cancer+corrupted": Table(
        partial(extended, "breast_cancer", "corrupted"), 5, "extended"
    ),
    "mice_protein": Table(partial(load, "mice_protein", impute="mean"), 10),
    "madelon": Table(partial(load, "madelon"), 10, rows=1500),
    "usps": Table(partial(load, "usps"), 20, rows=600),
    "allaml": Table(partial(load, "allaml"), 10, "wide"),
    "sum, 128": nonlinear("sum", 128),
    "coil20": Table(partial(load, "coil20"), 20, "wide", rows=480),
    "isolet": Table(partial(load, "isolet"), 20, "wide", rows=520),
    "arcene": Table(partial(load, "arcene"), 20, "wide"),
    "pcmac": Table(partial(load, "pcmac"), 20, "wide", rows=600),
    "dexter": Table(partial(load, "dexter"), 20, "wide"),
    "ring+xor+sum, 32": nonlinear("ring+xor+sum", 32),
    "ring+xor+sum, 512": nonlinear("ring+xor+sum", 512),
}


def read(name: str) -> Dataset:
    """A table, with at most its number of rows, the classes in their proportions."""
    table = TABLES[name]
    data = table.read()
    X, y = dense_arrays(data)
    X = X.astype(np.float32)
    if len(y) > table.rows:
        X, _, y, _ = train_test_split(X, y, train_size=table.rows, stratify=y, random_state=0)
    return Dataset(name, X, y, informative=data.informative, paper=paper_settings(name))


def split(data: Dataset, task: str, seed: int) -> Split:
    """Training and test rows, stratified by class."""
    stratify = data.y if task == "classification" else None
    X, X_test, y, y_test = train_test_split(
        data.X, data.y, test_size=TEST, stratify=stratify, random_state=seed
    )
    return Split(X, y, X_test, y_test)
