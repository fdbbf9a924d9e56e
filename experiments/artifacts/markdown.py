"""Markdown tables: reads them, writes them, and adds the rows that they lack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TypeVar

import pandas as pd

from fsjax.storage.atomic_files import write_text

Key = TypeVar("Key", bound=str | tuple[str, ...])


def read_table(path: Path) -> pd.DataFrame:
    """Reads the cells of a table as text; there are no rows if the file does not exist."""
    if not path.exists():
        return pd.DataFrame()
    cells = pd.read_csv(
        path, sep=r"\s*\|\s*", engine="python", dtype=str, keep_default_na=False, skiprows=[1]
    )
    return cells.iloc[:, 1:-1]


def as_rows(table: pd.DataFrame, words: Collection[str] = ()) -> str:
    """Formats a table as Markdown; the first column and columns of words are on the left."""
    left = {table.columns[0], *words}
    rule = ["---" if name in left else "---:" for name in table.columns]
    rows = [table.columns, rule, *table.to_numpy()]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def continue_table(
    out: Path,
    rows: Mapping[Key, Callable[[], dict[str, str]]],
    text: Callable[[pd.DataFrame], str] = as_rows,
) -> pd.DataFrame:
    """Measures the rows that a file lacks, and writes the file after each of them.

    Args:
      rows: functions that measure a row, by the text in its first column, or the texts in its
        first columns.
      text: formats the table.
    """
    table = read_table(out)
    for name, measure in rows.items():
        cells = [name] if isinstance(name, str) else list(name)
        if len(table) and (table.iloc[:, : len(cells)] == cells).all(axis=1).any():
            continue
        row = measure()
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        table = pd.concat([table, pd.DataFrame([row])], ignore_index=True)
        write_text(out, text(table))
    return table
