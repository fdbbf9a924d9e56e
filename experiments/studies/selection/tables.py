"""The published tables of the study: their sources, and how they are read and split."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, issparse, load_npz, save_npz
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit, StratifiedShuffleSplit

from fsjax.errors import ConfigError, DataError, check_choice

#: Share of the rows that are held out.
HELD_OUT = 0.3

#: Columns of a text table in the files.
TARGET, GROUP = "target", "group"

#: Wider tables are written as NumPy archives.
_WIDE = 1000


class Source(NamedTuple):
    """What a table is, and where it comes from."""

    task: str
    about: str
    origin: str


_MICROARRAYS = "ramhiser/datamicroarray"
_SKFEATURE = "jundongl/scikit-feature"
_UCI = "UCI, in jbrownlee/Datasets"
_WEKA = "UCI, as Weka has it, in jbrownlee/Datasets"
_R = "Rdatasets"

#: The tables of the study; fsjax was not tuned on any of them.
CATALOGUE: dict[str, Source] = {
    "gordon": Source("classification", "gene expression, two kinds of lung cancer", _MICROARRAYS),
    "gravier": Source("classification", "gene expression, relapse of breast cancer", _MICROARRAYS),
    "pomeroy": Source("classification", "gene expression, survival of brain tumours", _MICROARRAYS),
    "yale": Source("classification", "pixels of faces of 15 people", _SKFEATURE),
    "basehock": Source("classification", "word counts, two newsgroups", _SKFEATURE),
    "sonar": Source("classification", "energy in bands, rocks and mines", _UCI),
    "cells": Source("classification", "shapes of cells, well segmented or not", f"{_R}, modeldata"),
    "horse_colic": Source("classification", "surgical lesion; a quarter missing", _UCI),
    "adult": Source("classification", "income; mixed types, first 20,000 training rows", _UCI),
    "churn": Source("classification", "customers who leave; mixed types", f"{_R}, modeldata"),
    "permeability": Source("regression", "log10 permeability; fingerprints", f"{_R}, modeldata"),
    "meats": Source("regression", "fat; infrared spectra", f"{_R}, modeldata"),
    "ames": Source("regression", "log10 price of houses; mixed, missing", f"{_R}, openintro"),
    "bdf": Source("regression", "language test of pupils, by school", f"{_R}, nlme"),
}

#: Spare tables, to check changes that were made after the study of the first ones.
SPARE: dict[str, Source] = {
    "su": Source("classification", "gene expression of four tissues", _MICROARRAYS),
    "christensen": Source("classification", "methylation of three tissues", _MICROARRAYS),
    "lymphoma": Source("classification", "gene expression, nine rare classes", _SKFEATURE),
    "soybean": Source("classification", "19 diseases; categories, missing", _WEKA),
    "hypothyroid": Source("classification", "four classes, one of two rows; mixed", _WEKA),
    "german": Source("classification", "credit risk; mixed types", _WEKA),
    "ionosphere": Source("classification", "radar returns", _UCI),
    "attrition": Source("classification", "employees who leave; mixed types", f"{_R}, modeldata"),
    "reviews": Source("classification", "word counts of film reviews", "Pang and Lee 2004"),
    "wine_white": Source("regression", "quality of wine", _UCI),
    "abalone": Source("regression", "rings of shells", _UCI),
}


class Table(NamedTuple):
    """A table as a user has it.

    Attributes:
      name: in the catalogue, or of a generated table.
      task: ``'classification'`` or ``'regression'``.
      X: ``(N, D)`` frame with text and missing values, or sparse counts.
      y: ``(N,)`` labels as text, or numbers.
      groups: ``(N,)`` of rows that belong together, or ``None``.
    """

    name: str
    task: str
    X: pd.DataFrame | csr_matrix
    y: np.ndarray
    groups: np.ndarray | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns, as ``fsjax select`` prints them."""
        if issparse(self.X):
            return [f"x{index}" for index in range(self.X.shape[1])]
        return [str(name) for name in self.X.columns]


def load(name: str, folder: str | Path) -> Table:
    """Loads a table of the catalogue from ``NAME.csv`` or ``NAME.npz``.

    CSV files have a column ``target`` and may have a column ``group``; archives have ``y`` and
    either ``X`` and ``feature_names`` or the arrays that ``scipy.sparse.save_npz`` writes.

    Raises:
      ConfigError: for a name that is not in the catalogue.
      DataError: if the folder does not have the file.
    """
    sources = CATALOGUE | SPARE
    check_choice("names", name, sources)
    task = sources[name].task
    text, archive = (Path(folder) / f"{name}.{suffix}" for suffix in ("csv", "npz"))
    groups = None
    if text.exists():
        X = pd.read_csv(text, low_memory=False)
        y = X.pop(TARGET).to_numpy()
        groups = X.pop(GROUP).to_numpy() if GROUP in X else None
    elif archive.exists():
        with np.load(archive) as arrays:
            y = arrays["y"]
            sparse = "X" not in arrays
            if not sparse:
                X = pd.DataFrame(arrays["X"], columns=arrays["feature_names"].astype(str))
        if sparse:
            X = load_npz(archive).tocsr()
    else:
        raise DataError(
            f"{folder} has no table {name}; docs/selection-study.md says where it comes from"
        )
    labels = y.astype(str) if task == "classification" else y.astype(np.float64)
    return Table(name, task, X, labels, groups)


def load_all(names: list[str], folder: str | None) -> list[Table]:
    """Loads tables by name.

    Raises:
      ConfigError: without a folder, or for an unknown name.
    """
    if not folder:
        raise ConfigError("--tables is missing; name the folder that holds the tables")
    return [load(name, folder) for name in names]


def split(table: Table, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Splits rows into training and held-out rows, sorted: stratified, or by whole groups."""
    kinds = {"classification": StratifiedShuffleSplit, "regression": ShuffleSplit}
    kind = kinds[table.task] if table.groups is None else GroupShuffleSplit
    splitter = kind(n_splits=1, test_size=HELD_OUT, random_state=seed)
    train, test = next(splitter.split(np.zeros(len(table.y)), table.y, table.groups))
    return np.sort(train), np.sort(test)


def take(table: Table, rows: np.ndarray) -> Table:
    """Takes some rows of a table."""
    X = table.X[rows] if issparse(table.X) else table.X.iloc[rows].reset_index(drop=True)
    groups = None if table.groups is None else table.groups[rows]
    return table._replace(X=X, y=table.y[rows], groups=groups)


def write(table: Table, folder: Path) -> Path:
    """Writes the file for ``fsjax select``: CSV, or ``.npz`` if the table is wide or sparse."""
    if issparse(table.X):
        path = folder / f"{table.name}.npz"
        save_npz(path, table.X, compressed=False)
        with np.load(path) as arrays:
            parts = dict(arrays)
        np.savez(path, **parts, y=table.y)
        return path
    if table.X.shape[1] > _WIDE and table.groups is None:
        path = folder / f"{table.name}.npz"
        np.savez(path, X=table.X.to_numpy(), y=table.y, feature_names=np.array(table.columns))
        return path
    extra = {TARGET: table.y} if table.groups is None else {TARGET: table.y, GROUP: table.groups}
    path = folder / f"{table.name}.csv"
    pd.concat([table.X, pd.DataFrame(extra)], axis=1).to_csv(path, index=False)
    return path


def flags_of(table: Table, path: Path) -> list[str]:
    """The flags that ``fsjax select`` needs for a table that :func:`write` wrote."""
    target = [] if path.suffix == ".npz" else [f"--target={TARGET}"]
    groups = [] if table.groups is None else [f"--groups={GROUP}"]
    # Without the flag the command refuses missing numbers.
    missing = not issparse(table.X) and table.X.select_dtypes("number").isna().any(axis=None)
    impute = ["--impute=median"] if missing else []
    return [*target, *groups, *impute, f"--task={table.task}"]
