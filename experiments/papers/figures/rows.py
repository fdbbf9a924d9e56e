"""Rows of data of a figure: one format for all, in ``reproduction/figures/*.csv``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from experiments.papers.results import read_cells, write_results
from fsjax.errors import ConfigError

#: The folder of the rows, in the root of the repository.
ROWS = Path("reproduction/figures")

#: The columns of a file; ``std`` has ``ddof=0``, and ``seeds`` is 0 for a value without chance.
COLUMNS = ("figure", "panel", "series", "x", "metric", "mean", "std", "seeds", "commit")

TEXT = ("figure", "panel", "series", "x", "metric", "commit")

#: The metric of the one row with the CPU seconds that all jobs of a figure took.
COST = "cpu_seconds"


class Point(NamedTuple):
    """One value of a figure."""

    panel: str  # the part of the figure, usually a data set
    series: str  # the line or bar, usually a method
    x: float | str  # the place on the horizontal axis
    metric: str
    mean: float  # over seeds, in units of the metric
    std: float = 0.0  # over seeds, with ``ddof=0``
    seeds: int = 0  # 0 for a value that no seed changes


class Job(NamedTuple):
    """A part of a figure that is computed at once and kept: its name, and what computes it."""

    name: str
    run: Callable[[], list[Point]]


def point(panel: str, series: str, x: float | str, metric: str, values: Iterable[float]) -> Point:
    """The value with the mean and the deviation of one value for each seed."""
    array = np.asarray(list(values), np.float64)
    return Point(panel, series, x, metric, float(array.mean()), float(array.std()), len(array))


def path_of(folder: Path, figure: str) -> Path:
    """The file of a figure, named as ``wast/5``."""
    return folder / f"{figure.replace('/', '_')}.csv"


def read_rows(path: Path) -> pd.DataFrame:
    """Reads the rows of a figure; there are none if there is no file."""
    return read_cells(path, COLUMNS, TEXT)


def write_rows(path: Path, figure: str, points: Sequence[Point], commit: str) -> None:
    """Writes the values of a figure to a file."""
    rows = [
        {
            "figure": figure,
            **value._asdict(),
            "x": f"{value.x:g}" if isinstance(value.x, float | int) else value.x,
            "mean": float(f"{value.mean:.6g}"),
            "std": float(f"{value.std:.4g}"),
            "commit": commit,
        }
        for value in points
    ]
    write_results(pd.DataFrame(rows, columns=COLUMNS), path)


def points_of(table: pd.DataFrame) -> list[Point]:
    """The values of a table of rows."""
    return [Point(*(getattr(row, name) for name in Point._fields)) for row in table.itertuples()]


def recorded(figure: str) -> list[Point]:
    """The recorded values of another figure, which must have been run."""
    points = points_of(read_rows(path_of(ROWS, figure)))
    if not points:
        raise ConfigError(f"{figure} has no rows; run it first, by --figure={figure}")
    return points
