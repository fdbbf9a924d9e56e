"""A disk whose n-th operation fails, for files that Python itself writes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

#: Functions of :mod:`os` that change a file system.
OPERATIONS = ("replace", "rename", "mkdir", "fsync", "unlink", "rmdir")


class Counter:
    """Counts operations on a folder; the one of number ``fails`` raises an OSError."""

    def __init__(self, folder: Path, fails: int | None, code: int) -> None:
        self.folder, self.fails, self.code, self.count = str(folder), fails, code, 0

    def met(self, name: object) -> None:
        """Counts an operation on a path or file descriptor, if it is in the folder."""
        if isinstance(name, str | bytes | os.PathLike):
            inside = os.fsdecode(name).startswith(self.folder)
        elif isinstance(name, int):
            inside = os.path.realpath(f"/proc/self/fd/{name}").startswith(self.folder)
        else:
            inside = False
        if not inside:
            return
        self.count += 1
        if self.count == self.fails:
            raise OSError(self.code, os.strerror(self.code), None if name is None else str(name))


@contextmanager
def failing_disk(folder: Path, fails: int | None, code: int = errno.ENOSPC) -> Iterator[Counter]:
    """Within the block operation number ``fails``, from 1, below a folder raises an OSError.

    A failing write leaves half of its data, as on a full disk.
    """
    counter = Counter(folder, fails, code)

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def operation(name: Any, *args: Any, **options: Any) -> Any:
            if options.get("dir_fd") is None:
                counter.met(name)
            return original(name, *args, **options)

        return operation

    original_open = Path.open

    def opened(self: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
        if not {*mode} & {*"wxa"}:
            return original_open(self, mode, *args, **options)
        counter.met(self)
        file = original_open(self, mode, *args, **options)
        return _Writer(file, self, counter) if str(self).startswith(counter.folder) else file

    with pytest.MonkeyPatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, counted(getattr(os, name)))
        patch.setattr(Path, "open", opened)
        yield counter


class _Writer:
    """A file whose writes are counted."""

    def __init__(self, file: Any, path: Path, counter: Counter) -> None:
        self._file, self._path, self._counter = file, path, counter

    def write(self, data: Any) -> int:
        try:
            self._counter.met(self._path)
        except OSError as error:
            self._file.write(data[: len(data) // 2])
            raise OSError(error.errno, error.strerror) from None
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *args: object) -> None:
        self._file.close()
