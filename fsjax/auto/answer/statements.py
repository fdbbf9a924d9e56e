"""What the results mean, in sentences. A sentence is printed only if what it says was measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from fsjax.auto.answer.comparison_sentences import Compared, comparison_sentences
from fsjax.auto.certainty.comparisons import Comparison
from fsjax.auto.certainty.decoy_competition import why_no_decoys
from fsjax.auto.certainty.findings import Findings
from fsjax.auto.certainty.permutation_test import (
    FOLDS_LEVEL,
    MIN_DRAWS,
    ROWS,
    UNDECIDED,
)
from fsjax.auto.contest.cross_validation import NO_TIME, Contest
from fsjax.auto.contest.method_names import ALL, selected_by, title
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.rule import Choice
from fsjax.auto.contest.scoring import Metric
from fsjax.auto.reading.notes import METHODS, Note
from fsjax.errors import name_some
from fsjax.report.wording import count

#: Selection frequency from which a column counts as stable.
STABLE = 0.8

#: Estimated false discovery rate up to which a column counts as a likely true discovery.
LIKELY = 0.2

#: With fewer halves of the rows than this, nothing is said about stability.
MIN_HALVES = 6

#: Most other methods in the sentence on the number of columns that they need.
_OTHERS = 4


def sentences(
    findings: Findings, contest: Contest, fdr: float | None, few: str | None = None
) -> list[str]:
    """The verdict, the numbers behind it, and what else was measured.

    Args:
      contest: the cross-validation that they are from.
      fdr: the requested false discovery rate, if any.
      few: what so few rows cannot decide, if they are few.
    """
    few_rows = [] if few is None else [f"{_capital(few)}."]
    choice, metric = findings.choice, contest.problem.metric
    units = contest.problem.design.num_units
    if choice is None or not findings.verdict.better:
        return [*_nothing_found(findings, metric, len(contest.problem.y)), *few_rows]
    return [
        _selected(findings, choice, contest.problem, fdr),
        f"Better than chance: {findings.verdict.words}.",
        f"{_scores(findings, metric, contest.records.rounds())} "
        f"{_judges(contest.judges_of_folds())}",
        *few_rows,
        *_certainty(findings, choice, contest.problem.keep),
        *comparison_sentences(
            [
                Compared(row.against, *row.difference[:3], row.verdict)
                for row in findings.comparisons
            ],
            metric,
            _paired_over(findings.comparisons, contest, choice),
        ),
        *_alternatives(findings.enough, choice, units, contest.problem.costs is not None),
    ]


def _paired_over(comparisons: Sequence[Comparison], contest: Contest, choice: Choice) -> str:
    """Over what the first comparison is paired, for example ``400 rows in 2 rounds of folds``."""
    if not comparisons:
        return ""
    first = comparisons[0].difference
    rounds = contest.records.rounds(choice.method, choice.size)
    several = f" in {rounds} rounds of folds" if rounds > 1 and first.unit != "folds" else ""
    return f"{first.pairs:,} {first.unit}{several}"


def columns(number: int) -> str:
    """A number of columns in words."""
    return "1 column" if number == 1 else f"{number:,} columns"


def on_equal_rows(notes: Sequence[Note]) -> list[str]:
    """The numbers of equal and nearly equal rows, which come before any result."""
    texts = [note.text for note in notes if note.kind == "equal rows"]
    return [f"{_capital(text)}." for text in texts]


def leaks_left_out(names: Sequence[str], score: str | None, metric: str) -> str:
    """Which columns are left out as likely leaks, and the score with them, if it is known."""
    one = len(names) == 1
    with_them = "" if score is None else f"; with {'it' if one else 'them'} the {metric} is {score}"
    return (
        f"{name_some(names)} {'gives' if one else 'give'} the target away and "
        f"{'is' if one else 'are'} left out as {'a likely leak' if one else 'likely leaks'}"
        f"{with_them}."
    )


def only_leaks(names: Sequence[str], undecided: bool, p_value: float) -> str:
    """That columns which are likely leaks were selected, as nothing was found without them."""
    gives, leak, them = ("gives", "a likely leak", "it")
    if len(names) > 1:
        gives, leak, them = ("give", "likely leaks", "them")
    outcome = "it is undecided whether" if undecided else "nothing was found by which"
    p_text = f" (p = {p_value:.2g})" if np.isfinite(p_value) else ""
    return (
        f"{name_some(names)} {gives} the target away, {leak}; without {them} {outcome} the target "
        f"can be predicted better than chance{p_text}."
    )


def left_out(reasons: Mapping[str, str]) -> list[Note]:
    """Which methods did not take part, and why."""
    late = [name for name, reason in reasons.items() if reason.startswith(NO_TIME)]
    notes = [
        Note(METHODS, "failed", f"{title(name)} {reason}")
        for name, reason in reasons.items()
        if name not in late
    ]
    if late:
        names = ", ".join(map(title, late))
        text = f"not tried for lack of time: {names}; nothing is said about them"
        notes.append(Note(METHODS, "time", text))
    return notes


def _nothing_found(findings: Findings, metric: Metric, rows: int) -> list[str]:
    """The verdict where nothing was found, or it is undecided."""
    verdict = findings.verdict
    selected = "Only the columns named in keep are" if len(findings.chosen) else "No column is"
    no_selection = f"{selected} selected; columns.csv ranks them all"
    if findings.choice is None:
        return [
            "Undecided: no fold of the cross-validation was scored in time; allow a longer budget. "
            f"{no_selection} by the F statistic."
        ]
    score = metric.show(findings.score[0])
    nothing = metric.show(findings.no_columns)
    if math.isnan(findings.score[0]) and verdict.chance.better:
        return [
            f"Undecided: the columns are related to the target, {verdict.words}; but too few folds "
            "have test rows and training rows of several kinds, or were scored in time, to say "
            f"how well the whole procedure predicts it. {no_selection}."
        ]
    if verdict.unpredicted:
        other = ", or the metric auc," if metric.name == "accuracy" else ""
        return [
            f"Undecided: the columns are related to the target, {verdict.words}; but the whole "
            f"procedure does not predict it better than without any column, cross-validated "
            f"{metric.short} {score} against {nothing}. More time, more rows{other} or another "
            f"judge may decide. {no_selection}."
        ]
    if not verdict.undecided:
        first = f"Nothing was found that predicts the target better than chance: {verdict.words}."
    elif verdict.chance.possible < MIN_DRAWS:
        first = (
            "Undecided: it is not known whether the target can be predicted better than chance: "
            f"{verdict.words}. So few rows, groups of rows or shifts of a series have "
            f"{count(verdict.chance.possible, 'other order')}, too few for a test; more may decide."
        )
    elif verdict.chance.draws < MIN_DRAWS:
        first = (
            "Undecided: it is not known whether the target can be predicted better than chance: "
            f"{verdict.words}. There was time for fewer than {MIN_DRAWS} permutations; allow a "
            "longer budget."
        )
    elif not verdict.chance.undecided:
        few = f" and has time for about {ROWS:,} of the {rows:,} rows only" if rows > ROWS else ""
        first = (
            f"Undecided: the smallest q-value of a single column is {verdict.smallest_q:.2g}, but "
            f"the permutation test, which pays for trying all columns at once{few}, does not "
            f"confirm it: {verdict.words}. More rows may decide."
        )
    else:
        first = (
            f"Undecided: there is weak evidence that the target can be predicted: {verdict.words}. "
            f"A finding needs p of at most {verdict.chance.level:.2g}, and above {UNDECIDED:g} is "
            "chance; more rows may decide."
        )
    _, low, high = findings.score
    between = f" (95 % interval {metric.show(low)} to {metric.show(high)})"
    above = interval_above_none(low, findings.no_columns, verdict.folds_p_value)
    return [
        f"{first} {no_selection}.",
        f"Cross-validated {metric.short} of the whole procedure: "
        f"{score}{between if above else ''}; without any column {nothing}"
        f"{above and f'; {above}'}.",
    ]


def interval_above_none(low: float, nothing: float, p_value: float) -> str:
    """Why an interval above the score without any column is no finding; empty if it is not above.

    Args:
      low: lower bound of the score's interval.
      nothing: score without any column.
      p_value: of the score over its folds.
    """
    if not np.isfinite(low) or low <= nothing:
        return ""
    return (
        f"the interval lies above that, but with p = {p_value:.2g} over the folds, and a finding "
        f"by them needs less than {FOLDS_LEVEL:g}"
    )


def _selected(findings: Findings, choice: Choice, problem: Problem, fdr: float | None) -> str:
    """The first sentence: how many columns, by which method."""
    units, kept = problem.design.num_units, len(problem.keep)
    if choice.method == ALL:
        prediction = (
            f"All {units:,} columns are needed to predict the target: no smaller selection that "
            "was tried comes close enough to their score."
        )
    else:
        prediction = (
            f"{choice.size:,} of {units:,} columns {_are(choice.size)} enough to predict the "
            f"target: {'that' if choice.size == 1 else 'those'} "
            f"{selected_by(choice.method) if choice.size > kept else ''}"
            f"{' and ' * (choice.size > kept) + f'{kept:,} named in keep' if kept else ''}."
        )
    if fdr is None:
        return prediction
    return f"{_discoveries(findings, units, fdr, why_no_decoys(problem))} {prediction}"


def _discoveries(findings: Findings, units: int, fdr: float, no_decoys: str | None) -> str:
    """How many columns keep below the requested false discovery rate, and which ``keep`` adds."""
    number, sets = len(findings.chosen), findings.decoys.sets
    if not sets:
        selected = "only the columns named in keep are" if number else "no column is"
        return (
            "False discovery rates are not known, as "
            f"{no_decoys or 'no set of decoys was finished in time'}; {selected} selected."
        )
    rate = f"an estimated false discovery rate of at most {fdr:g} ({count(sets, 'set')} of decoys)"
    rates = np.nan_to_num(findings.decoys.rates[findings.chosen], nan=1.0)
    low = int((rates <= fdr).sum())
    kept = f" {_capital(columns(number - low))} {_are(number - low)} selected as named in keep."
    kept = kept if number > low else ""
    if low:
        return f"{low:,} of {units:,} columns {_are(low)} selected with {rate}.{kept}"
    # One decoy is always counted as false.
    least = math.ceil(1.0 / (fdr * sets) - 1e-9)
    needed = ""
    if least > 1:
        needed = f" Such a rate can be estimated for at least {columns(least)} only."
    return f"No column has {rate}.{needed}{kept}"


def _judges(folds: Counter[str]) -> str:
    """Which models predict, by the number of folds in which each does."""
    if len(folds) == 1:
        return f"All predictions are made by {next(iter(folds))}."
    parts = [f"{words} in {number}" for words, number in folds.most_common()]
    return (
        "Each fold is predicted by the model that predicts best within its training rows: "
        f"{', '.join(parts)} of {folds.total()} folds."
    )


def _scores(findings: Findings, metric: Metric, rounds: int) -> str:
    """How well the selection predicts, with an interval, beside all columns and none.

    Comparisons, which are over all rounds, may have the other sign; so the round is named.
    """
    score, low, high = findings.score
    interval = ""
    if np.isfinite([low, high]).all():
        interval = f" (95 % interval {metric.show(low)} to {metric.show(high)})"
    which = f", in the first of {rounds} rounds of folds" if rounds > 1 else ""
    return (
        f"Cross-validated {metric.short} of the whole procedure, selection included{which}: "
        f"{metric.show(score)}{interval}; on the same folds, of this selection "
        f"{metric.show(findings.of_choice)}, of all columns "
        f"{metric.show(findings.all_columns)}, without any column "
        f"{metric.show(findings.no_columns)}."
    )


def _certainty(findings: Findings, choice: Choice, keep: Sequence[int]) -> list[str]:
    """How sure single columns are, beside the statement that together they are enough.

    Nothing is said about those of ``keep``, which are selected in any case.
    """
    chosen = findings.chosen[~np.isin(findings.chosen, keep)]
    number, besides = len(chosen), " besides those named in keep" if keep else ""
    if not number or choice.method == ALL:
        return []
    facts, unsure = [], False
    halves = findings.stability.halves
    if halves >= MIN_HALVES:
        frequency = findings.stability.frequency[chosen]
        stable = int((frequency >= STABLE).sum())
        unsure = stable < number / 2
        facts.append(
            f"is selected again on {100 * frequency[0]:.0f} % of {halves} halves of the rows"
            if number == 1
            else f"{_some(stable, number, 'is', 'are')} selected again on at least "
            f"{100 * STABLE:.0f} % of {halves} halves of the rows"
        )
    rates = findings.decoys.known_rates[chosen]
    # One decoy is always counted as false, so that no rate is below this.
    lowest = 1.0 / max(findings.decoys.sets * number, 1)
    if not np.isnan(rates).any() and lowest <= LIKELY:
        likely = int((rates <= LIKELY).sum())
        # Halves of the rows come first: they show whether these columns are replaced by others.
        unsure = unsure if facts else likely < number / 2
        facts.append(
            f"has an estimated false discovery rate of {rates[0]:.2g}"
            if number == 1
            else f"{_some(likely, number, 'has', 'have')} an estimated false discovery rate of "
            f"at most {LIKELY:g}"
        )
    if not facts:
        what = "the column is" if number == 1 else "single columns are"
        return [
            f"How sure {what} is not known: there was no time for enough halves of the rows or "
            "sets of decoys."
        ]
    if number == 1:
        meaning = " Another column may carry the same information." if unsure else ""
        return [f"The selected column{besides} {', and '.join(facts)}.{meaning}"]
    meaning = (
        " Together they predict, but which of them matter is not settled: other columns may carry "
        "the same information."
        if unsure
        else ""
    )
    return [f"Of the {number:,} selected columns{besides}, {', and '.join(facts)}.{meaning}"]


def _some(part: int, number: int, one: str, more: str) -> str:
    """``none is``, ``1 has``, ``3 are``, ``all have``."""
    many = "none" if not part else "all" if part == number else f"{part:,}"
    return f"{many} {one if part < 2 else more}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _alternatives(enough: Mapping[str, int], choice: Choice, units: int, costs: bool) -> list[str]:
    """Other selections, the cheapest ones with costs, that come as close to the best score."""
    lines = []
    # Nearly all columns, or many more, are no alternative.
    if enough.get("random", units) <= min(3 * choice.size, units // 2):
        lines.append(
            f"{columns(enough['random'])} drawn at random "
            f"{'comes' if enough['random'] == 1 else 'come'} as close to the best score: many "
            "columns carry much the same information."
        )
    others = {
        name: size
        for name, size in enough.items()
        if name not in (choice.method, ALL, "random") and choice.method != ALL
    }
    if others:
        fewest = sorted(others, key=others.__getitem__)[:_OTHERS]
        numbers = ", ".join(f"{title(name)} {others[name]}" for name in fewest)
        who = "the cheapest selections of other methods" if costs else "other methods"
        lines.append(f"Columns that {who} need to come as close to the best score: {numbers}.")
    return lines


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
