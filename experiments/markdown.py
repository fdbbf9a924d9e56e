"""Tables in Markdown files, which are continued: read, and written again."""

from __future__ import annotations

from pathlib import Path

import pandas as pd


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
