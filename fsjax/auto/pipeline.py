"""The stages of ``fsjax.select``, one after the other, for the table without likely leaks and with.

Their shares of the budget are in :mod:`fsjax.auto.contest.schedule`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fsjax.auto.answer import statements
from fsjax.auto.answer.answer import answer
from fsjax.auto.certainty.decoy_competition import compete_with_decoys, quick_statistic
from fsjax.auto.certainty.findings import find
from fsjax.auto.certainty.permutation_test import Chance, chance_test
from fsjax.auto.contest import schedule
from fsjax.auto.contest.budget import Clock
from fsjax.auto.contest.cross_validation import Contest
from fsjax.auto.contest.fit_to_budget import fit_to_budget
from fsjax.auto.contest.judge import Judge
from fsjax.auto.contest.problem import in_proportion, of_units
from fsjax.auto.contest.progress_file import Ledger, Section
from fsjax.auto.contest.request import Request
from fsjax.auto.selection import Selection

#: Methods of the selection with likely leaks, where simple ones suffice.
_METHODS_WITH_LEAKS = ("random", "univariate", "l1", "forest")


def without_and_with_leaks(
    request: Request, judge: Judge | None, ledger: Ledger, clock: Clock
) -> Selection:
    """The selection; if there are likely leaks, the one with them beside the one without."""
    table = request.table
    leaking = {note.column for note in request.notes if note.kind == "leak"}
    others = [unit for unit, name in enumerate(table.design.units) if name not in leaking]
    if len(others) < max(2, len(table.keep) + 1) or not leaking:
        why = "it takes part, as without likely leaks there are too few columns to choose from"
        notes = [
            note._replace(text=f"{note.text}; {why}") if note.kind == "leak" else note
            for note in request.notes
        ]
        return run_stages(request._replace(notes=tuple(notes)), judge, ledger, clock)
    # Of the time without what is reserved for writing the answer; NaN of an infinite budget.
    usable = np.nan_to_num(clock.usable / clock.total, nan=1.0)
    clean_clock = clock.part(schedule.WITHOUT_LEAKS * float(usable))
    clean = request._replace(table=of_units(table, others))
    selection = run_stages(clean, judge, ledger, clean_clock)
    if clean_clock.stopped:
        clock.stop()
    beside = None
    if not clock.stopped:
        methods = tuple(name for name in table.methods if name in _METHODS_WITH_LEAKS)
        everything = request._replace(table=table.replace(methods=methods))
        second_clock = clock.rest()
        try:
            beside = run_stages(everything, judge, Section(ledger, "with leaks/"), second_clock)
        except KeyboardInterrupt:
            # There was no score yet; the selection without leaks is the answer.
            second_clock.stop()
        if second_clock.stopped:
            clock.stop()
    if beside is not None and beside.better_than_chance and not selection.better_than_chance:
        # Nothing else is known that predicts the target.
        first, *more = beside.statements
        only = statements.only_leaks(sorted(leaking), selection.undecided, selection.p_value)
        return replace(beside, statements=(first, only, *more), stopped=clock.stopped)
    first, *more = selection.statements
    score = None
    if beside is not None and np.isfinite(beside.score):
        score = table.metric.show(beside.score)
    leaks = statements.leaks_left_out(sorted(leaking), score, table.metric.short)
    return replace(
        selection,
        statements=(first, leaks, *more),
        with_leaks=beside,
        finished=selection.finished and beside is not None and beside.finished,
        stopped=clock.stopped,
    )


def run_stages(request: Request, judge: Judge | None, ledger: Ledger, clock: Clock) -> Selection:
    """Runs all that the budget allows; after Ctrl-C, answers with what is known by then."""
    contest: Contest | None = None
    chance = Chance(0, 0)
    try:
        sample = fit_to_budget(request.table, judge, ledger, clock)
        contest = Contest(sample, ledger, clock)
        chance = chance_test(in_proportion(sample), ledger, clock)
        contest.run_needed(schedule.NEEDED.share)
        if request.fdr is not None:
            share = schedule.REQUESTED_RATE.share
            statistic = quick_statistic(contest, share)
            compete_with_decoys(contest, statistic, share, schedule.MAX_SETS)
        contest.run_simple(schedule.SIMPLE.share)
        share = _share_of_networks(contest)
        contest.run_networks(share)
        contest.run_further_rounds(share)
        _run_late(request, contest, chance)
    except KeyboardInterrupt:
        clock.stop()
        if contest is None or not contest.records.scores():
            raise
    try:
        return _answered(request, contest, chance)
    except KeyboardInterrupt:
        if clock.stopped:
            raise
        clock.stop()
        return _answered(request, contest, chance)


def _answered(request: Request, contest: Contest, chance: Chance) -> Selection:
    """Decoys, halves of the rows, and the answer from all that was found."""
    record = answer(request, contest, find(request, contest, chance))
    return Selection(**vars(record))


def _share_of_networks(contest: Contest) -> float:
    """Share of the budget that may be spent when networks end: decoys and halves come after."""
    choice = contest.choice()
    if choice is None:
        return schedule.SIMPLE.share
    # The ranking on all rows, the pairs of halves, and the sets of decoys.
    after = contest.expected.of_rankings(choice.method, 1 + 2 * schedule.PAIRS)
    after += 12 * contest.expected.of_one("l1")
    return schedule.share_of_networks(after, contest.clock.usable)


def _run_late(request: Request, contest: Contest, chance: Chance) -> None:
    """Runs the methods that were left out for lack of time, the cheapest first, while they fit.

    What is found so far, with the first decoys and halves of the rows, shows how much time is left.
    """
    while contest.late and not contest.clock.stopped:
        findings = find(request, contest, chance, finer=False)
        pairs = schedule.PAIRS if findings.verdict.better else 0

        def after(name: str, pairs: int = pairs) -> float:
            """Seconds of the rankings that are needed if the method is the best one."""
            return contest.expected.of_rankings(name, 1 + 2 * pairs)

        if not contest.run_left_out(after):
            return
