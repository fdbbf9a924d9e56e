"""The figures of BinMask's paper."""

from __future__ import annotations

from collections.abc import Callable

from experiments.papers.figures.rows import Job

#: The functions that give the jobs of each figure.
FIGURES: dict[str, Callable[[], list[Job]]] = {}
