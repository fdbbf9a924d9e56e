"""A selection in a few lines, the same in the terminal, in notebooks and at the top of the page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from typing import NamedTuple

from fsjax.auto.answer.selection_record import SelectionRecord
from fsjax.auto.answer.statements import MIN_HALVES, STABLE, interval_above_none
from fsjax.auto.contest.scoring import metric_named
from fsjax.auto.reading.notes import Note, by_level
from fsjax.errors import printable
from fsjax.report.wording import count, shorten

#: Most names of columns in the first line, and most warnings below it.
NAMED, WARNED = 20, 5

#: Most characters of a name, most of all names, and fewest names whatever their length.
_LENGTH, _CHARACTERS, _MIN_NAMED = 80, 600, 5

#: Smaller p-values are shown as below this.
_MIN_P = 1e-4


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


def kept(selection: SelectionRecord) -> Kept:
    """The names of the selected columns, as far as they fit into a line."""
    if not selection.columns:
        return Kept("nothing", (), 0)
    names = tuple(shown_name(label) for label in selection.columns[:NAMED])
    ends = list(itertools.accumulate(len(name) + 2 for name in names))
    names = names[: max(_MIN_NAMED, sum(end <= _CHARACTERS for end in ends))]
    offered = selection.facts.columns_offered
    every = f"all {offered:,} columns" if len(selection.columns) == offered else ""
    return Kept(every, names, len(selection.columns) - len(names))


def shown_name(label: Hashable) -> str:
    """The label of a column on one line, in quotes if it contains a comma."""
    text = shorten(printable(str(label)), _LENGTH)
    return f"'{text}'" if "," in text and isinstance(label, str) else text


def keep_line(selection: SelectionRecord) -> str:
    """``Keep: age, weight``, ``Keep: nothing``, ``Keep: all 7 columns: ...``."""
    number, names, more = kept(selection)
    named = ", ".join(names) + (f" and {more:,} more in columns.csv" if more else "")
    return "Keep: " + ": ".join(part for part in (number, named) if part)


def unsaid_sentences(selection: SelectionRecord) -> list[str]:
    """The statements that no note says as well; the first is the verdict."""
    notes = {note.text for note in selection.notes}
    return [text for text in selection.statements if text.removesuffix(".") not in notes]


def lines(selection: SelectionRecord) -> list[Line]:
    """How well the selection predicts, how sure that is, costs, and which leaks are left out."""
    shown = [Line("How well", _how_well(selection)), Line("How sure", _how_sure(selection))]
    if selection.costs is not None and selection.columns:
        total = sum(selection.costs.get(label, 1.0) for label in selection.columns)
        shown.append(Line("Cost", f"{total:g} for the selected columns"))
    shown.append(Line("Left out", _leaks_left_out(selection)))
    return [line for line in shown if line.text]


def warnings_first(selection: SelectionRecord) -> list[Note]:
    """What to look at before the result is believed: errors, then warnings, leaks first."""
    return [note for note in by_level(selection.notes) if note.level != "remark"]


def _how_well(selection: SelectionRecord) -> str:
    metric = metric_named(selection.metric, selection.task)
    if math.isnan(selection.score):
        return ""
    interval = ""
    if selection.score_interval is not None:
        low, high = map(metric.number, selection.score_interval)
        interval = f" (95 % interval {low} to {high})"
    everything = ""
    if not math.isnan(selection.score_all_columns):
        offered = count(selection.facts.columns_offered, "column")
        everything = f"with all {offered} {metric.show(selection.score_all_columns)}, "
    # With a false discovery rate, all discoveries are kept, and a smaller selection is scored.
    which = " of the fewest columns that are enough" if selection.fdr is not None else ""
    return (
        f"{metric.short} {metric.show(selection.score)}{interval}{which} on rows that took no part "
        f"in the selection; {everything}without any column {metric.show(selection.score_chance)}"
        f"{_without_finding(selection)}"
    )


def _without_finding(selection: SelectionRecord) -> str:
    if selection.better_than_chance or selection.score_interval is None:
        return ""
    above = interval_above_none(
        selection.score_interval[0], selection.score_chance, selection.facts.folds_p_value
    )
    return above and f"; {above}"


def _how_sure(selection: SelectionRecord) -> str:
    if selection.undecided:
        verdict = "undecided whether this is better than chance"
    elif selection.better_than_chance:
        verdict = "better than chance"
    else:
        verdict = "not better than chance"
    if math.isnan(selection.p_value):
        return verdict
    p_value = selection.p_value
    verdict += f", p = {p_value:.2g}" if p_value >= _MIN_P else f", p < {_MIN_P:g}"
    table, halves, kept = selection.table, selection.facts.halves, selection.facts.kept
    # Columns named in keep are selected in any case.
    chosen = (table["selected"] == 1) & ~table["column"].isin(kept)
    frequency = table.loc[chosen, "frequency"]
    if not len(frequency) or frequency.isna().any() or halves < MIN_HALVES:
        return verdict
    if len(frequency) == 1:
        share = f"{100 * frequency.iloc[0]:.0f} %"
        column = "the column that keep does not name" if kept else "the column"
        return f"{verdict}; {column} is selected again on {share} of {halves} halves of the rows"
    stable, number = int((frequency >= STABLE).sum()), count(len(frequency), "column")
    number += " that keep does not name," if kept else ""
    return (
        f"{verdict}; {stable} of {number} selected again on at least "
        f"{100 * STABLE:.0f} % of {halves} halves of the rows"
    )


def _leaks_left_out(selection: SelectionRecord) -> str:
    """The likely leaks that took no part, and the score with them."""
    columns = set(map(str, selection.table["column"]))
    leaks = [note.column for note in selection.notes if note.kind == "leak"]
    leaks = [shown_name(name) for name in leaks if name not in columns]
    if not leaks:
        return ""
    text = f"{', '.join(leaks)} ({'a likely leak' if len(leaks) == 1 else 'likely leaks'})"
    if selection.with_leaks is None:
        return text
    metric = metric_named(selection.metric, selection.task)
    them = "it" if len(leaks) == 1 else "them"
    return f"{text}; with {them} {metric.short} {metric.show(selection.with_leaks.score)}"
