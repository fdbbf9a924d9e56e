"""Whether anything was found: by permuted targets, or by the folds of what the rule chose."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fsjax.auto.chance import LEAST, LEVEL, UNDECIDED, Chance
from fsjax.auto.differences import above_chance
from fsjax.auto.problem import Problem

#: p-value below which forests and networks, which the permuted targets do not see, are no chance.
FOLDS_LEVEL = 0.005


class Verdict(NamedTuple):
    """Better than chance, not, or undecided.

    Attributes:
      better: whether the target can be predicted.
      undecided: whether the draws do not tell.
      chance: what permuted targets gave.
      folds_p_value: one-sided p-value of the score of the whole procedure over its folds.
    """

    better: bool
    undecided: bool
    chance: Chance
    folds_p_value: float

    @property
    def by_folds(self) -> bool:
        """Whether it is the folds alone that tell."""
        return self.better and not self.chance.better

    @property
    def p_value(self) -> float:
        """Of what decided."""
        return self.folds_p_value if self.by_folds else self.chance.p_value

    @property
    def level(self) -> float:
        """What the p-value is compared with."""
        return FOLDS_LEVEL if self.by_folds else LEVEL

    @property
    def words(self) -> str:
        """The test, in words."""
        chance = self.chance
        if self.by_folds:
            return (
                f"p = {self.folds_p_value:.2g} by the t test over the folds of the whole "
                f"procedure, level {FOLDS_LEVEL:g}; the permutation test, which looks for single "
                f"columns and sums of them, gives {_permutations(chance)}"
            )
        return f"{_permutations(chance)}, level {LEVEL:g}"

    @property
    def why_undecided(self) -> str:
        """What would have to be seen, in words."""
        if self.chance.draws < LEAST:
            return f"fewer than {LEAST} permutations were drawn in the time given"
        return f"p has to be at most {LEVEL:g} for a finding, and above {UNDECIDED:g} for chance"


def verdict(chance: Chance, honest: np.ndarray, nothing: np.ndarray, problem: Problem) -> Verdict:
    """What the permuted targets, and the folds, say together.

    Args:
      chance: what permuted targets gave.
      honest: ``(F,)`` scores of the whole procedure on the folds of the first round.
      nothing: ``(F,)`` what is reached there without any column.
      problem: what is asked.
    """
    p_value = above_chance(honest, nothing, problem.share) if len(honest) else 1.0
    better = chance.better or p_value < FOLDS_LEVEL
    return Verdict(better, not better and chance.undecided, chance, p_value)


def _permutations(chance: Chance) -> str:
    if not chance.draws:
        return "no permutation"
    return (
        f"p = {chance.p_value:.2g} ({chance.as_good} of {chance.draws} permutations of the target "
        "are predicted as well)"
    )
