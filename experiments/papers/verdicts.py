"""Whether a cell holds: by the paper's number, or by the result of reference code on these rows.

A cell agrees with the reference if the two means differ by at most the cell's tolerance, with the
larger of the two standard deviations instead of the published one. A cell whose scores are all
equal selects columns by their position. It is degenerate and never holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from experiments.papers.cells import Cell, least_tolerance
from experiments.papers.results import KEY, by_key, reason_of

Row = Mapping[str, Any]


class Verdict(NamedTuple):
    """The comparison of a cell that was run with the paper and with reference code.

    Attributes:
      ours: the row of ``results.csv``.
      reference: the row of ``reference.csv``, or ``None``.
      agrees_with_paper: ``None`` if the paper has no number.
      agrees_with_reference: ``None`` if no reference code was run.
      degenerate: whether all scores are equal.
    """

    ours: Row
    reference: Row | None
    agrees_with_paper: bool | None
    agrees_with_reference: bool | None
    degenerate: bool

    @property
    def holds(self) -> bool:
        """Whether it agrees with the paper or the reference, and is not degenerate."""
        return not self.degenerate and bool(self.agrees_with_paper or self.agrees_with_reference)

    @property
    def explained(self) -> bool:
        """Whether a cell that does not hold has a reason."""
        return not self.holds and (self.degenerate or bool(self.ours["reason"]))


def reference_tolerance(cell: Cell, ours: Row, reference: Row) -> float:
    """The largest allowed difference from the reference, in units of the metric."""
    return max(
        least_tolerance(cell.row.metric, reference["mean"]),
        2.0 * max(ours["std"], reference["std"]),
    )


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
        reference_row = reference_rows.get(cell.key)
        published = None if math.isnan(cell.row.mean) else ours["agrees"] == 1
        referenced = None
        if reference_row is not None:
            limit = reference_tolerance(cell, ours, reference_row) * (1 + 1e-9)
            referenced = abs(ours["mean"] - reference_row["mean"]) <= limit
        is_degenerate = bool(reason_of(dict(zip(KEY, cell.key, strict=True)), degenerate))
        verdicts[cell.key] = Verdict(ours, reference_row, published, referenced, is_degenerate)
    return verdicts


def coverage(
    cells: Iterable[Cell], verdicts: Mapping[tuple[str, ...], Verdict], available: Iterable[str]
) -> pd.DataFrame:
    """Counts the cells with a published number, per paper.

    The columns are ``cells``, all of them; ``data``, those whose data set is available; ``run``,
    those that were run. Among the latter, ``by paper``, ``by reference`` and ``by either`` count
    those that agree and are not degenerate; ``degenerate`` those that are; ``explained`` and
    ``unexplained`` those that do not hold, with and without a reason.
    """
    available = set(available)
    published = [cell for cell in cells if not math.isnan(cell.row.mean)]
    rows = []
    for paper in dict.fromkeys(cell.paper for cell in published):
        of_paper = [cell for cell in published if cell.paper == paper]
        run = [verdicts[cell.key] for cell in of_paper if cell.key in verdicts]
        sound = [verdict for verdict in run if not verdict.degenerate]
        held = sum(verdict.holds for verdict in run)
        explained = sum(verdict.explained for verdict in run)
        rows.append(
            {
                "paper": paper,
                "cells": len(of_paper),
                "data": sum(cell.row.dataset in available for cell in of_paper),
                "run": len(run),
                "by paper": sum(bool(verdict.agrees_with_paper) for verdict in sound),
                "by reference": sum(bool(verdict.agrees_with_reference) for verdict in sound),
                "by either": held,
                "degenerate": len(run) - len(sound),
                "explained": explained,
                "unexplained": len(run) - held - explained,
            }
        )
    return pd.DataFrame(rows)
