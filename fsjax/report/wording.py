"""Numbers with their nouns, and names that are not too long, for figures and pages."""

from typing import Final

#: Longest name that is shown in full.
NAME_LENGTH: Final = 32


def count(number: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{number} {noun if number == 1 else plural(noun)}"


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
