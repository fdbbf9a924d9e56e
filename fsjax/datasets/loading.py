"""Load a data set by its registered name or from the user's own file: the only entry point."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.datasets import load_digits

from fsjax.datasets.catalog import ENTRIES, Entry
from fsjax.datasets.download import fetch
from fsjax.datasets.files import Found, find, places
from fsjax.datasets.generated import ehr_like, madelon_like
from fsjax.datasets.nonlinear import ring_xor_sum
from fsjax.errors import ConfigError, DataError, check_choice, check_flag, nearest
from fsjax.readers.file_type import first_line, sniff
from fsjax.readers.formats import Table, compact
from fsjax.readers.on_disk import find_on_disk, load_on_disk
from fsjax.readers.table_files import KINDS, load_table
from fsjax.tables.checks import check_features
from fsjax.tables.dataset import Dataset
from fsjax.tables.dense import dense
from fsjax.tables.imputation import RULES, impute


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
    """Load a data set; ``y`` has its classes from 0 in sorted order (-1 becomes 0, +1 becomes 1).

    A registered name is looked for in ``data_dir``, then in ``$FSJAX_DATA``, then in
    ``~/.cache/fsjax`` (also in a folder of its name inside these), as ``.npz``, as the ``.mat``
    file of scikit-feature, or as the files of the original archive; otherwise it is downloaded
    from its public source to ``data_dir`` or ``~/.cache/fsjax``. ``digits``, ``madelon_like``,
    ``ehr_like`` and ``ring_xor_sum`` need no file. Any other name is the path of the user's own
    table (see :func:`fsjax.data.load_table`).

    Args:
        name: one of :func:`available`, or a path.
        data_dir: the first folder to look in, and where downloads go.
        target: for the user's own table, the column to predict, by name or number, or several.
        download: whether to download what is not found.
        **options: ``impute`` (``'mean'`` or ``'median'``, for tables and sets with missing
            values). ``mice_protein`` has missing values; its default ``'class_mean'`` (IP-CAE
            paper, appendix A.4) fills them with the mean of the same class over the whole set
            before the split, so **the class of test rows leaks into their features**; ``'mean'``
            (of the column) does not use classes. ``dense`` makes a sparse file of your own a
            dense table, and reads a table on disk into memory; ``max_bytes`` limits the memory that
            such a file may take; ``separator`` and ``decimal`` say how a text table is written,
            where they are not detected. For ``madelon_like``, ``ehr_like`` and ``ring_xor_sum``,
            the arguments of the functions of these names in ``fsjax.data``.

    Raises:
        DataError: if the name is unknown, or the data is missing, broken or not usable.
        ConfigError: for an option that the data set does not have.
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
    of_files = () if name in ENTRIES else ("dense", "max_bytes", "separator", "decimal")
    allowed = (*(inspect.signature(generate).parameters if generate else ()), "impute", *of_files)
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
    search = partial(find, name, entry.forms, tuple(where.values()), entry.source, published)
    contents, reason = search(), "download=False"
    if contents is None and download:
        folder = where.get("data.dir", where["cache"]) / name
        try:
            for remote in entry.remotes:
                fetch(remote, folder)
        except DataError as error:
            reason = str(error)
        else:
            contents, reason = search(), f"what came into {folder} does not hold the files"
    if contents is None:
        raise DataError(_not_found(name, entry, where, reason))
    return _dataset(name, entry, contents, rule)


def _dataset(name: str, entry: Entry, contents: Found, rule: str | None) -> Dataset:
    table, labels = _parse(name, entry, contents)
    X = compact(table.X)
    y = np.unique(labels, return_inverse=True)[1].astype(np.int32)
    _check_expected(name, entry, contents, X, y)
    if fill := rule or entry.impute:
        X = impute(X, y, fill, contents.where)
    check_features(X, table.feature_names, contents.where)
    split = table.split
    if split is None and entry.train_rows and not contents.paths[0].name.endswith(".npz"):
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
        source=contents.where + (f" ({contents.form.note})" if contents.form.note else ""),
    )


def _parse(name: str, entry: Entry, contents: Found) -> tuple[Table, np.ndarray]:
    """The table of the files, X dense, and its labels ``(N,)``."""
    try:
        table = contents.form.read(contents.contents)
        if issparse(table.X):
            table = table._replace(X=dense(table.X))
    except ImportError as error:
        raise DataError(
            f"{contents.where} needs one more Python package to be read: {error} Or save it as "
            ".csv beside"
        ) from None
    except Exception as error:  # whatever a reader trips over, the file is at fault
        kinds = {sniff(content[:512]) for content in contents.contents}
        raise DataError(
            f"{contents.where} cannot be read as {contents.form.kind} of {name!r}: "
            f"{first_line(error)} (the file is {' and '.join(sorted(kinds))}); delete it and get "
            f"it again from {entry.source}"
        ) from None
    if table.y is None:
        raise DataError(f"{contents.where} has no labels; {name!r} needs the array y beside X")
    if len(table.y) != len(table.X):
        raise DataError(
            f"{contents.where} has {len(table.X)} rows and {len(table.y)} labels; it is damaged, "
            f"get it again from {entry.source}"
        )
    return table, table.y


def _check_expected(name: str, entry: Entry, contents: Found, X: np.ndarray, y: np.ndarray) -> None:
    shape, classes = contents.form.shape or entry.shape, int(y.max()) + 1
    wanted = list(entry.first_labels or ()) if contents.form.kind == "IDX file" else []
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
        f"{contents.where}: {problem} for {name!r}; is it another data set, or cut short? Rename "
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
        "Put one of these files into one of these folders, or say where it is with data.dir or "
        f"the environment variable FSJAX_DATA.{hint}"
    )
