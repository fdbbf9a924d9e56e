"""Is it better than chance? The same protocol on labels in an order that means nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

#: Draws of permuted labels, at most, and of those as good as the real ones until it is settled.
DRAWS, SETTLED = 99, 3

#: Share of draws that may be as good as the real labels where a table counts as better than chance.
LEVEL = 0.02

#: With fewer draws, by how many of their standard deviations the real labels have to be better.
_FAR, FEW = 4.0, 10


class Chance(NamedTuple):
    """What permuted labels gave.

    Attributes:
      real: the statistic of the labels as they are.
      draws: that of each order of the labels that was tried.
    """

    real: float
    draws: tuple[float, ...]

    @property
    def as_good(self) -> int:
        """Draws that are at least as good as the real labels."""
        return sum(one >= self.real for one in self.draws)

    @property
    def p_value(self) -> float:
        """Share of the draws, the real labels among them, at least as good as these."""
        return (self.as_good + 1) / (len(self.draws) + 1)

    @property
    def far(self) -> bool:
        """Whether the real labels are out of reach of a normal distribution of the draws."""
        if len(self.draws) < FEW or self.as_good:
            return False
        spread = float(np.std(self.draws, ddof=1))
        return self.real > float(np.mean(self.draws)) + _FAR * spread

    @property
    def better(self) -> bool:
        """Whether the labels can be predicted at all, at :data:`LEVEL`."""
        return self.p_value <= LEVEL or self.far

    @property
    def unclear(self) -> bool:
        """Whether there are too few draws to tell."""
        return not self.as_good and not self.better

    @property
    def told(self) -> str:
        """What the draws say, in words."""
        return (
            f"{self.as_good} of {len(self.draws)} permutations of the target are predicted as well "
            f"as the target itself "
            + ("(too few draws to tell)" if self.unclear else f"(p = {self.p_value:.2g})")
        )

    @property
    def settled(self) -> bool:
        """Whether more draws would hardly change the verdict."""
        return self.as_good >= SETTLED or len(self.draws) >= DRAWS or self.far


def above_chance(scores: np.ndarray, chance: np.ndarray, share: float) -> float:
    """One-sided p-value of a cross-validated score being above what chance gives.

    The t test of Nadeau and Bengio (2003), whose variance allows for folds that share their rows.

    Args:
      scores: ``(F,)`` of folds; NaN where one did not run.
      chance: ``(F,)`` what is reached there without any column.
      share: test rows for each training row.
    """
    gain = (scores - chance)[~np.isnan(scores)]
    if len(gain) < 2:
        return 1.0
    error = np.sqrt((1.0 / len(gain) + share) * gain.var(ddof=1))
    if error == 0:
        return 0.0 if gain.mean() > 0 else 1.0
    return float(stats.t.sf(gain.mean() / error, len(gain) - 1))
