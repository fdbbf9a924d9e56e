"""Whether what a figure says holds here, from intervals of differences of its rows.

A check compares two values at each panel and place. The 90 % interval of their difference
(:func:`experiments.papers.equivalence.compare`) decides: a value is *above* another by more than a
margin if the interval is, *equal* if it lies within the margin, and the opposite if it lies on the
other side or outside; otherwise the comparison is undecided. Of all comparisons of a figure,

- all hold: *yes*;
- some hold: *partly*;
- none holds, and at least half are contradicted: *no*;
- else: *undecided*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from experiments.papers.equivalence import Side, compare
from experiments.papers.figures.entries import Check, Entry
from experiments.papers.figures.rows import Point, points_of
from fsjax.errors import ConfigError

#: The words of ``holds``.
HOLDS = ("yes", "partly", "no", "undecided")

#: With more comparisons, the sentence counts them instead of listing each.
LISTED = 5


class Comparison(NamedTuple):
    """A comparison of two values: where, the difference with its interval, and its verdict."""

    where: str
    difference: float
    low: float
    high: float
    holds: str  # yes, no or undecided


class Outcome(NamedTuple):
    """Whether a figure holds, one of :data:`HOLDS`, and a sentence for each of its checks."""

    holds: str
    sentences: tuple[str, ...]


def outcome_of(entry: Entry, table: pd.DataFrame) -> Outcome:
    """Judges a figure by its rows.

    Raises:
      ConfigError: if a check finds nothing to compare.
    """
    points = points_of(table)
    every: list[Comparison] = []
    sentences = []
    for check in entry.checks:
        results = comparisons(check, points)
        if not results:
            raise ConfigError(f"{entry.key}: the rows have nothing for the check {check.text!r}")
        sentences.append(_sentence(check, results))
        every += results
    return Outcome(overall([comparison.holds for comparison in every]), tuple(sentences))


def overall(words: Sequence[str]) -> str:
    """The word for a figure from those of its comparisons, by the rule of this module."""
    if words.count("yes") in (0, len(words)):
        if "yes" in words:
            return "yes"
        return "no" if 2 * words.count("no") >= len(words) else "undecided"
    return "partly"


def comparisons(check: Check, points: Sequence[Point]) -> list[Comparison]:
    """The comparisons of a check, in the order of the rows."""
    values = {(p.panel, p.series, str(p.x)): p for p in points if p.metric == check.metric}
    results = []
    for (panel, series, x), value in values.items():
        if series != check.of or (check.panels and panel not in check.panels):
            continue
        if check.x and x not in check.x:
            continue
        if isinstance(check.than, str):
            partner = values.get((panel, check.than or check.of, check.than_x or x))
            if partner is None or partner is value:
                continue
            against = Side(partner.mean, partner.std, partner.seeds)
        else:
            against = Side(float(check.than), 0.0, 0)
        results.append(_compared(check, value, against, ", ".join(filter(None, (panel, x)))))
    return results


def _compared(check: Check, value: Point, partner: Side, where: str) -> Comparison:
    result = compare(Side(value.mean, value.std, value.seeds), partner, check.margin)
    low, high, margin = result.low, result.high, check.margin
    if math.isnan(low):
        holds = "undecided"
    elif check.way == "equal":
        holds = {"agrees": "yes", "differs": "no"}.get(result.verdict, "undecided")
    else:
        least, most = (low, high) if check.way == "above" else (-high, -low)
        holds = "yes" if least > margin else "no" if most <= margin else "undecided"
    return Comparison(where, result.difference, low, high, holds)


def _sentence(check: Check, results: Sequence[Comparison]) -> str:
    words = [comparison.holds for comparison in results]
    names = {"yes": "holds", "no": "contradicted", "undecided": "undecided"}
    counts = ", ".join(f"{names[w]} in {words.count(w)}" for w in names if w in words)
    shown, about = list(results), ""
    if len(results) > LISTED:
        order = sorted(results, key=lambda comparison: comparison.difference)
        shown = [order[0], order[len(order) // 2], order[-1]]
        about = "least, middle and largest: "
    text = "; ".join(f"{c.where} {_difference(c)}".strip() for c in shown)
    return f"{check.text}: {counts} of {len(results)} ({about}{text})."


def _difference(comparison: Comparison) -> str:
    difference, low, high = (f"{value:+.3g}" for value in comparison[1:4])
    return difference if low in (high, "+nan") else f"{difference} [{low}, {high}]"
