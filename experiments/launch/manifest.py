"""What a finished run left in its folder, by length and SHA-256, so that damage is found.

Records of this kind are JSON with a sum over themselves.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fsjax.storage.atomic_files import named_errors, write_text
from fsjax.storage.identity import Identity

NAME = "manifest.json"


class DamagedError(Exception):
    """Not what was written; the message says which file."""


def write_manifest(workdir: Path, identity: Identity, names: Iterable[str]) -> None:
    """Records what the run is and its files, of ``names`` those that are there; written last.

    OSError where that cannot be.
    """
    files = {
        name: {"bytes": (workdir / name).stat().st_size, "sha256": sha256_of_file(workdir / name)}
        for name in sorted(names)
        if (workdir / name).is_file()
    }
    write_sealed(workdir / NAME, {"identity": identity.to_json(), "files": files})


def identity_of(workdir: Path) -> Identity | None:
    """What a whole manifest says that the run is; ``None`` without one, or one of old."""
    try:
        return Identity.from_json(read_sealed(workdir / NAME)["identity"])
    except (DamagedError, KeyError):
        return None


def damaged(workdir: Path) -> list[str]:
    """The recorded files that are gone or are not what was written.

    Empty without a manifest, as of an unfinished run or one of an older version; the manifest
    itself where that is damaged.
    """
    path = workdir / NAME
    if not path.exists():
        return []
    try:
        files = read_sealed(path)["files"]
    except DamagedError:
        return [NAME]
    return [name for name, recorded in files.items() if not _is_whole(workdir / name, recorded)]


def sha256_of_file(path: Path) -> str:
    """In hexadecimal; OSError if the file cannot be read."""
    with named_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sealed(path: Path, record: Mapping[str, Any]) -> None:
    """Writes a record as JSON, atomically, with a sum over itself; OSError where that cannot be."""
    write_text(path, json.dumps({**record, "seal": _sum_of(record)}, indent=2) + "\n")


def read_sealed(path: Path) -> dict[str, Any]:
    """What :func:`write_sealed` wrote, unsealed; DamagedError for anything else, or nothing."""
    try:
        record = json.loads(path.read_text())
        seal = record.pop("seal")
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise DamagedError(f"{path.name} is missing or damaged") from None
    if seal != _sum_of(record):
        raise DamagedError(f"{path.name} is not what was written")
    return record


def _sum_of(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()


def _is_whole(path: Path, recorded: Mapping[str, Any]) -> bool:
    try:
        whole = path.stat().st_size == recorded["bytes"]
        return whole and sha256_of_file(path) == recorded["sha256"]
    except OSError:
        return False
