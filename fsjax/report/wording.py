"""Numbers with their nouns, and names that are not too long, for figures and pages."""

from collections import defaultdict
from collections.abc import Iterable
from os.path import commonprefix
from typing import Final

#: Longest name that is shown in full.
NAME_LENGTH: Final = 32


def count(number: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``, ``1,500 seeds``."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """``seeds``, ``halves``."""
    return f"{noun[:-1]}ves" if noun.endswith("lf") else f"{noun}s"


def shorten(name: object, length: int = NAME_LENGTH) -> str:
    """A name on one line; if longer than ``length`` characters, with dots in its middle.

    Both ends are kept, because long names of columns often differ only at the end.
    """
    text = " ".join(str(name).split())
    if len(text) <= length:
        return text
    tail = (length - 3) // 2
    return f"{text[: length - 3 - tail]}...{text[len(text) - tail :]}"


def shorten_all(names: Iterable[object], length: int = NAME_LENGTH) -> list[str]:
    """Names as :func:`shorten` writes them, but with the part that tells long ones apart."""
    texts = [" ".join(str(name).split()) for name in names]
    short = [shorten(text, length) for text in texts]
    alike: dict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(short):
        alike[text].append(place)
    for places in alike.values():
        if len(places) > 1:
            same = len(commonprefix([texts[place] for place in places]))
            for place in places:
                short[place] = _around(texts[place], same, length)
    return short if len(set(short)) == len(set(texts)) else texts


def _around(text: str, place: int, length: int) -> str:
    """A part of a text around a place, with dots where something is missing."""
    room = length - 6
    start = max(0, min(place - room // 2, len(text) - room))
    end = "..." if start + room < len(text) else ""
    return f"{'...' if start else ''}{text[start : start + room]}{end}"
