"""``fsjax.select``: which columns of a table to keep, how many, and how sure that is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from fsjax.auto import compete, finish, permutations, rule
from fsjax.auto.budget import Clock, seconds
from fsjax.auto.columns import LEFT_OUT, Design, design
from fsjax.auto.compete import ALL, Problem
from fsjax.auto.contenders import contenders
from fsjax.auto.folds import rounds_of
from fsjax.auto.leaks import ALIKE, LEADERS, alike, leaders, leaks
from fsjax.auto.ledger import Ledger
from fsjax.auto.library import fits_task
from fsjax.auto.models import choose_metric
from fsjax.auto.rankers import SIMPLE
from fsjax.auto.selection import Selection
from fsjax.auto.sparse import is_sparse
from fsjax.auto.sparse_columns import sparse_design
from fsjax.auto.statements import statements
from fsjax.auto.target import Names, read_target
from fsjax.errors import ConfigError, DataError, check_choice, check_whole, is_number
from fsjax.lock import exclusive
from fsjax.registry import METHODS
from fsjax.version import __version__

#: One of these has to be through before there is anything to tell.
_SAYS = frozenset(SIMPLE) - {"random"}


def select(
    X: ArrayLike | pd.DataFrame,
    y: ArrayLike,
    *,
    task: str | None = None,
    metric: str | None = None,
    budget: str | float | None = "5min",
    fdr: float | None = None,
    impute: str | None = None,
    methods: Sequence[str] | None = None,
    row_groups: ArrayLike | None = None,
    ordered: bool = False,
    seed: int = 0,
    workdir: str | Path | None = None,
    progress: bool = False,
) -> Selection:
    """Selects columns of a table: by which method, how many, and how sure that is.

    Under cross-validation (selection within the training folds), all columns, random ones, a
    univariate filter, the path of Lasso, a forest and methods of the library compete at several
    numbers of columns, cheapest first within the budget. The rule is the fewest columns within one
    standard error of the best score. Permuted labels tell whether there is anything to find,
    complementary halves how steady the columns are, and decoy columns how many of them are false.

    Args:
      X: ``(N, columns)`` a pandas DataFrame with numbers, text, dates, truth values; or numbers,
        also a sparse matrix or array of SciPy, or a frame of sparse columns, which stay sparse.
      y: ``(N,)`` labels or numbers, ``(N, C)`` numbers or labels of 0 and 1, or time and event.
      task: ``'classification'``, ``'regression'``, ``'multilabel'``, ``'counts'`` or
        ``'survival'``; by default one of the first three, as y looks.
      metric: of classes ``'accuracy'`` or ``'auc'``, by default AUC where one of two classes has
        less than a tenth of the rows. The others have one each: ``'r2'``, ``'label_accuracy'``,
        ``'d2'`` (of the Poisson deviance), ``'concordance_index'``.
      budget: time, such as ``'90s'``, ``'5min'``, ``'1h'`` or seconds; ``None`` is without end.
      fdr: false discovery rate in (0, 1): the selection is then all columns that keep the
        estimated share of false ones below it. By default the fewest that predict as well.
      impute: ``'mean'`` or ``'median'`` for missing numbers; sparse tables may have none.
      methods: names of the contenders (simple ones: ``univariate``, ``l1``, ``forest``; or any
        registered method); all columns and random ones are always there.
      row_groups: ``(N,)`` labels of rows that stay on one side of each split, such as patients.
      ordered: whether the rows are in order of time, so that earlier ones teach.
      seed: of folds, draws and trainings, at least 0.
      workdir: folder for ``progress.jsonl`` and the report; the same call goes on from there.
      progress: whether to show what is going on.

    Returns:
      The selection. After Ctrl-C, what is known by then, ``finished`` false.

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for settings that cannot.
      KeyboardInterrupt: where there is nothing to tell yet.
    """
    total = seconds(budget)
    if fdr is not None and not (is_number(fdr) and 0 < fdr < 1):
        raise ConfigError(f"fdr={fdr!r}; choose a number between 0 and 1, such as 0.1")
    seed = check_whole("seed", seed, least=0)
    clock = Clock(total, progress)
    problem, classes = _problem(X, y, task, metric, impute, methods, row_groups, ordered, seed)
    folder = None if workdir is None else Path(workdir)
    with nullcontext() if folder is None else exclusive(folder):
        found = _run(problem, Ledger(folder, _identity(problem)), clock, fdr, classes)
        if folder is not None:
            found.save(folder)
    return found


def _run(
    problem: Problem, ledger: Ledger, clock: Clock, fdr: float | None, classes: Names
) -> Selection:
    """All that the time allows; after Ctrl-C, what is known by then."""
    left_out: dict[str, str] = {}
    # Whether there is anything to find comes before what is expensive.
    early = partial(permutations.chance_test, problem, ledger, clock, early=True)
    try:
        left_out = compete.compete(problem, ledger, clock, early)
    except KeyboardInterrupt:
        # What remains is done by quick means only.
        clock.stop()
        if not any(name in _SAYS for name, _ in compete.scores_of(problem, ledger)):
            raise
    try:
        return _finish(problem, ledger, clock, fdr, left_out, classes)
    except KeyboardInterrupt:
        if clock.stopped:
            raise
        clock.stop()
        return _finish(problem, ledger, clock, fdr, left_out, classes)
    finally:
        clock.clear()


def _problem(
    X: Any,
    y: Any,
    task: str | None,
    metric: str | None,
    impute: str | None,
    methods: Sequence[str] | None,
    row_groups: Any,
    ordered: bool,
    seed: int,
) -> tuple[Problem, Names]:
    sparse = is_sparse(X)
    X = X if sparse else _frame(X)
    if len(X.shape) != 2 or not X.shape[0]:
        raise DataError(f"X has shape {X.shape}; give a table of (rows, columns)")
    target, task, classes = read_target(y, task, X.shape[0])
    kept = _methods(methods, task, X.shape, sparse)
    table = (sparse_design if sparse else design)(X, impute)
    if table.num_units < 2:
        raise DataError(
            f"one column, {table.units[0]!r}, is left to choose from; there is nothing to select"
        )
    found = Problem(
        design=table,
        y=target,
        task=task,
        metric=choose_metric(metric, task, target),
        rounds=rounds_of(target, task, seed, row_groups, ordered),
        methods=kept,
        seed=seed,
    )
    return found, classes


def _frame(X: Any) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X.reset_index(drop=True)
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    values = np.asarray(X)
    if values.ndim != 2:
        raise DataError(f"X has shape {values.shape}; give a table of (rows, columns)")
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])


def _methods(
    given: Sequence[str] | None, task: str, shape: tuple[int, int], sparse: bool
) -> tuple[str, ...]:
    """The contenders: those that were asked for, or those that suit a table of this shape."""
    if given is None:
        return (*SIMPLE, *contenders(*shape, task, sparse))
    if isinstance(given, str):
        given = given.split(",")
    for name in given:
        if name in SIMPLE:
            continue
        check_choice("methods", name, [*SIMPLE, *METHODS])
        if not fits_task(name, task):
            raise ConfigError(f"{name} is not for {task}; leave it out of methods")
    # Some comparison there has to be.
    return tuple(dict.fromkeys(["random", "univariate", *given]))


def _identity(problem: Problem) -> dict[str, Any]:
    def digest(*values: np.ndarray) -> str:
        made = hashlib.sha256()
        for one in values:
            made.update(np.ascontiguousarray(one).tobytes())
        return made.hexdigest()[:16]

    folds = np.concatenate([fold.test for folds in problem.rounds for fold in folds])
    X = problem.design.X
    return {
        "table": digest(X.data, X.indices, X.indptr) if issparse(X) else digest(X),
        "columns": digest(np.array(problem.design.names)),
        "target": digest(problem.y),
        "task": problem.task,
        "metric": problem.metric.name,
        "impute": problem.design.impute,
        "folds": digest(folds),
        "methods": list(problem.methods),
        "seed": problem.seed,
        "fsjax": __version__,
    }


def _finish(
    problem: Problem,
    ledger: Ledger,
    clock: Clock,
    fdr: float | None,
    left_out: dict[str, str],
    classes: Names,
) -> Selection:
    """From what ran to the answer."""
    scores = compete.scores_of(problem, ledger)
    choice = rule.choose(scores, problem.folds)
    honest = rule.honest_scores(scores, problem.folds, range(problem.folds))
    level = compete.chance_level(problem)
    chance = permutations.chance_test(problem, ledger, clock)
    better = permutations.better_than_chance(chance, honest, level[: problem.folds], problem)
    best = {}
    for (name, _), values in scores.items():
        best[name] = max(best.get(name, -np.inf), float(np.nanmean(values)))
    statistic = finish.decoy_statistic(choice, best)
    steady = finish.steadiness(problem, choice, statistic, ledger, clock, better)
    chosen = _chosen(problem.design, choice, steady, fdr, better)
    everything = float(np.nanmean(scores[ALL, problem.design.num_units]))
    told = statements(
        choice,
        problem.metric,
        problem.design.num_units,
        better,
        chance,
        float(np.nanmean(honest)),
        {"all": everything, "chance": float(np.nanmean(level))},
        rule.enough(scores, choice.threshold),
        len(chosen),
        fdr,
    )
    if short := [name for name, why in left_out.items() if why.startswith(compete.NO_TIME)]:
        told.append(f"Left out for lack of time: {', '.join(short)}; a longer budget has them.")
    told += [f"{name} {why}." for name, why in left_out.items() if name not in short]
    if problem.unsuited:
        told.append(f"Left out, as the table is sparse: {', '.join(problem.unsuited)}.")
    if clock.stopped:
        told.append("It was stopped before all was done; the same command goes on.")
    notes = (*problem.design.notes, *leaks(problem.design, problem.y, problem.task))
    return Selection(
        method=choice.method,
        num_features=len(chosen),
        columns=tuple(problem.design.units[unit] for unit in chosen),
        better_than_chance=better,
        score=float(np.nanmean(honest)),
        score_at_choice=choice.mean,
        score_all_columns=everything,
        score_chance=float(np.nanmean(level)),
        metric=problem.metric.name,
        task=problem.task,
        fdr=fdr,
        p_value=chance.p_value,
        seconds=round(clock.spent, 2),
        finished=not clock.stopped and not left_out,
        stopped=clock.stopped,
        table=_table(problem.design, steady, chosen),
        curves=_curves(scores, problem.folds),
        statements=tuple(told),
        notes=notes,
        facts={
            "rows": len(problem.y),
            "columns_offered": problem.design.num_units,
            "columns_left_out": sum(note.kind in LEFT_OUT for note in problem.design.notes),
            "classes": None if classes is None else list(classes),
            "folds": problem.folds,
            "rounds": len(problem.rounds),
            "best_method": choice.best_method,
            "best_num_features": choice.best_size,
            "best_score": choice.best,
            "standard_error": choice.error,
            "permutations": len(chance.draws),
            "as_good": chance.as_good,
            "halves": steady.halves,
            "decoy_sets": steady.sets,
            "decoy_statistic": steady.statistic,
            "methods_left_out": {**left_out, **problem.unsuited},
            "nonzeros": int(problem.design.X.nnz) if issparse(problem.design.X) else None,
            "seed": problem.seed,
            "version": __version__,
        },
    )


def _chosen(
    table: Design, choice: rule.Choice, steady: finish.Steadiness, fdr: float | None, better: bool
) -> np.ndarray:
    """The selected units, the most important first."""
    if not better:
        return np.zeros(0, int)
    if fdr is not None:
        return steady.order[steady.rates[steady.order] <= fdr]
    return steady.order[: table.num_units if choice.method == ALL else choice.size]


def _table(table: Design, steady: finish.Steadiness, chosen: np.ndarray) -> pd.DataFrame:
    """``columns.csv``: every column that took part, the selected ones first."""
    first = np.concatenate([chosen, steady.order[~np.isin(steady.order, chosen)]]).astype(int)
    likeness = alike(table, first[:LEADERS])
    leader = leaders(likeness, first[:LEADERS])
    rows = {unit: likeness[place] for place, unit in enumerate(first[:LEADERS])}
    stand_ins = [
        _stand_ins(table, unit, rows[unit]) if unit in rows and unit in chosen else ""
        for unit in first
    ]
    scores = np.where(np.isfinite(steady.scores), steady.scores, np.nan)
    return pd.DataFrame(
        {
            "column": [table.units[unit] for unit in first],
            "selected": np.isin(first, chosen).astype(int),
            "frequency": steady.frequency[first],
            "score": scores[first],
            "false_discovery_rate": steady.rates[first],
            "group": [table.units[leader[unit]] for unit in first],
            "alike": stand_ins,
        }
    )


def _stand_ins(table: Design, unit: int, likeness: np.ndarray) -> str:
    """The units most like one, with their correlation."""
    others = [other for other in np.argsort(-likeness, kind="stable") if other != unit]
    named = [f"{table.units[o]} ({likeness[o]:.2f})" for o in others[:5] if likeness[o] >= ALIKE]
    return ", ".join(named)


def _curves(scores: rule.Scores, folds: int) -> pd.DataFrame:
    rows = [
        {
            "method": name,
            "num_features": size,
            "mean": float(np.nanmean(values)),
            "error": rule.standard_error(values, folds),
            "folds": int((~np.isnan(values)).sum()),
        }
        for (name, size), values in scores.items()
    ]
    return pd.DataFrame(rows)
