"""``fsjax.select``: which columns of a table to keep, how many, and how sure that is."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from fsjax.auto import statements
from fsjax.auto.answer import Origin, Request, answer, early_choice
from fsjax.auto.budget import Clock, seconds
from fsjax.auto.chance import Chance, chance_test
from fsjax.auto.columns import Design, design
from fsjax.auto.compete import Contest
from fsjax.auto.fit_to_budget import fit_to_budget
from fsjax.auto.folds import common_classes, group_numbers
from fsjax.auto.input_checks import MAX_SEED, check_scale
from fsjax.auto.judge import Judge, requested_judge
from fsjax.auto.late_methods import run_left_out
from fsjax.auto.near_leaks import leak_notes
from fsjax.auto.network_contenders import contenders, fits_task
from fsjax.auto.notes import Note
from fsjax.auto.problem import Problem, in_proportion, on_rows, representative_rows
from fsjax.auto.progress_file import Ledger, Section
from fsjax.auto.rankers import SIMPLE
from fsjax.auto.repeated_rows import repeated_rows
from fsjax.auto.row_weights import check_weighted, weighted_rows_of
from fsjax.auto.rule import CONSENSUS
from fsjax.auto.scoring import RANKED, choose_metric, extreme_share, normal_scores
from fsjax.auto.selection import Selection
from fsjax.auto.sparse_columns import sparse_design
from fsjax.auto.stability import MAX_SETS, PAIRS, compete_with_decoys, quick_statistic
from fsjax.auto.target import TARGET, Names, read_target
from fsjax.errors import ConfigError, DataError, check_choice, check_whole, is_number, nearest
from fsjax.methods import METHODS
from fsjax.storage.file_lock import exclusive
from fsjax.storage.identity import Identity
from fsjax.tables.checks import name_some
from fsjax.tables.columns import arrays_of, is_sparse_table
from fsjax.tables.user_arrays import as_array, check_row_order
from fsjax.version import __version__

#: Shares of the budget that may be spent by the end of the permutations, of the simple methods, and
#: of the networks and further rounds: the latter two between these shares, depending on what
#: decoys and halves of the rows will need.
_CHANCE_SHARE, _SIMPLE_SHARE, _NETWORK_SHARES = 0.3, 0.5, (0.5, 0.85)

#: Share of the budget that may be spent when decoys end that a requested rate needs.
_DECOY_SHARE = 0.45

#: Share of the budget for the selection without likely leaks, if there are any, and the methods of
#: the one with them, where simple methods suffice.
_CLEAN_SHARE, _METHODS_WITH_LEAKS = 0.7, ("random", "univariate", "l1", "forest")

#: Most rows on which folds are tried before anything runs.
_FOLD_ROWS = 1_000


class _Settings(NamedTuple):
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


def select(
    X: ArrayLike | pd.DataFrame,
    y: ArrayLike,
    *,
    task: str | None = None,
    metric: str | None = None,
    judge: Any = None,
    budget: str | float | None = "5min",
    fdr: float | None = None,
    impute: str | None = "median",
    methods: Sequence[str] | None = None,
    keep: Sequence[Hashable] = (),
    drop: Sequence[Hashable] = (),
    costs: Mapping[Hashable, float] | None = None,
    row_groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    ordered: bool = False,
    seed: int = 0,
    workdir: str | Path | None = None,
    progress: bool = False,
    origin: Origin | None = None,
) -> Selection:
    """Selects columns of a table: by which method, how many, and how sure that is.

    All columns, random columns, simple selectors (a univariate filter, the Lasso path, recursive
    elimination, minimum redundancy, forward selection, forests, Boruta's shadow test, and their
    consensus) and networks of the library that suit the shape of the table compete under
    cross-validation, with the selection inside the training folds, at several numbers of columns,
    cheapest first within the budget. One model, the judge, is chosen by inner validation and
    predicts from every selection. The fewest columns within one standard error of the best score,
    paired over the folds, are selected. Permuted targets show whether there is anything to find,
    complementary halves of the rows how often each column is selected, and decoys (knockoffs and
    permuted copies) how many columns are likely to be false.

    Args:
      X: ``(N, columns)`` a pandas DataFrame of numbers, text, dates and truth values; or numbers,
        also a SciPy sparse matrix or array, or a frame of sparse columns, which stay sparse.
      y: ``(N,)`` labels or numbers, ``(N, C)`` numbers or labels of 0 and 1, or time and event.
      task: ``'classification'``, ``'regression'``, ``'multilabel'``, ``'counts'`` or
        ``'survival'``; by default one of the first three, inferred from y.
      metric: for classes ``'accuracy'`` or ``'auc'``, by default AUC if one of two classes has
        less than a fifth of the rows; for numbers ``'r2'``, or ``'rank_r2'``, that of their ranks
        (as normal scores), by default if a hundredth of the rows carry half of the variance;
        ``'label_accuracy'``, ``'d2'`` (of the
        Poisson deviance), ``'concordance_index'``; or the name of any scorer of scikit-learn.
      judge: the model that predicts from the selected columns: ``'linear'``, ``'rbf'`` or
        ``'trees'``, or any estimator of scikit-learn; by default whichever of the three predicts
        best.
      budget: time, for example ``'90s'``, ``'5min'``, ``'1h'`` or seconds; ``None`` sets no limit.
      fdr: false discovery rate in (0, 1): selects all columns whose estimated rate is at most this.
        By default the fewest columns that predict as well as the best are selected.
      impute: ``'mean'`` or ``'median'`` of the training rows for missing numbers, with a column
        that indicates them; ``None`` refuses them. Sparse tables may have none missing.
      methods: names of the contenders: simple ones (:data:`fsjax.auto.rankers.SIMPLE`) or any
        registered method. All columns and random ones always take part.
      keep: names of columns that are always selected.
      drop: names of columns that are never selected.
      costs: a number above 0 for each column by name, by default 1: selects the cheapest columns
        that are not worse than the best, instead of the fewest.
      row_groups: ``(N,)`` labels of rows that stay on one side of each split, such as patients.
      sample_weight: ``(N,)`` weights of the rows, at least 0: in rankings, models, scores and
        imputation, rows count in proportion to them, and rows of weight 0 are left out. Only
        their ratios matter: the number of rows stays N. The permutation test repeats rows in
        proportion, up to rounding. P-values, effects and correlations of single columns and the
        models of decoys count all rows alike. Not for survival.
      ordered: whether the rows are in order of time, so that models train on earlier rows.
      seed: of folds, draws and trainings, at least 0.
      workdir: folder for ``progress.jsonl`` and the report; the same call resumes from there.
      progress: whether to show progress on standard error.
      origin: where the table comes from, for the report.

    Returns:
      The selection. After Ctrl-C, what is known by then, with ``finished`` false.

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for settings that cannot be used.
      KeyboardInterrupt: if it came before there was any result.

    Examples:
      >>> # auto.Selection
      >>> selection = fsjax.select(data.X, data.y, methods=("univariate",), budget="20s")
      >>> print(selection.columns)
      >>> print(selection.table.head())
      >>> selection.save("answer")  # report.html and tables
    """
    origin = origin or Origin()
    clock = Clock(seconds(budget), progress, origin.elapsed)
    if fdr is not None and not (is_number(fdr) and 0 < fdr < 1):
        raise ConfigError(f"fdr={fdr!r}; choose a number between 0 and 1, such as 0.1")
    settings = _Settings(
        task, metric, impute, methods, keep, drop, costs, row_groups, ordered,
        check_whole("seed", seed, least=0, most=MAX_SEED), sample_weight,
    )  # fmt: skip
    problem, classes, notes = _problem(X, y, settings)
    chosen_judge = requested_judge(judge, problem.task)
    if problem.weights is not None:
        check_weighted(problem.task, judge, problem.metric)
    labels = {str(label): label for label in X.columns} if isinstance(X, pd.DataFrame) else {}
    labelled_costs = None
    if costs is not None:
        labelled_costs = {labels.get(_name_of(k, X), k): cost for k, cost in costs.items()}
    warnings = leak_notes(problem, classes)
    all_notes = (*origin.notes, *notes, *warnings)
    request = Request(problem, classes, fdr, all_notes, origin, labelled_costs, labels)
    # Raises for a table without usable folds, before anything is written.
    on_rows(problem, representative_rows(problem, _FOLD_ROWS))
    folder = None if workdir is None else Path(workdir)
    # In small matrix products and models, threads wait for each other longer than they work.
    with threadpool_limits(1), nullcontext() if folder is None else exclusive(folder):
        ledger = Ledger(folder, _identity(problem, chosen_judge, warnings))
        selection = _without_and_with_leaks(request, chosen_judge, ledger, clock)
        selection = dataclasses.replace(
            selection,
            statements=(*statements.on_equal_rows(all_notes), *selection.statements),
            seconds=round(clock.spent, 2),
        )
        if folder is not None:
            selection.save(folder, origin.command)
    clock.clear()
    return selection


def _without_and_with_leaks(
    request: Request, judge: Judge | None, ledger: Ledger, clock: Clock
) -> Selection:
    """The selection; if there are likely leaks, the one with them beside the one without."""
    table = request.table
    leaking = {note.column for note in request.notes if note.kind == "leak"}
    others = [unit for unit, name in enumerate(table.design.units) if name not in leaking]
    if len(others) < max(2, len(table.keep) + 1) or not leaking:
        return _run(request, judge, ledger, clock)
    # Of the time without what is reserved for writing the answer; NaN of an infinite budget.
    usable = np.nan_to_num(clock.usable / clock.total, nan=1.0)
    clean_clock = clock.part(_CLEAN_SHARE * float(usable))
    clean = request._replace(table=_of_units(table, others))
    selection = _run(clean, judge, ledger, clean_clock)
    if clean_clock.stopped:
        clock.stop()
    beside = None
    if not clock.stopped:
        methods = tuple(name for name in table.methods if name in _METHODS_WITH_LEAKS)
        everything = request._replace(table=table.replace(methods=methods))
        second_clock = clock.rest()
        beside = _run(everything, judge, Section(ledger, "with leaks/"), second_clock)
        if second_clock.stopped:
            clock.stop()
    if beside is not None and beside.better_than_chance and not selection.better_than_chance:
        # Nothing else is known that predicts the target.
        first, *more = beside.statements
        only = statements.only_leaks(sorted(leaking), selection.undecided, selection.p_value)
        return dataclasses.replace(beside, statements=(first, only, *more), stopped=clock.stopped)
    first, *more = selection.statements
    score = None
    if beside is not None and np.isfinite(beside.score):
        score = table.metric.show(beside.score)
    leaks = statements.leaks_left_out(sorted(leaking), score, table.metric.short)
    return dataclasses.replace(
        selection,
        statements=(first, leaks, *more),
        with_leaks=beside,
        finished=selection.finished and beside is not None and beside.finished,
        stopped=clock.stopped,
    )


def _run(request: Request, judge: Judge | None, ledger: Ledger, clock: Clock) -> Selection:
    """Runs all that the budget allows; after Ctrl-C, answers with what is known by then."""
    contest: Contest | None = None
    chance = Chance(0, 0)
    try:
        sample = fit_to_budget(request.table, judge, ledger, clock)
        contest = Contest(sample, ledger, clock)
        chance = chance_test(in_proportion(sample), ledger, clock, _CHANCE_SHARE)
        contest.run_needed()
        if request.fdr is not None:
            # The requested false discovery rate comes before more methods.
            statistic = quick_statistic(contest, _DECOY_SHARE)
            compete_with_decoys(contest, statistic, _DECOY_SHARE, MAX_SETS)
        contest.run_simple(_SIMPLE_SHARE)
        share = _share_of_networks(contest, clock)
        contest.run_networks(share)
        contest.run_further_rounds(share)
        run_left_out(request, contest, chance)
    except KeyboardInterrupt:
        clock.stop()
        if contest is None or not contest.scores():
            raise
    try:
        return answer(request, contest, chance)
    except KeyboardInterrupt:
        if clock.stopped:
            raise
        clock.stop()
        return answer(request, contest, chance)


def _share_of_networks(contest: Contest, clock: Clock) -> float:
    """Share of the budget that may be spent when networks end: decoys and halves come after."""
    choice = early_choice(contest)
    if choice is None:
        return _NETWORK_SHARES[0]
    # The ranking on all rows, the pairs of halves, and the sets of decoys.
    after = contest.seconds_of_rankings(choice.method, 1 + 2 * PAIRS)
    after += 12 * contest.seconds_of("l1")
    share = 1.0 - 1.5 * after / clock.usable if np.isfinite(clock.usable) else 1.0
    return float(np.clip(share, *_NETWORK_SHARES))


def _problem(X: Any, y: Any, settings: _Settings) -> tuple[Problem, Names, tuple[Note, ...]]:
    """The checked problem, names of classes, and notes on the target and the columns."""
    check_row_order(X, y=y, row_groups=settings.row_groups, sample_weight=settings.sample_weight)
    sparse = is_sparse_table(X)
    X = X if sparse else _frame(X)
    if len(X.shape) != 2 or not X.shape[0]:
        raise DataError(f"X has shape {X.shape}; give a table of (rows, columns)")
    X, y, row_groups, weights, of_weights = weighted_rows_of(
        X, y, settings.row_groups, settings.sample_weight
    )
    X = X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else X
    target, task, classes, notes = read_target(y, settings.task, X.shape[0])
    groups = None
    if row_groups is not None:
        groups = group_numbers(row_groups, X.shape[0], settings.ordered)
    rows, target, classes, rare = _common_rows(target, task, classes, groups)
    if rare:
        X = X[rows] if not isinstance(X, pd.DataFrame) else X.iloc[rows].reset_index(drop=True)
        groups = None if groups is None else groups[rows]
        weights = None if weights is None else weights[rows]
    table = (sparse_design if sparse else design)(X, settings.impute)
    check_scale(target)
    keep = _known_columns("keep", settings.keep, table, X)
    table = _without(table, _known_columns("drop", settings.drop, table, X), keep)
    if table.num_units < 2:
        raise DataError(
            f"one column, {table.units[0]!r}, is left to choose from; give at least two"
        )
    repeated = repeated_rows(table, target, groups, settings.ordered, settings.seed)
    first = np.flatnonzero(repeated.kept)
    groups = None if repeated.groups is None else repeated.groups[first]
    common, target, classes, rare_now = _common_rows(target[first], task, classes, groups)
    if len(common) < len(repeated.kept):
        table = dataclasses.replace(table, X=table.X[first[common]])
        groups = None if groups is None else groups[common]
        weights = None if weights is None else weights[first[common]]
    numbers = {name: number for number, name in enumerate(table.units)}
    if len(keep) >= table.num_units:
        raise ConfigError("keep names all columns; leave at least one to choose")
    metric = choose_metric(settings.metric, task, target)
    if metric.name == RANKED:
        if settings.metric is None:
            notes = (*notes, Note(TARGET, "target", _extreme(target)))
        target = normal_scores(target)
    problem = Problem(
        design=table,
        y=target,
        task=task,
        metric=metric,
        rounds=[],
        methods=_methods(settings.methods, task, len(target), len(table.names)),
        seed=settings.seed,
        row_groups=groups,
        ordered=settings.ordered,
        keep=tuple(numbers[name] for name in keep),
        costs=None if settings.costs is None else _costs(settings.costs, table, X),
        weights=None if weights is None else weights / weights.mean(),
    )
    all_notes = (*repeated.notes, *notes, *of_weights, *rare, *rare_now, *table.notes)
    return problem, classes, all_notes


def _extreme(y: np.ndarray) -> str:
    return (
        f"has extreme values: a hundredth of the rows carry {100 * extreme_share(y):.0f} % of the "
        "variance; so its ranks (as normal scores) are predicted; choose the metric r2 to predict "
        "the values"
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


def _common_rows(
    y: np.ndarray, task: str, classes: Names, groups: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, Names, tuple[Note, ...]]:
    """Rows of the frequent classes, their target, their names, and a note on the others."""
    common = common_classes(y, task, groups)
    rows = np.flatnonzero(common.rows)
    if not common.rare or len(np.unique(y[rows])) < 2:
        # With too few classes left, the folds of all rows raise the error that says why.
        return np.arange(len(y)), y, classes, ()
    labels = [str(label) if classes is None else classes[label] for label in common.rare]
    kept, numbers = np.unique(y[rows], return_inverse=True)
    text = (
        f"has {'a class' if len(labels) == 1 else 'classes'} with too few rows for "
        "cross-validation, which are left out: "
        f"{name_some(labels)} ({len(y) - len(rows)} of {len(y)} rows)"
    )
    names = None if classes is None else tuple(classes[label] for label in kept)
    return rows, numbers.astype(y.dtype), names, (Note(TARGET, "rare", text),)


def _known_columns(label: str, names: Sequence[Hashable], table: Design, X: Any) -> list[str]:
    """The names that are among the units of the table; ConfigError for unknown columns."""
    if isinstance(names, str):
        names = [name for name in names.split(",") if name]
    known, units = _names_of(table, X), set(table.units)
    texts = [_name_of(name, X) for name in names]
    for name in texts:
        if name not in known and name not in units:
            raise ConfigError(f"{label}={name!r}: {nearest(name, known)}")
        if label == "keep" and name not in units:
            reasons = (note.text for note in table.notes if note.column == name)
            reason = next(reasons, "was left out")
            raise ConfigError(f"keep={name!r} cannot be used: the column {reason}")
    return [name for name in dict.fromkeys(texts) if name in units]


def _name_of(label: Hashable, X: Any) -> str:
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
    return _design_of_units(table, kept)


def _design_of_units(table: Design, units: Sequence[int]) -> Design:
    """The design with some of its units, renumbered."""
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
    """The problem with some of its units."""
    number = {unit: place for place, unit in enumerate(units)}
    return problem.replace(
        design=_design_of_units(problem.design, units),
        keep=tuple(number[unit] for unit in problem.keep if unit in number),
        costs=None if problem.costs is None else problem.costs[list(units)],
    )


def _costs(costs: Mapping[Hashable, float], table: Design, X: Any) -> np.ndarray:
    """The cost of each unit ``(G,)``, 1 where none is given."""
    known = _names_of(table, X)
    for name, cost in costs.items():
        if _name_of(name, X) not in known:
            raise ConfigError(f"costs has {name!r}: {nearest(str(name), known)}")
        if not (is_number(cost) and 0 < cost < float("inf")):
            raise ConfigError(f"costs[{name!r}]={cost!r}; choose a number above 0")
    by_name = {_name_of(name, X): float(cost) for name, cost in costs.items()}
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


def _identity(problem: Problem, judge: Judge | None, notes: Sequence[Note]) -> Identity:
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
            "leaks": [note.column for note in notes if note.kind == "leak"],
            "costs": None if problem.costs is None else digest(problem.costs),
            "methods": problem.methods,
            "seed": problem.seed,
        },
        data={
            "table": digest(*arrays_of(X)),
            "columns": digest(np.array(problem.design.names)),
            "target": digest(problem.y),
            "row_groups": None if groups is None else digest(groups),
            "sample_weight": None if problem.weights is None else digest(problem.weights),
        },
        code={"fsjax": __version__},
    )
