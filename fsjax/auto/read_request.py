"""Reads the arguments of ``fsjax.select``: from the user's table and settings to a problem."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fsjax import ConfigError, DataError
from fsjax.auto.certainty.repeated_rows import repeated_rows
from fsjax.auto.contest.folds import common_classes, group_numbers
from fsjax.auto.contest.network_settings import contenders, fits_task
from fsjax.auto.contest.problem import Problem, design_of_units
from fsjax.auto.contest.rankers import SIMPLE
from fsjax.auto.contest.row_weights import weighted_rows_of
from fsjax.auto.contest.rule import CONSENSUS
from fsjax.auto.contest.scoring import (
    RANKED,
    choose_metric,
    extreme_share,
    hundredth,
    normal_scores,
)
from fsjax.auto.reading.column_operations import is_sparse_table
from fsjax.auto.reading.columns import Design, design
from fsjax.auto.reading.notes import TARGET, Note
from fsjax.auto.reading.sparse_columns import sparse_design
from fsjax.auto.reading.target import Names, check_scale, read_target
from fsjax.data import as_array, check_row_order
from fsjax.errors import check_choice, is_number, name_some, nearest
from fsjax.methods import METHODS


class Settings(NamedTuple):
    """Arguments of :func:`select` that are about the problem."""

    task: str | None
    metric: str | None
    impute: str | None
    methods: Sequence[str] | None
    keep: Sequence[Hashable]
    drop: Sequence[Hashable]
    costs: Mapping[Hashable, float] | None
    row_groups: Any
    ordered: bool
    seed: int
    sample_weight: Any = None


class _TargetRows(NamedTuple):
    """What is known of each row besides its columns.

    Attributes:
      y: the target, for its task.
      task: the task.
      classes: names of the classes, or ``None``.
      groups: ``(N,)`` numbers of groups of rows, or ``None``.
      weights: ``(N,)``, or ``None``.
    """

    y: np.ndarray
    task: str
    classes: Names
    groups: np.ndarray | None
    weights: np.ndarray | None

    def take(self, rows: np.ndarray) -> _TargetRows:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        weights = None if self.weights is None else self.weights[rows]
        return self._replace(y=self.y[rows], groups=groups, weights=weights)


def read_request(X: Any, y: Any, settings: Settings) -> tuple[Problem, Names, tuple[Note, ...]]:
    """The checked problem, names of classes, and notes on the target and the columns."""
    sparse = is_sparse_table(X)
    X, rows, notes, of_rows = _read_rows(X, y, settings)
    table = (sparse_design if sparse else design)(X, settings.impute, _texts(settings.keep, X))
    check_scale(rows.y)
    keep = _known_columns("keep", settings.keep, table, X)
    known = _names_of(table, X)
    table = _without(table, _known_columns("drop", settings.drop, table, X), keep)
    if table.num_units < 2:
        raise DataError(
            f"one column, {table.units[0]!r}, is left to choose from; give at least two"
        )
    table, rows, of_copies, rare = _without_copies(table, rows, settings)
    if len(keep) >= table.num_units:
        raise ConfigError("keep names all columns; leave at least one to choose")
    target, unranked = rows.y, None
    metric = choose_metric(settings.metric, rows.task, target)
    if metric.name == RANKED:
        if settings.metric is None:
            notes = (*notes, Note(TARGET, "target", _extreme(target)))
        target, unranked = normal_scores(target), target
    numbers = {name: number for number, name in enumerate(table.units)}
    problem = Problem(
        design=table,
        y=target,
        task=rows.task,
        metric=metric,
        rounds=[],
        methods=_methods(settings.methods, rows.task, len(target), len(table.names)),
        seed=settings.seed,
        row_groups=rows.groups,
        ordered=settings.ordered,
        keep=tuple(numbers[name] for name in keep),
        costs=None if settings.costs is None else _costs(settings.costs, table, X, known),
        weights=None if rows.weights is None else rows.weights / rows.weights.mean(),
        unranked=unranked,
    )
    return problem, rows.classes, (*of_copies, *notes, *of_rows, *rare, *table.notes)


def _read_rows(
    X: Any, y: Any, settings: Settings
) -> tuple[Any, _TargetRows, tuple[Note, ...], tuple[Note, ...]]:
    """The rows of frequent classes with a weight above 0, and notes on the target and the rows."""
    check_row_order(X, y=y, row_groups=settings.row_groups, sample_weight=settings.sample_weight)
    X = X if is_sparse_table(X) else _frame(X)
    if len(X.shape) != 2 or not X.shape[0]:
        raise DataError(f"X has shape {X.shape}; give a table of (rows, columns) with some rows")
    X, y, row_groups, weights, of_weights = weighted_rows_of(
        X, y, settings.row_groups, settings.sample_weight
    )
    X = X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else X
    target, task, classes, notes = read_target(y, settings.task, X.shape[0])
    groups = None
    if row_groups is not None:
        groups = group_numbers(row_groups, X.shape[0], settings.ordered)
    kept, rows, rare = _common(_TargetRows(target, task, classes, groups, weights))
    if rare:
        X = X.iloc[kept].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[kept]
    return X, rows, notes, (*of_weights, *rare)


def _without_copies(
    table: Design, rows: _TargetRows, settings: Settings
) -> tuple[Design, _TargetRows, tuple[Note, ...], tuple[Note, ...]]:
    """Equal rows as groups, or of a series the first of them, and notes on copies and classes."""
    repeated = repeated_rows(table, rows.y, rows.groups, settings.ordered, settings.seed)
    first = np.flatnonzero(repeated.kept)
    common, rows, rare = _common(rows._replace(groups=repeated.groups).take(first))
    if len(common) < len(repeated.kept):
        table = dataclasses.replace(table, X=table.X[first[common]])
    return table, rows, repeated.notes, rare


def _extreme(y: np.ndarray) -> str:
    return (
        f"has extreme values: {hundredth(len(y))} of {len(y)} rows carry "
        f"{100 * extreme_share(y):.0f} % of the variance; so its ranks (as normal scores) are "
        "predicted; choose the metric r2 to predict the values"
    )


def _frame(X: Any) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X.reset_index(drop=True)
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    values = as_array(X, "X")
    if values.ndim != 2:
        raise DataError(f"X has shape {values.shape}; give a table of (rows, columns)")
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])


def _common(rows: _TargetRows) -> tuple[np.ndarray, _TargetRows, tuple[Note, ...]]:
    """Numbers of the rows of frequent classes, these rows, and a note on the other classes."""
    y, classes = rows.y, rows.classes
    common = common_classes(y, rows.task, rows.groups)
    kept = np.flatnonzero(common.rows)
    if not common.rare or len(np.unique(y[kept])) < 2:
        # With too few classes left, the folds of all rows raise the error that says why.
        return np.arange(len(y)), rows, ()
    labels = [str(label) if classes is None else classes[label] for label in common.rare]
    labels_left, numbers = np.unique(y[kept], return_inverse=True)
    text = (
        f"has {'a class' if len(labels) == 1 else 'classes'} with too few rows for "
        "cross-validation, which are left out: "
        f"{name_some(labels)} ({len(y) - len(kept)} of {len(y)} rows)"
    )
    names = None if classes is None else tuple(classes[label] for label in labels_left)
    chosen = rows.take(kept)._replace(y=numbers.astype(y.dtype), classes=names)
    return kept, chosen, (Note(TARGET, "rare", text),)


def _known_columns(label: str, names: Sequence[Hashable], table: Design, X: Any) -> list[str]:
    """The names that are among the units of the table; ConfigError for unknown columns."""
    known, units = _names_of(table, X), set(table.units)
    texts = _texts(names, X)
    for name in texts:
        if name not in known and name not in units:
            raise ConfigError(f"{label}={name!r}: {nearest(name, known)}")
        if label == "keep" and name not in units:
            reasons = (note.text for note in table.notes if note.column == name)
            reason = next(reasons, "was left out")
            raise ConfigError(f"keep={name!r} cannot be used: the column {reason}")
    return [name for name in dict.fromkeys(texts) if name in units]


def _texts(names: Sequence[Hashable], X: Any) -> list[str]:
    """The names of columns, which may be separated by commas in one text."""
    if isinstance(names, str):
        names = [name for name in names.split(",") if name]
    return [name_of(name, X) for name in names]


def name_of(label: Hashable, X: Any) -> str:
    """The name of a column by its label, also where that is a tuple of NumPy's numbers."""
    if isinstance(label, tuple) and isinstance(X, pd.DataFrame):
        label = next((column for column in X.columns if column == label), label)
    return str(label)


def _names_of(table: Design, X: Any) -> list[str]:
    """The names of the user's columns, before any was left out."""
    return [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else list(table.units)


def _without(table: Design, drop: Sequence[str], keep: Sequence[str]) -> Design:
    if both := [name for name in drop if name in keep]:
        raise ConfigError(f"{both[0]!r} is in keep and in drop; choose one of them")
    if not drop:
        return table
    kept = [unit for unit, name in enumerate(table.units) if name not in set(drop)]
    if not kept:
        raise ConfigError("drop names all columns; leave at least two to choose from")
    return design_of_units(table, kept)


def _costs(costs: Mapping[Hashable, float], table: Design, X: Any, known: list[str]) -> np.ndarray:
    """The cost of each unit ``(G,)``, 1 where none is given; ``known`` columns may be dropped."""
    for name, cost in costs.items():
        if name_of(name, X) not in known:
            raise ConfigError(f"costs has {name!r}: {nearest(str(name), known)}")
        if not (is_number(cost) and 0 < cost < float("inf")):
            raise ConfigError(f"costs[{name!r}]={cost!r}; choose a number above 0")
    by_name = {name_of(name, X): float(cost) for name, cost in costs.items()}
    return np.array([by_name.get(name, 1.0) for name in table.units])


def _methods(names: Sequence[str] | None, task: str, rows: int, columns: int) -> tuple[str, ...]:
    """The contenders, cheapest and most promising first."""
    if names is None:
        return (*SIMPLE, CONSENSUS, *contenders(rows, columns, task))
    if isinstance(names, str):
        names = names.split(",")
    for name in names:
        if name in SIMPLE or name == CONSENSUS:
            continue
        check_choice("methods", name, [*SIMPLE, CONSENSUS, *METHODS])
        if not fits_task(name, task):
            raise ConfigError(f"{name} cannot be used for {task}; leave it out of methods")
    # Every answer is compared with these two.
    return tuple(dict.fromkeys(["random", "univariate", *names]))
