"""Labels and categories in one spelling: spaces and Unicode forms are merged, case is named."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import pandas as pd

#: Characters without width, which texts copied from web pages and spreadsheets contain.
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))


class Spelling(NamedTuple):
    """Texts of which equal ones are spelled alike.

    Attributes:
      texts: in Unicode's form NFKC, without spaces around them; missing values stay.
      merged: which texts were merged, or empty.
      case: which texts still differ, by case only, or empty.
    """

    texts: pd.Series
    merged: str
    case: str


def one_spelling(texts: pd.Series) -> Spelling:
    """Merge texts that differ by spaces around or between words, or by their Unicode form only.

    Case is kept, because it can have a meaning (alleles ``a`` and ``A``, units ``m`` and ``M``).

    Args:
      texts: strings, and missing values.
    """
    spelled = {text: spelling_of(text) for text in texts.dropna().unique()}
    merged = _alike(spelled)
    folded = {text: text.casefold() for text in dict.fromkeys(spelled.values())}
    case = _alike(folded)
    return Spelling(
        pd.Series([spelled.get(text) for text in texts], index=texts.index, dtype=object),
        f"has texts that differ only by spaces or Unicode form ({merged}), taken as equal"
        if merged
        else "",
        f"has texts that differ only by case ({case}), taken as different; if they mean the same, "
        "write them alike"
        if case
        else "",
    )


def spelling_of(text: str) -> str:
    """A text in form NFKC with single spaces, without invisible characters and lone surrogates."""
    plain = unicodedata.normalize("NFKC", _without_surrogates(text))
    return " ".join(plain.translate(_INVISIBLE).split())


def _without_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _alike(spelled: dict[str, str]) -> str:
    """The first two texts with the same spelling, and the number of further ones, or empty."""
    first: dict[str, str] = {}
    pairs = [
        f"{ascii_marks(other)} and {ascii_marks(text)}"
        for text, spelling in spelled.items()
        if (other := first.setdefault(spelling, text)) != text
    ]
    return ", ".join(pairs[:2]) + (f" and {len(pairs) - 2} more" if len(pairs) > 2 else "")


def ascii_marks(text: str) -> str:
    """The text in quotes; if it is not printable or not in form NFKC, with escapes."""
    return repr(text) if unicodedata.is_normalized("NFKC", text) else ascii(text)
