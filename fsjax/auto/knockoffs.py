"""``false_discoveries``: how many of the columns that a method finds are there by chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from fsjax.auto.decoys import decoy_columns
from fsjax.auto.discoveries import false_discovery_rates, statistics, swapped
from fsjax.auto.stacked_fits import scores_of_tables, shares
from fsjax.datasets.from_arrays import check_task
from fsjax.engine.planning import to_dataset
from fsjax.errors import ConfigError, DataError, check_choice, check_whole, is_number
from fsjax.method import Method
from fsjax.registry import Builder, Registration, get_method, is_as_built
from fsjax.tables.base import as_table
from fsjax.tables.checks import check_features
from fsjax.tables.dataset import Dataset
from fsjax.tasks import SUPERVISED

#: From ``(N, 2 D)`` rows and their target to ``(2 D,)`` scores, larger for more important columns.
Score = Callable[[np.ndarray, np.ndarray], ArrayLike]

#: Options of :func:`fsjax.fit` that are decided here, or are about other questions.
_DECIDED = ("seeds", "split", "split_per_seed", "groups", "columns", "zero_others", "start")

_NO_TARGET = "y is None; decoys are judged by what they tell about a target"

#: Fewer rows than this say nothing about correlations.
_FEWEST_ROWS = 10


@dataclass(frozen=True, eq=False)
class FalseDiscoveries:
    """What :func:`fsjax.false_discoveries` returns, for D columns and M sets of decoys.

    Attributes:
      method: name of what scored the columns.
      rates: ``(D,)`` in [0, 1]: the estimated share of false ones among the columns that gain at
        least as much over their decoys as this one; 1 where a column gains nothing.
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
        """The columns that keep a false discovery rate, by their gains, the largest first.

        Args:
          rate: in (0, 1): at most about this share of them is false, on average over tables.

        Returns:
          ``(K,)`` int numbers of columns; none where too few stand out.

        Raises:
          ConfigError: for a rate outside (0, 1).
        """
        _check_rate(rate)
        order = np.argsort(-self.gains, kind="stable")
        return order[self.rates[order] <= rate]

    def threshold(self, rate: float = 0.1) -> float:
        """The least gain among the columns of :meth:`select`; infinite where there is none."""
        _check_rate(rate)
        return statistics(self.scores, self.decoy_scores, rate).threshold


def false_discoveries(
    method: str | Method | Callable[..., Method] | Score,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    task: str | None = None,
    num_draws: int = 10,
    num_seeds: int = 1,
    seed: int = 0,
    **options: Any,
) -> FalseDiscoveries:
    """Estimates how many of the columns that a method finds important are there by chance.

    Each column gets a decoy that cannot tell more about the target than the other columns do: a
    Gaussian knockoff (Candes et al. 2018), or a permuted copy where it has at most 10 different
    values. The method scores columns and decoys together, which of a pair comes first being drawn
    at random, and the importance of a column minus that of its decoy is its statistic (Barber and
    Candes 2015; DeepPINK, Lu et al. 2018, for networks). It is repeated for ``num_draws`` sets of
    decoys, whose counts are taken together; a single set is the filter "knockoff+". All draws and
    seeds of a method of the library are trained as one program.

    The selection can be as small as one column if there are at least ``1 / rate`` sets of decoys;
    a single set finds nothing below ``1 / rate`` columns.

    The rate holds as far as decoys are like the columns that do not matter. Knockoffs know the
    distribution of each column and the correlations of their normal scores, estimated from the
    same rows (:mod:`fsjax.auto.covariance`), and no other dependence.

    Args:
      method: the name of a registered method, with its default arguments (and at most D columns to
        select); a method, such as
        ``fsjax.methods.lassonet(10)``; or a function of rows ``(N, 2 D)`` and the target that
        returns ``(2 D,)`` scores, larger for more important columns.
      X: ``(N, D)`` numbers without missing values, N at least 10; also a pandas frame.
      y: the target, as the task has it.
      task: a supervised task of the method, by default its first. With a function, what y is read
        as; by default the function gets y as it is.
      num_draws: M, sets of decoys, at least 1.
      num_seeds: trainings per set, at least 1; for functions 1.
      seed: whole number from 0, of the decoys and the trainings.
      **options: those of :func:`fsjax.fit`, such as ``num_epochs``; by default what the method is
        registered with. ``seeds``, ``split``, ``groups`` and ``columns`` are decided here.

    Returns:
      Rates, scores, and the columns that keep a rate.

    Raises:
      ConfigError: for a method that selects without a target, options that are decided here, and
        as :func:`fsjax.fit`.
      DataError: for data that cannot be used, or scores of another shape.
      NonFiniteLossError: as :func:`fsjax.fit`.
    """
    num_draws, num_seeds = check_whole("num_draws", num_draws), check_whole("num_seeds", num_seeds)
    seed = check_whole("seed", seed, least=0)
    if isinstance(method, str):
        method = get_method(method)
    if _is_registered(method):
        method = _built(method, X)
    if isinstance(method, Method):
        return _of_method(method, X, y, task, num_draws, num_seeds, seed, options)
    if not callable(method):
        raise ConfigError(
            f"method is of the type {type(method).__name__}; give the name of a method, a method "
            "such as fsjax.methods.lassonet(10), or a function of X and y that returns scores"
        )
    if options or num_seeds != 1:
        name = next(iter(options), "num_seeds")
        raise ConfigError(f"{name} is for methods of the library; a function takes X and y only")
    return _of_function(method, X, y, task, num_draws, seed)


def _is_registered(method: object) -> TypeGuard[Builder]:
    return hasattr(method, "registration")


def _built(builder: Builder, X: ArrayLike) -> Method:
    """The method with its default arguments, for at most as many columns as there are."""
    parameter = builder.registration.parameters.get("num_features")
    if parameter is None or parameter.default is None or np.ndim(X) != 2:
        return builder()
    return builder(num_features=min(parameter.default, np.shape(X)[1]))


def _of_method(
    method: Method,
    X: ArrayLike,
    y: ArrayLike | None,
    task: str | None,
    num_draws: int,
    num_seeds: int,
    seed: int,
    options: dict[str, Any],
) -> FalseDiscoveries:
    for name in _DECIDED:
        if name in options:
            raise ConfigError(f"false_discoveries decides {name} itself; leave it out")
    supervised = [one for one in method.about.tasks if one in SUPERVISED]
    if not supervised:
        raise ConfigError(
            f"{method.name} selects without a target, which decoys cannot judge: they have the "
            "correlations of the columns; choose a method that looks at y"
        )
    task = supervised[0] if task is None else task
    check_choice("task", task, supervised)
    dataset = check_task(to_dataset((X, y), task), task)
    rows = _rows(dataset.X, dataset.feature_names)
    tables, orders = _tables(rows, num_draws, seed)
    settings = _registered_options(method) | options
    if not method.about.gates and method.about.num_features is None:
        # The ranking is what counts, whatever the number.
        settings.setdefault("num_features", 1)
    scores = scores_of_tables(
        method, tables, _target(dataset), task, num_seeds=num_seeds, seed=seed, **settings
    )
    return _result(method.name, scores, orders, dataset.feature_names)


def _of_function(
    score: Score,
    X: ArrayLike,
    y: ArrayLike | None,
    task: str | None,
    num_draws: int,
    seed: int,
) -> FalseDiscoveries:
    name = getattr(score, "__name__", type(score).__name__)
    if y is None:
        raise DataError(_NO_TARGET)
    if task is None:
        dataset = to_dataset((X, None), "classification")
        target = np.asarray(y)
        if len(target) != len(dataset.X):
            raise ConfigError(
                f"X has {len(dataset.X)} rows but y has {len(target)}; give one target per row"
            )
    else:
        check_choice("task", task, SUPERVISED)
        dataset = check_task(to_dataset((X, y), task), task)
        target = _target(dataset)
    tables, orders = _tables(_rows(dataset.X, dataset.feature_names), num_draws, seed)
    scores = []
    for table in tables:
        values = np.asarray(score(table, target), np.float64)
        if values.shape != (table.shape[1],):
            raise DataError(
                f"{name} returned scores of the shape {values.shape}; return one for each of the "
                f"{table.shape[1]} columns that it gets, {table.shape[1] // 2} and as many decoys"
            )
        if np.isnan(values).any():
            raise DataError(f"{name} returned {np.isnan(values).sum()} scores that are NaN")
        scores.append(shares(values))
    return _result(name, np.array(scores), orders, dataset.feature_names)


def _target(dataset: Dataset) -> np.ndarray:
    if dataset.y is None:
        raise DataError(_NO_TARGET)
    return dataset.y


def _rows(X: Any, names: tuple[str, ...] | None) -> np.ndarray:
    """Checked rows ``(N, D)``, float64."""
    if as_table(X).sparse:
        raise ConfigError(
            "X is sparse, and knockoffs would fill its zeros; give X.toarray() of fewer columns, "
            "or use fsjax.select(fdr=...), which takes permuted copies"
        )
    check_features(X, names, "X")
    if len(X) < _FEWEST_ROWS:
        raise DataError(f"X has {len(X)} rows; give at least {_FEWEST_ROWS}")
    return np.asarray(X, np.float64)


def _tables(
    rows: np.ndarray, num_draws: int, seed: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Columns beside their decoys, ``(N, 2 D)``, and where each of them stands, for each draw."""
    draw = decoy_columns(rows, np.arange(rows.shape[1]))
    tables, orders = [], []
    for number in range(num_draws):
        rng = np.random.default_rng((seed, number))
        copy = draw(rng)
        order = swapped(rng.random(rows.shape[1:]) < 0.5)
        tables.append(np.hstack([rows, copy])[:, order])
        orders.append(order)
    return tables, orders


def _registered_options(method: Method) -> dict[str, Any]:
    """What a method is registered with as options of :func:`fsjax.fit`."""
    if not is_as_built(method):
        return {"scaling": "standard"}
    facts: Registration = get_method(method.about.source.structure.name).registration
    return {
        "num_epochs": facts.num_epochs,
        "batch_size": facts.batch_size,
        "scaling": facts.scaling,
        **facts.training,
    }


def _result(
    name: str, scores: np.ndarray, orders: list[np.ndarray], names: tuple[str, ...] | None
) -> FalseDiscoveries:
    # The order is its own inverse.
    in_place = np.take_along_axis(scores, np.array(orders), axis=1)
    columns, decoys = np.split(in_place, 2, axis=1)
    return FalseDiscoveries(name, false_discovery_rates(columns, decoys), columns, decoys, names)


def _check_rate(rate: float) -> None:
    if not is_number(rate) or not 0 < rate < 1:
        raise ConfigError(f"rate={rate!r}; choose a number between 0 and 1, such as 0.1")
