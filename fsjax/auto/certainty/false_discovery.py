"""Estimated false discovery rates of columns, by competition with their decoys.

Each set of decoys is appended to the table once, and columns and decoys compete for importance. The
statistic of a column is its importance minus that of its decoy. A useless column and its decoy may
be swapped, so that its statistic is as likely to be below ``-t`` as above ``t`` (Barber and Candes
2015), and the number of statistics below ``-t`` estimates the number of false discoveries above
``t``.

The counts of several sets are pooled, and one is added to the pool; with a single set, this is
"knockoff+". The pooled count over M estimates the mean number of useless columns above a threshold,
like draws from a null distribution. One more in all M sets is what makes p-values from such draws
valid, and the smallest share of all thresholds is the step-up rule of Benjamini and Hochberg. The
gain of a column is its mean over the sets, which varies less than the gains in single sets that it
is compared with, so that the estimate errs on the safe side. Measured on 40 or 60 tables of each
kind, of 500 rows (exclusive or, ring, sum, sines, linear; forest or Lasso; 5 and 10 sets), 0.04 to
0.09 of the selection is false at a rate of 0.1, and 0.10 to 0.19 at 0.2. Alternatives are worse:
one more in each set, or the median of the rates of single sets, hardly ever find the only two
columns that matter; counting decoys by their mean gain makes 0.11 to 0.63 of the selection false at
0.2; and to require gains above twice their standard error over the sets changes nothing.

A column is compared with its own decoy, not with all decoys, because useless columns differ: those
that are correlated with useful ones are more important than others. With a forest's importance on
correlated columns this finds about twice as many of the useful ones at a rate of 0.1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csc_array, hstack, issparse

from fsjax import Method
from fsjax.auto.certainty.decoys import decoy_columns
from fsjax.auto.contest.method_names import of_library
from fsjax.auto.contest.rankers import SIMPLE, rank_units
from fsjax.auto.contest.rankers.parts import Part, standardise
from fsjax.auto.contest.stacked_fits import scores_of_tables
from fsjax.auto.reading import column_operations as sparse
from fsjax.auto.reading.column_operations import Columns, by_column
from fsjax.methods import get_method

#: Draws a table of the columns ``(N, D)`` and a decoy of each, and the units of its columns.
Draw = Callable[[np.random.Generator], tuple[Columns, np.ndarray]]

#: Name of :func:`network_scores` among the statistics.
NETWORK = "network"

#: Sets of decoys for the network: with ten, the smallest selection at a rate of 0.1 is one column.
NETWORK_SETS = 10

#: Epochs of the network for up to so many rows, and the fewest epochs, for more rows.
_EPOCHS, _ROWS, _MIN_EPOCHS = 60, 1000, 10


#: A rate whose standard error is larger is not known: another seed could as well give half of it.
LARGEST_ERROR = 0.15


class Statistics(NamedTuple):
    """The statistics from which false discovery rates are estimated, for pictures.

    Attributes:
      gains: ``(G,)`` importance of a unit minus that of its decoy, the mean over the sets.
      decoy_gains: ``(M, G)`` importance of the decoy minus that of its unit, for each set.
      threshold: the smallest gain that is selected; infinite if none is.
    """

    gains: np.ndarray
    decoy_gains: np.ndarray
    threshold: float


def decoy_statistic(
    means: Mapping[str, float], least: float, dense: bool, quick: str = "l1"
) -> str:
    """The method whose importance is compared between columns and decoys.

    The network, if it is among the methods that predict best and neither the Lasso path nor a
    forest is; otherwise the quick one that predicts better.

    Args:
      means: best mean score of each method, larger is better.
      least: the smallest mean score that is not worse than the best.
      dense: whether the table is dense, which the network needs.
      quick: ``l1`` or ``forest``, by :mod:`fsjax.auto.certainty.quick_statistic`.

    Returns:
      ``quick`` or :data:`NETWORK`.
    """
    best = [name for name, mean in means.items() if mean >= least]
    if not dense or "l1" in best or "forest" in best:
        return quick
    return NETWORK if any(map(is_network, best)) else quick


def is_network(name: str) -> bool:
    """Whether a contender is a method of the library that trains a network, and not a filter."""
    return of_library(name) and get_method(name)().loss is not None


def pair_network() -> Method:
    """The network whose attributions are compared between columns and decoys: small and sparse.

    Its L1 penalty finds columns that matter only together among hundreds of others.
    """
    return get_method("neural_network")(
        rank_by="attribution",
        hidden=(32, 32),
        activation="relu",
        optimizer="adam",
        learning_rate=1e-2,
        final_learning_rate=1e-5,
        weight_decay=0.0,
        l1=1.5e-3,
    )


def network_scores(
    part: Part,
    draw: Draw,
    task: str,
    num_units: int,
    num_sets: int = NETWORK_SETS,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Importance of units and decoys by :func:`pair_network`, all sets trained as one program.

    A fifth of the rows validates and decides which epoch is kept: with five sines among 50 columns,
    the last epoch finds a quarter of them at a rate of 0.1, and the best one all of them.

    Args:
      part: dense rows and their target.
      draw: of :func:`decoy_model`, for the same rows.
      task: a supervised task.
      num_units: G.
      num_sets: M.
      seed: of the decoys and the trainings.

    Returns:
      ``(M, G)`` of the units and ``(M, G)`` of their decoys, each that of its best column.
    """
    drawn = [drawn_decoys(draw, seed, number) for number in range(num_sets)]
    epochs = max(_MIN_EPOCHS, min(_EPOCHS, _EPOCHS * _ROWS // len(part.y)))
    scores = scores_of_tables(
        pair_network(),
        [standardise(columns, weights=part.weights)[0] for columns, _ in drawn],
        part.y,
        task,
        seed=seed,
        num_features=1,
        num_epochs=epochs,
        min_steps_per_epoch=30,
        scaling="none",
        sample_weight=part.weights,
    )
    units = [
        rank_units(row, groups, (1,)).scores for row, (_, groups) in zip(scores, drawn, strict=True)
    ]
    return np.array(units)[:, :num_units], np.array(units)[:, num_units:]


def simple_scores(
    part: Part,
    draw: Draw,
    task: str,
    num_units: int,
    name: str,
    number: int,
    seed: int = 0,
    effort: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Importance of units and of one set of decoys by a simple selector.

    Args:
      part, draw, task, num_units: as for :func:`network_scores`.
      number: of the set, from 0.
      seed: of the decoys and the selector.
      effort: of the selector, in (0, 1].

    Returns:
      ``(1, G)`` of the units and ``(1, G)`` of their decoys; 0 where the selector gave none.
    """
    columns, groups = drawn_decoys(draw, seed, number)
    (rows,) = standardise(columns, weights=part.weights)
    decoy_part = Part(rows, part.y, weights=part.weights)
    scores = SIMPLE[name](decoy_part, task, seed + number, effort)
    units = rank_units(scores, groups, (1,)).scores
    units = np.where(np.isfinite(units), units, 0.0)[None]
    return units[:, :num_units], units[:, num_units:]


def drawn_decoys(draw: Draw, seed: int, number: int) -> tuple[Columns, np.ndarray]:
    """The columns and set ``number`` of their decoys, and the units of both."""
    return draw(np.random.default_rng((seed, 11, number)))


def decoy_model(X: Columns, groups: np.ndarray, row_groups: np.ndarray | None = None) -> Draw:
    """A function that draws a table of the columns ``(N, D)`` and a decoy of each.

    Numeric columns, also with missing values or of dates, get Gaussian knockoffs. Indicators,
    categories, and the columns of a sparse table, get copies with permuted rows. Whether a column
    or its decoy is among the first D is drawn at random, so that no result depends on the position.
    The table has the units in an order that follows from their values, so that decoys, and what a
    method does with the table, do not depend on the order in which the columns come.

    Args:
      X: the columns, dense or sparse.
      groups: ``(D,)`` the unit of each column, from 0 to G - 1.
      row_groups: ``(N,)`` labels of rows that belong together, of a dense table, or ``None``.

    Returns:
      From a random generator to the columns and their decoys, ``(N, 2 D)``, and their units
      ``(2 D,)``, those of decoys from G on.
    """
    in_order = order_by_content(X, groups)
    groups = groups[in_order]
    X = X[:, in_order] if issparse(X) else np.ascontiguousarray(X[:, in_order])
    # Groups numbered by their places, as their rows are permuted in the order of these numbers.
    places = pd.factorize(groups)[0]
    draw = None if issparse(X) else decoy_columns(X, places, row_groups)
    both_groups = np.concatenate([groups, groups + groups.max() + 1])

    def both(rng: np.random.Generator) -> tuple[Columns, np.ndarray]:
        # Knockoffs of a sparse table would be dense.
        copy = sparse.permuted_columns(X, rng) if draw is None else draw(rng)
        order = swapped(rng.random((X.shape[1],)) < 0.5)
        joined = np.hstack([X, copy]) if draw is not None else hstack([X, copy], format="csr")
        return joined[:, order], both_groups[order]

    return both


def order_by_content(X: Columns, groups: np.ndarray) -> np.ndarray:
    """An order ``(D,)`` of the columns that depends on the ranks of their values.

    Values decide between equal ranks only, so that scales such as metres do not matter. The columns
    of a unit stay together, in their order; units of equal values stay in theirs.
    """
    columns = by_column(X)
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    digests = [(_digest(columns, unit, _ranks), _digest(columns, unit)) for unit in members]
    order = sorted(range(len(members)), key=digests.__getitem__)
    return np.concatenate([members[unit] for unit in order])


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.unique(values, return_inverse=True)[1]


def _digest(
    X: np.ndarray | csc_array,
    columns: np.ndarray,
    of: Callable[[np.ndarray], np.ndarray] = np.ascontiguousarray,
) -> bytes:
    """A checksum of a function of the values in some columns, or of those that they store."""
    checksum = hashlib.blake2b(digest_size=8)
    for column in columns:
        if isinstance(X, np.ndarray):
            checksum.update(of(X[:, column]).tobytes())
        else:
            stored = slice(*X.indptr[column : column + 2])
            checksum.update(X.indices[stored].tobytes() + of(X.data[stored]).tobytes())
    return checksum.digest()


def swapped(swap: np.ndarray) -> np.ndarray:
    """The order ``(2 D,)`` of D columns and their decoys in which some pairs ``(D,)`` are swapped.

    It is its own inverse.
    """
    first = np.arange(len(swap)) + len(swap) * swap
    return np.concatenate([first, first + len(swap) * np.where(swap, -1, 1)])


def false_discovery_rates(scores: np.ndarray, decoys: np.ndarray) -> np.ndarray:
    """Estimated share of false discoveries among the units that gain at least as much as each.

    Args:
      scores: ``(M, G)`` importance of the units beside each of M sets of decoys.
      decoys: ``(M, G)`` importance of these decoys.

    Returns:
      ``(G,)`` in [0, 1]; 1 for units that are on average not more important than their decoys.
      NaN, not known, without any set.
    """
    return _rates_and_errors(scores, decoys)[0]


def known_rates(scores: np.ndarray, decoys: np.ndarray) -> np.ndarray:
    """The rates of :func:`false_discovery_rates` that the sets of decoys suffice for, else NaN.

    A rate is known if its standard error is at most :data:`LARGEST_ERROR`, or if the unit is on
    average not more important than its decoys. The error is the spread between the sets, or that of
    a Poisson count if it is larger.

    Args:
      scores: ``(M, G)`` importance of the units beside each of M sets of decoys.
      decoys: ``(M, G)`` importance of these decoys.
    """
    rates, errors = _rates_and_errors(scores, decoys)
    return np.where(errors <= LARGEST_ERROR, rates, np.nan)


def smallest_rate(sets: int, selected: int) -> float:
    """The smallest rate that can be estimated for a selection; 1 if there is none.

    No decoy above the threshold counts as one in all sets together.

    Args:
      sets: M, number of sets of decoys.
      selected: number of selected units.
    """
    return min(1.0, 1.0 / (sets * selected)) if sets and selected else 1.0


def _rates_and_errors(scores: np.ndarray, decoys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rates ``(G,)`` and their standard errors ``(G,)``; NaN without any set."""
    sets, units = scores.shape
    if not sets:
        return np.full(units, np.nan), np.full(units, np.nan)
    gains, decoy_gains = (scores - decoys).mean(axis=0), np.sort(decoys - scores, axis=1)
    order = np.argsort(-gains, kind="stable")
    ranked = gains[order]
    # Ties count, of decoys as of columns.
    above = units - np.array([np.searchsorted(row, ranked, side="left") for row in decoy_gains])
    selected = np.searchsorted(-ranked, -ranked, side="right")
    share = (above.sum(axis=0) + 1.0) / sets / selected
    spread = np.sqrt(sets * above.var(axis=0, ddof=1)) if sets > 1 else 0.0
    error = np.maximum(spread, np.sqrt(above.sum(axis=0) + 1.0)) / sets / selected
    # The lowest share of all thresholds from here down, the nearest if there are several.
    lowest, best = np.empty(units, int), units - 1
    for place in reversed(range(units)):
        best = place if share[place] <= share[best] else best
        lowest[place] = best
    rates, errors = np.empty(units), np.empty(units)
    rates[order], errors[order] = share[lowest], error[lowest]
    # A unit that is not more important than its decoys has the rate 1 by definition.
    found = gains > 0
    return np.where(found, np.minimum(rates, 1.0), 1.0), np.where(found, errors, 0.0)


def statistics(scores: np.ndarray, decoys: np.ndarray, rate: float) -> Statistics:
    """The statistics behind :func:`false_discovery_rates`, from the same arguments.

    Args:
      scores: ``(M, G)``, M at least 1.
      decoys: ``(M, G)``.
      rate: largest false discovery rate of the selected units.
    """
    gains = (scores - decoys).mean(axis=0)
    selected = false_discovery_rates(scores, decoys) <= rate
    threshold = float(gains[selected].min()) if selected.any() else np.inf
    return Statistics(gains, decoys - scores, threshold)
