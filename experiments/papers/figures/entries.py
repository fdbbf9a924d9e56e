"""The entries of ``reproduction/figures.toml``: what a figure says, and how its rows are judged."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fsjax.errors import ConfigError

#: The file of the entries, in the root of the repository.
ENTRIES = Path("reproduction/figures.toml")

#: The ways in which a check compares two values.
WAYS = ("above", "below", "equal")


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

    kind: str = "lines"  # ``lines`` or ``bars``
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
      ConfigError: for an entry with an unknown field or way, or one that lacks a field, or has both
        ``why_not`` and checks, or neither.
    """
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["entry"]
    try:
        return tuple(_entry(dict(fields)) for fields in listed)
    except (TypeError, ConfigError) as error:
        raise ConfigError(f"{path} has an entry that does not fit: {error}") from None


def _entry(fields: dict[str, Any]) -> Entry:
    checks = tuple(Check(**_tuples(check)) for check in fields.pop("check", ()))
    picture = Picture(**_tuples(fields.pop("picture", {})))
    entry = Entry(**fields, checks=checks, picture=picture)
    if bool(entry.why_not) == bool(checks):
        raise ConfigError(f"{entry.key} needs either why_not or checks of its rows")
    if odd := {check.way for check in checks} - {*WAYS}:
        raise ConfigError(f"{entry.key} has the way {odd.pop()!r}; use {', '.join(WAYS)}")
    return entry


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()}


def chosen(entries: Sequence[Entry], names: Sequence[str]) -> list[Entry]:
    """The entries with rows that ``--figure`` names: papers, or single figures as ``wast/5``.

    Raises:
      ConfigError: for a name that no entry with rows has.
    """
    with_rows = [entry for entry in entries if entry.runs]
    for name in names:
        if not any(name in (entry.paper, entry.key) for entry in with_rows):
            known = ", ".join(entry.key for entry in with_rows)
            raise ConfigError(f"{name!r} is not a figure with a run here; there are {known}")
    return [entry for entry in with_rows if not names or {entry.paper, entry.key} & {*names}]
