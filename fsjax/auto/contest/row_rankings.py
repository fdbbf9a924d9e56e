"""Rankings by one method on other rows than those of the folds: on all, or on parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fsjax.auto.contest.cross_validation import MERGED, Contest
from fsjax.auto.contest.folds import all_rows
from fsjax.auto.contest.method_names import ALL, of_library, title
from fsjax.auto.contest.problem import Problem, with_kept
from fsjax.auto.contest.progress_file import json_number
from fsjax.auto.contest.ranked_units import rank, rank_by_network
from fsjax.auto.contest.rankers import Ranking, merged_ranking
from fsjax.auto.contest.rankers.parts import Part
from fsjax.auto.contest.rule import CONSENSUS, Choice


def on_all_rows(problem: Problem, contest: Contest, choice: Choice) -> Ranking:
    """The ranking by the chosen method on all rows of the problem, at the chosen number."""
    method = "univariate" if choice.method == ALL else choice.method
    size = min(choice.size, problem.design.num_units)
    contest.clock.tell(f"{title(method)} on all rows")

    def work() -> dict[str, Any]:
        (ranking,) = rankings_of(problem, contest, method, size, [None])
        return {
            "scores": [json_number(score) for score in ranking.scores],
            "order": ranking.order[max(ranking.order)].tolist(),
        }

    piece = contest.ledger.get(f"rows/{method}/{size}", work)
    scores = np.array([-np.inf if score is None else score for score in piece["scores"]])
    return Ranking({size: np.array(piece["order"], int)}, scores)


def full_order(ranking: Ranking) -> np.ndarray:
    """``(G,)`` all units, the selected ones first, the others by their scores."""
    first = ranking.order[max(ranking.order)]
    by_score = np.argsort(-ranking.scores, kind="stable")
    return np.concatenate([first, by_score[~np.isin(by_score, first)]])


def rankings_of(
    problem: Problem,
    contest: Contest,
    method: str,
    size: int,
    rows: Sequence[np.ndarray | None],
) -> list[Ranking]:
    """Rankings of several parts of the rows, or of all (``None``); networks train together."""
    prepared = [all_rows(problem.design, problem.y, part, problem.weights) for part in rows]
    if of_library(method):
        return rank_by_network(problem, method, prepared, (size,))

    def simple(name: str, part: Part, number: int) -> Ranking:
        return rank(problem, name, part, (number,), problem.seed, contest.expected.effort(name))

    if method != CONSENSUS:
        return [simple(method, part, size) for part in prepared]
    # As many units of each ranking as in cross-validation.
    most = min(max(contest.problem.sizes), MERGED)
    merged = [
        merged_ranking(
            [simple(member, part, most).order[most] for member in contest.records.members()],
            problem.design.num_units,
            (size,),
        )
        for part in prepared
    ]
    return [with_kept(ranking, problem) for ranking in merged]
