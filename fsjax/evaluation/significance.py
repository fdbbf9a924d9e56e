"""Whether two methods differ by more than their seeds do: the Kolmogorov-Smirnov test."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from scipy.stats import ks_2samp

from fsjax.errors import ConfigError

#: The level of the test (CTRE, 4.2.1).
ALPHA: Final = 0.05


class KSResult(NamedTuple):
    """Outcome of one test.

    Attributes:
      statistic: largest distance between the two distribution functions, in [0, 1].
      pvalue: in [0, 1].
      significant: whether ``pvalue`` is below :data:`ALPHA`.
    """

    statistic: float
    pvalue: float
    significant: bool


def ks_test(a: Sequence[float], b: Sequence[float]) -> KSResult:
    """Two-sample Kolmogorov-Smirnov test of a metric over seeds (CTRE, 4.2.1).

    The null hypothesis is that both samples come from one distribution; it is rejected where
    p < 0.05. The number of seeds bounds p from below (:func:`smallest_pvalue`): 0.0079 for 5
    against 5 and 0.1 for 3 against 3, so that 3 seeds can never be significant.

    Args:
      a, b: finite values, one for each seed, at least two; their numbers may differ.

    Raises:
      ConfigError: for fewer than two values, or values that are not finite.
    """
    samples = [np.asarray(sample, np.float64).ravel() for sample in (a, b)]
    for sample in samples:
        if sample.size < 2 or not np.isfinite(sample).all():
            raise ConfigError(
                f"a sample of {sample.size} values, {np.isfinite(sample).sum()} of them finite; "
                "the Kolmogorov-Smirnov test needs at least 2, all finite: run more seeds"
            )
    with warnings.catch_warnings():
        # Where rounding lifts an exact p of 1 above 1 (5 against 5, statistic 0.2), SciPy warns and
        # takes the asymptotic p, which is 1 there too.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation", RuntimeWarning)
        found = ks_2samp(*samples)
    pvalue = float(found.pvalue)
    return KSResult(float(found.statistic), pvalue, pvalue < ALPHA)


def ks_matrix(samples: Mapping[str, Sequence[float]]) -> dict[tuple[str, str], KSResult]:
    """:func:`ks_test` of every pair.

    Args:
      samples: by method, one value for each seed.

    Returns:
      By pair of names, each pair once, in the order of ``samples``.

    Raises:
      ConfigError: as :func:`ks_test`.
    """
    return {(a, b): ks_test(samples[a], samples[b]) for a, b in combinations(samples, 2)}


def smallest_pvalue(n: int, m: int) -> float:
    """The smallest p that n against m seeds can give: that of samples which do not overlap."""
    return 2 / math.comb(n + m, n)
