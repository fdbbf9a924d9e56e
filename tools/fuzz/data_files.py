"""Damaged data files of every format that fsjax reads, but MATLAB, whose reader may crash."""

from __future__ import annotations

import dataclasses
import gzip
import io
import struct
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

from fsjax.data import Dataset, load
from fsjax.tables.datasets.catalog import ENTRIES

from .damage import damaged
from .outcomes import POSSIBLE, RIGHT, WRONG, Outcome, outcome_of

#: The largest memory that a file may take, in bytes.
MAX_BYTES = 2**28

ROWS, COLUMNS, CLASSES = 24, 16, 3


class Form(NamedTuple):
    """A file format: whether a checksum covers all values, the target column, and the content."""

    name: str
    suffix: str
    checked: bool
    target: str | None
    data: bytes


def _table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 250, (ROWS, COLUMNS)).astype(np.uint8)
    return X * (rng.random(X.shape) < 0.6), np.arange(ROWS) % CLASSES


def _written(write: Any) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _idx(values: np.ndarray) -> bytes:
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


def _forms() -> list[Form]:
    X, y = _table()
    sparse = scipy.sparse.csc_matrix(X.astype(float))
    frame = pd.DataFrame(X / 7, columns=[f"c{i}" for i in range(COLUMNS)]).assign(label=y)
    return [
        Form("csv", ".csv", False, "label", frame.to_csv(index=False).encode()),
        Form("tsv", ".tsv", False, "label", frame.to_csv(index=False, sep="\t").encode()),
        Form("npz", ".npz", True, None, _written(lambda f: np.savez(f, X=X / 7, y=y))),
        Form("npz, packed", ".npz", True, None,
             _written(lambda f: np.savez_compressed(f, X=X, y=y))),
        Form("npz, sparse", ".npz", True, None,
             _written(lambda f: scipy.sparse.save_npz(f, sparse))),
        Form("libsvm", ".libsvm", False, None,
             _written(lambda f: dump_svmlight_file(X / 7, y, f, zero_based=False))),
        Form("parquet", ".parquet", False, "label", _written(lambda f: frame.to_parquet(f))),
        Form("idx", "train-images-idx3-ubyte", False, None, _idx(X.reshape(ROWS, 4, 4))),
        Form("idx, gzip", "train-images-idx3-ubyte.gz", True, None,
             gzip.compress(_idx(X.reshape(ROWS, 4, 4)))),
    ]  # fmt: skip


FORMS = _forms()


def _read(form: Form, data: bytes) -> Dataset:
    with tempfile.TemporaryDirectory() as folder:
        if not form.name.startswith("idx"):
            path = Path(folder, f"a{form.suffix}")
            path.write_bytes(data)
            return load(str(path), target=form.target, max_bytes=MAX_BYTES)
        y = _table()[1].astype(np.uint8)
        Path(folder, form.suffix).write_bytes(data)
        Path(folder, "train-labels-idx1-ubyte").write_bytes(_idx(y))
        Path(folder, "t10k-images-idx3-ubyte").write_bytes(_idx(np.zeros((2, 4, 4), np.uint8)))
        Path(folder, "t10k-labels-idx1-ubyte").write_bytes(_idx(y[:2]))
        entry = dataclasses.replace(
            ENTRIES["mnist"],
            shape=(ROWS + 2, COLUMNS),
            num_classes=CLASSES,
            first_labels=None,
            image_shape=(4, 4),
        )
        before, ENTRIES["mnist"] = ENTRIES["mnist"], entry
        try:
            return load("mnist", folder, download=False)
        finally:
            ENTRIES["mnist"] = before


def _values(dataset: Dataset) -> tuple[np.ndarray, np.ndarray | None]:
    X = dataset.X.toarray() if scipy.sparse.issparse(dataset.X) else dataset.X
    return np.asarray(X, np.float64), dataset.y


def _judge(form: Form, dataset: Dataset) -> Outcome:
    """Judges a loaded table; without checksums of all values, any valid table is accepted."""
    if scipy.sparse.issparse(dataset.X) and dataset.X.shape[0] * dataset.X.shape[1] > 10**6:
        return (WRONG if form.checked else POSSIBLE), f"{form.name}: a table of {dataset.X.shape}"
    (X, y), (X_right, y_right) = _values(dataset), _values(_read(form, form.data))
    same_X = X.shape == X_right.shape and np.array_equal(X, X_right)
    same_y = (y is None) == (y_right is None) and (y is None or np.array_equal(y, y_right))
    if same_X and same_y and dataset.feature_names == _read(form, form.data).feature_names:
        return RIGHT, form.name
    could_be = np.isfinite(X).all() and (y is None or len(y) == len(X) and np.isfinite(y).all())
    if form.checked:
        return WRONG, form.name
    return (POSSIBLE if could_be else WRONG), form.name


def attempt(number: int, seed: int) -> Outcome:
    """The outcome of one damaged file."""
    rng = np.random.default_rng([seed, 1, number])
    form = FORMS[number % len(FORMS)]
    data = damaged(form.data, rng)
    kind, message = outcome_of(lambda: _read(form, data), lambda dataset: _judge(form, dataset))
    return kind, f"{form.name}: {message}"
