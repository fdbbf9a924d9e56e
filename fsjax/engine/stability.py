"""Agreement of selections between seeds, or between subsamples (complementary pairs)."""

import math
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from scipy import stats

from fsjax.errors import ConfigError, check_num_features, check_whole

#: The default level of confidence intervals.
LEVEL: Final = 0.95


class Stability(NamedTuple):
    """The result of :func:`nogueira_stability`.

    Attributes:
      value: the stability, at most 1; its expectation for unrelated selections is 0. NaN if it is
        not defined.
      lower, upper: ends of its confidence interval, which may exceed the possible values; NaN if
        there is none.
      level: the share of such intervals that hold the true stability, for many selections.
    """

    value: float
    lower: float
    upper: float
    level: float


def selection_mask(selections: np.ndarray, num_columns: int) -> np.ndarray:
    """A mask of the columns in each of M selections: ``(M, D)`` bool, a new array.

    Args:
      selections: ``(M, K)`` column numbers, where repeated ones count once, or ``(M, D)`` bool.
      num_columns: D, at least 1.

    Raises:
      ConfigError: for another shape, columns that do not exist, or an empty list of selections.
    """
    num_columns = check_whole("num_columns", num_columns)
    numbers = np.asarray(selections)
    if numbers.ndim != 2 or numbers.dtype.kind not in "biu":
        raise ConfigError(
            f"selections of type {numbers.dtype} and shape {numbers.shape}; give column numbers "
            "(M, K) or booleans (M, D)"
        )
    if not len(numbers):
        raise ConfigError("there are no selections; give at least one")
    if numbers.dtype.kind == "b":
        if numbers.shape[1] != num_columns:
            raise ConfigError(
                f"booleans of shape {numbers.shape} for {num_columns} columns; give one for each "
                "selection and column"
            )
        return numbers.copy()
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < num_columns:
        raise ConfigError(
            f"selections hold columns from {numbers.min()} to {numbers.max()}; the {num_columns} "
            f"columns are numbered from 0 to {num_columns - 1}"
        )
    mask = np.zeros((len(numbers), num_columns), bool)
    np.put_along_axis(mask, numbers, True, axis=1)
    return mask


def selection_frequency(selections: np.ndarray, num_columns: int) -> np.ndarray:
    """The share ``(D,)`` of the selections, in [0, 1], that contain each of D columns.

    Arguments and errors are those of :func:`selection_mask`.
    """
    return selection_mask(selections, num_columns).mean(axis=0)


def nogueira_stability(chosen: np.ndarray, level: float = LEVEL) -> Stability:
    """Stability of M selections among d columns, corrected for chance, with its interval.

    Nogueira, Sechidis and Brown, "On the Stability of Feature Selection Algorithms", JMLR 18(174),
    2018: 1 minus the ratio of the mean variance of the columns to its expectation for random
    selections of the same sizes. It is 1 for equal selections, about 0 for unrelated ones and
    never below ``-1 / (M - 1)``. Selections may differ in size. If all sizes are equal, it is the
    mean of Kuncheva's index over all pairs.

    The interval is asymptotic and assumes independent selections. For few selections it is too
    narrow: where columns were ranked by noisy scores, intervals of level 0.95 contained the true
    stability in 70 % of cases for 5 selections, 85 % for 10 and 94 % for 50.

    Args:
      chosen: ``(M, D)`` bool, the columns of each selection; M at least 2.
      level: of the interval, above 0 and below 1.

    Returns:
      The stability and its interval. All are NaN if every selection has all columns or none,
      because then agreement cannot be distinguished from chance. The interval of two selections
      is NaN, because the estimate of its width is 0 for any two of equal size.

    Raises:
      ConfigError: for anything but booleans of two dimensions, or fewer than two selections.

    Examples:
      >>> selections = np.array([[0, 1], [0, 2], [0, 1]])  # of three seeds
      >>> chosen = fsjax.evaluation.selection_mask(selections, 6)  # bool (3, 6)
      >>> print(fsjax.evaluation.selection_frequency(selections, 6))
      >>> stability = fsjax.evaluation.nogueira_stability(chosen)  # an evaluation.Stability
      >>> print(stability.value, stability.lower, stability.upper)
    """
    chosen = np.asarray(chosen)
    if chosen.ndim != 2 or chosen.dtype != bool or not chosen.shape[1]:
        raise ConfigError(
            f"chosen has type {chosen.dtype} and shape {chosen.shape}; give booleans (M, D)"
        )
    if len(chosen) < 2:
        raise ConfigError(f"the number of selections is {len(chosen)}; give at least 2")
    if not 0 < level < 1:
        raise ConfigError(f"level={level!r}; choose a number above 0 and below 1")
    if chosen.all() or not chosen.any():
        return Stability(math.nan, math.nan, math.nan, level)
    number = len(chosen)  # M
    frequency = chosen.mean(axis=0)  # p_f
    share = chosen.mean(axis=1)  # k_i / d
    mean_share = float(share.mean())  # kbar / d
    by_chance = mean_share * (1 - mean_share)
    # Phi = 1 - mean_f s_f^2 / (kbar/d (1 - kbar/d)), s_f^2 = M / (M - 1) p_f (1 - p_f)
    variances = number / (number - 1) * frequency * (1 - frequency)
    value = 1 - float(variances.mean()) / by_chance
    if number == 2:
        return Stability(value, math.nan, math.nan, level)
    # phi_i = (mean_f z_if p_f - k_i kbar/d^2 + Phi/2 (2 k_i kbar/d^2 - k_i/d - kbar/d + 1))
    #         / (kbar/d (1 - kbar/d)),  v(Phi) = 4 / M^2 sum_i (phi_i - phibar)^2
    product = share * mean_share
    overlap = (chosen * frequency).mean(axis=1) - product
    phi = (overlap + value / 2 * (2 * product - share - mean_share + 1)) / by_chance
    deviation = 2 / number * float(np.sqrt(np.square(phi - phi.mean()).sum()))
    half = float(stats.norm.ppf(0.5 + level / 2)) * deviation
    return Stability(value, value - half, value + half, level)


def complementary_pairs(
    num_rows: int, num_pairs: int, seed: int, y: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random halves of the rows in disjoint pairs.

    For complementary pairs stability selection (Shah and Samworth, "Variable selection with error
    control", JRSS B 75, 2013).

    Args:
      num_rows: N, at least 2. If it is odd, each pair leaves one row out.
      num_pairs: at least 1.
      seed: whole number from 0; equal seeds give equal pairs.
      y: ``(N,)`` classes of any kind, by which halves are stratified: those of a pair differ by at
        most one row in each class. If all values differ, as in numeric targets, halves are random.

    Returns:
      Pairs of row numbers, ``(N // 2,)`` int32 each, ascending.

    Raises:
      ConfigError: for numbers out of range, or labels of another length.

    Examples:
      >>> for first, second in fsjax.evaluation.complementary_pairs(10, num_pairs=2, seed=0):
      ...     print(first, second)
    """
    num_rows = check_whole("num_rows", num_rows, min_value=2)
    num_pairs = check_whole("num_pairs", num_pairs)
    rng = np.random.default_rng(check_whole("seed", seed, min_value=0))
    classes = np.zeros(num_rows, np.int64)
    if y is not None:
        if np.shape(y) != (num_rows,):
            raise ConfigError(
                f"y has shape {np.shape(y)} for {num_rows} rows; give one label per row"
            )
        classes = np.unique(y, return_inverse=True)[1]
    even = num_rows // 2 * 2
    pairs = []
    for _ in range(num_pairs):
        order = shuffled_by_class(classes, rng)[:even].astype(np.int32)
        pairs.append((np.sort(order[::2]), np.sort(order[1::2])))
    return pairs


def shuffled_by_class(classes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Order rows, with class numbers from 0, so that every n-th row is a stratified sample.

    Returns:
      ``(N,)`` row numbers: class after class, the largest class last; rows of a class, and classes
      of the same size, are in random order.
    """
    sizes = np.bincount(classes)
    place = np.argsort(np.lexsort((rng.permutation(len(sizes)), sizes)))
    rows = rng.permutation(len(classes))
    return rows[np.argsort(place[classes[rows]], kind="stable")]


def consensus(selected: np.ndarray, scores: np.ndarray, num_features: int) -> np.ndarray:
    """One selection for all seeds: the columns that most seeds selected.

    Columns that were selected equally often are ordered by the mean over the seeds of the ranks of
    their scores (the highest score of a seed has rank 1, equal scores share their mean rank, NaN
    ranks last), and then by their place in the table. Ranks are used because scores of different
    seeds may have different scales.

    Args:
      selected: ``(S, K)`` column numbers, or ``(S, D)`` bool.
      scores: ``(S, D)``, larger is better.
      num_features: number of columns, 1 to D, which may differ from K.

    Returns:
      ``(num_features,)`` int64, distinct columns, best first.

    Raises:
      ConfigError: if shapes do not fit, or the number of columns is out of range.

    Examples:
      >>> selected = np.array([[0, 1], [0, 2], [0, 1]])
      >>> scores = np.random.default_rng(0).random((3, 6))
      >>> print(fsjax.evaluation.consensus(selected, scores, 2))  # [0 1]
    """
    scores = np.asarray(scores, np.float64)
    if scores.ndim != 2 or len(scores) != len(selected):
        raise ConfigError(
            f"scores have shape {scores.shape} for {len(selected)} selections; give (S, D)"
        )
    check_num_features(num_features, scores.shape[1])
    frequency = selection_frequency(selected, scores.shape[1])
    # NaN becomes the lowest possible score, because rank 1 is the best.
    ranks = stats.rankdata(-np.where(np.isnan(scores), -np.inf, scores), axis=1)
    return np.lexsort((ranks.mean(axis=0), -frequency))[:num_features]


class Selections(Protocol):
    """The selections of S seeds among D columns, as in a result; see :func:`consensus`."""

    @property
    def selected(self) -> np.ndarray:
        """``(S, K)`` column numbers."""

    @property
    def scores(self) -> np.ndarray:
        """``(S, D)``, larger is better."""

    @property
    def num_features(self) -> int:
        """K."""


def stability_metrics(result: Selections) -> dict[str, Any]:
    """The agreement of the S seeds of a fit, in Python values that JSON can hold.

    Returns:
      ``num_seeds`` (S), ``stability`` and ``interval`` (lower and upper end) with its ``level``,
      all of :func:`nogueira_stability`, ``consensus`` (K columns, as :func:`consensus` orders them)
      and ``consensus_frequency`` (share of the seeds, in [0, 1], that selected each of them).
      ``stability`` is ``None`` for one seed and where it is not defined; ``interval`` also for two
      seeds.
    """
    chosen = selection_mask(result.selected, result.scores.shape[1])
    columns = consensus(result.selected, result.scores, result.num_features)
    none = Stability(math.nan, math.nan, math.nan, LEVEL)
    stability = nogueira_stability(chosen) if len(chosen) > 1 else none
    return {
        "num_seeds": len(chosen),
        "stability": None if math.isnan(stability.value) else stability.value,
        "interval": None if math.isnan(stability.lower) else [stability.lower, stability.upper],
        "level": stability.level,
        "consensus": columns.tolist(),
        "consensus_frequency": chosen.mean(axis=0)[columns].tolist(),
    }
