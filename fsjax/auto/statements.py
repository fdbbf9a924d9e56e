"""What the figures mean, in sentences; nothing is said that was not measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fsjax.auto.chance import LEAST
from fsjax.auto.compete import ALL
from fsjax.auto.differences import ALIKE, BETTER, WORSE, Difference
from fsjax.auto.rule import CONSENSUS, Choice
from fsjax.auto.scoring import Metric
from fsjax.auto.stability import Decoys, Frequencies
from fsjax.auto.verdict import Verdict

#: Selection frequency from which a column counts as steady.
STEADY = 0.8

#: Estimated false discovery rate up to which a column counts as likely true.
LIKELY = 0.2

#: Fewer halves of the rows than this say nothing of how steady columns are.
_LEAST_HALVES = 6

#: Comparisons that are told in sentences; the report has them all.
_COMPARED = 4

#: Whose the columns are, in sentences.
TITLES: Mapping[str, str] = {
    "random": "drawn at random",
    "univariate": "of the univariate filter",
    "l1": "of Lasso's path",
    "rfe": "of recursive elimination",
    "mrmr": "of mRMR",
    "forward": "of forward selection",
    "forest": "of forest importance",
    "shadow": "of Boruta's shadow test",
    CONSENSUS: "of the consensus of simple methods",
}


class Comparison(NamedTuple):
    """A paired comparison of the choice with something else.

    Attributes:
      against: what else, in words.
      difference: of the scores over the same folds.
      verdict: what its interval says of the choice.
    """

    against: str
    difference: Difference
    verdict: str


def title(method: str) -> str:
    """What the columns that a method selects are called in a sentence."""
    return TITLES.get(method, f"of {method}")


def nothing_found(
    verdict: Verdict, metric: Metric, choice: Choice | None, honest: float, level: float
) -> list[str]:
    """The verdict where no column is selected.

    Args:
      verdict: what permuted targets say.
      metric: how it was judged.
      choice: by the rule; ``None`` where time was up before any score was known.
      honest: score of the whole procedure.
      level: of predictions without any column.
    """
    if verdict.undecided:
        first = (
            f"Undecided: it is not known whether the target can be predicted better than chance; "
            f"{verdict.words}. {_sentence(verdict.why_undecided)} A longer budget or more rows "
            "may tell."
            if verdict.chance.draws < LEAST
            else f"Undecided: there is weak evidence that the target can be predicted; "
            f"{verdict.words}. {_sentence(verdict.why_undecided)} More rows may tell."
        )
    else:
        first = f"Nothing is shown to be better than chance: {verdict.words}."
    lines = [f"{first} No column is selected; columns.csv ranks them all."]
    if choice is None:
        lines.append("Time was up before a fold was judged: the ranking is by the F statistic.")
    else:
        lines.append(
            f"The whole procedure has a cross-validated {metric.short} of {metric.show(honest)}, "
            f"without any column it is {metric.show(level)}."
        )
    return lines


def selected(
    choice: Choice,
    units: int,
    number: int,
    fdr: float | None,
    decoys: Decoys,
) -> str:
    """The first sentence: how many columns, by which method.

    Args:
      choice: method and number by the rule.
      units: columns there were to choose from.
      number: of columns that are selected.
      fdr: the asked for false discovery rate, if any.
      decoys: the competition with decoys.
    """
    if fdr is not None and not decoys.sets:
        return (
            f"False discovery rates are not known, as no set of decoys was done in the time given; "
            f"{columns(number) if number else 'no column'} {_are(number or 1)} selected"
            f"{', those to be kept' if number else ''}. For prediction, {_chosen(choice, units)}."
        )
    if fdr is not None:
        chosen = (
            f"{columns(number)} of {units:,} {_are(number)} selected with an estimated false "
            f"discovery rate of at most {fdr:g}"
            if number
            else f"No column has an estimated false discovery rate of at most {fdr:g}"
        )
        return f"{chosen} ({decoys.sets} sets of decoys). For prediction, {_chosen(choice, units)}."
    if choice.method == ALL:
        return (
            f"No smaller selection that was tried comes close enough to all {units:,} columns "
            "together."
        )
    return (
        f"{columns(choice.size)} {_are(choice.size)} enough of {units:,}: those "
        f"{title(choice.method)}."
    )


def scores(
    metric: Metric,
    choice: Choice,
    honest: float,
    interval: tuple[float, float],
    everything: float,
    level: float,
    verdict: Verdict,
    judge: str,
) -> list[str]:
    """What the selection predicts, how sure that is, and that it is better than chance."""
    low, high = interval
    known = np.isfinite(low) and np.isfinite(high)
    reach = f", 95 % interval {metric.show(low)} to {metric.show(high)}" if known else ""
    return [
        f"Cross-validated {metric.short} of the whole procedure: {metric.show(honest)}{reach}; "
        f"of this choice {metric.show(choice.mean)}, of all columns {metric.show(everything)}, "
        f"without any column {metric.show(level)}. Judged by {judge}.",
        f"Better than chance: {verdict.words}.",
    ]


def comparisons(rows: Sequence[Comparison], metric: Metric) -> list[str]:
    """A sentence, with its interval, for all columns, random ones, and who comes closest."""
    lines = []
    for row in rows[:_COMPARED]:
        difference = row.difference
        if not np.isfinite(difference.low):
            continue
        sentence = {
            BETTER: f"The selection predicts better than {row.against}",
            WORSE: f"The selection predicts worse than {row.against}",
            ALIKE: f"The selection predicts as well as {row.against}",
        }.get(row.verdict, f"No difference to {row.against} is shown")
        low, mean, high = (
            metric.number(value, sign=True)
            for value in (difference.low, difference.mean, difference.high)
        )
        lines.append(f"{sentence}: difference {mean} ({low} to {high}, {difference.folds} folds).")
    return lines


def certainty(
    chosen: np.ndarray, rates: np.ndarray, frequencies: Frequencies, choice: Choice
) -> list[str]:
    """One sentence that reconciles how many columns are enough with how sure single ones are.

    Args:
      chosen: the selected units.
      rates: ``(G,)`` their estimated false discovery rates, NaN where not known.
      frequencies: how often halves of the rows select them.
      choice: method and number by the rule.
    """
    if not len(chosen) or choice.method == ALL:
        return []
    facts = []
    steady = int((frequencies.frequency[chosen] >= STEADY).sum())
    settled = frequencies.halves >= _LEAST_HALVES
    if settled:
        facts.append(
            f"{steady} of {len(chosen)} are selected by at least {STEADY:.0%} of "
            f"{frequencies.halves} halves of the rows"
        )
    known = not np.isnan(rates[chosen]).any()
    true = int((rates[chosen] <= LIKELY).sum()) if known else 0
    if known:
        facts.append(
            f"{true} of {len(chosen)} have an estimated false discovery rate of {LIKELY:g} or less"
        )
    if not facts:
        return ["How sure single columns are is not known: no time was left for halves or decoys."]
    unsure = (settled and steady < len(chosen) / 2) or (known and true < len(chosen) / 2)
    meaning = (
        ": together they predict, but which of them matter is not settled; other columns that tell "
        "the same could stand in their place"
        if unsure
        else ""
    )
    return [f"{_sentence(', and '.join(facts))[:-1]}{meaning}."]


def stand_ins(enough: Mapping[str, int], choice: Choice, units: int) -> list[str]:
    """Other ways that come as close to the best by the same rule, of those that ran."""
    lines = []
    # Nearly all columns, or many more, are no stand-in.
    if enough.get("random", units) <= min(3 * choice.size, units // 2):
        lines.append(
            f"{columns(enough['random'])} drawn at random come as close to the best by the same "
            "rule: the columns tell much the same."
        )
    others = {
        name: size
        for name, size in enough.items()
        if name not in (choice.method, ALL, "random") and choice.method != ALL
    }
    if others:
        named = ", ".join(
            f"{name} {size}" for name, size in sorted(others.items(), key=_by_size)[:4]
        )
        lines.append(f"Columns that other methods need to come as close: {named}.")
    return lines


def left_out(reasons: Mapping[str, str], no_time: str) -> list[str]:
    """Which methods did not take part, and why."""
    short = [name for name, why in reasons.items() if why.startswith(no_time)]
    lines = []
    if short:
        lines.append(f"Not tried for lack of time: {', '.join(short)}; nothing is said about them.")
    lines += [f"{name} {why}." for name, why in reasons.items() if name not in short]
    return lines


def _chosen(choice: Choice, units: int) -> str:
    if choice.method == ALL:
        return f"all {units:,} columns are needed, of what was tried"
    return f"{columns(choice.size)} {title(choice.method)} {_are(choice.size)} enough"


def _by_size(item: tuple[str, int]) -> int:
    return item[1]


def columns(number: int) -> str:
    """A number of columns in words."""
    return "1 column" if number == 1 else f"{number:,} columns"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
