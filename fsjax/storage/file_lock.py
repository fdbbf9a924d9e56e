"""Exclusive use of a folder by one thread of one process, by a lock file in that folder."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from fsjax.errors import ConfigError

#: Name of the lock file.
NAME = ".fsjax.lock"

#: Errors of read-only folders, and of file systems without locks.
_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}


@contextmanager
def exclusive(folder: str | Path) -> Iterator[None]:
    """Lock a folder against other threads and processes; it is created if it does not exist.

    The lock is released when the process ends, even if it is killed. The thread that holds it may
    lock again. At the end of its last block the lock file is removed, and so are folders that were
    created for it and are still empty.

    A read-only folder is not locked; a file system without locks gives a warning.

    Raises:
      ConfigError: if another process, or another thread of this one, holds the lock; if the folder
        is a file.
      OSError: if the folder cannot be created or the lock file cannot be opened.
    """
    path = Path(os.path.realpath(folder))
    created = [parent for parent in (path, *path.parents) if not parent.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"{folder} is a file, or is inside one; name a folder") from None
    # One object per file, so that the thread that holds the lock may lock again.
    lock = FileLock(path / NAME, timeout=0, is_singleton=True)
    try:
        lock.acquire()
    except Timeout:
        raise ConfigError(
            f"{folder} is in use by another process, or another thread of this one; wait until it "
            "ends, or name another folder"
        ) from None
    except OSError as error:
        if error.errno in _NO_LOCKS:
            warnings.warn(
                f"the file system of {folder} has no locks ({error.strerror}), so that a second "
                "process there is not noticed",
                stacklevel=3,
            )
        elif error.errno not in _READ_ONLY:
            raise
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            # Before the release: whoever waits for this file notices that it is gone.
            with contextlib.suppress(OSError):
                (path / NAME).unlink()
                for parent in created:
                    parent.rmdir()
        lock.release()  # without effect if it was not acquired
