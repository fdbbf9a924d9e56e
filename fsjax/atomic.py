"""Files that appear complete or not at all: written under another name, then moved into place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def atomic_open(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a file for writing bytes; it takes its name only when the block ends well.

    Missing folders are made. When the block raises, an older file of that name is left as it was.

    Args:
      path: the file to write.

    Yields:
      The open binary file.

    Raises:
      OSError: if the folder cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, because a move is only atomic within one file system.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Writes UTF-8 text atomically.

    Raises:
      OSError: if the folder cannot be written.
    """
    with atomic_open(path) as file:
        file.write(text.encode("utf-8"))
