"""``fsjax.select``: which columns of a table to keep, how many, and how sure that is."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from fsjax.auto import library
from fsjax.auto.answer import Request, answer, early_choice
from fsjax.auto.budget import Clock, seconds
from fsjax.auto.chance import Chance, chance_test
from fsjax.auto.columns import Design, Note, design
from fsjax.auto.compete import Contest
from fsjax.auto.contenders import contenders
from fsjax.auto.folds import common_classes
from fsjax.auto.judge import Judge, own_judge
from fsjax.auto.leaks import leaks
from fsjax.auto.plan import plan
from fsjax.auto.problem import Problem
from fsjax.auto.progress_file import Ledger, Section
from fsjax.auto.rankers import SIMPLE
from fsjax.auto.row_groups import group_numbers
from fsjax.auto.row_sample import on_rows, some_rows
from fsjax.auto.rule import CONSENSUS
from fsjax.auto.scoring import choose_metric
from fsjax.auto.selection import Selection
from fsjax.auto.sparse_columns import sparse_design
from fsjax.auto.stability import MOST_SETS, PAIRS, beside_decoys
from fsjax.auto.target import Names, read_target
from fsjax.errors import ConfigError, DataError, check_choice, check_whole, is_number, nearest
from fsjax.methods import METHODS
from fsjax.storage.file_lock import exclusive
from fsjax.storage.identity import Identity
from fsjax.tables.checks import name_some
from fsjax.tables.columns import arrays_of, is_sparse
from fsjax.tables.user_arrays import as_array
from fsjax.version import __version__

#: Shares of the budget that may be spent when the permutations, the simple methods, the networks
#: and the further rounds end; networks and rounds have at least the first of two, and as much of
#: the rest as the ranking on halves of the rows leaves.
_CHANCE_SHARE, _SIMPLE_SHARE, _NETWORK_SHARES = 0.3, 0.5, (0.5, 0.85)

#: Share of the budget of the selection with likely leaks, where there is one without them as well.
_LEAK_SHARE = 0.45

#: Rows on which leaks are looked for, at most.
_LEAK_ROWS = 20_000

#: Rows on which folds are tried before anything runs, at most.
_FOLD_ROWS = 1_000


class Origin(NamedTuple):
    """Where a table comes from, for the report.

    Attributes:
      source: name of its file.
      target: name of what is predicted.
      command: what was typed.
      notes: on how it was read.
      elapsed: seconds that were spent before, which count towards the budget.
    """

    source: str | None = None
    target: str | None = None
    command: str | None = None
    notes: tuple[Note, ...] = ()
    elapsed: float = 0.0


def select(
    X: ArrayLike | pd.DataFrame,
    y: ArrayLike,
    *,
    task: str | None = None,
    metric: str | None = None,
    judge: Any = None,
    budget: str | float | None = "5min",
    fdr: float | None = None,
    impute: str | None = None,
    methods: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    drop: Sequence[str] = (),
    costs: Mapping[str, float] | None = None,
    row_groups: ArrayLike | None = None,
    ordered: bool = False,
    seed: int = 0,
    workdir: str | Path | None = None,
    progress: bool = False,
    origin: Origin | None = None,
) -> Selection:
    """Selects columns of a table: by which method, how many, and how sure that is.

    Under cross-validation (selection within the training folds), all columns, random ones, simple
    selectors (a univariate filter, the path of Lasso, recursive elimination, minimum redundancy,
    forward selection, forests, Boruta's shadow test, and their consensus) and networks of the
    library that suit the shape of the table compete at several numbers of columns, cheapest first
    within the budget. One judge, chosen by inner validation, scores them all. The rule is the
    fewest columns within one standard error of the best score, paired over the folds. Permuted
    targets tell whether there is anything to find, complementary halves of the rows how often a
    column would be selected, and decoys (knockoffs and permuted copies) how many are false.

    Args:
      X: ``(N, columns)`` a pandas DataFrame with numbers, text, dates, truth values; or numbers,
        also a sparse matrix or array of SciPy, or a frame of sparse columns, which stay sparse.
      y: ``(N,)`` labels or numbers, ``(N, C)`` numbers or labels of 0 and 1, or time and event.
      task: ``'classification'``, ``'regression'``, ``'multilabel'``, ``'counts'`` or
        ``'survival'``; by default one of the first three, as y looks.
      metric: of classes ``'accuracy'`` or ``'auc'``, by default AUC where one of two classes has
        less than a tenth of the rows; ``'r2'`` of numbers, ``'label_accuracy'``, ``'d2'`` (of the
        Poisson deviance), ``'concordance_index'``; or the name of any scorer of scikit-learn.
      judge: what predicts from the selected columns: ``'linear'``, ``'rbf'`` or ``'trees'``, or any
        estimator of scikit-learn; by default the one of the three that predicts best.
      budget: time, such as ``'90s'``, ``'5min'``, ``'1h'`` or seconds; ``None`` is without end.
      fdr: false discovery rate in (0, 1): the selection is then all columns whose estimated share
        of false ones stays below it. By default the fewest that predict as well.
      impute: ``'mean'`` or ``'median'`` for missing numbers; sparse tables may have none.
      methods: names of the contenders (simple ones: see :data:`fsjax.auto.rankers.SIMPLE`; or any
        registered method); all columns and random ones are always there.
      keep: names of columns that are always selected.
      drop: names of columns that are never selected.
      costs: a number above 0 for each column by name, 1 where none is given: the selection is then
        the cheapest that is not worse than the best, in place of the smallest.
      row_groups: ``(N,)`` labels of rows that stay on one side of each split, such as patients.
      ordered: whether the rows are in order of time, so that earlier ones teach.
      seed: of folds, draws and trainings, at least 0.
      workdir: folder for ``progress.jsonl`` and the report; the same call goes on from there.
      progress: whether to show what is going on.
      origin: where the table comes from, for the report.

    Returns:
      The selection. After Ctrl-C, what is known by then, ``finished`` false.

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for settings that cannot.
      KeyboardInterrupt: where there is nothing to tell yet.
    """
    origin = origin or Origin()
    clock = Clock(seconds(budget), progress, origin.elapsed)
    if fdr is not None and not (is_number(fdr) and 0 < fdr < 1):
        raise ConfigError(f"fdr={fdr!r}; choose a number between 0 and 1, such as 0.1")
    seed = check_whole("seed", seed, least=0)
    problem, classes, notes = _problem(
        X, y, task, metric, impute, methods, keep, drop, costs, row_groups, ordered, seed
    )
    chosen_judge = own_judge(judge, problem.task)
    named_costs = None if costs is None else dict(costs)
    request = Request(
        problem, classes, fdr, (*origin.notes, *notes), origin.source, origin.target, named_costs
    )
    # A table without usable folds is refused before anything is written.
    on_rows(problem, some_rows(problem, _FOLD_ROWS))
    folder = None if workdir is None else Path(workdir)
    # Threads of small products and models wait for each other longer than they work.
    with threadpool_limits(1), nullcontext() if folder is None else exclusive(folder):
        ledger = Ledger(folder, _identity(problem, chosen_judge))
        selection = _with_and_without_leaks(request, chosen_judge, ledger, clock)
        selection = dataclasses.replace(selection, seconds=round(clock.spent, 2))
        if folder is not None:
            selection.save(folder, origin.command)
    clock.clear()
    return selection


def _with_and_without_leaks(
    request: Request, judge: Judge | None, ledger: Ledger, clock: Clock
) -> Selection:
    """The selection, and where there are likely leaks the one without them beside it."""
    table = request.table
    rows = some_rows(table, _LEAK_ROWS)
    some = dataclasses.replace(table.design, X=table.design.X[rows])
    warnings = leaks(some, table.y[rows], table.task)
    request = request._replace(notes=(*request.notes, *warnings))
    others = [
        unit
        for unit, name in enumerate(table.design.units)
        if name not in {warning.column for warning in warnings}
    ]
    if not warnings or len(others) < 2:
        return _run(request, judge, ledger, clock)
    first = clock.part(_LEAK_SHARE)
    selection = _run(request, judge, ledger, first)
    if first.stopped:
        clock.stop()
    clean = request._replace(table=_of_units(table, others), notes=())
    without = None
    if not clock.stopped:
        without = _run(clean, judge, Section(ledger, "without leaks/"), clock)
    return dataclasses.replace(
        selection,
        without_leaks=without,
        finished=selection.finished and without is not None and without.finished,
        stopped=clock.stopped,
    )


def _run(request: Request, judge: Judge | None, ledger: Ledger, clock: Clock) -> Selection:
    """All that the time allows; after Ctrl-C, what is known by then."""
    contest: Contest | None = None
    chance = Chance(0, 0, 0)
    try:
        sample = plan(request.table, judge, ledger, clock)
        contest = Contest(sample, ledger, clock)
        chance = chance_test(sample, ledger, clock, _CHANCE_SHARE)
        contest.run_needed()
        contest.run_simple(_SIMPLE_SHARE)
        if request.fdr is not None:
            # What was asked for comes before more methods.
            beside_decoys(sample, "l1", contest, ledger, clock, _SIMPLE_SHARE, MOST_SETS)
        share = _share_of_networks(contest, clock)
        contest.run_networks(share)
        contest.run_further_rounds(share)
    except KeyboardInterrupt:
        # What remains is done by quick means only.
        clock.stop()
        if contest is None or not contest.scores():
            raise
    try:
        return answer(request, contest, chance, ledger, clock)
    except KeyboardInterrupt:
        if clock.stopped:
            raise
        clock.stop()
        return answer(request, contest, chance, ledger, clock)


def _share_of_networks(contest: Contest, clock: Clock) -> float:
    """What share of the time may be spent when networks end: decoys and halves come after them."""
    choice = early_choice(contest)
    if choice is None:
        return _NETWORK_SHARES[0]
    # A ranking of all rows, pairs of halves, and decoys beside the columns.
    after = (1 + 2 * PAIRS) * contest.seconds_of(choice.method) + 12 * contest.seconds_of("l1")
    share = 1.0 - 1.5 * after / clock.usable if np.isfinite(clock.usable) else 1.0
    return float(np.clip(share, *_NETWORK_SHARES))


def _problem(
    X: Any,
    y: Any,
    task: str | None,
    metric: str | None,
    impute: str | None,
    methods: Sequence[str] | None,
    keep: Sequence[str],
    drop: Sequence[str],
    costs: Mapping[str, float] | None,
    row_groups: Any,
    ordered: bool,
    seed: int,
) -> tuple[Problem, Names, tuple[Note, ...]]:
    """The problem, names of classes, and what was noticed on the way."""
    sparse = is_sparse(X)
    X = X if sparse else _frame(X)
    if len(X.shape) != 2 or not X.shape[0]:
        raise DataError(f"X has shape {X.shape}; give a table of (rows, columns)")
    target, task, classes, notes = read_target(y, task, X.shape[0])
    groups = None if row_groups is None else group_numbers(row_groups, X.shape[0], ordered)
    rows, target, classes, rare = _common_rows(target, task, classes, groups)
    if rare:
        X = X[rows] if not isinstance(X, pd.DataFrame) else X.iloc[rows].reset_index(drop=True)
        groups = None if groups is None else groups[rows]
    table = (sparse_design if sparse else design)(X, impute)
    keep = _known_columns("keep", keep, table, X)
    table = _without(table, _known_columns("drop", drop, table, X), keep)
    if table.num_units < 2:
        raise DataError(
            f"one column, {table.units[0]!r}, is left to choose from; there is nothing to select"
        )
    numbers = {name: number for number, name in enumerate(table.units)}
    if len(keep) >= table.num_units:
        raise ConfigError("keep names all columns; there is nothing to select")
    problem = Problem(
        design=table,
        y=target,
        task=task,
        metric=choose_metric(metric, task, target),
        rounds=[],
        methods=_methods(methods, task, sparse, len(target), len(table.names)),
        seed=seed,
        row_groups=groups,
        ordered=ordered,
        keep=tuple(numbers[name] for name in keep),
        costs=None if costs is None else _costs(costs, table, X),
    )
    return problem, classes, (*notes, *rare, *table.notes)


def _frame(X: Any) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X.reset_index(drop=True)
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    values = as_array(X, "X")
    if values.ndim != 2:
        raise DataError(f"X has shape {values.shape}; give a table of (rows, columns)")
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])


def _common_rows(
    y: np.ndarray, task: str, classes: Names, groups: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, Names, tuple[Note, ...]]:
    """Rows of frequent classes, their target, the names of these, and a note on the others."""
    common = common_classes(y, task, groups)
    rows = np.flatnonzero(common.rows)
    if not common.rare or len(np.unique(y[rows])) < 2:
        # Where too few classes are left, folds of all rows say why.
        return np.arange(len(y)), y, classes, ()
    labels = [str(label) if classes is None else classes[label] for label in common.rare]
    kept, numbers = np.unique(y[rows], return_inverse=True)
    text = (
        f"has classes with too few rows for cross-validation, which were set aside: "
        f"{name_some(labels)} ({len(y) - len(rows)} of {len(y)} rows)"
    )
    names = None if classes is None else tuple(classes[label] for label in kept)
    return rows, numbers.astype(y.dtype), names, (Note("(target)", "rare", text),)


def _known_columns(label: str, names: Sequence[str], table: Design, X: Any) -> list[str]:
    """Those of the names that are left among the columns; ConfigError for unknown ones."""
    if isinstance(names, str):
        names = [name for name in names.split(",") if name]
    there = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else list(table.units)
    left = set(table.units)
    for name in names:
        if str(name) not in there and str(name) not in left:
            raise ConfigError(f"{label}={name!r}: {nearest(str(name), there)}")
        if label == "keep" and str(name) not in left:
            (why, *_) = [note.text for note in table.notes if note.column == str(name)] or [
                "is out"
            ]
            raise ConfigError(f"keep={name!r} cannot be used: the column {why}")
    return list(dict.fromkeys(str(name) for name in names if str(name) in left))


def _without(table: Design, drop: Sequence[str], keep: Sequence[str]) -> Design:
    if both := [name for name in drop if name in keep]:
        raise ConfigError(f"{both[0]!r} is in keep and in drop; choose one of them")
    if not drop:
        return table
    kept = [unit for unit, name in enumerate(table.units) if name not in set(drop)]
    if not kept:
        raise ConfigError("drop names all columns; there is nothing to select")
    return _design_of_units(table, kept)


def _design_of_units(table: Design, units: Sequence[int]) -> Design:
    """Some of the units, numbered anew."""
    columns = table.columns_of(units)
    number = np.full(table.num_units, -1)
    number[list(units)] = np.arange(len(units))
    return dataclasses.replace(
        table,
        X=table.X[:, columns],
        names=tuple(table.names[column] for column in columns),
        groups=number[table.groups[columns]],
        units=tuple(table.units[unit] for unit in units),
    )


def _of_units(problem: Problem, units: Sequence[int]) -> Problem:
    """The problem with some of its units to choose from."""
    number = {unit: place for place, unit in enumerate(units)}
    return problem.replace(
        design=_design_of_units(problem.design, units),
        keep=tuple(number[unit] for unit in problem.keep if unit in number),
        costs=None if problem.costs is None else problem.costs[list(units)],
    )


def _costs(costs: Mapping[str, float], table: Design, X: Any) -> np.ndarray:
    """``(G,)``, 1 where none is given."""
    there = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else list(table.units)
    for name, cost in costs.items():
        if str(name) not in there:
            raise ConfigError(f"costs has {name!r}: {nearest(str(name), there)}")
        if not (is_number(cost) and 0 < cost < float("inf")):
            raise ConfigError(f"costs[{name!r}]={cost!r}; choose a number above 0")
    by_name = {str(name): float(cost) for name, cost in costs.items()}
    return np.array([by_name.get(name, 1.0) for name in table.units])


def _methods(
    names: Sequence[str] | None, task: str, sparse: bool, rows: int, columns: int
) -> tuple[str, ...]:
    """The contenders, cheapest and most promising first."""
    if names is None:
        return (*SIMPLE, CONSENSUS, *contenders(rows, columns, task, sparse))
    if isinstance(names, str):
        names = names.split(",")
    for name in names:
        if name in SIMPLE or name == CONSENSUS:
            continue
        check_choice("methods", name, [*SIMPLE, CONSENSUS, *METHODS])
        if not library.fits_task(name, task):
            raise ConfigError(f"{name} is not for {task}; leave it out of methods")
    # Some comparison there has to be.
    return tuple(dict.fromkeys(["random", "univariate", *names]))


def _identity(problem: Problem, judge: Judge | None) -> Identity:
    def digest(*values: np.ndarray) -> str:
        checksum = hashlib.sha256()
        for value in values:
            checksum.update(np.ascontiguousarray(value).tobytes())
        return checksum.hexdigest()[:16]

    X, groups = problem.design.X, problem.row_groups
    return Identity(
        settings={
            "task": problem.task,
            "metric": problem.metric.name,
            "judge": None if judge is None else judge.words,
            "impute": problem.design.impute,
            "ordered": problem.ordered,
            "keep": problem.keep,
            "costs": None if problem.costs is None else digest(problem.costs),
            "methods": problem.methods,
            "seed": problem.seed,
        },
        data={
            "table": digest(*arrays_of(X)),
            "columns": digest(np.array(problem.design.names)),
            "target": digest(problem.y),
            "row_groups": None if groups is None else digest(groups),
        },
        code={"fsjax": __version__},
    )
