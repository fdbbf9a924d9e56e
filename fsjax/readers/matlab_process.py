"""The program that reads a MATLAB file with SciPy, whose compiled reader a damaged file may end.

:mod:`fsjax.readers.matlab` runs this file by its path, so it imports NumPy and SciPy alone.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path
from typing import Final

import numpy as np
import scipy.io
import scipy.sparse

#: Exit code where the arrays need more memory than allowed.
TOO_LARGE: Final = 3


def main(folder: str, max_bytes: str, *wanted: str) -> None:
    """Reads a file from the standard input, and writes the names of its arrays, as JSON.

    Args:
      folder: where each wanted array is saved under its place in ``wanted``: as ``.npz`` if it is
        sparse, otherwise as ``.npy``. What is neither numbers nor text is left out.
      max_bytes: memory for its contents, in addition to what the process has.
      wanted: names of the arrays.
    """
    file = io.BytesIO(sys.stdin.buffer.read())
    _limit_memory(int(max_bytes))
    # SciPy warns of arrays that it cannot read, and of names that occur twice.
    warnings.simplefilter("error", scipy.io.matlab.MatReadWarning)
    names = [name for name, _, _ in scipy.io.whosmat(file)]
    arrays = scipy.io.loadmat(file, variable_names=wanted)
    for place, name in enumerate(wanted):
        path = Path(folder, str(place))
        if name not in names:
            continue
        if scipy.sparse.issparse(arrays[name]):
            matrix = scipy.sparse.csc_array(arrays[name])
            scipy.sparse.save_npz(path.with_suffix(".npz"), matrix, compressed=False)
        elif (array := _numbers_or_text(arrays[name])) is not None:
            np.save(path.with_suffix(".npy"), array, allow_pickle=False)
    print(json.dumps(names))


def _numbers_or_text(array: np.ndarray) -> np.ndarray | None:
    """The array, of cells the first value of each as text ``(N,)``; ``None`` for other things."""
    if array.dtype != object:
        return None if array.dtype.kind == "V" else array
    cells = [np.asarray(cell).ravel() for cell in array.ravel()]
    if any(cell.dtype.kind in "OV" for cell in cells):
        return None
    return np.array([str(cell[0]) if cell.size else "" for cell in cells])


def _limit_memory(more: int) -> None:
    """Lets the process take so many bytes more, where the system can limit that."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
        most = min(pages * resource.getpagesize() + more, *limits, sys.maxsize)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, OSError):
        pass


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except MemoryError:
        sys.exit(TOO_LARGE)
    except Exception as error:
        sys.exit(" ".join(str(error).split()) or type(error).__name__)
