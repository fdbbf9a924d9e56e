"""A selection in a few lines, the same in the terminal, in notebooks and at the top of the page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pandas as pd

from fsjax.auto.differences import ALIKE, BETTER, UNCLEAR, WORSE
from fsjax.auto.notes import Note, by_level
from fsjax.auto.scoring import metric_named
from fsjax.auto.statements import STABLE
from fsjax.errors import printable
from fsjax.report.wording import count, shorten

if TYPE_CHECKING:
    from fsjax.auto.selection import Selection

#: Most names of columns in the first line, and most warnings below it.
NAMED, WARNED = 20, 5

#: Most characters of a name, most of all names, and fewest names whatever their length.
_LENGTH, _CHARACTERS, _LEAST = 80, 600, 5

#: Most methods that a sentence on comparisons names.
_METHODS = 3

#: What a verdict says of the selection and what it is compared with.
_BESIDE: Final = {
    BETTER: "better than",
    WORSE: "worse than",
    ALIKE: "as good as",
    UNCLEAR: "not shown to differ from",
}


class Line(NamedTuple):
    """A line of the summary: what it is about, and what is known of that."""

    label: str
    text: str


class Kept(NamedTuple):
    """What to keep.

    Attributes:
      number: in words, if that is not obvious from the names: ``all 12 columns``, ``nothing``.
      names: of the first columns, the most important first.
      more: number of selected columns without a name here.
    """

    number: str
    names: tuple[str, ...]
    more: int


def kept(selection: Selection) -> Kept:
    """The names of the selected columns, as far as they fit into a line."""
    if not selection.columns:
        return Kept("nothing", (), 0)
    names = tuple(name_of(label) for label in selection.columns[:NAMED])
    ends = list(itertools.accumulate(len(name) + 2 for name in names))
    names = names[: max(_LEAST, sum(end <= _CHARACTERS for end in ends))]
    offered = selection.facts["columns_offered"]
    every = f"all {offered:,} columns" if len(selection.columns) == offered else ""
    return Kept(every, names, len(selection.columns) - len(names))


def name_of(label: Hashable) -> str:
    """The label of a column on one line, in quotes if it contains a comma."""
    text = shorten(printable(str(label)), _LENGTH)
    return f"'{text}'" if "," in text and isinstance(label, str) else text


def keep_line(selection: Selection) -> str:
    """``Keep: age, weight``, ``Keep: nothing``, ``Keep: all 7 columns: ...``."""
    number, names, more = kept(selection)
    named = ", ".join(names) + (f" and {more:,} more in columns.csv" if more else "")
    return "Keep: " + ": ".join(part for part in (number, named) if part)


def lines(selection: Selection) -> list[Line]:
    """How well the selection predicts, how sure that is, and what the columns cost."""
    shown = [Line("How well", _how_well(selection)), Line("How sure", _how_sure(selection))]
    if selection.costs is not None and selection.columns:
        total = sum(selection.costs.get(label, 1.0) for label in selection.columns)
        shown.append(Line("Cost", f"{total:g} for the selected columns"))
    return [line for line in shown if line.text]


def warnings_first(selection: Selection) -> list[Note]:
    """What to look at before the result is believed: errors, then warnings, leaks first."""
    return [note for note in by_level(selection.notes) if note.level != "remark"]


def comparison_sentences(selection: Selection) -> list[str]:
    """One sentence on all columns and random ones, and one that counts the other methods."""
    table = selection.comparisons
    if table is None or not len(table):
        return []
    metric = metric_named(selection.metric, selection.task)
    methods = table["against"].str.contains("selected by")
    sentences = []
    phrases = [
        f"{_BESIDE[row.verdict]} {row.against} ({metric.number(row.difference, sign=True)}, "
        f"95 % interval {metric.number(row.low, sign=True)} to "
        f"{metric.number(row.high, sign=True)})"
        for row in table[~methods].itertuples()
    ]
    if phrases:
        sentences.append(f"The selection is {_listed(phrases)}.")
    if methods.any():
        sentences.append(_other_methods(table[methods]))
    return sentences


def _other_methods(table: pd.DataFrame) -> str:
    """How many of the other methods the selection is better than, and so on, with some names."""
    names = table["against"].str.partition("selected by ")[2]
    parts = []
    for verdict, words in _BESIDE.items():
        group = names[table["verdict"] == verdict]
        if len(group):
            more = f" and {len(group) - _METHODS} more" if len(group) > _METHODS else ""
            parts.append(f"{words} {len(group)} ({', '.join(group[:_METHODS])}{more})")
    total = count(len(table), "other method")
    return f"Of {total} with as many columns, it is {_listed(parts)}."


def _listed(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _how_well(selection: Selection) -> str:
    metric = metric_named(selection.metric, selection.task)
    if math.isnan(selection.score):
        return ""
    interval = ""
    if selection.score_interval is not None:
        low, high = map(metric.number, selection.score_interval)
        interval = f" (95 % interval {low} to {high})"
    everything = ""
    if not math.isnan(selection.score_all_columns):
        offered = count(selection.facts["columns_offered"], "column")
        everything = f"with all {offered} {metric.show(selection.score_all_columns)}, "
    # With a false discovery rate, all discoveries are kept, and a smaller selection is scored.
    which = " of the fewest columns that are enough" if selection.fdr is not None else ""
    return (
        f"{metric.short} {metric.show(selection.score)}{interval}{which} on rows that took no part "
        f"in the selection; {everything}without any column {metric.show(selection.score_chance)}"
    )


def _how_sure(selection: Selection) -> str:
    if selection.undecided:
        verdict = "undecided whether this is better than chance"
    elif selection.better_than_chance:
        verdict = "better than chance"
    else:
        verdict = "not better than chance"
    if math.isnan(selection.p_value):
        return verdict
    verdict += f", p = {selection.p_value:.2g}"
    frequency = selection.table.loc[selection.table["selected"] == 1, "frequency"]
    halves = selection.facts["halves"]
    if not len(frequency) or frequency.isna().any() or not halves:
        return verdict
    stable = int((frequency >= STABLE).sum())
    return (
        f"{verdict}; {stable} of {count(len(frequency), 'column')} selected again on at least "
        f"{100 * STABLE:.0f} % of {halves} halves of the rows"
    )
