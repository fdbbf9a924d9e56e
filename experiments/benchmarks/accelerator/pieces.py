"""A piece of the measurements, and the rows that it leaves in a file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import jax

#: Columns of the file of rows. ``value`` is a number, or a message if ``measure`` is ``error``.
COLUMNS = ("piece", "measure", "value", "device", "jax")

#: Sizes of networks and tables: those that are reported, and those of tests.
Size = Literal["full", "tiny"]


class Piece(NamedTuple):
    """A measurement.

    Attributes:
      run: returns values by name.
      compile: compiles the programs of ``run`` into the cache on disk; ``None`` if they are small.
    """

    run: Callable[[], Mapping[str, float | str]]
    compile: Callable[[], object] | None = None


def device_name() -> str:
    """The kind of the default device, such as ``NVIDIA H100 80GB HBM3``; ``cpu`` on CPUs."""
    return jax.devices()[0].device_kind


def finished(path: Path, device: str) -> set[str]:
    """Names of the pieces that have rows of this device, other than errors."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["piece"] for row in rows if row["device"] == device and row["measure"] != "error"}


def append(path: Path, piece: str, values: Mapping[str, float | str], device: str) -> None:
    """Writes the values of a piece at the end of the file, which is created if necessary."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        for measure, value in values.items():
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            writer.writerow((piece, measure, text, device, jax.__version__))
