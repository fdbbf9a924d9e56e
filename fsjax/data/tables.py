"""The user's own table: CSV, TSV, Parquet, NumPy archive, MATLAB or LIBSVM file."""

import csv
import difflib
import io
import warnings
from collections import Counter
from collections.abc import Callable, Container, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.datasets import load_svmlight_file

from fsjax.data.checks import check_features, name_some, numeric_columns
from fsjax.data.dataset import Dataset
from fsjax.data.dense import dense as as_table
from fsjax.data.impute import impute as fill
from fsjax.data.parsers import Table, compact, read_mat, read_npz
from fsjax.data.sniff import first_line, sniff
from fsjax.data.sparse import as_csr
from fsjax.data.targets import encode_target, encode_targets
from fsjax.errors import DataError, check_choice, check_flag, nearest
from fsjax.limits import check_bytes

RULES = ("mean", "median")
"""What ``impute`` may be for a user's table."""


#: Bytes that a column of a frame takes at least, a sparse one too.
_OF_A_COLUMN = 2000

Target = str | int | Sequence[str | int] | None
"""One column, or several, by name or number."""


class _Kind(NamedTuple):
    """How a suffix is read, and what such a file may look like inside (see ``sniff``)."""

    title: str
    read: Callable[[bytes, Target, int | None], Table]
    looks: tuple[str, ...]
    frame: Callable[[bytes, int | None], pd.DataFrame | None] = lambda data, max_bytes: None


def load_table(
    name: str,
    folders: Sequence[Path] = (),
    target: Target = None,
    impute: str | None = None,
    dense: bool = False,
    max_bytes: int | None = None,
) -> Dataset:
    """Load the user's own table as float32 (or compact integer) features.

    LIBSVM files, sparse ``.mat`` files and what ``scipy.sparse.save_npz`` wrote stay sparse.

    Args:
        name: path of a ``.csv``, ``.tsv``, ``.txt``, ``.parquet``, ``.npz`` (arrays ``X`` and
            ``y``), ``.mat`` (``X`` and ``Y``) or ``.libsvm``/``.svm`` file. Text tables have a
            line of column names.
        folders: where a relative path is looked for besides the working directory.
        target: the column to predict, by name or by number from 0 (-1 for the last); in ``.npz``
            and ``.mat`` files, the name of the array. Several, as a list or with commas between
            them (unless a column is called so), become the (N, C) numbers of ``y``: labels, or
            ``('time', 'event')``. None: no target in tables, ``y`` in the others.
        impute: None, or ``'mean'`` or ``'median'`` to fill missing values with that of their
            column; others are a ConfigError. It is computed over all rows, the later test rows
            included. Of a sparse table all zeros count as values.
        dense: whether a sparse file becomes a dense table, for methods that need one.
        max_bytes: memory that the file, and what it unfolds to, may take: small files may hold
            huge tables. None allows half of the free memory.

    Raises:
        DataError: if the file is missing, is not what its suffix says, or holds what cannot be
            used: text, missing or infinite values, duplicate names, no rows, one class; or if it
            would take more than ``max_bytes``.
    """
    if impute is not None:
        check_choice("impute", impute, RULES)
    check_flag("dense", dense)
    path = _locate(name, folders)
    where, table = str(path), _read(path, target, max_bytes)
    X = table.X
    if dense and issparse(X):
        X = _guarded(path, KINDS[path.suffix.lower()], lambda: as_table(X, max_bytes))
    X = _guarded(path, KINDS[path.suffix.lower()], lambda: compact(X))
    if impute is not None and X.ndim == 2 and min(X.shape):
        X = fill(X, None, impute, where)
    check_features(X, table.feature_names, where)
    y, class_names = None, None
    if table.y is not None:
        label = f"the target {target!r} of {where}" if target is not None else f"y of {where}"
        if np.ndim(table.y) == 2:
            y, class_names = encode_targets(table.y, label), None
        else:
            y, class_names = encode_target(table.y, label, table.class_names)
    return Dataset(
        name=path.name,
        X=X,
        y=y,
        feature_names=table.feature_names,
        class_names=class_names,
        official_split=table.split,
        source=where + (f", missing values filled with the {impute}" if impute else ""),
    )


def load_frame(
    name: str,
    target: Target = None,
    folders: Sequence[Path] = (),
    max_bytes: int | None = None,
) -> tuple[pd.DataFrame, np.ndarray]:
    """Load the user's own table as it is, with text, dates and gaps.

    Args:
        name: path of a file as :func:`load_table` reads it.
        target: the column to predict, or several, as :func:`load_table` takes them; only text
            and Parquet tables need one.
        folders: where a relative path is looked for besides the working directory.
        max_bytes: memory that it may take, as for :func:`load_table`.

    Returns:
        The (N, columns) frame without the target, and the (N,) target, or (N, C) for several, as it
        stands there. The frame of a sparse file has sparse columns.

    Raises:
        DataError: if the file is missing, is not what its suffix says, or has no such target.
    """
    path = _locate(name, folders)
    kind, data = _contents(path, max_bytes)
    frame = _guarded(path, kind, lambda: kind.frame(data, max_bytes))
    if frame is None:
        table = _guarded(path, kind, lambda: kind.read(data, target, max_bytes))
        told = f"{path}, as a frame of {table.X.shape[1]:,} columns,"
        check_bytes(_OF_A_COLUMN * table.X.shape[1], max_bytes, told, "keep fewer columns")
        names = table.feature_names or [f"x{i}" for i in range(table.X.shape[1])]
        if table.y is None:
            raise DataError(f"{path} has no array y; name the one that holds the target (--target)")
        made = pd.DataFrame.sparse.from_spmatrix if issparse(table.X) else pd.DataFrame
        return made(table.X, columns=list(names)), np.asarray(table.y)
    if len(frame) == 0:
        raise DataError(f"{path} is empty: there are column names but no rows")
    if target is None:
        raise DataError(
            f"{path}: name the column to predict (--target); the columns are "
            f"{name_some(list(frame.columns))}"
        )
    return _guarded(path, kind, lambda: _without_target(frame, target))


def _locate(name: str, folders: Sequence[Path]) -> Path:
    path = Path(name).expanduser()
    candidates = [path] if path.is_absolute() else [path, *(folder / path for folder in folders)]
    if found := next(filter(Path.is_file, candidates), None):
        return found
    if path.is_dir():
        raise DataError(f"{path} is a folder; give the path of a file in it")
    folder = path.parent
    beside = [item.name for item in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, beside, n=1)
    raise DataError(
        f"there is no file {name}; "
        + (f"did you mean {folder / close[0]}? " if close else "")
        + f"(looked in {', '.join(str(item.parent.resolve()) for item in candidates)})"
    )


def _read(path: Path, target: Target, max_bytes: int | None) -> Table:
    kind, data = _contents(path, max_bytes)
    return _guarded(path, kind, lambda: kind.read(data, target, max_bytes))


def _contents(path: Path, max_bytes: int | None) -> tuple[_Kind, bytes]:
    """How a file is read, by its suffix, and its bytes, which look like that."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        raise DataError(
            f"{path} has the suffix {path.suffix!r}, which is not read; "
            f"{nearest(path.suffix, KINDS)}"
        )
    try:
        check_bytes(path.stat().st_size, max_bytes, f"{path} as a whole", "give a larger max_bytes")
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    looks = sniff(data[:512])
    if looks == "empty":
        raise DataError(f"{path} is empty: it has 0 bytes")
    if looks not in kind.looks:
        raise DataError(
            f"{path} is {looks}, not {kind.title}, as its suffix {path.suffix} says; "
            "give the file its right suffix, or save or download it again"
        )
    return kind, data


def _guarded(path: Path, kind: _Kind, read: Callable[[], Any]) -> Any:
    """What is read, or a DataError that names the file."""
    try:
        return read()
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except Exception as error:  # whatever a reader trips over, the file is at fault
        raise DataError(
            f"{path} cannot be read as {kind.title}: {first_line(error)}; it may be cut short or "
            "damaged, save or download it again"
        ) from None


def _read_text(data: bytes, target: Target, separator: str | None) -> Table:
    return _from_frame(_text_frame(data, separator), target)


def _text_frame(data: bytes, separator: str | None) -> pd.DataFrame:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"it is not UTF-8 text (byte {error.start}); save it as CSV in UTF-8"
        ) from None
    if not text.strip():
        raise DataError("it is empty: there is no line of column names")
    first = text.lstrip().splitlines()[0]
    if separator is None:
        commonest = max(",\t;", key=first.count)
        separator = commonest if commonest in first else r"\s+"
    header = header_of(first, separator)
    check_header(header)
    try:
        with warnings.catch_warnings():
            # pandas only warns when it leaves out values that have no column name.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.StringIO(text),
                sep=separator,
                low_memory=False,
                skipinitialspace=True,
                index_col=False,
            )
    except pd.errors.ParserWarning:
        raise DataError(
            f"it has more values in a line than column names ({len(header)}); give every column a "
            "name, and remove separators at line ends"
        ) from None
    frame.columns = header
    # A nameless first column that only counts the rows, as pandas saves it.
    if header[0] == "" and len(frame) and np.array_equal(frame.iloc[:, 0], np.arange(len(frame))):
        frame = frame.iloc[:, 1:]
    return frame


def _parquet_frame(data: bytes, max_bytes: int | None) -> pd.DataFrame:
    import pyarrow.parquet as pq  # takes long, and few tables need it

    told = pq.read_metadata(io.BytesIO(data))
    size = f"a table of {told.num_rows:,} x {told.num_columns:,}"
    unpacked = sum(told.row_group(number).total_byte_size for number in range(told.num_row_groups))
    needed = max(8 * told.num_rows * told.num_columns, unpacked)
    check_bytes(needed, max_bytes, size, "keep fewer columns, or give a larger max_bytes")
    texts = _texts(told)
    if texts:
        needed += _size_of_texts(
            pq.read_table(io.BytesIO(data), columns=texts, read_dictionary=texts)
        )
        check_bytes(needed, max_bytes, f"{size} with its texts", "keep fewer columns of text")
    # Of pages that have checksums, they are looked at.
    frame = pd.read_parquet(io.BytesIO(data), page_checksum_verification=True)
    return frame.rename(columns=str)


def _texts(told: Any) -> list[str]:
    """The columns of a Parquet file, but for nested ones, whose values have their own lengths."""
    columns = [told.schema.column(number) for number in range(told.num_columns)]
    return [
        column.path
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and column.path == column.name
    ]


def _size_of_texts(table: Any) -> int:
    """Bytes of all texts, each of which the file may hold once for many rows."""
    total = 0
    for chunk in (chunk for column in table.columns for chunk in column.chunks):
        texts = getattr(chunk, "dictionary", chunk)
        lengths = np.array([len(text or "") for text in texts.to_pylist()] or [0], np.int64)
        rows = getattr(chunk, "indices", None)
        total += int((lengths if rows is None else lengths[rows.drop_null().to_numpy()]).sum())
    return total


def _read_parquet(data: bytes, target: Target, max_bytes: int | None) -> Table:
    return _from_frame(_parquet_frame(data, max_bytes), target)


def _read_libsvm(data: bytes, target: Target, max_bytes: int | None) -> Table:
    if target is not None:
        raise DataError(f"target={target!r}: the target of a LIBSVM file is its first column")
    X, y = load_svmlight_file(io.BytesIO(data), dtype=np.float32)
    return Table(as_csr(X, "it", max_bytes), y)


def _read_arrays(
    read: Callable[..., Table], data: bytes, target: Target, max_bytes: int | None
) -> Table:
    """A file of named arrays; several targets are several of them, side by side."""
    targets = [None] if target is None else _names((), target)
    tables = [read([data], one, max_bytes) for one in targets]
    if len(tables) == 1:
        return tables[0]
    return tables[0]._replace(y=np.column_stack([table.y for table in tables]))


def _read_plain_text(data: bytes, target: Target, max_bytes: int | None) -> Table:
    if _is_libsvm(data):
        return _read_libsvm(data, target, max_bytes)
    return _read_text(data, target, None)


def _plain_text_frame(data: bytes, max_bytes: int | None) -> pd.DataFrame | None:
    del max_bytes
    return None if _is_libsvm(data) else _text_frame(data, None)


def _is_libsvm(data: bytes) -> bool:
    cells = data.lstrip().split(b"\n", 1)[0].split()
    return len(cells) > 1 and b":" in cells[1]


_TEXT = ("text",)
KINDS: dict[str, _Kind] = {
    ".csv": _Kind(
        "a CSV table",
        lambda data, target, max_bytes: _read_text(data, target, ","),
        _TEXT,
        lambda data, max_bytes: _text_frame(data, ","),
    ),
    ".tsv": _Kind(
        "a table separated by tabs",
        lambda data, target, max_bytes: _read_text(data, target, "\t"),
        _TEXT,
        lambda data, max_bytes: _text_frame(data, "\t"),
    ),
    ".txt": _Kind("a text table", _read_plain_text, _TEXT, _plain_text_frame),
    ".parquet": _Kind("a Parquet file", _read_parquet, ("a Parquet file",), _parquet_frame),
    ".npz": _Kind(
        "a NumPy archive (np.savez)",
        partial(_read_arrays, read_npz),
        ("a zip archive",),
    ),
    ".mat": _Kind(
        "a MATLAB file of version 7 or older (save with -v7)",
        partial(_read_arrays, read_mat),
        ("a MATLAB file", "of an unknown kind"),
    ),
    ".libsvm": _Kind("a LIBSVM file", _read_libsvm, _TEXT),
    ".svm": _Kind("a LIBSVM file", _read_libsvm, _TEXT),
}
"""What is read, by suffix."""


def header_of(first: str, separator: str) -> list[str]:
    """The names as they stand in the first line; pandas would number repeated ones silently."""
    if separator == r"\s+":
        return first.split()
    cells = next(csv.reader([first], delimiter=separator, skipinitialspace=True))
    return [cell.strip() for cell in cells]


def check_header(header: list[str]) -> None:
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if _all_numbers(header) and (repeated or not all(name.isdigit() for name in header)):
        raise DataError(
            f"the first line holds numbers ({name_some(header)}); add a first line with column "
            "names"
        )
    if repeated:
        raise DataError(
            f"it has {len(repeated)} column names more than once: {name_some(repeated)}; give "
            "every column its own name"
        )


def _all_numbers(header: list[str]) -> bool:
    try:
        return bool([float(name) for name in header])
    except ValueError:
        return False


def _from_frame(frame: pd.DataFrame, target: Target) -> Table:
    if len(frame) == 0:
        raise DataError("it is empty: there are column names but no rows")
    y = None
    if target is not None:
        frame, y = _without_target(frame, target)
    if frame.shape[1] == 0:
        raise DataError("it has no columns besides the target; give at least one feature")
    names = numeric_columns(frame, "it")
    # Exactly; what the table needs of it is for :func:`compact` to say.
    X = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return Table(X, y, feature_names=names)


def _without_target(
    frame: pd.DataFrame, target: str | int | Sequence[str | int]
) -> tuple[pd.DataFrame, np.ndarray]:
    """The other columns, and the target (N,), or (N, C) for several."""
    names = [target_column(list(frame.columns), one) for one in _names(frame, target)]
    y = frame[names if len(names) > 1 else names[0]].to_numpy()
    return frame.drop(columns=names), y


def _names(columns: Container[str], target: Target) -> list[str | int]:
    """The targets that are meant."""
    if isinstance(target, str) and "," in target and target not in columns:
        return [name.strip() for name in target.split(",") if name.strip()]
    return [target] if isinstance(target, str | int) else list(target)


def target_column(columns: list[str], target: str | int) -> str:
    if target in columns:
        return target
    try:
        return columns[int(target)]
    except ValueError:
        close = nearest(target, columns)
        advice = f"{close} " if close.startswith("did you mean") else ""
        raise DataError(
            f"target={target!r} is no column; {advice}the columns are {name_some(columns)}"
        ) from None
    except IndexError:
        raise DataError(
            f"target={target} is no column of {len(columns)}; give a name, or a number from 0 to "
            f"{len(columns) - 1} (or -1 for the last)"
        ) from None
