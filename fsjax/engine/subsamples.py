"""Stability selection: a method trained on complementary halves of the rows, in one program."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import numpy as np

from fsjax.arguments import Rate, check
from fsjax.engine.check_run import Data, task_of, to_dataset
from fsjax.engine.fit import fit
from fsjax.engine.result import FitResult
from fsjax.engine.stability import complementary_pairs, shuffled_by_class
from fsjax.errors import ConfigError, check_whole
from fsjax.method import Method
from fsjax.tables.splits import Split
from fsjax.tasks import TABLE
from fsjax.tasks.from_arrays import check_task

#: Share of a half that is used for validation, for methods that validate.
VALID_FRACTION: Final = 0.2


def fit_subsamples(
    method: Method,
    data: Data,
    *,
    num_pairs: int = 10,
    num_features: int | None = None,
    seed: int = 0,
    valid_fraction: float | None = None,
    **options: Any,
) -> FitResult:
    """Trains a method on random pairs of complementary halves of the rows, for stability selection.

    This is complementary pairs stability selection (Shah and Samworth, JRSS B 75, 2013). The
    selection frequency over the halves shows how the selection varies with the rows, the
    initialisation and the noise together; seeds on the same rows show only the latter two. The
    function calls :func:`fsjax.fit` once, with a seed and a split per half.

    All rows of the data are used, so leave out the rows on which you will test the final selection.
    The halves of all pairs are in memory at the same time: the data ``num_pairs`` times as training
    rows, and as often as test rows.

    Args:
      method: a method as for :func:`fsjax.fit`.
      data: a data set, or ``(X, y)``, as for :func:`fsjax.fit`; N rows.
      num_pairs: at least 1; twice as many networks are trained.
      num_features: K; by default the method's own.
      seed: whole number from 0 that determines the halves. The seeds of the networks are the
        ``2 * num_pairs`` numbers from ``2 * num_pairs * seed`` on, so they differ between seeds.
      valid_fraction: share, in [0, 1), of every half that is used for validation. ``None`` is 0.2,
        or 0 for methods that keep their last epoch, unless they stop by the validation rows.
      **options: those of :func:`fsjax.fit` except ``seeds``, ``split`` and ``split_per_seed``.

    Returns:
      The result for ``2 * num_pairs`` seeds, with ``selection_frequency``, ``selected``, ``scores``
      and so on. The seeds in places ``2 i`` and ``2 i + 1``, from 0, have the two halves of pair i,
      N // 2 rows each. The test rows of a seed are the other half of its pair. For classification
      and survival all parts are stratified.

    Raises:
      ConfigError: for an option that this function sets, for too few rows, and as
        :func:`fsjax.fit`.
      DataError, NonFiniteLossError: as :func:`fsjax.fit`.

    Examples:
      >>> halves = fsjax.fit_subsamples(method, data, num_pairs=2, num_features=2, num_epochs=2)
      >>> print(fsjax.evaluation.stability_metrics(halves))
    """
    for name in ("seeds", "split", "split_per_seed"):
        if name in options:
            raise ConfigError(
                f"fit_subsamples sets {name} itself; leave it out, and give num_pairs and seed"
            )
    num_pairs = check_whole("num_pairs", num_pairs)
    seed = check_whole("seed", seed, min_value=0)
    task = task_of(method, options.get("task"))
    dataset = check_task(to_dataset(data, task), task)
    if valid_fraction is None:
        valid_fraction = VALID_FRACTION if _validates(method, options.get("best_by")) else 0.0
    classes = None if dataset.y is None else TABLE[task].target.strata(dataset.y)
    splits = _splits(dataset.num_samples, num_pairs, seed, valid_fraction, classes)
    first = len(splits) * seed
    result = fit(
        method,
        dataset,
        seeds=range(first, first + len(splits)),
        num_features=num_features,
        split=splits,
        **options,
    )
    return dataclasses.replace(result, runs="half")


def _validates(method: Method, best_by: str | None) -> bool:
    """Whether the method uses validation rows, to choose an epoch or to stop."""
    judged = (method.keep if best_by is None else best_by) != "last"
    return method.loss is not None and (judged or method.about.validates)


def _splits(
    num_rows: int, num_pairs: int, seed: int, valid_fraction: float, y: np.ndarray | None
) -> list[Split]:
    """Two splits per pair, all with the same numbers of rows."""
    check(Rate, valid_fraction=valid_fraction)
    half = num_rows // 2
    num_valid = max(1, round(valid_fraction * half)) if valid_fraction else 0
    if half - num_valid < 1:
        raise ConfigError(
            f"half of the {num_rows} rows has no training rows with valid_fraction="
            f"{valid_fraction}; give more rows"
        )
    classes = np.unique(np.zeros(num_rows) if y is None else y, return_inverse=True)[1]
    rng = np.random.default_rng((seed, 1))  # the halves use another stream
    splits = []
    for first, other in complementary_pairs(num_rows, num_pairs, seed, y):
        for rows, test in ((first, other), (other, first)):
            valid = _draw(classes[rows], num_valid, rng)
            splits.append(Split(rows[~valid], rows[valid], test))
    return splits


def _draw(classes: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draws ``count`` rows, stratified by class to within one row, as a mask ``(N,)`` bool."""
    drawn = np.zeros(len(classes), bool)
    if count:
        # Equal steps through the rows sorted by class, from a random start.
        places = (np.arange(count) + rng.random()) * (len(classes) / count)
        drawn[shuffled_by_class(classes, rng)[places.astype(int)]] = True
    return drawn
