"""Runs recorded cells again with other seeds: ``python -m experiments.reproduce --verify=20``.

The cells are drawn at random, with the seed ``--draw``, from all whose runs took at most
:data:`LIMIT` CPU seconds when they were recorded; a number that several tables repeat is drawn
once. Each is run with :data:`SEEDS` seeds from :data:`FIRST`, which no recorded run has, and
compared with the recorded values by the rule of :mod:`experiments.papers.equivalence`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.artifacts.environment import versions
from experiments.papers import results, runs
from experiments.papers.cells import Cell, number_of, run_of
from experiments.papers.curves import compared_with
from experiments.papers.equivalence import compare, margin, side
from experiments.papers.results import KEY
from fsjax.errors import FsjaxError

#: The fresh seeds: their number and the first one.
SEEDS, FIRST = 3, 1000

#: The most CPU seconds that the recorded runs of a cell took together.
LIMIT = 60.0

DIFFERENCE = ("difference", "low", "high")

#: Columns of ``reproduction/verification.csv``.
COLUMNS = (
    *KEY,
    *("draw", "limit_seconds", "recorded_mean", "recorded_std", "recorded_seeds"),
    *("mean", "std", "seeds", *DIFFERENCE, "verdict", "cpu_seconds", "commit", "versions"),
)

TEXT = (*KEY, "verdict", "commit", "versions")


def drawn(cells: Iterable[Cell], table: pd.DataFrame, number: int, draw: int) -> list[Cell]:
    """Draws recorded cells at random with the seed ``draw``, all with the same probability.

    Args:
      cells: cells whose data are available.
      table: the table of ``results.csv``.
      number: how many to draw at most.
      draw: the seed of the draw.
    """
    cells = list(cells)
    recorded, known = results.by_key(table), results.known_costs(cells, table)
    once = {number_of(cell): cell for cell in reversed(cells) if cell.key in recorded}
    cheap = [
        cell
        for cell in sorted(once.values(), key=lambda cell: cell.key)
        if sum(known[run].seconds if run in known else math.inf for run in _runs(cell)) <= LIMIT
    ]
    random.Random(draw).shuffle(cheap)
    return cheap[:number]


def verified(
    cells: Iterable[Cell], table: pd.DataFrame, done: pd.DataFrame, workdir: Path, draw: int
) -> Iterator[dict[str, Any]]:
    """Runs cells again, except those of a draw that is ``done``; yields a row for each."""
    recorded = results.by_key(table)
    present = {(*(row[name] for name in KEY), row["draw"]) for row in done.to_dict("records")}
    for cell in cells:
        if (*cell.key, draw) in present:
            continue
        try:
            finished = {run: runs.train(run, SEEDS, workdir, FIRST) for run in _runs(cell)}
            (fresh,) = results.collect([cell], finished)
        except (FsjaxError, ValueError) as error:
            print(f"{', '.join(cell.key)}: failed: {error}", flush=True)
            continue
        before, (method, metric) = recorded[cell.key], (cell.row.method, cell.row.metric)
        ours, theirs = side(method, metric, fresh), side(method, metric, before)
        result = compare(ours, theirs, margin(metric, before["mean"]))
        yield {
            **{name: fresh[name] for name in (*KEY, "mean", "std", "seeds", "commit")},
            **{f"recorded_{name}": before[name] for name in ("mean", "std", "seeds")},
            **{name: float(f"{getattr(result, name):.5g}") for name in DIFFERENCE},
            "verdict": result.verdict,
            "draw": draw,
            "limit_seconds": LIMIT,
            "cpu_seconds": round(sum(run["cpu_seconds"] for run in finished.values()), 1),
            "versions": ", ".join(f"{name} {number}" for name, number in versions().items()),
        }


def _runs(cell: Cell) -> dict[Any, None]:
    return dict.fromkeys([run_of(cell), *compared_with(cell).values()])
