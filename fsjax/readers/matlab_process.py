"""The program that reads a MATLAB file with SciPy, whose reader may crash on a damaged file.

:mod:`fsjax.readers.matlab` runs this file by its path, so it imports only NumPy and SciPy.
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
    """Read a file from the standard input, and print the names of its arrays as JSON.

    Args:
      folder: where wanted arrays are saved, each named by its index in ``wanted``: as ``.npz`` if
        it is sparse, otherwise as ``.npy``. Arrays of other types than numbers and text are left
        out.
      max_bytes: memory for the contents of the file, in addition to what the process uses.
      wanted: names of the arrays.
    """
    file = io.BytesIO(sys.stdin.buffer.read())
    _limit_memory(int(max_bytes))
    # SciPy only warns of arrays that it cannot read, and of repeated names.
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
    """The array, or the first value of each cell as text ``(N,)``; ``None`` for other types."""
    if array.dtype != object:
        return None if array.dtype.kind == "V" else array
    cells = [np.asarray(cell).ravel() for cell in array.ravel()]
    if any(cell.dtype.kind in "OV" for cell in cells):
        return None
    return np.array([str(cell[0]) if cell.size else "" for cell in cells])


def _limit_memory(more: int) -> None:
    """Limit the memory of the process to ``more`` further bytes, if the system supports it."""
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
