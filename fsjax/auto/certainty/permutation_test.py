"""Can the target be predicted better than chance? The permutation test, and the verdict.

Targets, the real one and permuted ones, are predicted under cross-validation.

The statistic needs no model to be fitted again for each permutation, so that hundreds of them take
seconds. Kernel ridge regressions on all columns (linear and RBF; their solution is linear in the
target) and the first columns by correlation (chosen within the training rows, each weighted by its
correlation) predict the rows of each fold. Each of these *predictors* is scored by the correlation
with the target there; a further one is the largest absolute correlation of a single column. All of
them see the values and, beside them, the ranks of columns and target, which survive heavy tails.
The statistic is the largest score, in units of its own mean and deviation over the permutations
(Westfall and Young 1993, max-T), so that trying several is paid for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit

from fsjax.auto.contest import schedule
from fsjax.auto.contest.budget import Clock
from fsjax.auto.contest.differences import above_chance, mean_gain
from fsjax.auto.contest.folds import Fold, all_rows, permutations
from fsjax.auto.contest.problem import Problem, representative_rows
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.rankers import targets
from fsjax.auto.contest.rankers.parts import standardise
from fsjax.auto.reading.column_operations import Columns, densify, ranks, row_squares

#: Permutations that are drawn where there is time, and the fewest that allow a verdict.
DRAWS, MIN_DRAWS = 999, 49

#: Fewer permutations hardly reach :data:`LEVEL`.
_ENOUGH = 199

#: At most this p-value is better than chance; above the second one nothing was found.
LEVEL, UNDECIDED = 0.01, 0.05

#: Significance level over the folds, for forests and networks: they find relations that the
#: predictors of the permutation test cannot see.
FOLDS_LEVEL = 0.005

#: Most rows that take part.
ROWS: Final = 1000

#: Permutations of a chunk, those of the first chunk, and most numbers in one matrix product.
_CHUNK, _FIRST, _NUMBERS = 100, 49, 4_000_000

#: Numbers of columns that are chosen by correlation.
_SIZES: Final = (1, 5, 20, 80)

#: Folds of the test.
_FOLDS: Final = 5

#: Statistics that differ by less are equal.
_SAME: Final = 1e-9

#: Ridges of the kernel regressions, for kernels whose diagonal is 1 on average.
_RIDGES: Final = (0.1, 1.0)


class Chance(NamedTuple):
    """Result of the permutation test.

    Attributes:
      as_good: number of permuted targets that are predicted at least as well as the target.
      draws: number of permutations.
      possible: how many there are at most, of few rows or groups, or shifts of a series.
    """

    as_good: int
    draws: int
    possible: int = DRAWS

    @property
    def p_value(self) -> float:
        """Share of the permutations, the target among them, predicted at least as well as it is."""
        return (self.as_good + 1) / (self.draws + 1)

    @property
    def level(self) -> float:
        """:data:`LEVEL`, or the smallest p-value of permutations that are just enough to decide."""
        least = 1.0 / (self.possible + 1)
        return max(LEVEL, least) if self.possible >= MIN_DRAWS else LEVEL

    @property
    def better(self) -> bool:
        """Whether the target is predicted better than chance, at :attr:`level`."""
        return self.draws >= MIN_DRAWS and self.p_value <= self.level

    @property
    def undecided(self) -> bool:
        """Whether these draws show neither a finding nor chance."""
        return self.draws < MIN_DRAWS or self.level < self.p_value <= UNDECIDED


class Verdict(NamedTuple):
    """Better than chance, not better, or undecided.

    Attributes:
      better: whether the target is predicted better than chance: a test shows a relation, and the
        whole procedure scores above predictions without any column.
      undecided: whether there is neither a finding nor chance.
      chance: result of the permutation test.
      folds_p_value: one-sided p-value of the score of the whole procedure over its folds.
      unpredicted: whether the permutations show a relation, but the whole procedure does not score
        above predictions without any column.
      smallest_q: smallest q-value of a single column, where the permutations show no relation; NaN
        where it is not known, or not needed.
    """

    better: bool
    undecided: bool
    chance: Chance
    folds_p_value: float
    unpredicted: bool = False
    smallest_q: float = float("nan")

    @property
    def by_folds(self) -> bool:
        """Whether the folds alone show it."""
        return self.better and not self.chance.better

    @property
    def p_value(self) -> float:
        """p-value of the test that decided."""
        return self.folds_p_value if self.by_folds or self.unpredicted else self.chance.p_value

    @property
    def level(self) -> float:
        """Significance level of the test that decided."""
        return FOLDS_LEVEL if self.by_folds or self.unpredicted else self.chance.level

    @property
    def words(self) -> str:
        """The test, in words."""
        if self.unpredicted:
            return _permutations(self.chance)
        if self.by_folds:
            return (
                f"p = {self.folds_p_value:.2g} by a t test over the folds of the whole procedure, "
                f"significance level {FOLDS_LEVEL:g}; the permutation test, which detects single "
                f"columns and sums of them: {_permutations(self.chance)}"
            )
        return f"{_permutations(self.chance)}, significance level {self.chance.level:.2g}"


class _View(NamedTuple):
    """Columns and target as some predictors see them: their values, or their ranks.

    Attributes:
      X: ``(N, D)`` standardised.
      target: ``(N, C)`` standardised.
    """

    X: Columns
    target: np.ndarray


class _Predictors(NamedTuple):
    """The predictors of a fold, which do not depend on the target.

    Attributes:
      fold: the rows.
      train, test: their columns.
      hats: ``(tests, trains)`` matrices from training targets to predictions.
    """

    fold: Fold
    train: Columns
    test: Columns
    hats: tuple[np.ndarray, ...]


def chance_test(problem: Problem, ledger: Ledger, clock: Clock) -> Chance:
    """Predicts the target and its permutations, in chunks, while their share of time lasts."""
    rows = representative_rows(problem, ROWS)
    groups = None if problem.row_groups is None else problem.row_groups[rows]
    if groups is not None and len(np.unique(groups)) < 2:
        # Nearly all weight is on one group, whose rows cannot be predicted from others.
        return Chance(0, 0, possible=0)
    y, folds = problem.y[rows], _folds(problem, rows)
    orders = permutations(y, DRAWS, problem.seed, groups, problem.ordered)
    real = np.arange(len(rows))
    part = all_rows(problem.design, problem.y, rows)
    views = _views(part.X, np.stack(targets(part.y, problem.task, split=True), axis=1))

    @functools.cache
    def predictors() -> list[list[_Predictors]]:
        return [[_predictors(view.X, fold) for fold in folds] for view in views]

    statistics: list[list[float]] = []
    width = views[0].target.shape[1] * max(part.X.shape[1], len(rows))
    size, seconds = _FIRST, 0.0
    while (drawn := max(len(statistics) - 1, 0)) < len(orders):
        key = f"chance/{drawn}"
        if key not in ledger and clock.left(_stage(drawn).share) <= seconds:
            break
        clock.tell(f"permuted targets, {drawn} of {len(orders)}")
        batch = orders[drawn : drawn + size]
        batch = np.concatenate([real[None], batch]) if drawn == 0 else batch
        piece = ledger.timed(key, functools.partial(_piece, views, predictors, batch))
        statistics += piece["scores"]
        size = int(np.clip(_NUMBERS // width, 1, _CHUNK))
        seconds = piece["seconds"]
    found = Chance(0, 0) if len(statistics) < 2 else largest_score(np.array(statistics))
    return found._replace(possible=len(orders))


def _stage(drawn: int) -> schedule.Stage:
    """The stage of the next permutations."""
    if not drawn:
        return schedule.FIRST_PERMUTATIONS
    return schedule.MORE_PERMUTATIONS if drawn < _ENOUGH else schedule.PERMUTATIONS


def largest_score(scores: np.ndarray) -> Chance:
    """How often the largest score, in units of its spread, is as large as that of the target.

    Args:
      scores: ``(1 + P, M)`` of the predictors, for the target and for each permutation.
    """
    deviation = scores.std(axis=0)
    largest = ((scores - scores.mean(axis=0)) / np.where(deviation > 0, deviation, np.inf)).max(1)
    # Equal statistics may differ in their last bits.
    return Chance(int((largest[1:] >= largest[0] - _SAME).sum()), len(largest) - 1)


def verdict(
    chance: Chance,
    honest: np.ndarray,
    nothing: np.ndarray,
    problem: Problem,
    smallest_q: Callable[[], float] = lambda: float("nan"),
) -> Verdict:
    """Combines the permutation test with the scores of the folds, and with single columns.

    Args:
      honest: ``(F,)`` scores of the whole procedure on the folds of the first round.
      nothing: ``(F,)`` scores there without any column.
      smallest_q: returns the smallest q-value of a single column, which a verdict of chance must
        not contradict.
    """
    known_scale = bool(np.isfinite(problem.metric.margin))
    p_value = above_chance(honest, nothing, problem.share, known_scale)
    gain = mean_gain(honest, nothing, known_scale)
    better = (chance.better or p_value < FOLDS_LEVEL) and gain > 0
    unpredicted = chance.better and gain <= 0
    q_value = float("nan") if better or chance.better or chance.undecided else smallest_q()
    undecided = not better and (chance.better or chance.undecided or q_value <= UNDECIDED)
    return Verdict(better, undecided, chance, p_value, unpredicted, q_value)


def _permutations(chance: Chance) -> str:
    if not chance.draws:
        return "no permutation of the target was tested"
    return (
        f"p = {chance.p_value:.2g} ({chance.as_good} of {chance.draws} permuted targets are "
        "predicted as well)"
    )


def _views(X: Columns, target: np.ndarray) -> list[_View]:
    """Values, and ranks, of columns ``(N, D)`` and target ``(N, C)``."""
    return [
        _View(standardise(columns)[0], standardise(outputs.astype(np.float64))[0])
        for columns, outputs in ((X, target), (ranks(X), ranks(target)))
    ]


def _piece(
    views: Sequence[_View],
    predictors: Callable[[], Sequence[Sequence[_Predictors]]],
    orders: np.ndarray,
) -> dict[str, list[list[float]]]:
    """The scores of all M predictors for each of P orders of the target, means over the folds.

    Args:
      predictors: returns those of each view and fold.
      orders: ``(P, N)``.
    """
    scores = []
    for view, of_folds in zip(views, predictors(), strict=True):
        permuted = view.target[orders]
        scores.append(np.mean([_scores_of_fold(fold, permuted) for fold in of_folds], axis=0))
        scores.append(_largest_correlation(view.X, permuted)[:, None])
    return {"scores": np.concatenate(scores, axis=1).tolist()}


def _largest_correlation(X: Columns, permuted: np.ndarray) -> np.ndarray:
    """``(P,)`` the largest absolute correlation of a column with an output ``(P, N, C)``."""
    draws, rows, outputs = permuted.shape
    # The outputs are centred, so that columns need not be.
    slopes = np.asarray(X.T @ permuted.transpose(1, 0, 2).reshape(rows, -1))
    return np.abs(slopes).max(axis=0).reshape(draws, outputs).max(axis=1) / rows


def _scores_of_fold(predictors: _Predictors, permuted: np.ndarray) -> np.ndarray:
    """``(P, M)``, from targets ``(P, N, C)``."""
    draws, _, outputs = permuted.shape

    def flat(rows: np.ndarray) -> np.ndarray:
        return permuted[:, rows].transpose(1, 0, 2).reshape(len(rows), -1)

    train, test = flat(predictors.fold.train), flat(predictors.fold.test)
    train = train - train.mean(axis=0)
    predictions = [hat @ train for hat in predictors.hats]
    slopes = np.asarray(predictors.train.T @ train)
    sizes = [size for size in _SIZES if size == 1 or size <= len(slopes) // 2]
    predictions += [predictors.test @ _largest(slopes, size) for size in sizes]
    scores = [_correlation(prediction, test) for prediction in predictions]
    return np.stack([score.reshape(draws, outputs).mean(axis=1) for score in scores], axis=1)


def _largest(slopes: np.ndarray, count: int) -> np.ndarray:
    """``(D, P)`` with the largest absolute values of each column, the others set to 0."""
    if count >= len(slopes):
        return slopes
    size = np.abs(slopes)
    least = np.partition(size, len(slopes) - count, axis=0)[len(slopes) - count]
    return np.where(size >= least, slopes, 0.0)


def _correlation(prediction: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Correlation of each of the P columns ``(n, P)``; 0 where one of the two is constant."""
    prediction = prediction - prediction.mean(axis=0)
    truth = truth - truth.mean(axis=0)
    size = np.linalg.norm(prediction, axis=0) * np.linalg.norm(truth, axis=0)
    return (prediction * truth).sum(axis=0) / np.where(size > 1e-12, size, np.inf)


def _predictors(X: Columns, fold: Fold) -> _Predictors:
    train, test = X[fold.train], X[fold.test]
    gram, cross = densify(train @ train.T), densify(test @ train.T)
    squares = np.diag(gram)
    lengths = row_squares(test)
    width = max(float(squares.mean()), 1e-300)
    distances = squares[:, None] + squares - 2 * gram
    far = lengths[:, None] + squares - 2 * cross
    kernels = (
        (gram / width, cross / width),
        (np.exp(-distances / width), np.exp(-far / width)),
    )
    hats = [_hat(inner, outer, ridge) for inner, outer in kernels for ridge in _RIDGES]
    return _Predictors(fold, train, test, tuple(hats))


def _hat(gram: np.ndarray, cross: np.ndarray, ridge: float) -> np.ndarray:
    """Kernel ridge regression, as a matrix from training targets to predictions."""
    return np.linalg.solve(gram + ridge * np.eye(len(gram)), cross.T).T


def _folds(problem: Problem, rows: np.ndarray) -> list[Fold]:
    """Folds that do not depend on the target, so that it is exchangeable with its permutations."""
    groups = None if problem.row_groups is None else problem.row_groups[rows]
    if problem.ordered:
        splitter = TimeSeriesSplit(min(_FOLDS, len(rows) // 2 - 1))
    else:
        kind, units = (KFold, rows) if groups is None else (GroupKFold, np.unique(groups))
        splitter = kind(min(_FOLDS, len(units)), shuffle=True, random_state=problem.seed)
    return [Fold(*split) for split in splitter.split(rows, None, groups)]
