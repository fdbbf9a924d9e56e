"""How many of the columns are there by chance: real columns against decoys.

Every set of decoys joins the table once, and all columns compete for importance. Of the columns
above a threshold at most as many are false, on average, as decoys of a set are above it; the
estimated false discovery rate of a column is the smallest such share of any threshold that lets it
in. Several sets make the count of decoys finer than one, as single knockoff filters have it
(Barber and Candes 2015), and steady; one decoy is added to the count, as in their "knockoff+".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import hstack, issparse

from fsjax.auto import sparse
from fsjax.auto.columns import Design
from fsjax.auto.decoys import knockoff_model, permuted
from fsjax.auto.sparse import Columns


def decoy_model(
    X: Columns, design: Design
) -> Callable[[np.random.Generator], tuple[Columns, np.ndarray]]:
    """What draws a decoy of each column of ``(N, D)`` rows.

    Units of one numeric column get Gaussian knockoffs, the others, and the columns of a sparse
    table, copies with permuted rows.

    Returns:
      From a random generator to the columns and their decoys, ``(N, 2 D)``, and the units
      ``(2 D,)`` of these, those of decoys from G on.
    """
    groups = np.concatenate([design.groups, design.groups + design.num_units])
    if issparse(X):
        # Normal scores would fill the zeros.
        return lambda rng: (hstack([X, sparse.permuted(X, rng)], format="csr"), groups)
    sizes = np.bincount(design.groups)
    # Two values are no normal scores.
    plain = (sizes[design.groups] == 1) & np.array([len(np.unique(one)) > 10 for one in X.T])
    draw = knockoff_model(X[:, plain]) if plain.any() else None

    def both(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        copy = np.empty_like(X)
        if draw is not None:
            copy[:, plain] = draw(rng)
        if not plain.all():
            copy[:, ~plain] = permuted(X[:, ~plain], design.groups[~plain], rng)
        return np.hstack([X, copy]), groups

    return both


def false_discovery_rates(scores: np.ndarray, decoys: np.ndarray) -> np.ndarray:
    """Estimated share of false ones among the units at least as important as each.

    Args:
      scores: ``(M, G)`` importance of the units beside each of M sets of decoys.
      decoys: ``(M, G)`` importance of these decoys.

    Returns:
      ``(G,)`` in [0, 1]; 1 for units without any importance.
    """
    sets, units = scores.shape
    mean = scores.mean(axis=0)
    order = np.argsort(-mean, kind="stable")
    ranked = np.sort(decoys.ravel())
    # Of equally important ones, decoys count and columns too.
    above = len(ranked) - np.searchsorted(ranked, mean[order], side="left")
    through = np.searchsorted(-mean[order], -mean[order], side="right")
    share = (above + 1.0) / sets / through
    rates = np.empty(units)
    rates[order] = np.minimum.accumulate(share[::-1])[::-1]
    useless = mean <= min(float(mean.min()), 0.0)
    return np.where(useless, 1.0, np.minimum(rates, 1.0))
