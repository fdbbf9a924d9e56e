"""Knockoffs and permuted copies of columns, together "decoys": they cannot tell about the target.

Permuted copies keep the distribution of a column and lose its correlations with the others.
Gaussian knockoffs (Candes et al. 2018, "Panning for gold", section 3) keep the correlations too: a
column may be swapped for its knockoff without a change of mean and covariance, so that a useless
column beside a useful one has a decoy that is as close to the useful one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata
from sklearn.decomposition import PCA

from fsjax.auto.covariance import estimated_covariance

#: More columns than this get knockoffs from a model of common factors.
MAX_COVARIANCE = 2500

#: Columns with at most this many different values get permuted copies: they are no normal scores.
MAX_DISTINCT = 10

#: Share of the largest step that keeps the covariance of columns and knockoffs positive.
_SAFE = 0.98

#: Common factors of a wide table, at most.
_FACTORS = 20


def permuted(X: np.ndarray, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """``(N, D)`` with the rows of each group of columns in an order of its own."""
    copy = X.copy()
    for group in np.unique(groups):
        columns = np.flatnonzero(groups == group)
        copy[:, columns] = X[np.ix_(rng.permutation(len(X)), columns)]
    return copy


def decoy_columns(X: np.ndarray, groups: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """What draws a decoy of each column of a dense table.

    A column that is a group by itself and has more than :data:`MAX_DISTINCT` different values gets
    a Gaussian knockoff. The columns of other groups get permuted copies, each group as a whole.

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


def knockoffs(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gaussian knockoffs of ``(N, D)`` numbers: a draw of :func:`knockoff_model`."""
    return knockoff_model(X)(rng)


def knockoff_model(X: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """What draws Gaussian knockoffs of a table, with the distribution of each column kept.

    The columns are brought to normal scores by their ranks, knockoffs are drawn there, and brought
    back by the quantiles of the column (a Gaussian copula). The covariance is that of
    :func:`fsjax.auto.covariance.estimated_covariance`; how far a knockoff may differ from its
    column is in proportion to what the other columns leave unexplained of it. Tables of more than
    :data:`MAX_COVARIANCE` columns take common factors and permuted residuals in place of the
    covariance (Fan et al. 2020, IPAD).

    Args:
      X: ``(N, D)`` finite numbers.

    Returns:
      From a random generator to ``(N, D)``, each column holding values of the one it stands for.
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
    # The largest step t with 2 covariance - t diag(unexplained) positive.
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
    """Values of columns, given in order, at the probabilities of normal scores."""
    place = np.clip((ndtr(normal) * len(ordered)).astype(int), 0, len(ordered) - 1)
    return np.take_along_axis(ordered, place, axis=0)
