"""The age of this process, so that a time budget includes its imports."""

from __future__ import annotations

import os
import time
from pathlib import Path

#: Without the system files below, the process counts from the import of this module.
_IMPORTED = time.monotonic()

#: Linux: the 22nd field of the first file counts clock ticks from the start of the machine to the
#: start of the process, and the second file seconds to now.
_STAT, _UPTIME = Path("/proc/self/stat"), Path("/proc/uptime")


def seconds_since_process_start() -> float:
    """Seconds since the process started, at least 0.

    On Linux the system reports it to 0.01 s. Elsewhere it is the time since this module was
    imported; if that is the first import, only the start of the interpreter is missing, about
    0.1 s.
    """
    since_import = time.monotonic() - _IMPORTED
    try:
        # The name of the program, in brackets, may hold spaces.
        fields = _STAT.read_text().rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        age = float(_UPTIME.read_text().split()[0]) - started
    except (OSError, ValueError, IndexError, AttributeError):
        return since_import
    # In some containers the two files count from different starts of the machine.
    return age if age >= since_import else since_import
