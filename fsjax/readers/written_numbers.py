"""Numbers in text: currencies, percent signs, thousands separators and decimal commas."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

_CURRENCY = re.compile(r"[$€£¥₹]")
_SPACES = "[\u0020\u00a0\u2009\u202f]"
_SPACE_OF_THOUSANDS = re.compile(rf"(?<=\d){_SPACES}(?=\d{{3}}(?!\d))")
_NEGATIVE_IN_BRACKETS = r"^\((.*)\)$"

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_WITH_POINT = rf"[+-]?(?:\d{{1,3}}(?:,\d{{3}})+(?:\.\d*)?|\d+\.?\d*|\.\d+){_EXPONENT}"
_WITH_COMMA = rf"[+-]?(?:\d{{1,3}}(?:\.\d{{3}})+(?:,\d*)?|\d+,?\d*|,\d+){_EXPONENT}"


class WrittenNumbers(NamedTuple):
    """Numbers that were read from texts.

    Attributes:
      values: float64, with the index of the texts.
      remark: the notation that was recognised, or empty for plain numbers.
    """

    values: pd.Series
    remark: str


def read_numbers(texts: pd.Series) -> WrittenNumbers | None:
    """The numbers in texts such as ``€12``, ``3%``, ``1,234.5`` or ``1.234,5``.

    Percentages are not divided by 100: 3% is 3. Ambiguous commas (``1,234`` alone) are thousands
    separators.

    Args:
      texts: stripped, without missing values.

    Returns:
      ``None`` unless all texts are numbers in one notation and one currency, and either all or
      none are percentages.
    """
    plain = pd.to_numeric(texts, errors="coerce")
    if plain.notna().all():
        return WrittenNumbers(plain.astype(np.float64), "")
    percent = texts.str.endswith("%")
    currencies = set("".join(texts.str.findall(_CURRENCY).map("".join).tolist()))
    if len(currencies) > 1 or percent.any() and not percent.all():
        return None
    bare = _without_units(texts)
    for pattern, thousands, mark in ((_WITH_POINT, ",", "."), (_WITH_COMMA, ".", ",")):
        if bare.str.fullmatch(pattern).all():
            digits = bare.str.replace(thousands, "", regex=False)
            values = pd.to_numeric(digits.str.replace(mark, ".", regex=False)).astype(np.float64)
            place = int(plain.isna().to_numpy().argmax())
            written, value = texts.iloc[place], values.iloc[place]
            return WrittenNumbers(values, f"has numbers such as {written!r}, taken as {value:.12g}")
    return None


def _without_units(texts: pd.Series) -> pd.Series:
    """The texts without currencies, percent signs and spaces; parentheses become a minus sign."""
    signed = texts.str.replace("\N{MINUS SIGN}", "-", regex=False)
    signed = signed.str.replace(_NEGATIVE_IN_BRACKETS, r"-\1", regex=True)
    bare = signed.str.removesuffix("%").str.replace(_CURRENCY, "", n=1, regex=True).str.strip()
    bare = bare.str.replace(_SPACE_OF_THOUSANDS, "", regex=True)
    return bare.str.replace(rf"^([+-]){_SPACES}+", r"\1", regex=True)
