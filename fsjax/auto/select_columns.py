"""``fsjax.select``: which columns of a table to keep, how many, and how sure that is."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from fsjax import ConfigError, __version__
from fsjax.auto.answer import statements
from fsjax.auto.certainty.near_leaks import leak_notes
from fsjax.auto.contest.budget import Clock, seconds
from fsjax.auto.contest.judge import Judge, requested_judge
from fsjax.auto.contest.problem import Problem, on_rows, representative_rows
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.request import Origin, Request
from fsjax.auto.contest.row_weights import check_weighted
from fsjax.auto.pipeline import without_and_with_leaks
from fsjax.auto.read_request import Settings, name_of, read_request
from fsjax.auto.reading.column_operations import arrays_of
from fsjax.auto.reading.notes import Note
from fsjax.auto.selection import Selection
from fsjax.errors import check_whole, is_number
from fsjax.storage.file_lock import exclusive
from fsjax.storage.identity import Identity

#: Largest seed: folds and draws add small numbers to it, and random generators take 32 bits.
MAX_SEED = 2**31

#: Most rows on which folds are tried before anything runs.
_FOLD_ROWS = 1_000


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
    cheapest first within the budget. In a fold one model, the judge, predicts from every selection,
    chosen by inner validation on the training rows of the fold. The fewest columns within one
    standard error of the best score, paired over the folds, are selected. Permuted targets show
    whether there is anything to find, complementary halves of the rows how often each column is
    selected, and decoys (knockoffs and permuted copies) how many columns are likely to be false.

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
        best within the training rows of each fold.
      budget: time, for example ``'90s'``, ``'5min'``, ``'1h'`` or seconds; ``None`` sets no limit.
      fdr: false discovery rate in (0, 1): selects all columns whose estimated rate is at most this.
        By default the fewest columns that predict as well as the best are selected.
      impute: ``'mean'`` or ``'median'`` of the training rows for missing numbers, with a column
        that indicates them; ``None`` refuses them. Sparse tables may have none missing.
      methods: names of the contenders: simple ones, or any registered method. All columns and
        random ones always take part.
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
    # Iterators can be read once.
    keep, drop = (names if isinstance(names, str) else list(names) for names in (keep, drop))
    settings = Settings(
        task, metric, impute, methods, keep, drop, costs, row_groups, ordered,
        check_whole("seed", seed, min_value=0, max_value=MAX_SEED), sample_weight,
    )  # fmt: skip
    problem, classes, notes = read_request(X, y, settings)
    chosen_judge = requested_judge(judge, problem.task)
    if problem.weights is not None:
        check_weighted(problem.task, judge, problem.metric)
    labels = {str(label): label for label in X.columns} if isinstance(X, pd.DataFrame) else {}
    labelled_costs = None
    if costs is not None:
        labelled_costs = {labels.get(name_of(k, X), k): cost for k, cost in costs.items()}
    warnings = leak_notes(problem, classes)
    all_notes = (*origin.notes, *notes, *warnings)
    request = Request(problem, classes, fdr, all_notes, origin, labelled_costs, labels)
    # Raises for a table without usable folds, before anything is written.
    on_rows(problem, representative_rows(problem, _FOLD_ROWS))
    folder = None if workdir is None else Path(workdir)
    # In small matrix products and models, threads wait for each other longer than they work.
    with threadpool_limits(1), nullcontext() if folder is None else exclusive(folder):
        ledger = Ledger(folder, _identity(problem, chosen_judge, warnings))
        selection = without_and_with_leaks(request, chosen_judge, ledger, clock)
        selection = replace(
            selection,
            statements=(*statements.on_equal_rows(all_notes), *selection.statements),
            seconds=round(clock.spent, 2),
        )
        if folder is not None:
            selection.save(folder, origin.command)
    clock.clear()
    return selection


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
