"""Which function gives the jobs of each figure and claim that has rows."""

from __future__ import annotations

from collections.abc import Callable

from experiments.papers.figures import binmask, ctre, ip_cae, wast, wast_runs
from experiments.papers.figures.rows import Job

#: By the name of an entry, as ``wast/5``.
FIGURES: dict[str, Callable[[], list[Job]]] = {
    **wast.FIGURES,
    **wast_runs.FIGURES,
    **binmask.FIGURES,
    **ctre.FIGURES,
    **ip_cae.FIGURES,
}
