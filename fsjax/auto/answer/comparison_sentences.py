"""The paired comparisons of the whole procedure in two sentences; tables have all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from fsjax.auto.contest.differences import ALIKE, BETTER, UNCLEAR, WORSE
from fsjax.auto.contest.scoring import Metric

#: What a verdict says of the procedure, before what it is compared with.
_BESIDE: Final = {
    BETTER: "is better than",
    WORSE: "is worse than",
    ALIKE: "is as good as",
    UNCLEAR: "is not shown to differ from",
}

#: Between the number of columns and the method that selected them.
_BY: Final = "selected by "

#: Most methods of one verdict that are named.
_METHODS: Final = 3


class Compared(NamedTuple):
    """A comparison as :class:`fsjax.auto.Selection` has it.

    Attributes:
      against: what the whole procedure is compared with, in words.
      difference, low, high: of the scores, with its 95 % interval.
      verdict: in words.
    """

    against: str
    difference: float
    low: float
    high: float
    verdict: str


def comparison_sentences(rows: Sequence[Compared], metric: Metric, over: str = "") -> list[str]:
    """One sentence on all columns and random ones, and one that counts the other methods.

    Args:
      over: what the differences are paired over, in words.
    """
    sentences = []
    phrases = [
        f"{_BESIDE[row.verdict]} {row.against} ({metric.number(row.difference, sign=True)}, 95 % "
        f"interval {_between(row, metric)})"
        for row in rows
        if _BY not in row.against
    ]
    if phrases:
        paired = f", paired over {over}" if over else ""
        sentences.append(f"The whole procedure {_listed(phrases)}{paired}.")
    if methods := [row for row in rows if _BY in row.against]:
        sentences.append(_other_methods(methods))
    return sentences


def _between(row: Compared, metric: Metric) -> str:
    """The interval, where it is known: a few rows may make the whole difference."""
    if not np.isfinite([row.low, row.high]).all():
        return "not known"
    return f"{metric.number(row.low, sign=True)} to {metric.number(row.high, sign=True)}"


def _other_methods(rows: Sequence[Compared]) -> str:
    """How many of the other methods the procedure is better than, and so on, with some names."""
    parts = []
    for verdict, words in _BESIDE.items():
        names = [row.against.partition(_BY)[2] for row in rows if row.verdict == verdict]
        if names:
            more = f" and {len(names) - _METHODS} more" if len(names) > _METHODS else ""
            parts.append(f"{words} {len(names)} ({', '.join(names[:_METHODS])}{more})")
    if len(rows) == 1:
        name = rows[0].against.partition(_BY)[2]
        return f"It {_BESIDE[rows[0].verdict]} the other method with as many columns ({name})."
    return f"Of {len(rows)} other methods with as many columns, it {_listed(parts)}."


def _listed(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
