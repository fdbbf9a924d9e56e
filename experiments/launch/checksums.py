"""Checksums of the files of a run, which reveal damage: ``checksums.json``.

A finished run records the SHA-256 of all its files, an unfinished run those of its growing tables.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fsjax.methods import get_method
from fsjax.storage.atomic_files import named_errors, write_text
from fsjax.storage.identity import Identity
from fsjax.tables.datasets.catalog import ENTRIES
from fsjax.tables.datasets.files import places
from fsjax.tables.readers.file_type import candidates
from fsjax.tasks import get_task

NAME = "checksums.json"


def write_checksums(workdir: Path, identity: Identity, names: Iterable[str]) -> None:
    """Records the identity of a finished run and the checksums of those files that exist.

    Raises:
      OSError: if a file cannot be read or written.
    """
    paths = [workdir / name for name in sorted(names) if (workdir / name).is_file()]
    files = {path.name: {"sha256": [_sha256(path)]} for path in paths}
    _write(workdir / NAME, {"identity": identity.to_json(), "files": files})


def record_text(path: Path, text: str) -> None:
    """Records the checksum of a file's next text beside that of its present one.

    Both count as undamaged, so that the process may be killed before or after the file is written.

    Raises:
      OSError: if a file cannot be read or written.
    """
    sums = [hashlib.sha256(text.encode()).hexdigest()]
    if path.exists():
        sums.append(_sha256(path))
    files = (_read(path.with_name(NAME)) or {}).get("files", {})
    _write(path.with_name(NAME), {"files": {**files, path.name: {"sha256": sums}}})


def remove_checksums(workdir: Path) -> None:
    """Removes the recorded checksums, if there are any."""
    (workdir / NAME).unlink(missing_ok=True)


def identity_of(workdir: Path) -> Identity | None:
    """The identity of the finished run; ``None`` if there is none or the record is damaged."""
    record = _read(workdir / NAME) or {}
    return Identity.from_json(record["identity"]) if "identity" in record else None


def damaged(workdir: Path) -> list[str]:
    """Names of the recorded files that are missing or changed, or of the damaged record itself.

    Empty without a record.
    """
    path = workdir / NAME
    if not path.exists():
        return []
    if (record := _read(path)) is None:
        return [path.name]
    files = record["files"].items()
    return [name for name, entry in files if not _is_undamaged(workdir / name, entry["sha256"])]


def of_table(data: Mapping[str, Any]) -> str | None:
    """The SHA-256 of a table that ``config.data`` names by its path; ``None`` if it names none.

    Raises:
      OSError: if a file cannot be read.
    """
    if (path := path_of_table(data)) is None:
        return None
    target = str(data.get("target"))
    # The target of a .npy file may be in another one; a converted table is a folder.
    targets = (path.with_suffix(".y.npy"), Path(target).expanduser(), path.parent / target)
    parts = [path, *(each for each in targets if each.suffix == ".npy")]
    files = [
        part for part in (sorted(path.iterdir()) if path.is_dir() else parts) if part.is_file()
    ]
    sums = [_sha256_of(file, file.stat().st_mtime_ns, file.stat().st_size) for file in files]
    return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()


def path_of_table(data: Mapping[str, Any]) -> Path | None:
    """The table that ``config.data`` names by its path; ``None`` if it names none that exists."""
    name = str(data.get("name"))
    found = candidates(name, tuple(places(data.get("dir")).values()))
    return None if name in ENTRIES else next(filter(Path.exists, found), None)


def of_code(method: str | None, task: str | None) -> str | None:
    """The SHA-256 of the files of an own method and task, ``module:function``; ``None`` without.

    Raises:
      ConfigError: if there is no such method or task.
    """
    own = [(get_method, method), (get_task, task)]
    modules = []
    for get, name in own:
        if name and ":" in name:
            get(name)  # imports its module
            modules.append(sys.modules[name.partition(":")[0]])
    sums = [_sha256(Path(module.__file__)) for module in modules if module.__file__]
    return hashlib.sha256("".join(sums).encode()).hexdigest() if sums else None


@functools.lru_cache
def _sha256_of(path: Path, mtime: int, size: int) -> str:
    """The SHA-256 of a file, read once while it stays the same."""
    return _sha256(path)


def _read(path: Path) -> dict[str, Any] | None:
    """Reads the record; ``None`` if it is missing or its own checksum is wrong."""
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


def _is_undamaged(path: Path, sums: Sequence[str]) -> bool:
    try:
        return _sha256(path) in sums
    except OSError:
        return False
