"""Decoys: knockoffs and permuted copies of columns, which carry no information of their own.

Permuted copies keep the distribution of a column and lose its correlations with the others.
Gaussian knockoffs (Candes et al. 2018, "Panning for gold", section 3) keep the correlations too: a
column may be swapped with its knockoff without a change of mean and covariance, so that the decoy
of a useless column is as correlated with a useful one as the column itself.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata
from sklearn.decomposition import PCA

from fsjax.auto.covariance import estimated_covariance

#: With more columns than this, knockoffs come from a model of common factors.
MAX_COVARIANCE = 2500

#: Columns with at most this many different values get permuted copies: normal scores do not suit
#: them.
MAX_DISTINCT = 10

#: Share of the largest step that leaves the covariance of columns and knockoffs positive definite.
_SAFE = 0.98

#: Most common factors of a wide table.
_FACTORS = 20


def permuted(X: np.ndarray, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A copy ``(N, D)`` in which the rows of each group of columns are permuted independently."""
    copy = X.copy()
    for group in np.unique(groups):
        columns = np.flatnonzero(groups == group)
        copy[:, columns] = X[np.ix_(rng.permutation(len(X)), columns)]
    return copy


def decoy_columns(X: np.ndarray, groups: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """A function that draws a decoy of each column of a dense table.

    A column that is its own group and has more than :data:`MAX_DISTINCT` different values gets a
    Gaussian knockoff. The columns of other groups get permuted copies, each group as a whole.

    Args:
      X: ``(N, D)`` finite numbers.
      groups: ``(D,)`` whole numbers, the group of each column.

    Returns:
      From a random generator to ``(N, D)``.
    """
    sizes = np.bincount(groups)
    distinct = np.array([len(np.unique(column)) for column in X.T])
    numeric = (sizes[groups] == 1) & (distinct > MAX_DISTINCT)
    draw_knockoffs = knockoff_model(X[:, numeric]) if numeric.any() else None

    def draw(rng: np.random.Generator) -> np.ndarray:
        copy = np.empty_like(X)
        if draw_knockoffs is not None:
            copy[:, numeric] = draw_knockoffs(rng)
        if not numeric.all():
            copy[:, ~numeric] = permuted(X[:, ~numeric], groups[~numeric], rng)
        return copy

    return draw


def knockoff_model(X: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """A function that draws Gaussian knockoffs of a table and keeps each column's distribution.

    The columns are transformed to normal scores by their ranks, knockoffs are drawn there, and
    transformed back by the quantiles of the column (a Gaussian copula). The covariance is that of
    :func:`fsjax.auto.covariance.estimated_covariance`; a knockoff may differ from its column in
    proportion to the variance that the other columns leave unexplained. Tables of more than
    :data:`MAX_COVARIANCE` columns use common factors and permuted residuals instead of the
    covariance (Fan et al. 2020, IPAD).

    Args:
      X: ``(N, D)`` finite numbers.

    Returns:
      From a random generator to ``(N, D)``; each column holds values of the original column.
    """
    scores = ndtri((rankdata(X, axis=0) - 0.5) / len(X))
    deviation = scores.std(axis=0)
    Z = (scores - scores.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    wide = X.shape[1] > MAX_COVARIANCE
    draw = _by_factors(Z) if wide else _by_covariance(Z)
    ordered = np.sort(X, axis=0)
    return lambda rng: _at_quantiles(ordered, draw(rng) * deviation)


def _by_covariance(Z: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
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
    return lambda rng: centre + rng.standard_normal(Z.shape) @ factor.T


def _by_factors(Z: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    count = max(1, min(_FACTORS, len(Z) // 4))
    pca = PCA(count, svd_solver="randomized", random_state=0).fit(Z)
    common = pca.inverse_transform(pca.transform(Z))
    return lambda rng: common + rng.permuted(Z - common, axis=0)


def _at_quantiles(ordered: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Values of the sorted columns ``ordered`` at the probabilities of normal scores."""
    place = np.clip((ndtr(normal) * len(ordered)).astype(int), 0, len(ordered) - 1)
    return np.take_along_axis(ordered, place, axis=0)
