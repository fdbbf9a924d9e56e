"""Notes of a selection: how columns were read, what was noticed in them, what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

#: How much a note matters: an ``error`` is work that failed, a ``warning`` is to be checked before
#: a result is believed, a ``remark`` says how something was read.
Level = Literal["error", "warning", "remark"]

#: Kinds of notes on columns that are left out.
LEFT_OUT: Final = ("constant", "identifier", "text", "duplicate", "empty")

#: The level of each kind of note.
LEVELS: Final[Mapping[str, Level]] = MappingProxyType(
    {
        "leak": "warning",
        "mixed": "warning",
        "notation": "warning",
        "precision": "warning",
        "spelling": "warning",
        "sentinel": "warning",
        "target": "warning",
        **dict.fromkeys(LEFT_OUT, "remark"),
        "category": "remark",
        "date": "remark",
        "file": "remark",
        "missing": "remark",
        "number": "remark",
        "order": "remark",
        "rare": "remark",
    }
)


class Note(NamedTuple):
    """Something that the user should know, about a column or the table.

    Attributes:
      column: name of the column; ``(file)`` or ``(target)`` where it is about these.
      kind: of :data:`LEVELS`.
      text: what was done or noticed, without the name.
    """

    column: str
    kind: str
    text: str

    @property
    def level(self) -> Level:
        """How much the note matters."""
        return LEVELS[self.kind]
