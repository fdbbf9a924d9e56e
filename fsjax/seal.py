"""Records of what was written, by which damage is found: SHA-256 of files, and of the record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsjax.atomic import named_errors, write_text


class DamagedError(Exception):
    """Not what was written; the message says which file, for errors and warnings of the caller."""


def sha256_of_file(path: Path) -> str:
    """In hexadecimal; OSError if the file cannot be read."""
    with named_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_json(value: Any) -> str:
    """Of a value as JSON, names in their order."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def write_sealed(path: Path, record: Mapping[str, Any]) -> None:
    """Writes a record as JSON, atomically, with a sum over itself; OSError where that cannot be."""
    write_text(path, json.dumps({**record, "seal": sha256_of_json(record)}, indent=2) + "\n")


def read_sealed(path: Path) -> dict[str, Any]:
    """What :func:`write_sealed` wrote, unsealed; DamagedError for anything else, or nothing."""
    try:
        record = json.loads(path.read_text())
        seal = record.pop("seal")
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise DamagedError(f"{path.name} is missing or damaged") from None
    if seal != sha256_of_json(record):
        raise DamagedError(f"{path.name} is not what was written")
    return record
