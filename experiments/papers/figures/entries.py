"""The entries of ``reproduction/figures.toml``: what a figure says, and how its rows are judged."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fsjax.errors import ConfigError

#: The file of the entries, and the folder of their rows, relative to the root of the repository.
ENTRIES = Path("reproduction/figures.toml")
ROWS = Path("reproduction/figures")

#: The ways in which a check compares two values.
WAYS = ("above", "below", "equal")

#: Kinds of pictures.
KINDS = ("lines", "bars")


class Check(NamedTuple):
    """Comparisons of values of a figure, one for each panel and place."""

    text: str  # what is compared, in words
    metric: str
    of: str  # the series that is compared
    than: str | float = ""  # another series, or a number; empty: the same at ``than_x``
    way: str = "above"  # one of :data:`WAYS`
    margin: float = 0.0  # how far above or below, or how near, in units of the metric
    x: tuple[str, ...] = ()  # places on the axis; empty: all that both series have
    than_x: str = ""  # the place of ``than``; empty: the same
    panels: tuple[str, ...] = ()  # empty: all


class Picture(NamedTuple):
    """How the rows are drawn."""

    kind: str = "lines"  # one of :data:`KINDS`
    metrics: tuple[str, ...] = ()  # those that are drawn, in panels of their own; empty: all
    x: str = ""  # labels of the axes
    y: str = ""
    log: str = ""  # the axes with a logarithmic scale, of ``xy``
    log_metrics: tuple[str, ...] = ()  # the metrics that have them; empty: all
    maps: tuple[str, ...] = ()  # metrics that are drawn as pixels, with a panel per series
    width: int = 0  # of a map, in pixels
    across: int = 3  # panels per row
    series: tuple[str, ...] = ()  # those that are drawn, in this order; empty: all
    note: str = ""  # a line below the picture on the page


class Entry(NamedTuple):
    """A figure or claim of a paper; it has ``why_not``, or rows and ``checks``."""

    paper: str
    name: str  # the number of the figure, or a word for a claim, a table or a section
    title: str  # on the page: ``Figure 5``
    message: str  # what the paper says with it, in our words
    why_not: str = ""  # why there are no rows
    command: str = ""  # the command that gives the rows, if not that of ``experiments.figures``
    scope: str = ""  # what is smaller here than in the paper
    checks: tuple[Check, ...] = ()
    picture: Picture = Picture()

    @property
    def key(self) -> str:
        """The name for ``--figure``: ``wast/5``."""
        return f"{self.paper}/{self.name}"

    @property
    def runs(self) -> bool:
        """Whether the figure has rows here."""
        return not self.why_not

    @property
    def how(self) -> str:
        """The command that gives the rows."""
        return self.command or (
            f"python -m experiments.figures --figure={self.key} --workdir=runs/figures"
        )


def read_entries(path: Path = ENTRIES) -> tuple[Entry, ...]:
    """Reads all entries, in the order of the file.

    Raises:
      ConfigError: for an entry with an unknown field, way or kind, one that a second entry repeats,
        or one that has both ``why_not`` and checks, or neither.
    """
    entries = tuple(
        _entry(fields, f"{path}: entry {number}")
        for number, fields in enumerate(tomllib.loads(path.read_text())["entry"], start=1)
    )
    keys = [entry.key for entry in entries]
    if twice := {key for key in keys if keys.count(key) > 1}:
        raise ConfigError(f"{path} has several entries {', '.join(sorted(twice))}; keep one")
    return entries


def _entry(fields: dict[str, Any], where: str) -> Entry:
    checks = tuple(_made(Check, check, where) for check in fields.pop("check", ()))
    picture = _made(Picture, fields.pop("picture", {}), where)
    entry: Entry = _made(Entry, fields, where)._replace(checks=checks, picture=picture)
    if bool(entry.why_not) == bool(checks):
        raise ConfigError(f"{where} needs either why_not or checks of its rows")
    if odd := {check.way for check in checks} - {*WAYS}:
        raise ConfigError(f"{where} has the way {odd.pop()!r}; use {', '.join(WAYS)}")
    if picture.kind not in KINDS:
        raise ConfigError(f"{where} has a picture {picture.kind!r}; use {', '.join(KINDS)}")
    return entry


def _made(kind: type[Any], fields: dict[str, Any], where: str) -> Any:
    if odd := set(fields) - {*kind._fields}:
        known = ", ".join(kind._fields)
        raise ConfigError(f"{where} has an unknown field {odd.pop()!r}; use {known}")
    if lacks := set(kind._fields) - set(kind._field_defaults) - set(fields):
        raise ConfigError(f"{where} lacks {', '.join(sorted(lacks))}")
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return kind(**{**fields, **lists})


def chosen(entries: Sequence[Entry], names: Sequence[str]) -> list[Entry]:
    """The entries with rows that ``--figure`` names: papers, or single figures as ``wast/5``.

    Raises:
      ConfigError: for a name that no entry has, or that of a figure without rows.
    """
    for name in names:
        fitting = [entry for entry in entries if name in (entry.paper, entry.key)]
        if not fitting:
            known = ", ".join(entry.key for entry in entries if entry.runs)
            raise ConfigError(f"unknown figure {name!r}; there are {known}")
        if not any(entry.runs for entry in fitting):
            raise ConfigError(f"{name} has no run here: {fitting[0].why_not}")
    return [
        entry
        for entry in entries
        if entry.runs and (not names or {entry.paper, entry.key} & {*names})
    ]
