"""Where a run happened: versions, device and the revision of the source."""

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "scikit-learn", "fsjax")

#: The checkout whose revision is meant.
PACKAGE_FOLDER = Path(__file__).resolve().parents[1]

#: Seconds after which git is given up, as on a stalled network drive.
GIT_TIMEOUT = 10.0


def versions() -> dict[str, str | None]:
    """Versions of Python and of :data:`PACKAGES`; ``None`` for one that is not installed."""
    return {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}


def device() -> dict[str, Any]:
    """The devices that JAX uses: ``platform``, ``kind`` of the first, and ``count``."""
    first, *others = jax.devices()
    return {"platform": first.platform, "kind": first.device_kind, "count": 1 + len(others)}


def git_revision(folder: Path = PACKAGE_FOLDER) -> str | None:
    """The commit that a folder of source was checked out from. Never fails.

    The hash has ``-dirty`` behind it where tracked files differ from the commit. It is ``None``
    where git does not track the folder (an installed package), has no commit or is missing.
    """
    # A package installed inside somebody else's checkout must not report that one's revision.
    if not _git(folder, "ls-files", "--", "*.py"):
        return None
    return _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    """Output of a git command, stripped; ``None`` where it fails."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.check_output(
            command, stderr=subprocess.DEVNULL, text=True, timeout=GIT_TIMEOUT
        ).strip()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
