"""Files that appear complete or not at all: written under another name, then moved into place."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: Names under which files are written.
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")


@contextmanager
def atomic_open(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a file for writing bytes; it takes its name only when the block ends well.

    Missing folders are made. When the block raises, an older file of that name is left as it was.

    Args:
      path: the file to write.

    Yields:
      The open binary file.

    Raises:
      OSError: if the folder cannot be written, with the name of the file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, because a move is only atomic within one file system; of a name that
    # nobody can guess and put a link there.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            # A name that outlives a power cut before its content does is half a file.
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync(path.parent)
    except OSError as error:
        if error.errno is None or error.filename not in (None, os.fspath(temporary)):
            raise
        # The name that the user knows: a write that fails tells none at all.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def named_errors(path: str | Path) -> Iterator[None]:
    """Gives an OSError the name of the file that is read or written, which the system leaves out.

    It names a file that cannot be opened, but not one on whose disk there is no room.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def remove_leftovers(folder: Path) -> None:
    """Removes what processes that were killed while writing left in a folder.

    Nobody else may be writing there.
    """
    for path in folder.glob(".*.tmp"):
        if _TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Makes the names in a folder outlive a power cut, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: str | Path, text: str) -> None:
    """Writes UTF-8 text atomically.

    Raises:
      OSError: if the folder cannot be written.
    """
    with atomic_open(path) as file:
        file.write(text.encode("utf-8"))
