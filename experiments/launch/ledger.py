"""Tables that grow while a launcher is at work, and from whose rows it goes on later.

Beside ``NAME.csv`` lies ``NAME.csv.seal``, by which damage is found.
"""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.launch import manifest
from experiments.launch.manifest import DamagedError, read_sealed, sha256_of_file, write_sealed
from fsjax.storage.atomic_files import write_text


def read_table(path: Path) -> pd.DataFrame:
    """The rows of a file that :func:`add_rows` wrote; none where it is gone.

    Neither are there any where it is damaged, which a warning says. Files of versions without a
    seal are taken as they are.
    """
    if not path.exists():
        return pd.DataFrame()
    if path.name in manifest.damaged(path.parent) or not _is_whole(path):
        told = f"{path} is not what was written; what it held is computed again"
        warnings.warn(told, stacklevel=2)
        return pd.DataFrame()
    return pd.read_csv(path)


def add_rows(table: pd.DataFrame, rows: Any, path: Path) -> pd.DataFrame:
    """The table with further rows, which is written as well."""
    new = pd.DataFrame(rows)
    # Tables without rows have no types either.
    table = pd.concat([part for part in (table, new) if len(part)] or [new], ignore_index=True)
    text = table.to_csv(index=False)
    # First, and of both: a run that is killed in between has the old file with its seal.
    sums = [hashlib.sha256(text.encode()).hexdigest()]
    if path.exists():
        sums.append(sha256_of_file(path))
    write_sealed(_seal(path), {"sha256": sums})
    write_text(path, text)
    return table


def _seal(path: Path) -> Path:
    return path.with_name(f"{path.name}.seal")


def _is_whole(path: Path) -> bool:
    if not _seal(path).exists():
        return True
    try:
        return sha256_of_file(path) in read_sealed(_seal(path))["sha256"]
    except (DamagedError, OSError):
        return False
