"""Tables in Markdown files, which are continued: read, and written again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from fsjax.storage.atomic_files import write_text


def read_table(path: Path) -> pd.DataFrame:
    """The rows of a table as text; none if there is no file."""
    if not path.exists():
        return pd.DataFrame()
    cells = pd.read_csv(
        path, sep=r"\s*\|\s*", engine="python", dtype=str, keep_default_na=False, skiprows=[1]
    )
    return cells.iloc[:, 1:-1]


def as_rows(table: pd.DataFrame) -> str:
    """The table in Markdown."""
    rule = ["---", *["---:"] * (len(table.columns) - 1)]
    rows = [table.columns, rule, *table.to_numpy()]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def continue_table(
    out: Path,
    rows: Mapping[str, Callable[[], dict[str, str]]],
    text: Callable[[pd.DataFrame], str] = as_rows,
) -> pd.DataFrame:
    """Measures the rows that a file lacks, and writes it after each.

    Args:
      out: the file.
      rows: what measures a row, by the text in its first column.
      text: of the table.
    """
    table = read_table(out)
    done = set(table.iloc[:, 0]) if len(table) else set()
    for name, measure in rows.items():
        if name in done:
            continue
        row = measure()
        print(", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
        table = pd.concat([table, pd.DataFrame([row])], ignore_index=True)
        write_text(out, text(table))
    return table
