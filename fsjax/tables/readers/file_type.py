"""A file of the user: where it may be, its type by its first bytes, messages if it is damaged."""

import contextlib
import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from fsjax.errors import DataError

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"\x1f\x9d", "a compress (.Z) file"),
    (b"BZh", "a bzip2 file"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file (.xls)"),
    (b"PAR1", "a Parquet file"),
    (b"\x89HDF", "an HDF5 file (MATLAB v7.3 saves these)"),
    (b"MATLAB 5.0", "a MATLAB file"),
    (b"MATLAB 7.3", "a MATLAB v7.3 file"),
    (b"\x93NUMPY", "a single NumPy array (.npy)"),
    (b"version https://git-lfs", "a Git LFS pointer, not the data itself"),
)


#: The first two bytes of text in UTF-16.
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def sniff(start: bytes) -> str:
    """Name the type of a file from its first bytes, of which 512 are enough.

    For example ``'a PNG image'``, ``'a web page (HTML)'``, ``'empty'``, ``'text'`` or
    ``'of an unknown kind'``.
    """
    if not start:
        return "empty"
    for signature, kind in _SIGNATURES:
        if start.startswith(signature):
            return kind
    if start[:2] in UTF16_MARKS:
        return "text"
    head = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml")):
        return "a web page (HTML)"
    if b"\0" in start:
        return "of an unknown kind"
    return "text"


def candidates(name: str, folders: Sequence[Path]) -> list[Path]:
    """The paths at which a file is looked up: the name itself and, if relative, in the folders."""
    path = Path(name).expanduser()
    return [path] if path.is_absolute() else [path, *(folder / path for folder in folders)]


def located(name: str, folders: Sequence[Path] = ()) -> Path:
    """The path of a file, given itself or, if relative, looked up in folders.

    Raises:
      DataError: if there is none; it names a file that is called nearly so.
    """
    places = candidates(name, folders)
    if existing := next(filter(Path.is_file, places), None):
        return existing
    path = places[0]
    if path.is_dir():
        raise DataError(
            f"{path} is a folder; give the path of a file in it, or convert "
            "a folder of Parquet files (fsjax convert)"
        )
    if path.exists():
        raise DataError(f"{path} is a pipe or a device; save the table to a file first")
    folder = path.parent
    beside = [item.name for item in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, beside, n=1)
    raise DataError(
        f"there is no file {name}"
        + (f"; did you mean {folder / close[0]}?" if close else "")
        + f" (looked in {', '.join(str(item.parent.resolve()) for item in places)})"
    )


@contextlib.contextmanager
def reader_errors(where: object, fault: str = "cannot be read") -> Iterator[None]:
    """Turns any error of a reader into a DataError that names the file as ``where``."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    except Exception as error:  # a damaged file may raise anything in a reader
        raise DataError(
            f"{where} {fault}: {first_line(error)}; it may be truncated or damaged: save or "
            "download it again"
        ) from None


def first_line(error: Exception) -> str:
    """The first line of an error message, or the name of the error if it has no message."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0]
