"""CSV files to which a launcher adds rows, and from which it resumes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.launch import checksums
from fsjax.storage.atomic_files import write_text


def read_rows(path: Path) -> pd.DataFrame:
    """Reads the rows of a file that :func:`add_rows` wrote.

    There are none if the file does not exist, and none, with a warning, if it is damaged.
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
    """Adds rows to a table, writes it with its checksum, and returns it."""
    new = pd.DataFrame(rows)
    # The columns of an empty table have no types.
    table = pd.concat([part for part in (table, new) if len(part)] or [new], ignore_index=True)
    text = table.to_csv(index=False)
    checksums.record_text(path, text)
    write_text(path, text)
    return table
