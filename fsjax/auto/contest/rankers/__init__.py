"""Simple selectors, the baselines of every selection: each ranks all columns at once."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from fsjax.auto.contest.rankers.costs import expected_seconds
from fsjax.auto.contest.rankers.elimination import rfe
from fsjax.auto.contest.rankers.filters import random, univariate
from fsjax.auto.contest.rankers.greedy import forward, mrmr
from fsjax.auto.contest.rankers.lasso import l1
from fsjax.auto.contest.rankers.parts import Part, martingale_residuals, targets
from fsjax.auto.contest.rankers.ranking import Ranking, merged_ranking, rank_units
from fsjax.auto.contest.rankers.trees import forest, shadow

__all__ = [
    "MEMBERS",
    "SIMPLE",
    "Ranking",
    "SimpleScore",
    "merged_ranking",
    "expected_seconds",
    "forest",
    "forward",
    "l1",
    "martingale_residuals",
    "mrmr",
    "random",
    "rank_units",
    "rfe",
    "shadow",
    "targets",
    "univariate",
]


class SimpleScore(Protocol):
    """A simple selector."""

    def __call__(self, part: Part, task: str, seed: int, effort: float = 1.0) -> np.ndarray:
        """Scores of the columns ``(D,)``, larger is better; none may be NaN.

        Args:
          part: rows, which count in proportion to ``part.weights``; constant columns, which are 0
            there, get the lowest score from all but ``random``.
          task: any task but reconstruction.
          seed: of draws.
          effort: in (0, 1], the share of the full work (rows, trees, steps).
        """


#: The simple selectors by name, cheapest first. Each also has its expected seconds in ``costs.py``
#: and its name in words in ``contest/method_names.py``.
SIMPLE: Final[dict[str, SimpleScore]] = {
    "random": random,
    "univariate": univariate,
    "l1": l1,
    "mrmr": mrmr,
    "forward": forward,
    "rfe": rfe,
    "forest": forest,
    "shadow": shadow,
}

#: The selectors whose rankings :func:`merged_ranking` merges: two linear ones and two of trees, so
#: that neither kind can outvote the other if only one of them detects a relation.
MEMBERS: Final = ("forward", "rfe", "forest", "shadow")
