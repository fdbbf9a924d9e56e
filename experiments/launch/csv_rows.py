"""CSV files that grow while a launcher runs, and from whose rows it continues later."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.launch import checksums
from fsjax.storage.atomic_files import write_text


def read_rows(path: Path) -> pd.DataFrame:
    """The rows of a file that :func:`add_rows` wrote; none, with a warning, if it is damaged.

    A file that does not exist has no rows.
    """
    if not path.exists():
        return pd.DataFrame()
    if path.name not in checksums.damaged(path.parent):
        try:
            return pd.read_csv(path)
        except ValueError:
            pass
    warnings.warn(f"{path} is damaged; its rows are computed again", stacklevel=2)
    return pd.DataFrame()


def add_rows(table: pd.DataFrame, rows: Any, path: Path) -> pd.DataFrame:
    """The table with further rows, which is also written, with its checksum."""
    new = pd.DataFrame(rows)
    # Tables without rows have no types either.
    table = pd.concat([part for part in (table, new) if len(part)] or [new], ignore_index=True)
    text = table.to_csv(index=False)
    checksums.record_text(path, text)
    write_text(path, text)
    return table
