"""Numbers in text: currencies, percent signs, thousands separators, decimal commas, limits.

The decimal mark is inferred from all texts of a column, and otherwise from the rest of the table
(:func:`decimal_of`), because ``2.551`` and ``6,437`` have two readings each.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from fsjax.errors import name_some

#: Texts, in lower case, that stand for a missing value in a column of numbers or dates.
MISSING = frozenset(
    {
        "", "?", "-", "--", "---", ".", "..", "...", "*", "\u2013", "\u2014", "\\n", "na", "n/a",
        "n.a.", "n. a.", "nan", "null", "none", "nil", "missing", "unknown", "k.a.", "k. a.",
        "n.d.",
        "n. d.", "nd", "n.b.", "n.v.t.", "not available", "not detected", "tbd", "#n/a", "#div/0!",
        "#value!", "#ref!", "#name?", "#num!", "#null!",
    }
)  # fmt: skip

_CURRENCIES = "[$\u20ac\u00a3\u00a5\u20b9]|EUR|USD|CHF|GBP|JPY|INR"
_CURRENCY = re.compile(rf"^(?:{_CURRENCIES})\s*(?=[-+.,\d])|(?<=[\d.,])\s*(?:{_CURRENCIES})$|"
                       rf"(?<=^[-+])\s*(?:{_CURRENCIES})\s*(?=[.,\d])")  # fmt: skip
_LIMIT = re.compile(r"^([<>\u2264\u2265]=?)\s*(?=[-+.,\d])")
_GROUP_MARK = re.compile("(?<=\\d)['\u2019\u066c \u00a0\u2009\u202f](?=\\d{3}(?!\\d))")

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_PLAIN = re.compile(rf"[+-]?(?:\d+\.?\d*|\.\d+){_EXPONENT}")
#: Thousands, or lakhs and crores as in 1,23,456; no such number begins with 0.
_GROUPED = r"[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d\d)+,\d{3}"
_WITH_POINT = re.compile(rf"[+-]?(?:(?:{_GROUPED})(?:\.\d*)?|\d+\.?\d*|\.\d+){_EXPONENT}")
_WITH_COMMA = re.compile(
    rf"[+-]?(?:[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d*)?|\d+,?\d*|,\d+){_EXPONENT}"
)
_PATTERNS = {".": _WITH_POINT, ",": _WITH_COMMA}
_SWAPPED = str.maketrans(",.", ".,")

#: The least share of numbers among different texts that show the decimal mark; in a column of
#: numbers, the most other texts for each number, and the same for texts with digits (codes).
_MIN_SHARE, _MAX_OTHERS, _MAX_CODES = 0.5, 0.2, 0.05


class WrittenNumbers(NamedTuple):
    """Numbers that were read from texts.

    Attributes:
      values: float64, with the index of the texts; NaN where a text is not a number.
      remark: the notation that was recognised, or empty for plain numbers.
      warning: what should be checked (another reading is likely, or texts are not numbers), or
        empty.
    """

    values: pd.Series
    remark: str
    warning: str


class _WrittenCell(NamedTuple):
    """A text without its unit.

    Attributes:
      digits: sign, digits and marks.
      limit: ``'<'``, ``'>'`` or empty.
      unit: ``'%'``, the currency, or empty.
    """

    digits: str
    limit: str
    unit: str


def read_numbers(texts: pd.Series, decimal: str | None = None) -> WrittenNumbers | None:
    """The numbers in texts such as ``€12``, ``3%``, ``1,234.5``, ``1.234,5`` or ``<0.5``.

    Percentages are not divided by 100: 3% is 3. A value below a limit (``<0.5``) is half the limit,
    and one above (``>100``) the limit. Texts that are not numbers become NaN.

    Args:
      texts: the different texts of a column, stripped, without missing values and :data:`MISSING`.
      decimal: mark of the rest of the table, used where the column has no evidence of its own.

    Returns:
      ``None`` unless most texts are numbers in at most one currency.
    """
    plain = pd.to_numeric(texts, errors="coerce")
    if plain.notna().all() and decimal != ",":
        return WrittenNumbers(plain.astype(np.float64), "", "")
    cells = [_cell(text) for text in texts]
    mark, ambiguous = _mark_of(cells, decimal)
    values = np.array([_value(cell, mark) for cell in cells])
    percent = np.array([cell.unit == "%" for cell in cells])
    known = ~np.isnan(values)
    if len({cell.unit for cell in cells} - {"", "%"}) > 1:
        return None
    if percent.any() and not percent[known].all():
        # Of percentages and other numbers, the fewer ones cannot be told from errors.
        known &= percent == (percent[known].mean() > 0.5)
    values[~known] = np.nan
    limits = np.array([bool(cell.limit) for cell in cells]) & known
    others = texts[~known].tolist()
    if not _mostly_numbers(int((known & ~limits).sum()), others):
        return None
    return WrittenNumbers(
        pd.Series(values, texts.index),
        _remark(texts, values, plain.to_numpy(), known & ~limits),
        "; ".join(_warnings(texts, cells, values, mark, ambiguous, limits, others)),
    )


def decimal_of(columns: Iterable[pd.Series]) -> str | None:
    """A comma if a column of different texts can only be read with decimal commas, or ``None``."""
    for texts in columns:
        cells = [_cell(text) for text in texts]
        if any("," in cell.digits for cell in cells) and _mark_of(cells, None) == (",", False):
            known = sum(_WITH_COMMA.fullmatch(cell.digits) is not None for cell in cells)
            if known >= _MIN_SHARE * len(cells):
                return ","
    return None


def _mostly_numbers(numbers: int, others: list[str]) -> bool:
    codes = sum(any(character.isdigit() for character in text) for text in others)
    allowed = len(others) <= _MAX_OTHERS * numbers and codes <= _MAX_CODES * numbers
    return numbers > 0 and allowed


def _cell(text: str) -> _WrittenCell:
    """The parts of a text; digits of any script become ASCII."""
    bare = "".join(
        str(unicodedata.decimal(character)) if character.isdecimal() else character
        for character in text.translate(_MARKS)
    )
    limit = ""
    if match := _LIMIT.match(bare):
        limit = "<" if match[1][0] in "<\u2264" else ">"
        bare = bare[match.end() :]
    if bare.startswith("(") and bare.endswith(")"):
        bare = "-" + bare[1:-1].strip()
    unit = ""
    if bare.endswith("%"):
        bare, unit = bare[:-1].rstrip(), "%"
    elif match := _CURRENCY.search(bare):
        unit = match[0].strip()
        bare = bare[: match.start()] + bare[match.end() :]
        unit = _SIGNS.get(unit, unit)
    if bare.endswith("-") and bare[:1].isdigit():
        bare = "-" + bare[:-1].rstrip()
    bare = re.sub(r"^([+-])\s+", r"\1", bare.strip())
    return _WrittenCell(_GROUP_MARK.sub("", bare), limit, unit)


_SIGNS = {"\u20ac": "EUR", "$": "USD", "\u00a3": "GBP", "\u00a5": "JPY", "\u20b9": "INR"}
_MARKS = str.maketrans({"\N{MINUS SIGN}": "-", "\u066b": ".", "\uff0e": ".", "\uff0c": ",",
                        "\uff05": "%", "\u066a": "%"})  # fmt: skip


def _mark_of(cells: list[_WrittenCell], decimal: str | None) -> tuple[str, bool]:
    """The decimal mark, and whether numbers have another reading with the other mark."""
    only = {".": 0, ",": 0}
    either = False
    for cell in cells:
        point, comma = (
            pattern.fullmatch(cell.digits) is not None for pattern in _PATTERNS.values()
        )
        if point != comma:
            only["." if point else ","] += 1
        elif point and "," in cell.digits:
            either = True
    # A point before three digits is no evidence for a decimal point: it may be a thousands mark.
    if only["."] != only[","]:
        return max(only, key=only.__getitem__), False
    return decimal or ".", either and decimal is None


def _value(cell: _WrittenCell, mark: str) -> float:
    """The number of a cell, NaN if it is not one."""
    other = "," if mark == "." else "."
    for notation in (mark, other):
        if _PATTERNS[notation].fullmatch(cell.digits):
            value = float(_without_groups(cell.digits, notation))
            return value / 2 if cell.limit == "<" else value
    return np.nan


def _without_groups(digits: str, mark: str) -> str:
    """A number without thousands marks, and with a decimal point."""
    return (digits.translate(_SWAPPED) if mark == "," else digits).replace(",", "")


def _remark(texts: pd.Series, values: np.ndarray, plain: np.ndarray, read: np.ndarray) -> str:
    """An example of a notation that is not plain, with its value."""
    special = read & ~(plain == values)
    if not special.any():
        return ""
    place = int(special.argmax())
    return f"has numbers such as {texts.iloc[place]!r}, taken as {values[place]:.12g}"


def _warnings(
    texts: pd.Series,
    cells: list[_WrittenCell],
    values: np.ndarray,
    mark: str,
    ambiguous: bool,
    limits: np.ndarray,
    others: list[str],
) -> list[str]:
    warnings = []
    if ambiguous:
        place = next(i for i, cell in enumerate(cells) if "," in cell.digits)
        warnings.append(
            f"has numbers such as {texts.iloc[place]!r}, taken as {values[place]:.12g} with a "
            "comma of thousands; if it is a decimal comma, say so (--decimal=, for a file; in a "
            "frame, write numbers)"
        )
    foreign = [
        place
        for place, cell in enumerate(cells)
        if np.isfinite(values[place]) and not _PATTERNS[mark].fullmatch(cell.digits)
    ]
    if foreign:
        place = foreign[0]
        warnings.append(
            f"mixes decimal points and decimal commas: {texts.iloc[place]!r} is taken as "
            f"{values[place]:.12g}"
        )
    if limits.any():
        shown = texts[limits].tolist()
        warnings.append(
            f"has values beyond a limit ({name_some(shown)}), taken as half the limit for <, and "
            "as the limit for >"
        )
    if others:
        warnings.append(
            f"has other texts among its numbers ({name_some(others)}), taken as missing"
        )
    return warnings
