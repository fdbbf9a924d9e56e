"""SHA-256 of what a run left in its folder, so that damage is found: ``checksums.json``.

A finished run records all of its files, an unfinished one its tables that grow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fsjax.storage.atomic_files import named_errors, write_text
from fsjax.storage.identity import Identity

NAME = "checksums.json"

#: Of earlier versions, whose folders are read as well.
_EARLIER_NAME = "manifest.json"


def write_checksums(workdir: Path, identity: Identity, names: Iterable[str]) -> None:
    """Records what a finished run is, and those of its files that exist.

    Raises:
      OSError: if a file cannot be read or written.
    """
    paths = [workdir / name for name in sorted(names) if (workdir / name).is_file()]
    files = {path.name: {"sha256": [_sha256(path)]} for path in paths}
    _write(workdir / NAME, {"identity": identity.to_json(), "files": files})
    (workdir / _EARLIER_NAME).unlink(missing_ok=True)


def record_text(path: Path, text: str) -> None:
    """Records the text that a file gets next beside what it holds, either of which is whole then.

    Raises:
      OSError: if a file cannot be read or written.
    """
    sums = [hashlib.sha256(text.encode()).hexdigest()]
    if path.exists():
        sums.append(_sha256(path))
    files = (_read(path.with_name(NAME)) or {}).get("files", {})
    _write(path.with_name(NAME), {"files": {**files, path.name: {"sha256": sums}}})


def remove_checksums(workdir: Path) -> None:
    """Removes the record, if there is one."""
    for name in (NAME, _EARLIER_NAME):
        (workdir / name).unlink(missing_ok=True)


def identity_of(workdir: Path) -> Identity | None:
    """What the finished run is; ``None`` for any other folder, or if the record is damaged."""
    record = _read(_path(workdir)) or {}
    return Identity.from_json(record["identity"]) if "identity" in record else None


def damaged(workdir: Path) -> list[str]:
    """The recorded files that are gone or have other bytes, or the record itself.

    Empty without a record.
    """
    path = _path(workdir)
    if not path.exists():
        return []
    if (record := _read(path)) is None:
        return [path.name]
    files = record["files"].items()
    return [name for name, entry in files if not _is_whole(workdir / name, entry["sha256"])]


def _path(workdir: Path) -> Path:
    path, earlier = workdir / NAME, workdir / _EARLIER_NAME
    return earlier if earlier.exists() and not path.exists() else path


def _read(path: Path) -> dict[str, Any] | None:
    """The record, if its sum over itself is right."""
    try:
        record = json.loads(path.read_text())
        seal = record.pop("seal")
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    return record if seal == _sum_of(record) else None


def _write(path: Path, record: Mapping[str, Any]) -> None:
    write_text(path, json.dumps({**record, "seal": _sum_of(record)}, indent=2) + "\n")


def _sum_of(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with named_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_whole(path: Path, sums: Sequence[str]) -> bool:
    try:
        return _sha256(path) in sums
    except OSError:
        return False
