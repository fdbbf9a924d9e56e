"""The registered public data sets: the entries of ``catalog.toml``."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from fsjax.tables.datasets.download import Remote
from fsjax.tables.datasets.files import FileForm
from fsjax.tables.readers import formats as parsers
from fsjax.tables.splits import PaperSettings


@dataclass(frozen=True)
class Entry:
    """What is known about a registered data set.

    Attributes:
        title: its name for readers, one line.
        shape: (rows, columns) that its files must have.
        num_classes: number of classes.
        forms: the forms in which it may be found, in order of preference.
        remotes: the files to download if no form is found.
        paper: the papers' split and scaling; ``protocol`` is ``'wast'`` unless it is given.
        image_shape: pixel grid of a row, or None.
        image_order: ``'C'`` for pixels line by line, ``'F'`` for column by column.
        class_names: in the order of the class numbers, if the files do not have them.
        train_rows: number of leading training rows, in files that hold training and then test rows
            without marking them; 0 if there is no such split.
        first_labels: of the training rows, to distinguish data sets with the same file names.
        impute: rule for the missing values of this data set, or None if it has none.
        hint: a further line of the error message if no file is found.
    """

    title: str
    shape: tuple[int, int]
    num_classes: int
    forms: tuple[FileForm, ...] = ()
    remotes: tuple[Remote, ...] = ()
    paper: PaperSettings = PaperSettings(protocol="wast")
    image_shape: tuple[int, ...] | None = None
    image_order: Literal["C", "F"] = "C"
    class_names: tuple[str, ...] | None = None
    train_rows: int = 0
    first_labels: tuple[int, ...] | None = None
    impute: str | None = None
    hint: str = ""

    @property
    def source(self) -> str:
        """Where its files are published, for messages."""
        return ", ".join(remote.urls[0] for remote in self.remotes)


def _frozen(value: Any) -> Any:
    """The value with tuples in place of lists."""
    if isinstance(value, dict):
        return {key: _frozen(part) for key, part in value.items()}
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _entry(forms: Sequence[dict] = (), remotes: Sequence[dict] = (), **fields: Any) -> Entry:
    paper = {name: fields.pop(name) for name in PaperSettings._fields if name in fields}
    return Entry(
        paper=PaperSettings(**{"protocol": "wast", **paper}),
        forms=tuple(FileForm(**form | {"read": getattr(parsers, form["read"])}) for form in forms),
        remotes=tuple(Remote(**remote) for remote in remotes),
        **fields,
    )


_TEXT = (files("fsjax.tables.datasets") / "catalog.toml").read_text(encoding="utf-8")
ENTRIES: dict[str, Entry] = {
    name: _entry(**fields) for name, fields in _frozen(tomllib.loads(_TEXT)).items()
}
"""The registered data sets by name."""


def paper_scaling(name: str) -> tuple[str, str]:
    """The scaling that the papers used for a data set, and the rows to which they fitted it.

    For names that are not registered, such as a user's table, each column is standardised.
    Returns ``(kind, rows)`` with a kind of :data:`fsjax.data.KINDS` and ``'train'`` or
    ``'train+valid'``.
    """
    return paper_settings(name).scaling


def named_protocol(name: str, protocol: str) -> str:
    """The protocol that splits the data set of a name, also if the name is not registered."""
    return paper_settings(name).named(protocol)


def paper_settings(name: str) -> PaperSettings:
    """How the papers split and scale the data set of a name, also if it is not registered."""
    return ENTRIES[name].paper if name in ENTRIES else PaperSettings()
