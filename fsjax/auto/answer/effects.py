"""Effects of single columns: direction, size, p and q values, and correlations with each other.

They describe the columns on the rows of the table and take no part in the selection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.inspection import partial_dependence

from fsjax.auto.certainty.leaks import alike
from fsjax.auto.certainty.unit_tests import drawn_rows, unit_tests
from fsjax.auto.certainty.univariate_tests import ColumnTests
from fsjax.auto.contest.rankers import targets
from fsjax.auto.contest.rankers.parts import standardise
from fsjax.auto.reading.column_operations import densify
from fsjax.auto.reading.columns import Design

#: Numbers of units, the most important ones, whose direction and size of effect are described, that
#: have a curve, and whose correlations are shown.
DESCRIBED, WITH_CURVE, COMPARED = 200, 20, 25

#: Largest q-value of a unit whose direction is named.
DIRECTION_LEVEL = 0.05

#: Rows from which the effects of the described units are computed.
_ROWS = 10_000

#: Most outputs with a forest of their own.
_FORESTS = 6

#: Most rows that the forest of a curve trains on, number of its trees, and most points of a curve.
CURVE_ROWS, _TREES, _POINTS = 1000, 40, 20

#: The curve ends at these quantiles of the column, unless they are equal.
_ENDS = (0.02, 0.98)


#: Farther values, in spans of the curve, are moved to this distance: their squares fit float32.
_FAR = 1e15


class DependenceCurve(NamedTuple):
    """A partial dependence curve.

    Attributes:
      values: ``(P,)`` of the column, ascending, in its own unit.
      predictions: ``(P,)`` mean prediction at these: the share of a class, or the target.
    """

    values: np.ndarray
    predictions: np.ndarray


def effects(
    design: Design,
    y: np.ndarray,
    task: str,
    order: Sequence[int] | np.ndarray,
    names: Sequence[str] | None = None,
    selected: int = WITH_CURVE,
    seed: int = 0,
    row_groups: np.ndarray | None = None,
    ordered: bool = False,
) -> pd.DataFrame:
    """Direction, size and evidence of the effect of each unit by itself.

    A unit of several columns (a category, a date, a number with missing values) is described by the
    column with the smallest p-value. Large tables are described on a random sample of their rows.

    Args:
      y: the target: classes from 0, ``(N,)`` or ``(N, C)`` numbers, or time and event.
      order: units by importance, the best first; the first :data:`DESCRIBED` are described.
      names: of the classes, or of several outputs; by default their numbers.
      selected: number of first units that have partial dependence curves, from a forest that sees
        these units only; at most :data:`WITH_CURVE`.
      row_groups: ``(N,)`` numbers of groups of dependent rows, by which units are tested; with
        fewer than 8 groups there are no p- and q-values.
      ordered: whether rows are in order of time: the dependence of neighbouring rows is not known,
        so that there are no p- and q-values.

    Returns:
      A row for each unit of ``order``: ``column``, its name; ``p_value``, and ``q_value`` over all
      units of the design; ``part``, the described column; ``direction`` in words, with that part,
      or empty unless the q-value is known and at most :data:`DIRECTION_LEVEL`; for classes
      ``auc`` (0.5 to 1, of the class in ``direction`` against the rest), ``difference`` (largest
      minus smallest class mean, in standard deviations within classes) and ``means`` (standardised
      mean by class name); for other tasks ``correlation`` (of ranks) and ``slope`` (of the target,
      per standard deviation of the column); ``curve`` and ``curve_of`` (what it predicts). Empty,
      NaN or ``None`` where not described. ``attrs["rows"]`` is the number of tested rows.
    """
    order = np.asarray(order, int)
    if task == "classification":
        # Renumbers the classes if some have no rows here.
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) <= classes[-1]:
            kept = [str(label) if names is None else names[label] for label in classes.tolist()]
            return effects(design, codes, task, order, kept, selected, seed, row_groups, ordered)
    part, tests, p_values, q_values = unit_tests(design, y, task, seed, row_groups, ordered)
    frame = pd.DataFrame(
        {
            "column": [design.units[unit] for unit in order],
            "p_value": p_values[order],
            "q_value": q_values[order],
        }
    )
    units = order[:DESCRIBED]
    columns = np.array([_strongest(design, unit, tests) for unit in units], int)
    association = tests.association[:, columns]
    outputs_named = range(len(tests.association)) if names is None else names
    labels = [_label(name, task) for name in outputs_named]
    rows = drawn_rows(part.y, task, _ROWS, seed)
    (X,) = standardise(densify(part.X[rows][:, columns]))
    describe = _by_class if task == "classification" else _by_number
    binary = _truth_values(design, columns)
    described, outputs = describe(X, part.y[rows], task, association, labels, binary)
    described.insert(0, "part", [design.names[column] for column in columns])
    # Without a q-value (rows in order of time, few groups) the direction may be by chance.
    described["direction"] = [
        _with_part(design, column, text) if q_value <= DIRECTION_LEVEL else ""
        for column, text, q_value in zip(
            columns.tolist(), described["direction"], q_values[units].tolist(), strict=True
        )
    ]
    drawn = min(selected, WITH_CURVE)
    curves = _curves(design, y, task, columns[:drawn], outputs[:drawn], seed)
    described["curve"] = pd.Series([*curves, *[None] * (len(units) - len(curves))], dtype=object)
    described["curve_of"] = [
        "" if curve is None else _output_name(task, labels, output)
        for curve, output in zip(described["curve"], outputs, strict=True)
    ]
    frame = frame.join(described)
    frame.attrs["rows"] = len(part.y)
    return frame


def likeness(
    design: Design,
    y: np.ndarray,
    task: str,
    order: Sequence[int] | np.ndarray,
    seed: int = 0,
) -> pd.DataFrame:
    """Absolute rank correlations of the first :data:`COMPARED` units of ``order`` with each other.

    Args:
      y, task: the target, whose classes keep their proportions in the drawn rows.
      order: units, the most important first.

    Returns:
      ``(k, k)`` in [0, 1] with the names of the units on both sides; of units of several columns
      the largest correlation counts.
    """
    units = np.asarray(order, int)[:COMPARED]
    columns = np.concatenate([design.columns_of([unit]) for unit in units])
    place = {unit: number for number, unit in enumerate(units.tolist())}
    rows = drawn_rows(y, task, _ROWS, seed)
    compared = replace(
        design,
        X=design.X[rows][:, columns],
        names=tuple(design.names[column] for column in columns),
        groups=np.array([place[unit] for unit in design.groups[columns].tolist()], int),
        units=tuple(design.units[unit] for unit in units),
        notes=(),
    )
    correlation = alike(compared, np.arange(len(units)))
    return pd.DataFrame(correlation, index=compared.units, columns=compared.units)


def _strongest(design: Design, unit: int, tests: ColumnTests) -> int:
    """The column of a unit with the smallest p-value; of equal ones the most associated."""
    columns = design.columns_of([unit])
    spread = np.ptp(tests.association[:, columns], axis=0)
    size = np.abs(tests.association[:, columns]).max(axis=0) + spread
    return int(columns[np.lexsort([-size, tests.p_values[columns]])[0]])


def _truth_values(design: Design, columns: np.ndarray) -> np.ndarray:
    """``(n,)`` whether columns hold only 0 and 1, besides missing values."""
    X = design.X[:, columns]
    if isinstance(X, np.ndarray):
        return np.array([np.isin(column[~np.isnan(column)], (0, 1)).all() for column in X.T], bool)
    other = np.bincount(X.indices, X.data != 1, minlength=len(columns))
    return other == 0


def _with_part(design: Design, column: int, direction: str) -> str:
    """A direction with the part of the unit that it is of, if that is not the whole unit.

    For example ``b: more often in yes`` of a category, ``missing more often in yes``, ``weekday
    higher in no``.
    """
    name, unit = design.names[column], design.units[design.groups[column]]
    if name.startswith(f"{unit}="):
        return f"{name.removeprefix(f'{unit}=')}: {direction}"
    if name.startswith(f"{unit}: "):
        return f"{name.removeprefix(f'{unit}: ')} {direction}"
    if name != unit:
        return f"{name.removeprefix(f'{unit} ')} {direction}"
    return direction


def _by_class(
    X: np.ndarray,
    y: np.ndarray,
    task: str,
    association: np.ndarray,
    names: Sequence[str],
    binary: np.ndarray,
) -> tuple[pd.DataFrame, np.ndarray]:
    """Direction and size for classes, and the class ``(n,)`` whose share the curve shows.

    Args:
      X: ``(N, n)`` standardised.
      association: ``(C, n)`` areas under the ROC curve.
      binary: ``(n,)`` bool, columns of 0 and 1.
    """
    two = len(association) == 2
    every = np.arange(X.shape[1])
    output = association.argmax(axis=0) if two else np.abs(association - 0.5).argmax(axis=0)
    auc = association[output, every]
    words = {(True, True): "more often in", (True, False): "less often in",
             (False, True): "higher in", (False, False): "lower in"}  # fmt: skip
    direction = [
        f"{words[only_two, high]} {names[label]}"
        for only_two, high, label in zip(
            binary.tolist(), (auc >= 0.5).tolist(), output, strict=True
        )
    ]
    member = np.stack([y == label for label in range(len(association))]).astype(np.float64)
    size = member.sum(axis=1)[:, None]
    means = member @ X / size
    within = np.sqrt(np.square(X - means[y]).sum(axis=0) / max(len(y) - len(member), 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.ptp(means, axis=0) / within
    described = pd.DataFrame(
        {
            "direction": direction,
            "auc": np.maximum(auc, 1.0 - auc),
            "difference": difference,
            "means": [dict(zip(names, column.tolist(), strict=True)) for column in means.T],
        }
    )
    return described, np.ones_like(output) if two else output


def _by_number(
    X: np.ndarray,
    y: np.ndarray,
    task: str,
    association: np.ndarray,
    names: Sequence[str],
    binary: np.ndarray,
) -> tuple[pd.DataFrame, np.ndarray]:
    """Direction and size for numbers, and the output ``(n,)`` with the largest correlation.

    Args:
      X: ``(N, n)`` standardised.
      association: ``(C, n)`` rank correlations.
      binary: ``(n,)`` bool, columns of 0 and 1.
    """
    output = np.abs(association).argmax(axis=0)
    correlation = association[output, np.arange(X.shape[1])]
    if task == "survival":
        words, prefix = {False: ("earlier events", "later events")}, [""] * len(output)
    else:
        words = {False: ("rises", "falls"), True: ("higher", "lower")}
        several = len(names) > 1
        prefix = [f"{names[number] if several else 'target'} " for number in output.tolist()]
    numbers = target_outputs(y, task)[:, output]
    described = pd.DataFrame(
        {
            "direction": [
                text + words[only_two and len(words) > 1][int(sign < 0)]
                for text, sign, only_two in zip(prefix, correlation, binary.tolist(), strict=True)
            ],
            "correlation": correlation,
            "slope": (X * (numbers - numbers.mean(axis=0))).mean(axis=0),
        }
    )
    return described, output


def target_outputs(y: np.ndarray, task: str) -> np.ndarray:
    """Outputs ``(N, C)`` in their own unit; for survival the martingale residuals."""
    return (
        targets(y, task, split=False)[0][:, None] if task == "survival" else y.reshape(len(y), -1)
    )


def _label(name: object, task: str) -> str:
    """Name of a class or an output in sentences: ``class 1``, ``malignant``."""
    text = str(name)
    return f"class {text}" if task == "classification" and text.isdigit() else text


def _output_name(task: str, names: Sequence[str], output: int) -> str:
    if task == "classification":
        return f"share of {names[output]}"
    if task == "survival":
        return "events beyond those expected"
    return f"target {names[output]}" if len(names) > 1 else "target"


def _curves(
    design: Design, y: np.ndarray, task: str, columns: np.ndarray, outputs: np.ndarray, seed: int
) -> list[DependenceCurve | None]:
    """Partial dependence of the outputs ``(n,)`` on the columns ``(n,)``, a forest for each output.

    With more than :data:`_FORESTS` outputs, some columns have no curve.
    """
    rows = drawn_rows(y, task, CURVE_ROWS, seed)
    X = densify(design.X[rows][:, columns])
    X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    curves: list[DependenceCurve | None] = [None] * len(columns)
    for output, _ in Counter(outputs.tolist()).most_common(_FORESTS):
        places = np.flatnonzero(outputs == output)
        numbers = (
            y[rows] == output if task == "classification" else target_outputs(y, task)[rows, output]
        )
        drawn = partial_dependence_curves(X, numbers.astype(np.float64), places.tolist(), seed)
        for place, curve in zip(places, drawn, strict=True):
            curves[place] = curve
    return curves


def partial_dependence_curves(
    X: np.ndarray, y: np.ndarray, columns: Sequence[int], seed: int = 0
) -> list[DependenceCurve]:
    """Partial dependence of one output on some columns, by a random forest.

    Args:
      X: ``(N, D)`` finite numbers, D a few dozen; the forest sees at most :data:`CURVE_ROWS` rows.
      y: ``(N,)`` numbers, or 0 and 1 for one class against the rest.
      columns: of X.
      seed: of the drawn rows and of the forest.

    Returns:
      A curve for each of the columns, of at most :data:`_POINTS` points.
    """
    if len(X) > CURVE_ROWS:
        rows = np.random.default_rng(seed).choice(len(X), CURVE_ROWS, replace=False)
        X, y = X[rows], y[rows]
    # With smaller leaves the curve would follow single rows.
    leaf = max(2, min(10, len(X) // 20))
    units, ends, spans = _in_unit_range(X)
    # Forests take small variances for none.
    lowest, reach = y.min(), np.ptp(y) or 1.0
    forest = RandomForestRegressor(
        _TREES, min_samples_leaf=leaf, max_features=1 / 3, random_state=seed
    ).fit(units, (y - lowest) / reach)
    curves = [_curve_of(forest, units, column) for column in columns]
    return [
        DependenceCurve(
            ends[column] + spans[column] * curve.values, lowest + reach * curve.predictions
        )
        for column, curve in zip(columns, curves, strict=True)
    ]


def _in_unit_range(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The columns with the ends of their curves at 0 and 1, and these ends and spans ``(D,)``.

    Forests compute in float32, which has neither 1e200 nor the difference of 1e8 and 1e8 + 1.
    """
    low, high = np.quantile(X, _ENDS, axis=0)
    flat = low == high
    low, high = np.where(flat, X.min(axis=0), low), np.where(flat, X.max(axis=0), high)
    span = np.where(high > low, high - low, 1.0)
    return np.clip((X - low) / span, -_FAR, _FAR), low, span


def _curve_of(forest: RandomForestRegressor, X: np.ndarray, column: int) -> DependenceCurve:
    low, high = np.quantile(X[:, column], _ENDS)
    dependence = partial_dependence(
        forest, X, [column], grid_resolution=_POINTS, method="recursion",
        percentiles=_ENDS if high > low else (0.0, 1.0),
    )  # fmt: skip
    return DependenceCurve(dependence["grid_values"][0], dependence["average"][0])
