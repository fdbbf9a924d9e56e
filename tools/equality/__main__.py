"""Prints the table of ``docs/equality.md``: ``python -m tools.equality``.

Write it to ``docs/tables/equality.md``.
"""

from __future__ import annotations

import math

import fsjax
from fsjax.methods import METHODS

from .measure import COMPARISONS


def text(distance: float) -> str:
    """Formats a cell of the table."""
    if math.isnan(distance):
        return "-"
    if distance == 0:
        return "bits"
    return "other columns" if math.isinf(distance) else f"{distance:.0e}"


def main() -> None:
    """Measures all methods and prints a row for each."""
    fsjax.use_cpu_devices(2)
    fsjax.use_compilation_cache()
    print(f"| method | {' | '.join(COMPARISONS)} |\n|{' --- |' * (1 + len(COMPARISONS))}")
    for name in sorted(METHODS):
        cells = [text(compare(name)) for compare in COMPARISONS.values()]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
