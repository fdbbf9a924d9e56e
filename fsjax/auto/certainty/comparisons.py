"""The whole procedure against all columns, random columns, and as many columns of other methods.

In each fold the procedure selects what the rule chooses from the other folds. The comparison is
paired: it is that of the scores of the same rows, each predicted by models trained without it,
averaged over the rounds of cross-validation. Random columns are the mean of several draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from fsjax.auto.contest import rule
from fsjax.auto.contest.cross_validation import Contest
from fsjax.auto.contest.differences import Difference, FoldGains, difference, mean_difference, wider
from fsjax.auto.contest.fold_records import FoldKey
from fsjax.auto.contest.method_names import ALL, RANDOM, selected_by
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.rule import Choice, Key
from fsjax.report.wording import count

#: Further draws of random columns for each fold of the first round.
DRAWS = 4

#: Blocks of neighbouring rows of a series, which count as independent.
_BLOCKS = 20


class Comparison(NamedTuple):
    """A paired comparison of the whole procedure with something else.

    Attributes:
      against: what it is compared with, in words.
      difference: of the scores.
      verdict: what its interval says about the procedure.
    """

    against: str
    difference: Difference
    verdict: str


def compare(contest: Contest, choice: Choice) -> list[Comparison]:
    """All columns and random ones first, then the methods that come closest.

    Where the metric has no scores of single rows, or they are not known, folds are compared.
    """
    if choice.method == ALL:
        return []
    problem, scores = contest.problem, contest.records.scores()
    units, number = problem.design.num_units, count(choice.size, "column")
    others = {(ALL, units): f"all {units:,} columns"}
    for name, _ in scores:
        if name not in (ALL, choice.method):
            others[name, choice.size] = f"{number} {selected_by(name)}"
    rows = []
    for key, against in others.items():
        if key not in scores:
            continue
        paired = paired_difference(contest, choice, key[0])
        paired = paired or fold_difference(contest, choice, key[0])
        row = Comparison(against, paired, paired.verdict(problem.metric.margin))
        place = -np.inf if key[0] in (ALL, RANDOM) else paired.mean
        rows.append((place, row))
    return [row for _, row in sorted(rows, key=lambda entry: entry[0])]


def choices_by_fold(contest: Contest, choice: Choice) -> dict[FoldKey, Key]:
    """For each fold what the rule chooses from the other folds of its round.

    Rounds in which the choice did not run to the end have no say: time was up before it.
    """
    problem, scores, costs = contest.problem, contest.records.scores(), contest.records.costs()
    choices: dict[FoldKey, Key] = {}
    for number in range(len(problem.rounds)):
        part = slice(number * problem.folds, (number + 1) * problem.folds)
        known = {key: values[part] for key, values in scores.items()}
        ran = {key: values for key, values in known.items() if not np.isnan(values).any()}
        ran = ran or ({} if number else known)
        if (choice.method, choice.size) in ran or (ran and not number):
            prices = costs and {key: costs[key][part] for key in ran}
            chosen = rule.nested_choices(ran, problem.folds, problem.metric.margin, prices)
            choices |= {(number, place): key for place, key in chosen.items()}
    return choices


def paired_difference(contest: Contest, choice: Choice, name: str) -> Difference | None:
    """The difference of the whole procedure and another method over rows; ``None`` if not known.

    The choices of the procedure do not know the rows that are scored. The interval contains that
    of the final choice, too: the procedure is less stable than what it chooses.
    """
    problem = contest.problem
    if problem.weights is not None:
        # The scores of rows have no weights.
        return None
    clusters, unit = dependent_rows(problem)
    same = dict.fromkeys(_folds(problem), (choice.method, choice.size))
    both = [row_gains(contest, chosen, name) for chosen in (choices_by_fold(contest, choice), same)]
    if not all(both):
        return None
    return wider(*(mean_difference(gains, clusters, unit) for gains in both))


def fold_difference(contest: Contest, choice: Choice, name: str) -> Difference:
    """As :func:`paired_difference`, over folds."""
    problem, scores = contest.problem, contest.records.scores()
    folds, units = _folds(problem), problem.design.num_units
    same = dict.fromkeys(folds, (choice.method, choice.size))
    both = []
    for chosen in (choices_by_fold(contest, choice) or same, same):
        own, others = np.full((2, len(folds)), np.nan)
        for place, fold in enumerate(folds):
            method, size = key = chosen.get(fold, ("", 0))
            other = (ALL, units) if ALL in (name, method) else (name, size)
            if key in scores and other in scores:
                own[place], others[place] = scores[key][place], scores[other][place]
        both.append(difference(own, others, problem.share))
    return wider(*both) if both[0].pairs else both[1]


def row_gains(contest: Contest, chosen: Mapping[FoldKey, Key], name: str) -> list[FoldGains]:
    """By how much the test rows of folds score more with a choice than with another method.

    The other method has as many columns, or all. Empty if the scores of rows are not known.

    Args:
      chosen: method and number of columns for each fold.
      name: of the other method.
    """
    problem = contest.problem
    units = problem.design.num_units
    folds = []
    for (number, place), (method, size) in chosen.items():
        fold = number, place
        selection = row_scores(contest, method, fold, size)
        if name == ALL or size >= units:
            other = row_scores(contest, ALL, fold, units)
        elif name == RANDOM:
            other = random_row_scores(contest, fold, size, DRAWS if number == 0 else 0)
        else:
            other = row_scores(contest, name, fold, size)
        if selection is not None and other is not None:
            gains = selection - other
            if np.isfinite(gains).all():
                folds.append(FoldGains(problem.rounds[number][place].test, gains))
                continue
        # Later rounds have fewer methods.
        if number == 0:
            return []
    return folds


def row_scores(contest: Contest, name: str, fold: FoldKey, size: int) -> np.ndarray | None:
    """Scores ``(n,)`` of the test rows of a fold, by a method with ``size`` units.

    ``None`` if the method did not run there, the metric has no scores of rows, or a resumed run
    has no time to predict them again.
    """
    if name == ALL:
        return _row_scores_of(contest, fold, np.arange(contest.problem.design.num_units))
    piece = contest.records.piece(name, fold)
    if piece is None or len(piece["order"]) < size:
        return None
    return _row_scores_of(contest, fold, np.array(piece["order"][:size], int))


def random_row_scores(contest: Contest, fold: FoldKey, size: int, draws: int) -> np.ndarray | None:
    """The mean of :func:`row_scores` over random units: those that ran, and further draws.

    Args:
      draws: number of further draws, as far as there is time.
    """
    first, problem = row_scores(contest, RANDOM, fold, size), contest.problem
    if first is None:
        return None
    scores = [first]
    for draw in range(draws):
        rng = np.random.default_rng((problem.seed, *fold, 31, draw))
        units = rng.permutation(problem.design.num_units)
        units = np.fromiter(dict.fromkeys([*problem.keep, *units]), int)[:size]
        drawn = _row_scores_of(contest, fold, units)
        if drawn is None:
            break
        scores.append(drawn)
    return np.mean(scores, axis=0)


def _row_scores_of(contest: Contest, fold: FoldKey, units: np.ndarray) -> np.ndarray | None:
    needed = 2 * contest.expected.of_judge() / len(contest.problem.sizes)
    if not contest.judged.known(fold, units) and contest.clock.left() <= needed:
        return None
    return contest.judged.of(fold, units).rows


def _folds(problem: Problem) -> list[FoldKey]:
    return [(n, place) for n, folds in enumerate(problem.rounds) for place in range(len(folds))]


def dependent_rows(problem: Problem) -> tuple[np.ndarray, str]:
    """Numbers ``(N,)`` of rows that count as one, and what they are called in the plural."""
    rows = np.arange(len(problem.y))
    if problem.ordered:
        return rows * _BLOCKS // len(rows), "blocks of rows"
    if problem.row_groups is not None:
        return problem.row_groups, "groups of rows"
    return rows, "rows"


def comparison_table(rows: Sequence[Comparison]) -> pd.DataFrame:
    """A row for each comparison, as :class:`Selection` has them."""
    return pd.DataFrame(
        [
            {
                "what": "the whole procedure",
                "against": row.against,
                "difference": row.difference.mean,
                "low": row.difference.low,
                "high": row.difference.high,
                "verdict": row.verdict,
                "pairs": f"{row.difference.pairs:,} {row.difference.unit}",
            }
            for row in rows
        ],
        columns=["what", "against", "difference", "low", "high", "verdict", "pairs"],
    )
