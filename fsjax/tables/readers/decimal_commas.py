"""Columns of text that hold numbers with decimal commas, as ``1.234,5``."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

_NUMBER = re.compile(r"[+-]?(?:[1-9]\d{0,2}(?:\.\d{3})+(?:,\d*)?|\d+,?\d*|,\d+)(?:[eE][+-]?\d+)?")
_TO_POINT = str.maketrans({",": ".", ".": None})


def numbers_with_commas(texts: pd.Series) -> pd.Series | None:
    """Numbers of a table with decimal commas, or ``None`` unless all known texts are such numbers.

    A column with a point that cannot be a thousands mark (``1.5``) is not.
    """
    known = texts.dropna().astype(str).str.strip()
    if not len(known) or not known.map(lambda text: bool(_NUMBER.fullmatch(text))).all():
        return None
    values = known.map(lambda text: float(text.translate(_TO_POINT)))
    return values.reindex(texts.index).astype(np.float64)
