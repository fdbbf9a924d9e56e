"""The verdicts of cells: by the paper's number, and by the result of reference code on these rows.

Both follow the rule of :mod:`experiments.papers.equivalence`. A cell agrees if one of them says so,
differs if one says that and neither that it agrees, and is undecided otherwise. A cell whose scores
are all equal selects columns by their position. It is degenerate, and never agrees.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from experiments.papers import equivalence
from experiments.papers.cells import COSTS, Cell, number_of
from experiments.papers.equivalence import Comparison, compare, margin, published_side, side
from experiments.papers.results import COLUMNS, KEY, KINDS, by_key, reason_of

Row = Mapping[str, Any]


class Verdict(NamedTuple):
    """The comparison of a cell that was run with the paper and with reference code.

    Attributes:
      cell: the cell.
      ours: the row of ``results.csv``.
      reference: the row of ``reference.csv``, or ``None``.
      by_paper: the comparison with the published value; ``None`` if the paper has none.
      by_reference: that with the reference; ``None`` if no reference code was run.
      reason: the entry of ``reasons.toml`` for a cell that differs, or ``None``.
      degenerate: whether all scores are equal.
    """

    cell: Cell
    ours: Row
    reference: Row | None
    by_paper: Comparison | None
    by_reference: Comparison | None
    reason: Row | None
    degenerate: bool

    @property
    def verdict(self) -> str:
        """``agrees`` by the paper or the reference, else ``differs`` by one, else ``undecided``."""
        words = [c.verdict for c in (self.by_paper, self.by_reference) if c is not None]
        return next((word for word in ("agrees", "differs") if word in words), "undecided")

    @property
    def kind(self) -> str:
        """The kind of the reason of a cell that differs; empty for other cells."""
        if self.by_paper is None or self.by_paper.verdict != "differs":
            return ""
        return self.reason["kind"] if self.reason else KINDS[-1]


def verdicts_of(
    cells: Iterable[Cell], results: pd.DataFrame, reference: pd.DataFrame, reasons: Sequence[Row]
) -> dict[tuple[str, ...], Verdict]:
    """The verdict of every cell that was run, by its key.

    Args:
      cells: cells of the papers.
      results: the table of ``results.csv``.
      reference: the table of ``reference.csv``.
      reasons: the result of :func:`experiments.papers.results.read_reasons`; entries with
        ``degenerate`` mark cells whose scores are all equal.
    """
    rows, reference_rows = by_key(results), by_key(reference)
    degenerate = [entry for entry in reasons if entry.get("degenerate")]
    verdicts = {}
    for cell in cells:
        ours = rows.get(cell.key)
        if ours is None:
            continue
        fields = dict(zip(KEY, cell.key, strict=True))
        equal = reason_of(fields, degenerate)
        reason = equal or reason_of(fields, reasons)
        other = reference_rows.get(cell.key)
        method, metric, mean = cell.row.method, cell.row.metric, cell.row.mean
        us = side(method, metric, ours)
        published = referenced = None
        if not math.isnan(mean):
            printed, above = published_side(cell), equivalence.truncated(metric, mean)
            published = compare(us, printed, margin(metric, mean), above)
        if other is not None:
            referenced = compare(us, side(method, metric, other), margin(metric, other["mean"]))
        if equal:
            published, referenced = (_by_position(c) for c in (published, referenced))
        verdicts[cell.key] = Verdict(
            cell, ours, other, published, referenced, reason, equal is not None
        )
    return verdicts


def _by_position(comparison: Comparison | None) -> Comparison | None:
    """A comparison of columns that were selected by their position: it tells no agreement."""
    if comparison is None or comparison.verdict != "agrees":
        return comparison
    return comparison._replace(verdict="undecided")


def with_verdicts(table: pd.DataFrame, verdicts: Mapping[tuple[str, ...], Verdict]) -> pd.DataFrame:
    """Fills in the columns of ``results.csv`` that compare a cell with its published value."""
    rows = []
    for key, row in by_key(table).items():
        verdict = verdicts.get(key)
        paper = verdict.by_paper if verdict else None
        empty = dict.fromkeys(("agrees", "verdict", "reason", "reason_kind"), "")
        row = {**row, **empty, "low": math.nan, "high": math.nan}
        if verdict and paper:
            kind = verdict.kind
            row["verdict"], row["agrees"] = paper.verdict, int(paper.verdict == "agrees")
            row["low"], row["high"] = (float(f"{v:.5g}") for v in (paper.low, paper.high))
            row["reason_kind"] = kind
            row["reason"] = verdict.reason["text"] if kind and verdict.reason else ""
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def distinct(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts without those of a run that another table shows with the same numbers."""
    first: dict[tuple[object, ...], Verdict] = {}
    for verdict in verdicts:
        first.setdefault(number_of(verdict.cell), verdict)
    return list(first.values())


def coverage(
    cells: Iterable[Cell], verdicts: Mapping[tuple[str, ...], Verdict], available: Iterable[str]
) -> pd.DataFrame:
    """Counts the cells with a published number, per paper.

    The columns are ``cells``, all of them; ``data``, those whose data set is available; ``run``,
    those that were run; ``distinct``, these without repetitions of the same run and number; and of
    the distinct ones that are accuracies or errors, the verdicts by paper or reference.
    """
    available = set(available)
    published = [cell for cell in cells if not math.isnan(cell.row.mean)]
    rows = []
    for paper in dict.fromkeys(cell.paper for cell in published):
        of_paper = [cell for cell in published if cell.paper == paper]
        run = [verdicts[cell.key] for cell in of_paper if cell.key in verdicts]
        once = distinct(run)
        judged = [v.verdict for v in once if v.cell.row.metric not in COSTS]
        rows.append(
            {
                "paper": paper,
                "cells": len(of_paper),
                "data": sum(cell.row.dataset in available for cell in of_paper),
                "run": len(run),
                "distinct": len(once),
                **{word: judged.count(word) for word in equivalence.VERDICTS},
            }
        )
    names = ["paper", "cells", "data", "run", "distinct", *equivalence.VERDICTS]
    return pd.DataFrame(rows, columns=names)
