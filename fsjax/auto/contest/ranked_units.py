"""Rankings of units by a contender, with the units of ``keep`` first."""

from __future__ import annotations

from collections.abc import Sequence

from fsjax.auto.contest import network_rankings
from fsjax.auto.contest.problem import Problem, with_kept
from fsjax.auto.contest.rankers import SIMPLE, Ranking, rank_units
from fsjax.auto.contest.rankers.parts import Part


def rank(
    problem: Problem, name: str, part: Part, sizes: Sequence[int], seed: int, effort: float
) -> Ranking:
    """Ranks units by a simple selector, those to be kept first.

    Args:
      effort: in (0, 1].
    """
    scores = SIMPLE[name](part, problem.task, seed, effort)
    if name == "random":
        # Every unit has the same chance, whatever the number of its columns.
        scores = scores[: problem.design.num_units][problem.design.groups]
    return with_kept(rank_units(scores, problem.design.groups, sizes), problem)


def rank_by_network(
    problem: Problem, name: str, parts: Sequence[Part], sizes: Sequence[int]
) -> list[Ranking]:
    """Ranks units by a method of the library on several parts of the rows, trained together."""
    rankings = network_rankings.rank_folds(
        name, parts, problem.task, problem.design.groups, sizes, problem.seed
    )
    return [with_kept(ranking, problem) for ranking in rankings]
