"""Search for the files of a registered data set, in folders and archives."""

import io
import itertools
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fsjax.engine.environment.memory_limits import check_bytes
from fsjax.errors import DataError
from fsjax.tables.datasets.download import check_recorded
from fsjax.tables.readers.formats import FileTable

_PACKED = ("", ".gz")


@dataclass(frozen=True)
class FileForm:
    """One form in which a data set is distributed.

    Attributes:
        kind: its name in messages, for example ``'NumPy archive'``.
        read: converts the contents of ``members``, in their order, to a table.
        members: the files that are needed; for each, its possible names (in any letter case, also
            followed by ``.gz``).
        folders: folders and archives (zip, tar) that may hold them, relative to a place or to
            ``place/<name of the data set>``; the places themselves are always searched.
        shape: (rows, columns), if this form differs from the whole data set.
        note: is added to the source line of the data set.
        fallback: whether it is used only if no other form is found in any place.
    """

    kind: str
    read: Callable[[Sequence[bytes]], FileTable]
    members: tuple[tuple[str, ...], ...]
    folders: tuple[str, ...] = ()
    shape: tuple[int, int] | None = None
    note: str = ""
    fallback: bool = False


class FoundFiles(NamedTuple):
    """The files of one form: their paths and contents."""

    form: FileForm
    paths: tuple[Path, ...]
    contents: tuple[bytes, ...]

    @property
    def where(self) -> str:
        """The files, for messages."""
        more = len(self.paths) - 1
        return f"{self.paths[0]} and {more} more" if more else str(self.paths[0])


def places(data_dir: str | Path | None) -> dict[str, Path]:
    """The folders to search, in order, by the names that messages use for them."""
    folders = {
        "data.dir": data_dir,
        "FSJAX_DATA": os.environ.get("FSJAX_DATA"),
        "cache": "~/.cache/fsjax",
    }
    return {label: Path(folder).expanduser() for label, folder in folders.items() if folder}


def find_file(
    name: str,
    forms: Sequence[FileForm],
    where: Sequence[Path],
    source: str,
    published: Mapping[str, str | None] = {},
) -> FoundFiles | None:
    """Find the first form of a data set that is complete in one of the places.

    Args:
        forms: in order of preference.
        source: where the data set is published, for messages.
        published: checksums by file name.

    Raises:
        DataError: if a file or archive cannot be read, or has changed since it was downloaded.
    """
    for fallback, place, form in itertools.product((False, True), where, forms):
        if form.fallback != fallback:
            continue
        for base, folder in itertools.product((place, place / name), ("", *form.folders)):
            if contents := _gather(base / folder, form, source):
                for path in contents.paths:
                    check_recorded(path, published.get(path.name))
                return contents
    return None


def _gather(container: Path, form: FileForm, source: str) -> FoundFiles | None:
    paths: tuple[Path, ...] = (container,)
    contents: tuple[bytes, ...] | None = None
    try:
        if container.is_dir():
            paths = tuple(filter(None, (_file_in(container, names) for names in form.members)))
            if len(paths) == len(form.members):
                contents = tuple(path.read_bytes() for path in paths)
        elif container.is_file():
            open_archive = _from_zip if container.suffix == ".zip" else _from_tar
            contents = open_archive(container, form.members)
    except Exception as error:  # a damaged archive may raise anything
        raise DataError(
            f"{container} cannot be read ({error}); it may be truncated or damaged: delete it and "
            f"get it again from {source}"
        ) from None
    return FoundFiles(form, paths, contents) if contents else None


def _file_in(folder: Path, alternatives: Sequence[str]) -> Path | None:
    for member in alternatives:
        parent = (folder / member).parent
        wanted = {(Path(member).name + packed).lower() for packed in _PACKED}
        for path in sorted(parent.iterdir()) if parent.is_dir() else ():
            if path.name.lower() in wanted and path.is_file():
                return path
    return None


def _matches(inside: str, alternatives: Sequence[str]) -> bool:
    endings = [f"/{member}{packed}".lower() for member in alternatives for packed in _PACKED]
    return f"/{inside}".lower().endswith(tuple(endings))


def _from_zip(
    source: Path | io.BytesIO, members: Sequence[Sequence[str]]
) -> tuple[bytes, ...] | None:
    with zipfile.ZipFile(source) as archive:
        names = archive.namelist()
        matching = (
            next((name for name in names if _matches(name, alternatives)), None)
            for alternatives in members
        )
        chosen = [name for name in matching if name]
        if len(chosen) == len(members):
            _check_unpacked(archive.getinfo(name).file_size for name in chosen)
            return tuple(archive.read(name) for name in chosen)
        nested = [name for name in names if name.lower().endswith(".zip")]
        _check_unpacked(archive.getinfo(name).file_size for name in nested)
        inside = (_from_zip(io.BytesIO(archive.read(name)), members) for name in nested)
        return next(filter(None, inside), None)


def _from_tar(source: Path, members: Sequence[Sequence[str]]) -> tuple[bytes, ...] | None:
    contents: dict[int, bytes] = {}
    total_size = 0
    with tarfile.open(source) as archive:
        for item in filter(tarfile.TarInfo.isfile, archive):
            for index, alternatives in enumerate(members):
                file = archive.extractfile(item) if _matches(item.name, alternatives) else None
                if file is not None:
                    total_size += item.size
                    _check_unpacked([total_size])
                    contents[index] = file.read()
    if len(contents) < len(members):
        return None
    return tuple(contents[index] for index in range(len(members)))


def _check_unpacked(sizes: Iterable[int]) -> None:
    """DataError if the sizes add up to more than half of the free memory."""
    check_bytes(sum(sizes), None, "unpacked, its files", "it may be damaged or hostile")
