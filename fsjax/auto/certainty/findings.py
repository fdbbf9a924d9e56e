"""What was found: the choice, whether it is better than chance, and how sure its columns are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from fsjax.auto.certainty.comparisons import Comparison, compare
from fsjax.auto.certainty.decoy_competition import (
    Decoys,
    compete_with_decoys,
    no_decoys,
    quick_statistic,
)
from fsjax.auto.certainty.false_discovery import decoy_statistic
from fsjax.auto.certainty.few_rows import counts_of, widened
from fsjax.auto.certainty.permutation_test import Chance, Verdict, verdict
from fsjax.auto.certainty.stability import Frequencies, frequencies
from fsjax.auto.certainty.unit_tests import smallest_q_value
from fsjax.auto.contest import rule, schedule
from fsjax.auto.contest.cross_validation import Contest
from fsjax.auto.contest.differences import interval
from fsjax.auto.contest.fold_records import chance_level
from fsjax.auto.contest.method_names import ALL
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.rankers import Ranking
from fsjax.auto.contest.request import Request
from fsjax.auto.contest.row_rankings import full_order, on_all_rows
from fsjax.auto.contest.rule import Choice, FoldScores

_UNKNOWN = float("nan")


class Findings(NamedTuple):
    """What the scores, the permutations, the decoys and the halves of the rows show.

    Attributes:
      choice: method and number of columns by the rule; None if no fold was scored in time.
      ranking: by the chosen method, or else the univariate filter, on all rows.
      verdict: whether the target can be predicted better than chance.
      score: cross-validated score of the whole procedure, with its 95 % interval.
      of_choice, all_columns, no_columns: scores of the choice, with all columns, and without any,
        on the same folds, those of the first round.
      decoys: the competition of columns and decoys.
      stability: how often halves of the rows select each unit.
      chosen: the selected units, the most important first.
      comparisons: of the whole procedure with all columns, random ones and other methods.
      enough: for each method the fewest (or cheapest) columns with which it is not worse.
    """

    choice: Choice | None
    ranking: Ranking
    verdict: Verdict
    score: tuple[float, float, float]
    of_choice: float
    all_columns: float
    no_columns: float
    decoys: Decoys
    stability: Frequencies
    chosen: np.ndarray
    comparisons: Sequence[Comparison] = ()
    enough: Mapping[str, int] = {}


def find(request: Request, contest: Contest, chance: Chance, finer: bool = True) -> Findings:
    """Ranks all rows by the choice of the contest, and runs decoys and halves of the rows.

    Without any score the answer is undecided, and columns are ranked by the univariate filter.

    Args:
      finer: whether time that is left after the first decoys and halves goes to more of them.
    """
    problem, choice = contest.problem, contest.choice()
    ranking = on_all_rows(request.table, contest, choice or by_filter(problem))
    if choice is None:
        return _nothing(chance, ranking, problem)
    scores, nothing = contest.records.scores(), chance_level(problem)
    folds, margin, costs = problem.folds, problem.metric.margin, contest.records.costs()
    honest = rule.nested_scores(scores, folds, margin, costs)
    decision = verdict(chance, honest, nothing[:folds], problem, lambda: smallest_q_value(problem))
    compared = compare(contest, choice) if decision.better else []
    decoys, stability = _certainty(contest, choice, decision, finer)
    # Halves select those of ``keep`` in any case.
    stability.frequency[list(problem.keep)] = _UNKNOWN
    mean, low, high = interval(honest, problem.share)
    if np.isfinite([low, high]).all():
        low, high = np.clip([low, high], *problem.metric.bounds).tolist()

    def first_round(method: str, size: int) -> float:
        known = scores.get((method, size), nothing * _UNKNOWN)[:folds]
        return float(np.mean(known[~np.isnan(known)])) if not np.isnan(known).all() else _UNKNOWN

    return Findings(
        choice=choice,
        ranking=ranking,
        verdict=decision,
        score=widened((mean, low, high), problem.metric, counts_of(problem, request.classes)),
        of_choice=first_round(choice.method, choice.size),
        all_columns=first_round(ALL, problem.design.num_units),
        no_columns=float(np.nanmean(nothing[:folds])),
        decoys=decoys,
        stability=stability,
        chosen=_chosen(request, full_order(ranking), choice, decoys, decision),
        comparisons=compared,
        enough=rule.enough(scores, choice, folds, margin, costs),
    )


def by_filter(problem: Problem) -> Choice:
    """The univariate filter with the fewest columns, which ranks if no fold was scored in time."""
    return Choice("univariate", problem.sizes[0], _UNKNOWN, "univariate", 1, _UNKNOWN, _UNKNOWN)


def _nothing(chance: Chance, ranking: Ranking, problem: Problem) -> Findings:
    """What is known where time was up before any fold was scored."""
    units = problem.design.num_units
    return Findings(
        choice=None,
        ranking=ranking,
        verdict=Verdict(False, True, chance, 1.0),
        score=(_UNKNOWN, _UNKNOWN, _UNKNOWN),
        of_choice=_UNKNOWN,
        all_columns=_UNKNOWN,
        no_columns=_UNKNOWN,
        decoys=no_decoys(units, "l1"),
        stability=Frequencies(np.full(units, np.nan), 0),
        chosen=np.array(problem.keep, int),
    )


def _certainty(
    contest: Contest, choice: Choice, decision: Verdict, finer: bool
) -> tuple[Decoys, Frequencies]:
    """Decoys and halves of the rows, as many as there is time for, if there is a finding."""
    problem = contest.problem
    units = problem.design.num_units
    if not decision.better:
        return no_decoys(units, "l1"), Frequencies(np.full(units, np.nan), 0)
    means, dense = _best_means(contest.records.scores()), not issparse(problem.design.X)
    quick = quick_statistic(contest, schedule.STATISTIC.share)
    statistic = decoy_statistic(means, max(means.values()) - choice.error, dense, quick)
    share = schedule.FIRST_DECOYS.share
    decoys = compete_with_decoys(contest, statistic, share, schedule.SETS)
    stability = frequencies(contest, choice, schedule.FIRST_HALVES.share, schedule.PAIRS)
    if not finer:
        return decoys, stability
    # The time that is left makes both estimates finer.
    share = schedule.MORE_DECOYS.share
    decoys = compete_with_decoys(contest, statistic, share, schedule.MAX_SETS)
    for name in (quick, "l1"):
        # There may be no time for an expensive statistic; a quick one may have run before.
        if not decoys.sets:
            decoys = compete_with_decoys(contest, name, share, schedule.SETS)
    return decoys, frequencies(contest, choice, schedule.MORE_HALVES.share, schedule.MAX_PAIRS)


def _chosen(
    request: Request, order: np.ndarray, choice: Choice, decoys: Decoys, decision: Verdict
) -> np.ndarray:
    """The selected units, the most important first; those of ``keep`` in any case."""
    keep = np.isin(order, request.table.keep)
    if not decision.better:
        return order[keep]
    if request.fdr is not None:
        low = np.nan_to_num(decoys.rates[order], nan=1.0) <= request.fdr
        return order[keep | (low & (decoys.sets > 0))]
    return order[: len(order) if choice.method == ALL else choice.size]


def _best_means(scores: FoldScores) -> dict[str, float]:
    """The best mean score of each method."""
    best: dict[str, float] = {}
    for (name, _), mean in rule.means_on_common_folds(scores).items():
        best[name] = max(best.get(name, -np.inf), mean)
    return best
