"""MATLAB files of version 7 or older, which SciPy reads in a separate process.

SciPy's compiled reader trusts the types, sizes and indices in a file, so that a damaged file may
crash the process or use all memory.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import scipy.sparse

from fsjax.environment.memory_limits import check_bytes, limit_of
from fsjax.errors import DataError
from fsjax.readers import matlab_process

#: The time limit of the process: seconds to start, and seconds per byte.
_START: Final = 60.0
_PER_BYTE: Final = 1e-6

#: Bytes that the reader needs for any file.
_BUFFERS: Final = 2**26

_DAMAGED: Final = "it is damaged: {}; save or download it again"
_ADVICE: Final = "it may be damaged or hostile; give a larger max_bytes if you trust it"

#: An array as SciPy reads it.
MatlabArray: TypeAlias = np.ndarray | scipy.sparse.csc_array


def read_arrays(
    data: bytes, wanted: Sequence[str], max_bytes: int | None = None
) -> dict[str, MatlabArray | None]:
    """Read arrays by name, in the order of the file; arrays that are not wanted are ``None``.

    Cells become text ``(N,)``; empty cells become empty text. The indices of sparse matrices are
    not checked.

    Args:
      wanted: names of the arrays to read.
      max_bytes: limit on their total size; half of the free memory by default.

    Raises:
      DataError: if SciPy's reader crashes, takes too long or needs more memory, or if a wanted
        array holds neither numbers nor text.
      ValueError: with SciPy's message, if SciPy does not accept the file.
    """
    with tempfile.TemporaryDirectory(prefix="fsjax-") as folder:
        names = _names(data, folder, wanted, max_bytes)
        paths = {wanted[int(path.stem)]: path for path in Path(folder).iterdir()}
        total = sum(path.stat().st_size for path in paths.values())
        check_bytes(total, max_bytes, "the arrays in it", _ADVICE)
        if others := [name for name in wanted if name in names and name not in paths]:
            raise DataError(f"{others[0]!r} is not an array of numbers or text; save a matrix")
        return {name: _load(paths[name]) if name in paths else None for name in names}


def _names(data: bytes, folder: str, wanted: Sequence[str], max_bytes: int | None) -> list[str]:
    """Let the process save the wanted arrays in a folder; returns the names of all arrays."""
    # Compressed arrays are in memory twice: as unpacked bytes and as arrays.
    most = 2 * limit_of(max_bytes) + _BUFFERS
    # -P: modules beside the program must not shadow installed packages.
    command = [sys.executable, "-P", matlab_process.__file__, folder, str(most), *wanted]
    # The process finds packages where this one does, and has no use for threads.
    path = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    seconds = _START + _PER_BYTE * len(data)
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, env=environment, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise DataError(_DAMAGED.format(f"reading it took more than {seconds:.0f} s")) from None
    if done.returncode == 0:
        return json.loads(done.stdout)
    # The operating system ends processes by SIGKILL if memory runs out.
    if done.returncode in (matlab_process.TOO_LARGE, -getattr(signal, "SIGKILL", 0)):
        check_bytes(math.inf, max_bytes, "the arrays in it", _ADVICE)
    if done.returncode == 1:
        raise ValueError(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])
    raise DataError(_DAMAGED.format(f"SciPy's reader crashed (exit code {done.returncode})"))


def _load(path: Path) -> MatlabArray:
    return (
        scipy.sparse.load_npz(path) if path.suffix == ".npz" else np.load(path, allow_pickle=False)
    )
