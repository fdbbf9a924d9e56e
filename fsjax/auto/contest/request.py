"""The request behind a selection: the checked problem, and what the answer is to say of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from fsjax.auto.contest.problem import Problem
from fsjax.auto.reading.notes import Note
from fsjax.auto.reading.target import Names


class Origin(NamedTuple):
    """Where a table comes from, for the report.

    Attributes:
      source: name of its file.
      target: name of the column that is predicted.
      command: the command line.
      notes: on how the file was read.
      elapsed: seconds since the start of the process, which count towards the budget.
    """

    source: str | None = None
    target: str | None = None
    command: str | None = None
    notes: tuple[Note, ...] = ()
    elapsed: float = 0.0


class Request(NamedTuple):
    """The request behind a selection.

    Attributes:
      table: the problem with all rows.
      classes: names of the classes, if there are classes.
      fdr: false discovery rate that the selection keeps below, if any.
      notes: on how the table was read, and on columns.
      origin: where the table comes from.
      costs: of the columns by label, if any.
      labels: of the user's columns by their names, where these differ.
    """

    table: Problem
    classes: Names
    fdr: float | None
    notes: tuple[Note, ...]
    origin: Origin
    costs: Mapping[Hashable, float] | None
    labels: Mapping[str, Hashable] = {}

    def label(self, name: str) -> Hashable:
        """The user's label of a column."""
        return self.labels.get(name, name)
