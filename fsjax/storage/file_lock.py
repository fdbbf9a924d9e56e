"""Exclusive use of a folder by one thread of one process, by a lock file in that folder."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import socket
import stat
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fsjax.errors import ConfigError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

#: Name of the lock file.
NAME = ".fsjax.lock"

#: Errors of a lock that another process has, of read-only folders, and of missing lock support.
_BUSY = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}
_READ_ONLY = {errno.EACCES, errno.EPERM, errno.EROFS}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}

#: How often opening is repeated if a lock file is removed between opening and locking.
_TRIES = 100


@dataclasses.dataclass
class _Lock:
    """A lock of a thread of this process.

    Attributes:
      file: path of the lock file.
      descriptor: of the open lock file; ``None`` in a read-only folder.
      new_folders: folders that were created for it, the innermost first.
      process, thread: numbers of the process and the thread that hold it. A process that was
        forked from the holder inherits this record, but not the right to the folder.
      blocks: number of blocks that hold it.
    """

    file: Path
    descriptor: int | None
    new_folders: list[Path]
    process: int = dataclasses.field(default_factory=os.getpid)
    thread: int = dataclasses.field(default_factory=threading.get_ident)
    blocks: int = 0


#: The locks of this process by the real path of the folder.
_held: dict[str, _Lock] = {}
_changes = threading.Lock()


@contextmanager
def exclusive(folder: str | Path) -> Iterator[None]:
    """Lock a folder against other threads and processes; it is created if it does not exist.

    The lock is released when the process ends, even if it is killed. The thread that holds it may
    lock again. At the end of the last block the lock file is removed, and so are folders that were
    created for it and are still empty.

    Processes on other machines that share the folder are excluded if the file system passes locks
    to its server, as NFS does on Linux; a file system without locks gives a warning. A read-only
    folder is not locked.

    Raises:
      ConfigError: if another process holds the lock, with its process number, or another thread of
        this process; if the folder is a file; if the lock file is a link, is not a regular file, or
        belongs to another user.
      OSError: if the folder cannot be created or the lock file cannot be opened.
    """
    path = os.path.realpath(folder)
    with _changes:
        if path not in _held:
            _held[path] = _acquired(Path(folder), path)
        lock = _held[path]
        _check_holder(lock, folder)
        lock.blocks += 1
    try:
        yield
    finally:
        with _changes:
            lock.blocks -= 1
            # A process that was forked within the block leaves the lock to its parent.
            if not lock.blocks and lock.process == os.getpid():
                _release(_held.pop(path))


def _check_holder(lock: _Lock, folder: str | Path) -> None:
    """Raise ConfigError if another thread, or the process that forked this one, holds a lock."""
    if (lock.process, lock.thread) == (os.getpid(), threading.get_ident()):
        return
    forked = lock.process != os.getpid()
    holder = f"the process {lock.process}" if forked else "another thread of this process"
    raise ConfigError(_in_use(folder, holder))


def _in_use(folder: str | Path, holder: str) -> str:
    return f"{folder} is in use by {holder}; wait until it ends, or name another folder"


def _acquired(folder: Path, path: str) -> _Lock:
    """Lock a folder, whose real path is ``path``."""
    file, new_folders = Path(path) / NAME, _missing(Path(path))
    try:
        for _ in range(_TRIES):
            # Another process may remove the file, and its folder, when it releases its lock.
            with contextlib.suppress(FileNotFoundError):
                os.makedirs(path, exist_ok=True)
                descriptor = _open(folder, file)
                if descriptor is None or _lock(descriptor, folder, file):
                    return _Lock(file, descriptor, new_folders)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(folder))
    except (FileExistsError, NotADirectoryError):
        raise ConfigError(f"{folder} is a file, or is inside one; name a folder") from None
    except BaseException:
        _remove(new_folders)
        raise


def _missing(path: Path) -> list[Path]:
    """The folders of a path that do not exist, the innermost first."""
    return [folder for folder in (path, *path.parents) if not folder.exists()]


def _open(folder: Path, file: Path) -> int | None:
    """Open the lock file and check that it is safe; ``None`` if the folder is read-only."""
    # Do not follow links, and do not wait for the other end of a pipe.
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        # A new file needs no check; network drives may show another owner for it.
        return os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in _READ_ONLY or os.path.lexists(file):
            raise
        return None
    _check(folder, file, os.lstat(file))
    descriptor = os.open(file, flags)
    try:
        _check(folder, file, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check(folder: Path, file: Path, status: os.stat_result) -> None:
    """Raise ConfigError unless a lock file is a regular file of this user without hard links."""
    shown = folder / file.name
    advice = "remove it, or name another folder"
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
        if stat.S_ISREG(status.st_mode):
            kind = f"a file with {status.st_nlink} names"
        raise ConfigError(f"{shown} is {kind}, but is to be the lock file of the folder; {advice}")
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise ConfigError(
            f"{shown} belongs to the user {status.st_uid}, who may be using the folder; if not, "
            f"{advice}"
        )


def _lock(descriptor: int, folder: Path, file: Path) -> bool:
    """Lock an open lock file; if it was removed in the meantime, close it and return false."""
    try:
        try:
            _lock_descriptor(descriptor)
        except OSError as error:
            if error.errno in _BUSY:
                holder = f"the process {_holder(descriptor)}"
                raise ConfigError(_in_use(folder, holder)) from None
            if error.errno not in _NO_LOCKS:
                raise OSError(error.errno, error.strerror, os.fspath(file)) from None
            warnings.warn(
                f"the file system of {folder} has no locks ({error.strerror}), so that a second "
                "process there is not noticed",
                stacklevel=2,
            )
        # The holder removes the file when it releases the lock; a lock on that file is useless.
        if not os.path.samestat(os.fstat(descriptor), os.lstat(file)):
            os.close(descriptor)
            return False
        with contextlib.suppress(OSError):  # the disk may be full
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()} {socket.gethostname()}".encode())
        return True
    except BaseException:
        os.close(descriptor)
        raise


def _lock_descriptor(descriptor: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        # After the text, because other processes cannot read locked bytes.
        os.lseek(descriptor, 2**20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)


def _holder(descriptor: int) -> str:
    """The number of the process that holds a lock, and its machine unless it is this one."""
    number, _, host = os.read(descriptor, 400).decode(errors="replace").partition(" ")
    if not number.isdigit():
        return "of unknown number"
    return number if host == socket.gethostname() else f"{number} of the machine {host!r}"


def _release(lock: _Lock) -> None:
    if lock.descriptor is not None:
        # Before the lock is released, so that the lock of another process is never removed.
        with contextlib.suppress(OSError):
            os.unlink(lock.file)
        os.close(lock.descriptor)
    _remove(lock.new_folders)


def _remove(folders: list[Path]) -> None:
    """Remove empty folders, the innermost first, up to the first that is not empty."""
    with contextlib.suppress(OSError):
        for folder in folders:
            folder.rmdir()
