"""Notes of a selection: how columns were read, what was noticed in them, what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

#: How much a note matters: an ``error`` is work that failed, a ``warning`` is to be checked before
#: a result is believed, a ``remark`` says how something was read.
Level = Literal["error", "warning", "remark"]

_RANK: Final[tuple[Level, ...]] = ("error", "warning", "remark")

#: What a note is about if it is not about a column.
FILE, TARGET, ROWS, METHODS, RUN = "(file)", "(target)", "(rows)", "(methods)", "(run)"
_NO_COLUMNS: Final = (FILE, TARGET, ROWS, METHODS, RUN)

#: Kinds of notes on columns that are left out.
LEFT_OUT: Final = ("constant", "identifier", "text", "duplicate", "empty")

#: The level of each kind of note.
LEVELS: Final[Mapping[str, Level]] = MappingProxyType(
    {
        "failed": "error",
        "leak": "warning",
        "near leak": "warning",
        "equal rows": "warning",
        "few rows": "warning",
        "maybe identifier": "warning",
        "mixed": "warning",
        "notation": "warning",
        "precision": "warning",
        "spelling": "warning",
        "sentinel": "warning",
        "target": "warning",
        "ledger": "warning",
        "stopped": "warning",
        **dict.fromkeys(LEFT_OUT, "remark"),
        "category": "remark",
        "date": "remark",
        "file": "remark",
        "missing": "remark",
        "number": "remark",
        "order": "remark",
        "rare": "remark",
        "rows": "remark",
        "time": "remark",
        "weights": "remark",
    }
)


class Note(NamedTuple):
    """Something that the user should know, about a column or the table.

    Attributes:
      column: name of the column; ``(file)``, ``(target)``, ``(rows)``, ``(methods)`` or ``(run)``
        where it is about one of these.
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

    @property
    def sentence(self) -> str:
        """The text with its subject: ``'weight' has ...``, ``file: ...``."""
        if self.column in _NO_COLUMNS:
            return f"{self.column.strip('()')}: {self.text}"
        return f"{self.column!r} {self.text}"


def by_level(notes: Iterable[Note]) -> list[Note]:
    """Errors first, then warnings in the order of :data:`LEVELS` (leaks first), then remarks."""
    kinds = list(LEVELS)
    return sorted(notes, key=lambda note: (_RANK.index(note.level), kinds.index(note.kind)))
