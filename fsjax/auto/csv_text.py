"""Tables as CSV that a spreadsheet shows and does not execute."""

from __future__ import annotations

from typing import Any

import pandas as pd

#: A cell of text that begins so is a formula to spreadsheets (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_of(frame: pd.DataFrame) -> str:
    """A table as CSV, without its index; text that looks like a formula gets a leading ``'``."""
    return frame.map(_harmless).to_csv(index=False)


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
