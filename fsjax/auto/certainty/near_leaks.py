"""Columns that nearly give the target away: one column far above all others, or a telling absence.

They are named and not left out, because a strong honest predictor looks the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from fsjax.auto.certainty.leaks import CHECK, Goals, goals_of, leaks, missing_columns
from fsjax.auto.certainty.univariate_tests import rank_correlations
from fsjax.auto.contest.problem import Problem, representative_rows
from fsjax.auto.contest.rankers.parts import standardise
from fsjax.auto.reading.column_operations import dense_columns, densify, ranks, with_column_means
from fsjax.auto.reading.columns import Design
from fsjax.auto.reading.missing_codes import sentinels
from fsjax.auto.reading.notes import Note
from fsjax.auto.reading.target import Names

#: Most rows on which leaks, and near leaks, are looked for, and the fewest for the latter.
_LEAK_ROWS, _ROWS, _MIN_ROWS = 20_000, 2_000, 50

#: Most units that are scored one by one, and columns of the model of all others.
_UNITS, _OTHERS = 15, 100

#: Scores by a single column from which it may be a near leak, by kind of goal. The others together
#: have to be further from 1 by this factor, and at least this far.
_SCORE, _FACTOR, _REST_ERROR = {"AUC": 0.95, "R2": 0.9}, 4.0, 0.06

#: Rank correlation of two units from which they share what they tell.
_COPY = {"AUC": 0.95, "R2": 0.9}

#: Most columns that are near leaks together, of two classes, without being alike.
_FEW_HIGH = 3

#: Fewest rows with or without a value, the share of them that is of one class, and the share of the
#: rows of the class, from which missing values tell of the class.
_FILLED, _PURE, _TOLD = 10, 0.99, 0.1

#: Probability of so pure a class by chance.
_CHANCE = 1e-6


class _Goal(NamedTuple):
    """One of :class:`Goals`: its name, classes or normalised ranks ``(N,)``, how it is scored."""

    name: str
    values: np.ndarray
    metric: str
    folds: list[tuple[np.ndarray, np.ndarray]]


def leak_notes(problem: Problem, classes: Names) -> tuple[Note, ...]:
    """Notes on likely leaks, near leaks, and likely leaks that ``keep`` names.

    Args:
      classes: their names, or those of several outputs, if there are any.
    """
    rows = representative_rows(problem, _LEAK_ROWS)
    sample = dataclasses.replace(problem.design, X=problem.design.X[rows])
    y, task = problem.y[rows], problem.task
    groups = None if problem.row_groups is None else problem.row_groups[rows]
    kept = {problem.design.units[unit] for unit in problem.keep}
    notes = leaks(sample, y, task, groups, classes)
    leaking = {note.column for note in notes}
    near = [
        note
        for note in (
            *near_leaks(sample, y, task, leaking, groups, problem.seed, classes),
            *telling_absences(sample, goals_of(y, task, classes), classes, groups),
        )
        if note.column not in leaking
    ]
    by_column = {note.column: note for note in reversed(near)}
    return (
        *(
            note._replace(kind="near leak", text=f"{note.text}; it takes part, as keep names it")
            if note.column in kept
            else note
            for note in notes
        ),
        *by_column.values(),
    )


def telling_absences(
    design: Design, goals: Goals, classes: Names = None, row_groups: np.ndarray | None = None
) -> list[Note]:
    """Notes on columns whose values are filled in, or missing, only where one class is.

    Codes that stand for missing values count as missing. The rows of a group count once for each
    class, with and without a value.
    """
    notes: dict[int, Note] = {}
    what = "rows" if row_groups is None else "groups of rows"
    for unit, absent, code in _absences(design):
        for name, goal in goals.classes.items():
            labels, missing = _by_group(goal.astype(int), absent, row_groups, distinct=True)
            for word, rows in (("has a value", ~missing), (f"is {code or 'missing'}", missing)):
                counts = np.bincount(labels[rows], minlength=int(labels.max()) + 1)
                label, total = int(counts.argmax()), int(counts.sum())
                share = float(np.mean(labels == label))
                if (
                    total >= _FILLED
                    and counts[label] >= _PURE * total
                    and counts[label] >= _TOLD * np.sum(labels == label)
                    and share**total < _CHANCE
                ):
                    where = f"of class {label if classes is None else repr(classes[label])}"
                    if name:
                        where = f"{'with' if label else 'without'} {name}"
                    many = "all" if counts[label] == total else f"{counts[label]:,}"
                    text = (
                        f"{word} in {total:,} {what}, {many} {where}, as "
                        f"{100 * share:.0f} % of all {what} are: perhaps a near leak; {CHECK}"
                    )
                    notes.setdefault(unit, Note(design.units[unit], "near leak", text))
        for name, goal in goals.numbers.items():
            numbers, missing = _by_group(goal, absent, row_groups)
            area = _area(numbers, missing)
            if min(missing.sum(), (~missing).sum()) >= _FILLED and max(area, 1 - area) >= _PURE:
                text = (
                    f"is {code or 'missing'} almost exactly where {name or 'the target'} is "
                    f"{'large' if area > 0.5 else 'small'}: perhaps a near leak; {CHECK}"
                )
                notes.setdefault(unit, Note(design.units[unit], "near leak", text))
    return list(notes.values())


def near_leaks(
    design: Design,
    y: np.ndarray,
    task: str,
    without: set[str],
    row_groups: np.ndarray | None = None,
    seed: int = 0,
    names: Names = None,
) -> list[Note]:
    """Notes on columns that reach by themselves nearly what all reach, and far more than the rest.

    Each column is scored by a small tree on rows that the tree has not seen, and by its ranks or,
    of categories, by a linear model; the others together by a forest and a linear model.

    Args:
      without: names of units that do not take part, the likely leaks.
      row_groups: ``(N,)`` groups that stay on one side of each split.
      names: of several outputs.
    """
    if len(y) < _MIN_ROWS:
        return []
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(y))[:_ROWS])
    X, y = with_column_means(design.X[rows]), y[rows]
    groups = None if row_groups is None else row_groups[rows]
    notes: dict[str, Note] = {}
    for goal in _goals(goals_of(y, task, names), groups, seed):
        association = _association(X, goal)
        by_unit = np.zeros(design.num_units)
        np.maximum.at(by_unit, design.groups, association)
        open_units = [unit for unit, name in enumerate(design.units) if name not in without]
        order = sorted(open_units, key=lambda unit: -by_unit[unit])
        scores = {
            unit: _score_of_unit(dense_columns(X, design.columns_of([unit])), goal)
            for unit in order[:_UNITS]
        }
        for unit, score, rest, everything in _far_above(design, X, goal, order, scores):
            which = f" for {goal.name}" if goal.name else ""
            text = (
                f"by itself reaches {goal.metric} {score:.3f}{which}, all columns "
                f"{everything:.3f}, the remaining columns {rest:.3f}: perhaps a near leak; {CHECK}"
            ).replace(" -", " \N{MINUS SIGN}")
            name = design.units[unit]
            notes.setdefault(name, Note(name, "near leak", text))
    return list(notes.values())


def _far_above(
    design: Design, X: Any, goal: _Goal, order: list[int], scores: dict[int, float]
) -> list[tuple[int, float, float, float]]:
    """Units far above all others, their scores, and those of the others and of all columns."""
    if not scores:
        return []
    best = max(scores, key=lambda unit: scores[unit])
    high = [unit for unit in scores if scores[unit] >= _SCORE[goal.metric]]
    if not high:
        return []
    error = 1.0 - scores[best]
    columns = dense_columns(X, design.columns_of(high))
    own = dense_columns(X, design.columns_of([best]))
    likeness = np.abs(rank_correlations(columns, own)).max(axis=1)
    units = design.groups[design.columns_of(high)]
    alike = {int(unit) for unit in units[likeness >= _COPY[goal.metric]]} | {best}
    candidates = [alike]
    if 1 < len(high) <= _FEW_HIGH and goal.metric == "AUC" and goal.values.max() == 1:
        candidates.append({*high, best})
    for suspects in candidates:
        others = [unit for unit in order if unit not in suspects]
        rest = _score_of_units(design, X, goal, others)
        if 1.0 - rest >= max(_FACTOR * error, _REST_ERROR):
            suspected = sorted(suspects)
            everything = _score_of_units(design, X, goal, [*suspected, *others])
            return [(unit, scores[unit], rest, max(everything, scores[best])) for unit in suspected]
    return []


def _goals(goals: Goals, groups: np.ndarray | None, seed: int) -> list[_Goal]:
    """Classes with enough rows, and ranks of numbers, with their folds."""
    result = []
    count = 3 if groups is None else min(3, len(np.unique(groups)))
    if count < 2:
        # The drawn rows are of one group: none are left to test on.
        return []
    for name, classes in list(goals.classes.items())[:10]:
        labels, codes, counts = np.unique(classes, return_inverse=True, return_counts=True)
        if counts.min() >= 5 and len(labels) <= 30:
            splitter = StratifiedKFold if groups is None else StratifiedGroupKFold
            folds = list(
                splitter(count, shuffle=True, random_state=seed).split(codes, codes, groups)
            )
            # Groups may leave a class out of the rows that a model learns from.
            if all(len(np.unique(codes[train])) == len(labels) for train, _ in folds):
                result.append(_Goal(name, codes, "AUC", folds))
    for name, numbers in list(goals.numbers.items())[:5]:
        ranked = ranks(numbers[:, None])[:, 0] / len(numbers)
        splitter = KFold if groups is None else GroupKFold
        parts = splitter(count, shuffle=True, random_state=seed).split(ranked, None, groups)
        result.append(_Goal(name, ranked, "R2", list(parts)))
    return result


def _association(X: Any, goal: _Goal) -> np.ndarray:
    """``(D,)`` largest rank correlation of each column with the goal or one of its classes."""
    values = goal.values[:, None]
    if goal.metric == "AUC":
        values = (values == np.unique(goal.values)).astype(np.float64)
    return np.abs(rank_correlations(X, values)).max(axis=1)


def _score_of_unit(X: np.ndarray, goal: _Goal) -> float:
    """Score of a unit ``(N, d)`` by a small tree, and by its ranks or, of categories, linearly.

    A small tree splits off few of many categories.
    """
    leaf = max(3, len(X) // 100)
    # Trees see 32 bits.
    (X,) = standardise(X)
    score = _out_of_fold(
        X,
        goal,
        lambda: DecisionTreeClassifier(max_leaf_nodes=32, min_samples_leaf=leaf, random_state=0),
        lambda: DecisionTreeRegressor(max_leaf_nodes=32, min_samples_leaf=leaf, random_state=0),
    )
    if X.shape[1] > 1:
        return max(score, _linear_score(X, goal))
    if goal.metric == "R2":
        return max(score, float(rank_correlations(X, goal.values[:, None])[0, 0] ** 2))
    if goal.values.max() == 1:
        area = float(roc_auc_score(goal.values, X[:, 0]))
        score = max(score, area, 1.0 - area)
    return score


def _score_of_units(design: Design, X: Any, goal: _Goal, units: list[int]) -> float:
    """The better score of a forest and a linear model on some units, the first of them."""
    if not units:
        return 0.5 if goal.metric == "AUC" else 0.0
    columns: list[int] = []
    for unit in units:
        columns += design.columns_of([unit]).tolist()
        if len(columns) >= _OTHERS:
            break
    (values,) = standardise(densify(X[:, np.array(columns)]))
    return max(
        _out_of_fold(
            values,
            goal,
            lambda: RandomForestClassifier(100, min_samples_leaf=2, random_state=0),
            lambda: RandomForestRegressor(60, min_samples_leaf=2, max_features=0.5, random_state=0),
        ),
        _linear_score(values, goal),
    )


def _linear_score(X: np.ndarray, goal: _Goal) -> float:
    return _out_of_fold(X, goal, lambda: LogisticRegression(C=0.3, max_iter=300), RidgeCV)


def _out_of_fold(
    X: np.ndarray, goal: _Goal, classifier: Callable[[], Any], regressor: Callable[[], Any]
) -> float:
    """Score of predictions for rows that the model has not seen, over all of them."""
    if goal.metric == "R2":
        predictions = np.zeros(len(X))
        for train, test in goal.folds:
            predictions[test] = regressor().fit(X[train], goal.values[train]).predict(X[test])
        return float(r2_score(goal.values, predictions))
    shares = np.zeros((len(X), int(goal.values.max()) + 1))
    for train, test in goal.folds:
        model = classifier().fit(X[train], goal.values[train])
        shares[np.ix_(test, model.classes_)] = model.predict_proba(X[test])
    areas = [roc_auc_score(goal.values == label, share) for label, share in enumerate(shares.T)]
    return float(np.mean(areas[1:] if len(areas) == 2 else areas))


def _absences(design: Design) -> list[tuple[int, np.ndarray, str]]:
    """Units, the rows ``(N,)`` in which they are missing or have a code for that, and the code."""
    if not isinstance(design.X, np.ndarray):
        return []
    absences = [
        (int(design.groups[column]), design.X[:, column] == 1.0, "")
        for column in missing_columns(design).tolist()
    ]
    coded = {note.column for note in design.notes if note.kind == "sentinel"}
    for column in range(design.X.shape[1]):
        values = design.X[:, column]
        for code in sentinels(values) if design.names[column] in coded else ():
            shown = ", ".join(f"{value:.7g}" for value in code.values)
            absences.append((int(design.groups[column]), np.isin(values, code.values), shown))
    return absences


def _by_group(
    goal: np.ndarray, absent: np.ndarray, row_groups: np.ndarray | None, distinct: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Goal and absence of rows, or of groups: their means, or each ``distinct`` value once."""
    if row_groups is None:
        return goal, absent
    frame = pd.DataFrame({"group": row_groups, "absent": absent, "goal": goal})
    if distinct:
        frame = frame.drop_duplicates()
    else:
        frame = frame.groupby(["group", "absent"], as_index=False).mean()
    return frame["goal"].to_numpy(), frame["absent"].to_numpy(bool)


def _area(numbers: np.ndarray, rows: np.ndarray) -> float:
    """Share of pairs of a row and another one in which the row has the larger number."""
    if rows.all() or not rows.any():
        return 0.5
    return float(roc_auc_score(rows, numbers))
