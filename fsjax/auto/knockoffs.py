"""``fsjax.false_discoveries``: false discovery rates for any method that scores columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from fsjax import ConfigError, DataError, Method
from fsjax.auto.certainty.false_discovery import decoy_model, false_discovery_rates, statistics
from fsjax.auto.contest.stacked_fits import scores_of_tables, shares
from fsjax.auto.reading.target import TASKS
from fsjax.data import Dataset, as_array, as_dataset, check_features, check_row_order, check_task
from fsjax.errors import check_choice, check_whole, is_number
from fsjax.methods import get_method
from fsjax.registry import Builder, registration_of

#: From ``(N, 2 D)`` rows and their target, and ``sample_weight=`` if there is one, to ``(2 D,)``
#: scores, larger for more important columns.
ImportanceFunction = Callable[..., ArrayLike]

#: Options of :func:`fsjax.fit` that are set here, or do not apply.
_DECIDED = ("seeds", "split", "split_per_seed", "groups", "columns", "zero_others", "start")

_NO_TARGET = "y is None; give a target, as columns and decoys are compared by how they predict it"

#: Fewer rows than this do not allow an estimate of correlations.
_MIN_ROWS = 10


@dataclass(frozen=True, eq=False)
class FalseDiscoveries:
    """Result of :func:`fsjax.false_discoveries`, for D columns and M sets of decoys.

    Attributes:
      method: name of the method or function that scored the columns.
      rates: ``(D,)`` in [0, 1], the estimated share of false discoveries among the columns that
        gain at least as much over their decoys as this one; 1 for a column that gains nothing.
      scores: ``(M, D)`` importance of the columns beside each set of decoys, the mean over the
        seeds; the absolute values of columns and decoys together add up to 1.
      decoy_scores: ``(M, D)`` importance of their decoys.
      names: D names, those of a pandas frame, else ``None``.
    """

    method: str
    rates: np.ndarray
    scores: np.ndarray
    decoy_scores: np.ndarray
    names: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(self.select(rate))} at {rate}" for rate in (0.1, 0.2))
        return (
            f"FalseDiscoveries({self.method}, {len(self.rates)} columns, {len(self.scores)} sets "
            f"of decoys, selected: {counts})"
        )

    @property
    def gains(self) -> np.ndarray:
        """``(D,)`` importance of a column minus that of its decoy, the mean over the sets."""
        return (self.scores - self.decoy_scores).mean(axis=0)

    def select(self, rate: float = 0.1) -> np.ndarray:
        """The columns with at most some false discovery rate, the largest gains first.

        Args:
          rate: in (0, 1): at most about this share of them is false, on average over tables.

        Returns:
          ``(K,)`` int numbers of columns; empty if too few stand out.

        Raises:
          ConfigError: for a rate outside (0, 1).
        """
        _check_rate(rate)
        order = np.argsort(-self.gains, kind="stable")
        return order[self.rates[order] <= rate]

    def threshold(self, rate: float = 0.1) -> float:
        """The smallest gain among the columns of :meth:`select`; infinite if there are none."""
        _check_rate(rate)
        return statistics(self.scores, self.decoy_scores, rate).threshold


def false_discoveries(
    method: str | Method | Callable[..., Method] | ImportanceFunction,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    task: str | None = None,
    num_draws: int = 10,
    num_seeds: int = 1,
    seed: int = 0,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> FalseDiscoveries:
    """Estimates how many of the columns that a method finds important are false discoveries.

    Each column gets a decoy that carries no more information about the target than the other
    columns do: a Gaussian knockoff (Candes et al. 2018), or a permuted copy if the column has at
    most 10 different values. The method scores columns and decoys together, in random order within
    each pair, and the importance of a column minus that of its decoy is its statistic (Barber and
    Candes 2015; DeepPINK, Lu et al. 2018, for networks). This is repeated for ``num_draws`` sets of
    decoys, whose counts are pooled; a single set is the filter "knockoff+". All draws and seeds of
    a method of the library are trained as one program.

    The selection can be as small as one column if there are at least ``1 / rate`` sets of decoys;
    with a single set it is empty or has at least ``1 / rate`` columns.

    The rate holds as far as decoys resemble the columns that do not matter. Knockoffs reproduce the
    distribution of each column and the correlations of the normal scores, estimated from the same
    rows (:mod:`fsjax.auto.certainty.covariance`), and no other dependence. Rows are taken to be
    independent; for rows in groups use :func:`fsjax.select` with ``fdr=`` and ``row_groups=``.

    Args:
      method: the name of a registered method, with its default arguments (and at most D columns to
        select); a method, for example ``fsjax.methods.lassonet(10)``; or a function of rows
        ``(N, 2 D)`` and the target that returns ``(2 D,)`` scores, larger for more important
        columns.
      X: ``(N, D)`` numbers without missing values, N at least 10; also a pandas frame.
      y: the target, in the form that the task needs.
      task: a supervised task of the method, by default its first. With a function, the task that y
        is read for; by default the function gets y unchanged.
      num_draws: M, number of sets of decoys, at least 1.
      num_seeds: trainings per set, at least 1; for functions 1.
      seed: whole number from 0, of the decoys and the trainings.
      sample_weight: ``(N,)`` weights of the rows in the loss, at least 0; rows of weight 0 are left
        out. A function gets it as the keyword ``sample_weight``. Decoys resemble the columns in
        rows of equal weight.
      **options: options of :func:`fsjax.fit`, for example ``num_epochs``; by default those that the
        method is registered with. ``seeds``, ``split``, ``groups`` and ``columns`` are set here.

    Returns:
      Rates and scores of the columns, from which columns are selected at a rate.

    Raises:
      ConfigError: for a method that selects without a target, weights for a function that does not
        take any, options that are set here, and as :func:`fsjax.fit`.
      DataError: for data or weights that cannot be used, or scores of the wrong shape.
      NonFiniteLossError: as :func:`fsjax.fit`.

    Examples:
      >>> def correlation(X, y):
      ...     return abs(np.corrcoef(X.T, y)[-1, :-1])
      >>> discoveries = fsjax.false_discoveries(correlation, data.X, data.y, num_draws=5)
      >>> print(discoveries.rates)  # of a knockoffs.FalseDiscoveries: of each column
      >>> print(discoveries.select(0.2))  # at most 20 % false ones, on average
    """
    num_draws, num_seeds = check_whole("num_draws", num_draws), check_whole("num_seeds", num_seeds)
    seed = check_whole("seed", seed, min_value=0)
    check_row_order(X, y=y, sample_weight=sample_weight)
    if isinstance(method, str):
        method = get_method(method)
    if _is_registered(method):
        method = _built(method, X)
    score_tables: Callable[[list[np.ndarray], np.ndarray, np.ndarray | None], np.ndarray]
    if isinstance(method, Method):
        name, task = method.name, _supervised_task(method, task, options)
        dataset = check_task(as_dataset(X, y, task), task)
        target = _target(dataset)
        settings = _registered_options(method) | options
        if not method.about.gates and method.about.num_features is None:
            # Only the ranking is used, so any number will do.
            settings.setdefault("num_features", 1)

        def score_tables(
            tables: list[np.ndarray], y: np.ndarray, weight: np.ndarray | None
        ) -> np.ndarray:
            return scores_of_tables(
                method,
                tables,
                y,
                task,
                num_seeds=num_seeds,
                seed=seed,
                sample_weight=weight,
                **settings,
            )
    elif not callable(method):
        raise ConfigError(
            f"method is of the type {type(method).__name__}; give the name of a method, a method "
            "such as fsjax.methods.lassonet(10), or a function of X and y that returns scores"
        )
    elif options or num_seeds != 1:
        name = next(iter(options), "num_seeds")
        raise ConfigError(f"{name} is for methods of the library; leave it out with a function")
    else:
        name = getattr(method, "__name__", type(method).__name__)
        if sample_weight is not None and not _takes_weights(method):
            raise ConfigError(
                f"sample_weight is given, but {name} does not take it; add a parameter "
                "sample_weight to the function, or leave the weights out"
            )
        dataset, target = _for_function(X, y, task)
        score_tables = partial(_scores_by_function, method, name)
    rows, weight = dataset.X, None
    if sample_weight is not None:
        weight = _checked_weights(sample_weight, len(target))
        # As if the rows of weight 0 did not exist.
        counted = weight > 0
        rows, target, weight = rows[counted], target[counted], weight[counted]
    rows = _rows(rows, dataset.feature_names)
    # Each column is a unit.
    draw = decoy_model(rows, np.arange(rows.shape[1]))
    drawn = [draw(np.random.default_rng((seed, number))) for number in range(num_draws)]
    scores = score_tables([table for table, _ in drawn], target, weight)
    places = np.argsort([units for _, units in drawn], axis=1)
    columns, decoys = np.split(np.take_along_axis(scores, places, axis=1), 2, axis=1)
    rates = false_discovery_rates(columns, decoys)
    return FalseDiscoveries(name, rates, columns, decoys, dataset.feature_names)


def _is_registered(method: object) -> TypeGuard[Builder]:
    return hasattr(method, "registration")


def _built(builder: Builder, X: ArrayLike) -> Method:
    """The method with its default arguments, for at most as many columns as there are."""
    parameter = builder.registration.parameters.get("num_features")
    if parameter is None or parameter.default is None or np.ndim(X) != 2:
        return builder()
    return builder(num_features=min(parameter.default, np.shape(X)[1]))


def _supervised_task(method: Method, task: str | None, options: Mapping[str, Any]) -> str:
    """The task for a method of the library, after a check of its options."""
    for name in _DECIDED:
        if name in options:
            raise ConfigError(f"false_discoveries sets {name} itself; leave it out")
    supervised = [name for name in method.about.tasks if name in TASKS]
    if not supervised:
        raise ConfigError(
            f"{method.name} selects without a target, and decoys are no worse than columns without "
            "one; choose a method that uses y"
        )
    task = supervised[0] if task is None else task
    check_choice("task", task, supervised)
    return task


def _for_function(
    X: ArrayLike, y: ArrayLike | None, task: str | None
) -> tuple[Dataset, np.ndarray]:
    """The table, and the target as a user's function gets it."""
    if y is None:
        raise DataError(_NO_TARGET)
    if task is not None:
        check_choice("task", task, TASKS)
        dataset = check_task(as_dataset(X, y, task), task)
        return dataset, _target(dataset)
    dataset, target = as_dataset(X), np.asarray(y)
    if len(target) != len(dataset.X):
        raise ConfigError(
            f"X has {len(dataset.X)} rows but y has {len(target)}; give one target per row"
        )
    return dataset, target


def _takes_weights(score: ImportanceFunction) -> bool:
    """Whether a function has the keyword ``sample_weight``."""
    try:
        parameters = inspect.signature(score).parameters.values()
    except (TypeError, ValueError):
        # Some functions in C have no signature.
        return False
    return any(
        parameter.kind is parameter.VAR_KEYWORD
        or (parameter.name == "sample_weight" and parameter.kind is not parameter.POSITIONAL_ONLY)
        for parameter in parameters
    )


def _checked_weights(sample_weight: ArrayLike, rows: int) -> np.ndarray:
    """Weights ``(N,)`` of the rows, float64."""
    values = as_array(sample_weight, "sample_weight")
    if values.dtype.kind not in "fiub":
        raise DataError(
            f"sample_weight is of the type {values.dtype}; give a number of at least 0 for each row"
        )
    if values.shape != (rows,):
        raise DataError(
            f"sample_weight has shape {values.shape}; give one for each of the {rows} rows"
        )
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(f"sample_weight[{row}] is {values[row]}; give finite numbers of at least 0")
    if not values.any():
        raise DataError("sample_weight is 0 for all rows; give some of them a weight above 0")
    return values.astype(np.float64)


def _scores_by_function(
    score: ImportanceFunction,
    name: str,
    tables: list[np.ndarray],
    target: np.ndarray,
    weight: np.ndarray | None,
) -> np.ndarray:
    """The checked scores ``(M, 2 D)`` of a user's function, as shares."""
    scores, options = [], {} if weight is None else {"sample_weight": weight}
    for table in tables:
        values = np.asarray(score(table, target, **options), np.float64)
        if values.shape != (table.shape[1],):
            raise DataError(
                f"{name} returned scores of the shape {values.shape}; return one for each of its "
                f"{table.shape[1]} columns, which are {table.shape[1] // 2} columns and as many "
                "decoys"
            )
        if np.isnan(values).any():
            raise DataError(
                f"{name} returned {np.isnan(values).sum()} scores that are NaN; return numbers"
            )
        if np.isposinf(values).any():
            raise DataError(
                f"{name} returned {np.isposinf(values).sum()} scores that are infinite; return "
                "finite numbers, of which larger ones are better, or -inf for the least"
            )
        scores.append(shares(values))
    return np.array(scores)


def _target(dataset: Dataset) -> np.ndarray:
    if dataset.y is None:
        raise DataError(_NO_TARGET)
    return dataset.y


def _rows(X: Any, names: tuple[str, ...] | None) -> np.ndarray:
    """Checked rows ``(N, D)``, float64."""
    if issparse(X):
        raise ConfigError(
            "X is sparse, but its knockoffs would be dense; give X.toarray() of fewer columns, or "
            "use fsjax.select(fdr=...), whose decoys are permuted copies"
        )
    check_features(X, names, "X")
    if len(X) < _MIN_ROWS:
        raise DataError(f"X has {len(X)} rows; give at least {_MIN_ROWS}")
    return np.asarray(X, np.float64)


def _registered_options(method: Method) -> dict[str, Any]:
    """Options of :func:`fsjax.fit` that the method is registered with."""
    facts = registration_of(method)
    if facts is None:
        return {"scaling": "standard"}
    return {
        "num_epochs": facts.num_epochs,
        "batch_size": facts.batch_size,
        "scaling": facts.scaling,
        **facts.training,
    }


def _check_rate(rate: float) -> None:
    if not is_number(rate) or not 0 < rate < 1:
        raise ConfigError(f"rate={rate!r}; choose a number between 0 and 1, such as 0.1")
