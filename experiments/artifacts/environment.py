"""The environment of a run: versions, device and the revision of the source."""

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "scikit-learn", "fsjax")

#: The folder whose git revision is recorded.
PACKAGE_FOLDER = Path(__file__).resolve().parents[1]

#: Seconds to wait for git, which may hang on a stalled network drive.
GIT_TIMEOUT = 10.0


def versions() -> dict[str, str | None]:
    """Versions of Python and of :data:`PACKAGES`; ``None`` for one that is not installed."""
    return {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES}


def device() -> dict[str, Any]:
    """The devices that JAX uses: ``platform``, ``kind`` of the first, and ``count``."""
    first, *others = jax.devices()
    return {"platform": first.platform, "kind": first.device_kind, "count": 1 + len(others)}


def git_revision(folder: Path = PACKAGE_FOLDER) -> str | None:
    """The commit that a source folder was checked out from; never raises.

    The hash ends in ``-dirty`` if tracked files differ from the commit. ``None`` if git is missing,
    there is no commit, or git does not track the folder (an installed package).
    """
    # A package installed inside another project's checkout must not report its revision.
    if not _git(folder, "ls-files", "--", "*.py"):
        return None
    return _git(folder, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    """The stripped output of a git command; ``None`` if it fails."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.check_output(
            command, stderr=subprocess.DEVNULL, text=True, timeout=GIT_TIMEOUT
        ).strip()
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
