"""Atomic writing: files are written under a temporary name and then renamed."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: Temporary names of files.
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")


@contextmanager
def atomic_open(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file for writing bytes; it gets its name only if the block ends without an error.

    Missing folders are created. If the block raises, an older file of that name stays unchanged.

    Yields:
      The open binary file.

    Raises:
      OSError: if the folder cannot be written to, with the name of the file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, because renaming is only atomic within one file system; with a random
    # name, so that nobody can place a link there.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with named_errors(path, temporary):
            with temporary.open("xb") as file:
                yield file
                file.flush()
                # Otherwise a power failure might keep the new name without all of the content.
                os.fsync(file.fileno())
            os.replace(temporary, path)
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def named_errors(path: str | Path, temporary: str | Path = "") -> Iterator[None]:
    """Add the name of the file to an OSError that has none, or that of a temporary file.

    The operating system names a file that cannot be opened, but not one on a full disk.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(temporary)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of processes that were killed while they wrote to a folder.

    No other process may be writing there.
    """
    for path in folder.glob(".*.tmp"):
        if _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Make the names in a folder survive a power failure, where the system supports it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically.

    Raises:
      OSError: if the folder cannot be written to.
    """
    with atomic_open(path) as file:
        file.write(text.encode("utf-8"))
