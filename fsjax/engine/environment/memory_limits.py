"""Limits on the memory that a table or an unpacked file may take. Does not import JAX."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from fsjax.errors import DataError, check_whole

#: The share of the free memory that one table or file may take, unless ``max_bytes`` is given.
SHARE: Final = 0.5

#: Bytes of free memory that are assumed if the system does not report any number.
UNKNOWN: Final = 8 * 2**30

_MEMINFO = Path("/proc/meminfo")
_OF_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def free_memory() -> int:
    """Bytes of free memory, at most the limit of the container if there is one."""
    free = _available()
    try:
        return min(free, int(_OF_CONTAINER.read_text()))
    # The file does not exist, or says "max".
    except (OSError, ValueError):
        return free


def _available() -> int:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN


def limit_of(max_bytes: int | None) -> int:
    """The limit in bytes: ``max_bytes``, or half of the free memory if it is ``None``.

    Raises:
      ConfigError: if ``max_bytes`` is neither ``None`` nor a whole number from 1.
    """
    return int(SHARE * free_memory()) if max_bytes is None else check_whole("max_bytes", max_bytes)


def check_bytes(needed: float, max_bytes: int | None, what: str, advice: str) -> None:
    """Raises DataError, starting with ``what``, for more bytes than :func:`limit_of` allows."""
    limit = limit_of(max_bytes)
    if needed > limit:
        limited_by = "max_bytes" if max_bytes is not None else "half of the free memory"
        raise DataError(
            f"{what} would take {_size(needed)}, but only {_size(limit)} ({limited_by}) are "
            f"allowed; {advice}"
        )


def _size(count: float) -> str:
    """A number of bytes as text, in the largest unit that gives at least 1."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 2**power:
            return f"{count / 2**power:,.1f} {unit}"
    return f"{count:,} bytes"
