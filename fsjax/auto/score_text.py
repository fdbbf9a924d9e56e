"""How scores are written in the report, by the name of their metric."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsjax.auto.models import METRICS


class ScoreText(NamedTuple):
    """How the scores of a metric are written.

    Attributes:
      label: on axes.
      short: in sentences.
      digits: after the point.
      percent: whether scores are in percent.
    """

    label: str
    short: str
    digits: int
    percent: bool

    def number(self, value: float, sign: bool = False) -> str:
        """A score without its unit, on request with its sign."""
        if np.isnan(value):
            return "not known"
        if round(value, self.digits) == 0:
            return f"{0:.{self.digits}f}"
        return f"{value:{'+' if sign else ''}.{self.digits}f}".replace("-", "\N{MINUS SIGN}")

    def score(self, value: float) -> str:
        """A score with its unit."""
        return self.number(value) + (" %" if self.percent and not np.isnan(value) else "")


def score_text(metric: str) -> ScoreText:
    """How scores of ``metric`` are written; those of scikit-learn's scorers have three digits."""
    if metric not in METRICS:
        name = metric.replace("_", " ")
        return ScoreText(name, name, 3, False)
    known = METRICS[metric]
    return ScoreText(known.label, known.short, known.digits, "percent" in known.label)
