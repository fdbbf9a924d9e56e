"""Methods for which there was no time at first run in the time that the answer does not need."""

from __future__ import annotations

from fsjax.auto.answer.answer import Request, answer
from fsjax.auto.certainty.permutation_test import Chance
from fsjax.auto.certainty.stability import PAIRS
from fsjax.auto.contest.cross_validation import Contest


def run_left_out(request: Request, contest: Contest, chance: Chance) -> None:
    """Runs the methods that were left out for lack of time, the cheapest first, while they fit.

    The answer so far, with its first decoys and halves of the rows, shows how much time is left.
    """
    while contest.late and not contest.clock.stopped:
        draft = answer(request, contest, chance, finer=False)
        pairs = PAIRS if draft.better_than_chance else 0

        def after(name: str, pairs: int = pairs) -> float:
            """Seconds of the rankings that are needed if the method is the best one."""
            return contest.seconds_of_rankings(name, 1 + 2 * pairs)

        if not contest.run_left_out(after):
            return
