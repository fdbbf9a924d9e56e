"""Decoys: knockoffs and permuted copies of columns, which carry no information of their own.

Permuted copies keep the distribution of a column and lose its correlations with the others.
Gaussian knockoffs (Candes et al. 2018, "Panning for gold", section 3) keep the correlations too: a
column may be swapped with its knockoff without a change of mean and covariance, so that the decoy
of a useless column is as correlated with a useful one as the column itself.

Where rows belong together, such as those of a patient, a column that is alike within groups is
correlated by chance with a target that is too, and a decoy must be alike in the same way. So copies
are permuted by whole groups, and knockoffs are the sum of knockoffs of the means of groups and of
the deviations from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata
from sklearn.decomposition import PCA

from fsjax.auto.certainty.covariance import estimated_covariance

#: With more columns than this, knockoffs come from a model of common factors.
MAX_COVARIANCE = 2500

#: Columns with at most this many different values get permuted copies: normal scores do not suit
#: them.
MAX_DISTINCT = 10

#: Share of the largest step that leaves the covariance of columns and knockoffs positive definite.
_SAFE = 0.98

#: At least so many groups of rows, of similar size, are permuted among each other.
_ALIKE = 10

#: Deviations of normal scores below this are errors of rounding.
_ROUNDING = 1e-9

#: Normal scores with less than this share of the deviation of different values are much tied.
_TIED = 0.99

#: Most common factors of a wide table.
_FACTORS = 20


class RowGroups(NamedTuple):
    """Which rows belong together.

    Attributes:
      numbers: ``(N,)`` the group of each row, from 0 to K - 1.
      sizes: ``(K,)`` rows of each group.
    """

    numbers: np.ndarray
    sizes: np.ndarray

    def means(self, Z: np.ndarray) -> np.ndarray:
        """``(K, D)`` mean of each column of ``(N, D)`` in each group."""
        totals = np.zeros((len(self.sizes), Z.shape[1]))
        np.add.at(totals, self.numbers, Z)
        return totals / self.sizes[:, None]

    def donors(self, rng: np.random.Generator) -> np.ndarray:
        """``(N,)`` rows that take the place of each row, those of a group from another group.

        Groups are permuted among those of similar size; rows are repeated or left out to fit.
        """
        count = len(self.numbers)
        starts = np.cumsum(self.sizes) - self.sizes
        place = np.empty(count, int)
        place[np.argsort(self.numbers, kind="stable")] = np.arange(count)
        place -= starts[self.numbers]
        shuffled = np.lexsort((rng.random(count), self.numbers))
        by_size = np.lexsort((rng.random(len(self.sizes)), self.sizes))
        blocks = max(1, min(len(self.sizes) // _ALIKE, len(np.unique(self.sizes))))
        of_group = np.empty(len(self.sizes), int)
        for block in np.array_split(by_size, blocks):
            of_group[block] = rng.permutation(block)
        donor = of_group[self.numbers]
        return shuffled[starts[donor] + place % self.sizes[donor]]


def groups_of_rows(row_groups: np.ndarray | None) -> RowGroups | None:
    """The groups of labels ``(N,)``; ``None`` if each row is a group of its own."""
    if row_groups is None:
        return None
    labels, numbers = np.unique(row_groups, return_inverse=True)
    if len(labels) == len(numbers):
        return None
    return RowGroups(numbers, np.bincount(numbers))


def permuted(
    X: np.ndarray,
    groups: np.ndarray,
    rng: np.random.Generator,
    row_groups: np.ndarray | None = None,
) -> np.ndarray:
    """A copy ``(N, D)`` in which the rows of each group of columns are permuted independently.

    With ``row_groups`` ``(N,)`` each group of rows gets those of another group, in random order.
    """
    copy, together = X.copy(), groups_of_rows(row_groups)
    for group in np.unique(groups):
        columns = np.flatnonzero(groups == group)
        rows = rng.permutation(len(X)) if together is None else together.donors(rng)
        copy[:, columns] = X[np.ix_(rows, columns)]
    return copy


def decoy_columns(
    X: np.ndarray, groups: np.ndarray, row_groups: np.ndarray | None = None
) -> Callable[[np.random.Generator], np.ndarray]:
    """A function that draws a decoy of each column of a dense table.

    A column of more than :data:`MAX_DISTINCT` different values gets a Gaussian knockoff, also in a
    group: a permuted copy of a number with missing values would lose its correlations with other
    columns. Indicators and categories get permuted copies, together within a group.

    Args:
      X: ``(N, D)`` finite numbers.
      groups: ``(D,)`` whole numbers, the group of each column.
      row_groups: ``(N,)`` labels of rows that belong together, or ``None``.

    Returns:
      From a random generator to ``(N, D)``.
    """
    numeric = np.array([len(np.unique(column)) > MAX_DISTINCT for column in X.T])
    draw_knockoffs = knockoff_model(X[:, numeric], row_groups) if numeric.any() else None

    def draw(rng: np.random.Generator) -> np.ndarray:
        copy = np.empty_like(X)
        if draw_knockoffs is not None:
            copy[:, numeric] = draw_knockoffs(rng)
        if not numeric.all():
            copy[:, ~numeric] = permuted(X[:, ~numeric], groups[~numeric], rng, row_groups)
        return copy

    return draw


def knockoff_model(
    X: np.ndarray, row_groups: np.ndarray | None = None
) -> Callable[[np.random.Generator], np.ndarray]:
    """A function that draws Gaussian knockoffs of a table and keeps each column's distribution.

    The columns are transformed to normal scores by their ranks, knockoffs are drawn there, and
    transformed back by the quantiles of the column (a Gaussian copula). The covariance is that of
    :func:`estimated_covariance`; a knockoff may differ from its column in proportion to the
    variance that the other columns leave unexplained. Tables of more than :data:`MAX_COVARIANCE`
    columns use common factors and permuted residuals instead of the
    covariance (Fan et al. 2020, IPAD).

    With groups of rows, the means of the groups and the deviations from them have covariances of
    their own, and independent knockoffs that are added: if both may be swapped, so may their sum.
    The means of smaller groups vary more, column by column as in a model of random effects.

    Args:
      X: ``(N, D)`` finite numbers.
      row_groups: ``(N,)`` labels of rows that belong together, or ``None``.

    Returns:
      From a random generator to ``(N, D)``; each column holds values of the original column.
    """
    scores = ndtri((rankdata(X, axis=0) - 0.5) / len(X))
    together = groups_of_rows(row_groups)
    draw = _scaled(scores) if together is None else _by_group(scores, together)
    ordered = np.sort(X, axis=0)
    tied = scores.std(axis=0) < _TIED * ndtri((np.arange(len(X)) + 0.5) / len(X)).std()
    return lambda rng: _at_quantiles(ordered, draw(rng), tied)


def _by_group(
    scores: np.ndarray, together: RowGroups
) -> Callable[[np.random.Generator], np.ndarray]:
    """Knockoffs ``(N, D)`` of the means of groups and of the deviations from them, added."""
    means = together.means(scores)
    deviations = scores - means[together.numbers]
    # So that rounding does not make columns vary that are constant within groups.
    deviations[np.abs(deviations) < _ROUNDING] = 0.0
    # Deviations have as many degrees of freedom less as there are groups, and so has their noise.
    lost = np.sqrt(len(scores) / (len(scores) - len(means)))

    def within(noise: np.ndarray) -> np.ndarray:
        return lost * (noise - together.means(noise)[together.numbers])

    inside = np.square(deviations).sum(axis=0) / (len(scores) - len(means))
    between = np.maximum(means.var(axis=0) - inside * (1.0 / together.sizes).mean(), 0.0)
    spread = np.sqrt(between + inside / together.sizes[:, None])
    spread = np.where(spread > 0, spread, 1.0)
    standard, centre = (means - means.mean(axis=0)) / spread, means.mean(axis=0)
    draw_means, draw_deviations = _scaled(standard), _scaled(deviations, within)

    def draw(rng: np.random.Generator) -> np.ndarray:
        of_groups = centre + spread * (standard.mean(axis=0) + draw_means(rng))
        return of_groups[together.numbers] + draw_deviations(rng)

    return draw


def _scaled(
    scores: np.ndarray, of_noise: Callable[[np.ndarray], np.ndarray] = lambda noise: noise
) -> Callable[[np.random.Generator], np.ndarray]:
    """Knockoffs of columns ``(N, D)`` less their means, whose noise is passed to a function."""
    deviation = scores.std(axis=0)
    Z = (scores - scores.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    draw = (_by_factors if scores.shape[1] > MAX_COVARIANCE else _by_covariance)(Z, of_noise)
    return lambda rng: draw(rng) * deviation


def _by_covariance(
    Z: np.ndarray, of_noise: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.random.Generator], np.ndarray]:
    covariance = estimated_covariance(Z)
    precision = np.linalg.inv(covariance)
    unexplained = 1.0 / np.diag(precision)
    root = 1.0 / np.sqrt(unexplained)
    # The largest step t with 2 covariance - t diag(unexplained) positive definite.
    largest = 2.0 * scipy.linalg.eigh(
        root[:, None] * covariance * root, eigvals_only=True, subset_by_index=(0, 0)
    )
    step = np.minimum(_SAFE * largest * unexplained, np.diag(covariance))
    pulled = precision * step
    spread = np.diag(2.0 * step) - step[:, None] * pulled
    factor = scipy.linalg.cholesky(spread + 1e-9 * np.eye(len(spread)), lower=True)
    centre = Z - Z @ pulled
    return lambda rng: centre + of_noise(rng.standard_normal(Z.shape)) @ factor.T


def _by_factors(
    Z: np.ndarray, of_noise: Callable[[np.ndarray], np.ndarray]
) -> Callable[[np.random.Generator], np.ndarray]:
    count = max(1, min(_FACTORS, len(Z) // 4))
    pca = PCA(count, svd_solver="randomized", random_state=0).fit(Z)
    common = pca.inverse_transform(pca.transform(Z))
    return lambda rng: common + of_noise(rng.permuted(Z - common, axis=0))


def _at_quantiles(ordered: np.ndarray, normal: np.ndarray, tied: np.ndarray) -> np.ndarray:
    """Values of the sorted columns ``ordered`` at the probabilities of normal scores.

    The scores of ``tied`` columns are not standard normal: their ranks keep the distribution. Equal
    scores, as within groups of rows, get equal values.
    """
    shares = ndtr(normal)
    shares[:, tied] = (rankdata(normal[:, tied], axis=0) - 0.5) / len(ordered)
    place = np.clip((shares * len(ordered)).astype(int), 0, len(ordered) - 1)
    return np.take_along_axis(ordered, place, axis=0)
