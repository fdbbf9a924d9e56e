"""``load``: a data set by its registered name, or a user's table by its path."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from fsjax.errors import ConfigError, DataError, check_choice, check_flag, nearest
from fsjax.tables.checks import check_features
from fsjax.tables.dataset import Dataset
from fsjax.tables.datasets.catalog import ENTRIES, Entry
from fsjax.tables.datasets.download import fetch
from fsjax.tables.datasets.files import FoundFiles, find_file, places
from fsjax.tables.datasets.generated import ehr_like, madelon_like
from fsjax.tables.datasets.nonlinear import ring_xor_sum
from fsjax.tables.imputation import RULES, impute
from fsjax.tables.readers.file_type import first_line, sniff
from fsjax.tables.readers.formats import FileTable, compact
from fsjax.tables.readers.on_disk import find_on_disk, load_on_disk
from fsjax.tables.readers.table_files import KINDS, load_table
from fsjax.tables.sparse import dense


def available() -> tuple[str, ...]:
    """The registered names, in alphabetical order."""
    return tuple(sorted(ENTRIES))


def load(
    name: str,
    data_dir: str | Path | None = None,
    target: str | int | Sequence[str | int] | None = None,
    download: bool = True,
    **options: Any,
) -> Dataset:
    """Load a data set; ``y`` has classes from 0 in sorted order (-1 becomes 0, +1 becomes 1).

    A registered name is searched in ``data_dir``, ``$FSJAX_DATA`` and ``~/.cache/fsjax``, in this
    order (also in a folder of its name inside these), as ``.npz``, as the ``.mat`` file of
    scikit-feature, or as the files of the original archive; otherwise it is downloaded from its
    public source to ``data_dir`` or ``~/.cache/fsjax``. ``digits``, ``madelon_like``,
    ``ehr_like`` and ``ring_xor_sum`` need no file. Any other name is the path of a user's table
    (see :func:`fsjax.data.load_table`).

    Args:
        name: one of :func:`available`, or a path.
        data_dir: the first folder to search, and the folder for downloads.
        target: of a user's table, the column to predict, by name or number, or several.
        download: whether to download data sets that are not found.
        **options: ``impute`` (``'mean'`` or ``'median'``, for tables and data sets with missing
            values). ``mice_protein`` has missing values; by its default ``'class_mean'`` (IP-CAE
            paper, appendix A.4) they become the mean of the same class over the whole set before
            the split, so that **the class of test rows leaks into their features**; ``'mean'``
            (of the column) does not use classes. ``dense`` converts a sparse file to a dense
            table, and reads a table on disk into memory; ``max_bytes`` limits the memory that
            a file may take; ``separator`` and ``decimal`` say how a text table is written, if
            they are not to be detected, and ``skip_rows`` how many lines come before it. For
            ``madelon_like``, ``ehr_like`` and ``ring_xor_sum``,
            the arguments of the functions of these names in ``fsjax.data``.

    Raises:
        DataError: if the name is unknown, or the data is missing, damaged or not usable.
        ConfigError: for an option that the data set does not have.

    Examples:
      >>> print(fsjax.data.available())  # the names that load knows
      >>> digits = fsjax.data.load("digits")  # a data.Dataset
      >>> print(digits.X.shape, digits.num_classes)
      >>> table = fsjax.data.as_dataset(np.eye(20), np.arange(20.0), task="regression")
      >>> table = fsjax.data.check_task(table, "regression")
    """
    name, target = str(name), None if target == "" else target
    suffix = Path(name).suffix.lower()
    is_table = suffix in (*KINDS, ".npy", ".fsjax") or Path(name).expanduser().exists()
    if name not in ENTRIES and not is_table:
        raise DataError(
            f"unknown data set {name!r}; {nearest(name, available())}; or give the path of "
            f"your own table ({', '.join(KINDS)})"
        )
    generate = _GENERATED.get(name)
    file_options = (
        () if name in ENTRIES else ("dense", "max_bytes", "separator", "decimal", "skip_rows")
    )
    arguments = inspect.signature(generate).parameters if generate else ()
    allowed = (*arguments, "impute", *file_options)
    for option in options:
        if option not in allowed:
            raise ConfigError(f"{name!r} has no option {option!r}; {nearest(option, allowed)}")
    rule = options.pop("impute", None)
    folders = tuple(places(data_dir).values())
    on_disk = None if name in ENTRIES else find_on_disk(name, folders)
    if on_disk is not None:
        if rule is not None:
            raise ConfigError(
                f"impute={rule!r} is for tables in memory; fill the missing values of {name} "
                "before it is saved or converted"
            )
        return load_on_disk(on_disk, target, check_flag("dense", options.pop("dense", False)))
    if name not in ENTRIES:
        return load_table(name, folders, target, rule, **options)
    if rule is not None:
        check_choice("impute", rule, RULES)
    if target is not None:
        raise ConfigError(
            f"target={target!r} is for your own tables; {name!r} has its own target, leave it out"
        )
    return generate(**options) if generate else _load_files(name, data_dir, download, rule)


def _digits() -> Dataset:
    bunch = load_digits()
    return Dataset(
        name="digits",
        X=bunch.data.astype(np.uint8),
        y=bunch.target.astype(np.int32),
        feature_names=tuple(map(str, bunch.feature_names)),
        class_names=tuple(map(str, bunch.target_names)),
        image_shape=(8, 8),
        source="scikit-learn",
        paper=ENTRIES["digits"].paper,
    )


_GENERATED: dict[str, Callable[..., Dataset]] = {
    "digits": _digits,
    "ehr_like": ehr_like,
    "madelon_like": madelon_like,
    "ring_xor_sum": ring_xor_sum,
}


def _load_files(
    name: str, data_dir: str | Path | None, download: bool, rule: str | None
) -> Dataset:
    entry, where = ENTRIES[name], places(data_dir)
    published = {remote.file: remote.sha256 for remote in entry.remotes}
    search = partial(find_file, name, entry.forms, tuple(where.values()), entry.source, published)
    files, reason = search(), "download=False"
    if files is None and download:
        folder = where.get("data.dir", where["cache"]) / name
        try:
            for remote in entry.remotes:
                fetch(remote, folder)
        except DataError as error:
            reason = str(error)
        else:
            files, reason = search(), f"the download in {folder} does not hold the files"
    if files is None:
        raise DataError(_not_found(name, entry, where, reason))
    return _dataset(name, entry, files, rule)


def _dataset(name: str, entry: Entry, files: FoundFiles, rule: str | None) -> Dataset:
    table, labels = _parse(name, entry, files)
    X = compact(table.X)
    y = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    _check_expected(name, entry, files, X, y)
    if fill := rule or entry.impute:
        X = impute(X, y, fill, files.where)
    check_features(X, table.feature_names, files.where)
    split = table.split
    if split is None and entry.train_rows and not files.paths[0].name.endswith(".npz"):
        split = (np.arange(len(X)) >= entry.train_rows).astype(np.uint8)
    return Dataset(
        name=name,
        X=X,
        y=y,
        feature_names=table.feature_names,
        class_names=table.class_names or entry.class_names,
        official_split=split,
        image_shape=entry.image_shape,
        image_order=entry.image_order,
        source=files.where + (f" ({files.form.note})" if files.form.note else ""),
        paper=entry.paper,
    )


def _parse(name: str, entry: Entry, files: FoundFiles) -> tuple[FileTable, np.ndarray]:
    """The table of the files, X dense, and its labels ``(N,)``."""
    try:
        table = files.form.read(files.contents)
        table = table._replace(X=dense(table.X))
    except ImportError as error:
        raise DataError(
            f"{files.where} needs a further Python package to be read: {error} Install it, or "
            "save the file as .csv in the same folder"
        ) from None
    except Exception as error:  # a damaged file may raise anything in a reader
        kinds = {sniff(content[:512]) for content in files.contents}
        raise DataError(
            f"{files.where} cannot be read as {files.form.kind} of {name!r}: "
            f"{first_line(error)} (the file is {' and '.join(sorted(kinds))}); delete it and get "
            f"it again from {entry.source}"
        ) from None
    if table.y is None:
        raise DataError(f"{files.where} has no labels; {name!r} needs the array y beside X")
    if len(table.y) != len(table.X):
        raise DataError(
            f"{files.where} has {len(table.X)} rows and {len(table.y)} labels; it is damaged, "
            f"get it again from {entry.source}"
        )
    return table, table.y


def _check_expected(
    name: str, entry: Entry, files: FoundFiles, X: np.ndarray, y: np.ndarray
) -> None:
    shape, classes = files.form.shape or entry.shape, int(y.max()) + 1
    wanted = list(entry.first_labels or ()) if files.form.kind == "IDX file" else []
    first = y[: len(wanted)].tolist()
    if X.shape != shape:
        problem = f"X is {X.shape}, expected {shape}"
    elif classes != entry.num_classes:
        problem = f"y has {classes} classes, expected {entry.num_classes}"
    elif first != wanted:
        problem = f"the first labels are {first}, expected {wanted}"
    else:
        return
    raise DataError(
        f"{files.where}: {problem} for {name!r}; is it another data set, or truncated? Rename "
        f"it (your own tables are loaded by their path), or get {name!r} from {entry.source}"
    )


def _not_found(name: str, entry: Entry, where: dict[str, Path], reason: str) -> str:
    files = "; ".join(" + ".join(names[0] for names in form.members) for form in entry.forms)
    looked = "; ".join(
        f"{label} {folder}" + ("" if folder.is_dir() else " (does not exist)")
        for label, folder in where.items()
    )
    hint = f" {entry.hint}." if entry.hint else ""
    return (
        f"the data set {name!r} was not found and not downloaded.\n"
        f"  looked for: {files}\n"
        f"  looked in: {looked} (and in a folder {name!r} inside each)\n"
        f"  source: {entry.source}\n"
        f"  reason: {reason}\n"
        "Put one of these files into one of these folders, or give its folder as data.dir or in "
        f"the environment variable FSJAX_DATA.{hint}"
    )
