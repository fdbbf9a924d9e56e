"""Libraries that only some parts of fsjax need, and the extras that install them.

Examples:
  >>> from fsjax import extras
  >>> if extras.is_installed("matplotlib"):
  ...     extras.require("matplotlib", "the picture")  # else the error names the extra that has it
"""

from __future__ import annotations

import importlib.util
from typing import Final

from fsjax.errors import ConfigError, DataError

#: The extra of pyproject.toml that installs each optional library.
EXTRA_OF: Final = {
    "flatbuffers": "export",
    "matplotlib": "plot",
    "openpyxl": "excel",
    "pyarrow": "parquet",
    "safetensors": "safetensors",
    "shtab": "completion",
}


class MissingLibraryError(ConfigError, DataError, ImportError):
    """An optional library is not installed; the message names the extra that installs it.

    Where a file cannot be read without the library, it counts as an error of the data.
    """


def is_installed(library: str) -> bool:
    """Whether a library can be imported; it is not imported."""
    return importlib.util.find_spec(library) is not None


def require(library: str, purpose: str) -> None:
    """Checks that an optional library is installed.

    Args:
      library: name under which it is imported, a key of :data:`EXTRA_OF`.
      purpose: what it is for, as in ``"reading Parquet files"``.

    Raises:
      MissingLibraryError: if it is not installed.
    """
    if not is_installed(library):
        raise MissingLibraryError(
            f"{purpose} needs {library}, which is not installed: "
            f"pip install 'fsjax[{EXTRA_OF[library]}]'"
        )
