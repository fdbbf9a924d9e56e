"""Who may spend which share of the budget: one list of stages, in the order in which they run.

Shares are of the usable budget, without what is reserved for writing the answer, and count from the
start of the selection. A stage begins a piece of work only if the share is not spent yet when the
piece is expected to end. What a stage leaves over goes to the later ones.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np


class Stage(NamedTuple):
    """A stage of a selection.

    Attributes:
      work: what it does.
      share: of the budget that may be spent when it ends.
    """

    work: str
    share: float


FIRST_PERMUTATIONS = Stage("the permutations without which there is no verdict", 1.0)
#: Fewer permutations hardly reach the significance level.
MORE_PERMUTATIONS = Stage("permutations up to 199", 0.6)
PERMUTATIONS = Stage("further permutations", 0.3)
NEEDED = Stage("all columns, random ones and the univariate filter, with which all compare", 1.0)
#: A requested false discovery rate comes before more methods.
REQUESTED_RATE = Stage("decoys, if a false discovery rate is requested", 0.45)
SIMPLE = Stage("the other simple methods, and their consensus", 0.5)
#: Less, down to the share of the simple methods, if decoys and halves will need more.
NETWORKS = Stage("networks, further rounds of folds, and simple methods that were late", 0.85)
LATE = Stage("the cheapest late methods, if the later stages need less", 1.0)
STATISTIC = Stage("the choice of a statistic for decoys", 0.85)
FIRST_DECOYS = Stage("the first sets of decoys", 0.9)
FIRST_HALVES = Stage("the first halves of the rows", 0.95)
MORE_DECOYS = Stage("more sets of decoys", 0.95)
MORE_HALVES = Stage("more halves of the rows", 1.0)

#: All stages, in their order.
STAGES: Final = (
    FIRST_PERMUTATIONS, MORE_PERMUTATIONS, PERMUTATIONS, NEEDED, REQUESTED_RATE, SIMPLE, NETWORKS,
    LATE, STATISTIC, FIRST_DECOYS, FIRST_HALVES, MORE_DECOYS, MORE_HALVES,
)  # fmt: skip

#: If columns are likely leaks, the selection without them may spend this share of the budget, and
#: the one with them the rest.
WITHOUT_LEAKS: Final = 0.7

#: Shares of the budget of one kind of work, which is reduced to fit: the judge in a round of all
#: methods, and a round of one simple method.
JUDGE, SIMPLE_METHOD = 0.3, 0.06

#: Pairs of complementary halves of the rows: the first aim, and the most.
PAIRS, MAX_PAIRS = 5, 25

#: Sets of decoys for quick methods: the first aim, and the most.
SETS, MAX_SETS = 5, 10

#: Expected seconds of what comes after the networks count this many times.
_CAUTION: Final = 1.5


def share_of_networks(seconds_after: float, usable: float) -> float:
    """The share of the budget that may be spent when the networks end.

    Args:
      seconds_after: expected of the decoys and the halves of the rows.
      usable: seconds of the budget.
    """
    share = 1.0 - _CAUTION * seconds_after / usable if np.isfinite(usable) else 1.0
    return float(np.clip(share, SIMPLE.share, NETWORKS.share))
