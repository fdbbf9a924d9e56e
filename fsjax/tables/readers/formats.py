"""Readers of the forms in which public data sets are distributed, and of files of arrays.

Each reader takes the contents of its files, in the order in which the catalog lists them, and may
raise any exception on a damaged file; the caller turns that into a message.
"""

import gzip
import io
import pickle
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.datasets import load_svmlight_file

from fsjax.engine.environment.memory_limits import check_bytes, limit_of
from fsjax.errors import DataError
from fsjax.storage.npz import open_arrays
from fsjax.tables.readers.matlab import read_arrays
from fsjax.tables.rounding import is_too_coarse
from fsjax.tables.sparse import as_csr, canonical, dense

_KERAS = ("x_train", "y_train", "x_test", "y_test")


class FileTable(NamedTuple):
    """The contents of files: X (N, D), labels as distributed, and further information."""

    X: np.ndarray | scipy.sparse.csr_array
    y: np.ndarray | None
    split: np.ndarray | None = None
    feature_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None


def compact(X: np.ndarray | scipy.sparse.csr_array) -> np.ndarray | scipy.sparse.csr_array:
    """Keep 8- and 16-bit integers; convert all other numbers to row-major float32.

    If float32 is too coarse to distinguish the rows of a column, such as times in seconds since
    1970, the type is float64.
    """
    if not isinstance(X, np.ndarray):
        values = compact(X.data)
        if values.dtype != X.dtype and is_too_coarse(X, values):
            values = X.data.astype(np.float64)
        return scipy.sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)
    if X.dtype == bool:
        return np.ascontiguousarray(X, dtype=np.uint8)
    if X.dtype.kind in "iu" and X.dtype.itemsize <= 2:
        return np.ascontiguousarray(X)
    if X.dtype.kind not in "iuf":
        raise DataError(f"X holds {X.dtype}, not real numbers; save a numeric array")
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(X, dtype=np.float32)
    return np.ascontiguousarray(X, dtype=np.float64) if is_too_coarse(X, rounded) else rounded


def read_npz(
    files: Sequence[bytes], target: str | int | None = None, max_bytes: int | None = None
) -> FileTable:
    """Read a NumPy archive with ``X`` and optionally ``y``, ``split`` and names.

    The arrays of the Keras archives (``x_train``, ``y_train``, ``x_test``, ``y_test``) are accepted
    too, and files of ``scipy.sparse.save_npz``, which have no ``y``. Nothing is unpickled.

    Args:
        files: the contents of one file.
        target: the name of the array to use as ``y``.
        max_bytes: limit on the unpacked size, by default half of the free memory.
    """
    if files[0].startswith(np.lib.format.MAGIC_PREFIX):
        raise DataError("it holds a single array; save with np.savez(path, X=..., y=...)")
    archive = open_arrays(io.BytesIO(files[0]), "unpacked, it", max_bytes)
    # NumPy does not notice all damage: the header of an array may give too small a shape.
    if wrong := zipfile.ZipFile(io.BytesIO(files[0])).testzip():
        raise DataError(f"the checksum of {wrong!r} is wrong; copy, download or save it again")
    if {"format", "shape", "data"} <= set(archive):
        return _saved_sparse(archive, target, max_bytes)
    if {"x_train", "x_test"} <= set(archive):
        return _joined(*(archive[name] for name in _KERAS))
    X = _pick(archive, ("X", "x"))
    y = _pick(archive, ("y", "Y"), target, needed=False)
    names = ("feature_names", "class_names")
    return FileTable(
        X.reshape(len(X), -1) if X.ndim > 2 else X,
        None if y is None else several(y),
        _marks(archive["split"]) if "split" in archive else None,
        **{key: tuple(map(str, archive[key])) for key in names if key in archive},
    )


def _marks(split: np.ndarray) -> np.ndarray:
    """(N,) uint8, 0 for training rows and 1 for test rows; DataError for anything else."""
    if split.dtype.kind not in "biuf" or not np.isin(split, (0, 1)).all():
        marks = np.unique(split)[:5].tolist()
        raise DataError(f"its array 'split' holds {marks}; give 0 for training and 1 for test rows")
    return split.astype(np.uint8)


def _saved_sparse(
    archive: Mapping[str, np.ndarray], target: str | int | None, max_bytes: int | None
) -> FileTable:
    """Read a file of ``scipy.sparse.save_npz``; the target is an array added to the archive.

    SciPy's own reader would follow damaged indices of some formats beyond its arrays.
    """
    kind = bytes(archive["format"].item()).decode()
    shape = tuple(map(int, archive["shape"]))
    values = archive["data"]
    if kind in ("csr", "csc", "bsr"):
        array_type = getattr(scipy.sparse, f"{kind}_array")
        X = array_type((values, archive["indices"], archive["indptr"]), shape=shape)
    elif kind == "coo":
        index = (archive["row"], archive["col"]) if "row" in archive else tuple(archive["coords"])
        X = scipy.sparse.coo_array((values, index), shape=shape)
    elif kind == "dia":
        X = scipy.sparse.dia_array((values, archive["offsets"]), shape=shape)
    else:
        raise DataError(f"its sparse matrix has the format {kind!r}; save a CSR matrix")
    y = _pick(archive, ("y", "Y"), target, needed=False)
    return FileTable(as_csr(X, "it", max_bytes), None if y is None else several(y))


def read_mat(
    files: Sequence[bytes], target: str | int | None = None, max_bytes: int | None = None
) -> FileTable:
    """Read a MATLAB file (version 7 or older) with ``X`` and ``Y``, or ``fea`` and ``gnd``.

    A sparse ``X`` stays sparse. Arguments as for :func:`read_npz`.
    """
    rows, usual = ("X", "x", "fea"), ("Y", "y", "gnd")
    wanted = (*rows, *(usual if target in (None, "") else (str(target),)))
    arrays = read_arrays(files[0], wanted, max_bytes)
    X = canonical(_pick(arrays, rows), "it", max_bytes)
    y = _pick(arrays, usual, target, needed=False)
    if y is None:
        return FileTable(X, None)
    y = dense(y, max_bytes)
    if y.dtype.kind == "U" and not y.all():
        raise DataError("its target has empty cells; leave these rows out")
    return FileTable(X, several(y))


def several(y: np.ndarray) -> np.ndarray:
    """A target as (N,), or as (N, C) if it has several columns."""
    return y if y.ndim == 2 and min(y.shape) > 1 else y.ravel()


def read_idx(files: Sequence[bytes]) -> FileTable:
    """Read MNIST and Fashion-MNIST: training images, labels, test images, labels."""
    return _joined(*(_idx_array(plain(data)) for data in files))


def read_isolet(files: Sequence[bytes]) -> FileTable:
    """Read ISOLET of the UCI archive: ``isolet1+2+3+4.data`` to train, ``isolet5.data`` to test."""
    train, test = (_numbers(data, ",") for data in files)
    return _joined(train[:, :-1], train[:, -1], test[:, :-1], test[:, -1])


def read_har(files: Sequence[bytes]) -> FileTable:
    """Read UCI HAR: X and y of train and test, ``features.txt``, ``activity_labels.txt``."""
    numbers = (_numbers(data, r"\s+") for data in files[:4])
    names = [line.split(maxsplit=1)[1] for line in plain(files[4]).decode().splitlines() if line]
    classes = [line.split()[1] for line in plain(files[5]).decode().splitlines() if line.strip()]
    return _joined(*numbers, feature_names=_unique(names), class_names=tuple(classes))


def read_mice(files: Sequence[bytes]) -> FileTable:
    """Read Mice Protein Expression: the 77 protein columns (NaN where missing) and the class."""
    frame = pd.read_csv(io.BytesIO(plain(files[0])))
    proteins = [name for name in frame.columns if str(name).endswith("_N")]
    return FileTable(
        frame[proteins].to_numpy(np.float32),
        frame["class"].to_numpy(dtype=str),
        feature_names=tuple(map(str, proteins)),
    )


def read_nips_dense(files: Sequence[bytes]) -> FileTable:
    """Read a dense set of the NIPS 2003 challenge: training and validation data with labels."""
    return _joined(*(_numbers(data, r"\s+") for data in files))


def read_dexter(files: Sequence[bytes]) -> FileTable:
    """Read Dexter of the NIPS 2003 challenge: rows of ``column:value`` pairs, columns from 1."""
    X_train, X_valid = (_sparse_rows(data, 20000) for data in (files[0], files[2]))
    y_train, y_valid = (_numbers(data, r"\s+") for data in (files[1], files[3]))
    return _joined(X_train, y_train, X_valid, y_valid)


def read_cifar10(files: Sequence[bytes]) -> FileTable:
    """Read CIFAR-10, Python version: five training batches, the test batch, ``batches.meta``."""
    batches = [_unpickle(data) for data in files]
    return _cifar(batches[:5], batches[5], b"labels", batches[6][b"label_names"])


def read_cifar100(files: Sequence[bytes]) -> FileTable:
    """Read CIFAR-100, Python version: ``train``, ``test`` and ``meta``; the 100 fine classes."""
    train, test, meta = (_unpickle(data) for data in files)
    return _cifar([train], test, b"fine_labels", meta[b"fine_label_names"])


def plain(data: bytes) -> bytes:
    """Decompress gzip files; DataError beyond half of the free memory."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    limit = limit_of(None)
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        content = file.read(limit + 1)
    check_bytes(len(content), limit, "unpacked, it", "it may be damaged or hostile")
    return content


def _pick(
    arrays: Mapping[str, Any],
    usual: Sequence[str],
    target: str | int | None = None,
    needed: bool = True,
) -> Any:
    """The array named ``target`` if given, otherwise the first with a usual name."""
    wanted = usual if target in (None, "") else (str(target),)
    for key in wanted:
        if key in arrays:
            return arrays[key]
    if wanted is usual and not needed:
        return None
    raise DataError(f"it has no array named {wanted[0]!r}; it holds {', '.join(arrays) or 'none'}")


def _joined(
    X_train: np.ndarray,
    y_train: np.ndarray,
    X_test: np.ndarray,
    y_test: np.ndarray,
    **names: tuple[str, ...],
) -> FileTable:
    """Join flattened training and test rows, and mark them as the official split."""
    X = np.concatenate([X_train, X_test])
    y = np.concatenate([y_train.ravel(), y_test.ravel()])
    split = np.repeat(np.array([0, 1], np.uint8), [len(X_train), len(X_test)])
    return FileTable(X.reshape(len(X), -1), y, split, **names)


def _idx_array(data: bytes) -> np.ndarray:
    if data[:3] != b"\0\0\x08" or len(data) < 4:
        raise DataError("it is not an IDX file of bytes")
    dimensions = data[3]
    start = 4 + 4 * dimensions
    shape = tuple(int(size) for size in np.frombuffer(data[4:start], ">u4"))
    if len(data) != start + int(np.prod(shape)):
        raise DataError(f"it is truncated: {len(data) - start} values for the shape {shape}")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _numbers(data: bytes, separator: str) -> np.ndarray:
    """A text matrix as float32; ragged lines are an error."""
    frame = pd.read_csv(
        io.BytesIO(plain(data)), sep=separator, header=None, skipinitialspace=True, dtype="float32"
    )
    return frame.to_numpy()


def _sparse_rows(data: bytes, columns: int) -> np.ndarray:
    """Read rows of ``column:value`` pairs, columns from 1, as (N, columns) uint16."""
    labelled = b"\n".join(b"0 " + line for line in plain(data).splitlines())
    X, _ = load_svmlight_file(io.BytesIO(labelled), n_features=columns, zero_based=False)
    return dense(X).astype(np.uint16)


def _unique(names: Sequence[str]) -> tuple[str, ...]:
    """Number the repeats of a name (HAR has 84 of them), so that names are unique."""
    column = pd.Series(names)
    number = column.groupby(column).cumcount() + 1
    return tuple(column.where(number == 1, column + " #" + number.astype(str)))


class _ArraysOnly(pickle.Unpickler):
    """Unpickles NumPy arrays and plain values, and refuses all that could run code."""

    def find_class(self, module: str, name: str) -> Any:
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return lambda kind, shape, dtype: kind(shape, dtype)
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        if (module, name) == ("_codecs", "encode"):
            return lambda text, encoding="latin1": text.encode("latin1")
        raise DataError(f"it refers to {module}.{name}, which may run code; download it again")


def _unpickle(data: bytes) -> dict[bytes, Any]:
    return _ArraysOnly(io.BytesIO(data), encoding="bytes").load()


def _cifar(
    train: Sequence[dict[bytes, Any]], test: dict[bytes, Any], key: bytes, names: Sequence[bytes]
) -> FileTable:
    def pixels(planes: np.ndarray) -> np.ndarray:
        return planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)

    return _joined(
        pixels(np.concatenate([batch[b"data"] for batch in train])),
        np.concatenate([batch[key] for batch in train]),
        pixels(test[b"data"]),
        np.asarray(test[key]),
        class_names=tuple(name.decode() for name in names),
    )
