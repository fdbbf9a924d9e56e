"""One process at a time in a folder."""

from __future__ import annotations

import getpass
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from fsjax.errors import ConfigError


@contextmanager
def exclusive(folder: str | Path) -> Iterator[None]:
    """Keeps other processes of this machine out of a folder, which need not exist yet.

    The lock ends with the process, however it ends. Nothing is written into the folder: the lock
    lies among the temporary files, so that processes of other machines, which share the folder by
    a network, are not kept out. A process that holds it already may ask again.

    Raises:
      ConfigError: if another process holds it; its number is told.
    """
    # Of the user, as folders for everybody are no place for files that others may put there.
    path = Path(tempfile.gettempdir()) / f"fsjax-locks-{_user()}"
    path.mkdir(mode=0o700, exist_ok=True)
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    lock, holder = FileLock(path / f"{name}.lock", is_singleton=True), path / f"{name}.pid"
    try:
        lock.acquire(timeout=0)
    except Timeout:
        number = holder.read_text() if holder.exists() else "of unknown number"
        raise ConfigError(
            f"{folder} is in use by the process {number}; wait for its end, or name another folder"
        ) from None
    try:
        holder.write_text(str(os.getpid()))
        yield
    finally:
        lock.release()


def _user() -> str:
    """A number has no need of an entry for the user, which containers may lack."""
    return str(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()
