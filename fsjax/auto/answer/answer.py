"""From the scores to the answer: what was selected, how sure that is, and what else is known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from fsjax import __version__
from fsjax.auto.answer import statements
from fsjax.auto.answer.effects import effects, likeness, unit_tests
from fsjax.auto.answer.selection_record import EFFECTS, SelectionRecord
from fsjax.auto.answer.statements import Findings
from fsjax.auto.certainty.comparisons import compare, comparison_table
from fsjax.auto.certainty.false_discovery import decoy_statistic
from fsjax.auto.certainty.few_rows import counts_of, few_rows, widened
from fsjax.auto.certainty.leaks import ALIKE, LEADERS, alike, leaders
from fsjax.auto.certainty.permutation_test import Chance, Verdict, verdict
from fsjax.auto.certainty.stability import (
    MAX_PAIRS,
    MAX_SETS,
    PAIRS,
    SETS,
    Decoys,
    Frequencies,
    compete_with_decoys,
    frequencies,
    full_order,
    no_decoys,
    on_all_rows,
    quick_statistic,
)
from fsjax.auto.contest import rule
from fsjax.auto.contest.cross_validation import ALL, Contest
from fsjax.auto.contest.differences import interval
from fsjax.auto.contest.folds import parts
from fsjax.auto.contest.judge import fitted
from fsjax.auto.contest.problem import Problem
from fsjax.auto.contest.rankers import Ranking
from fsjax.auto.contest.rule import Choice, FoldScores
from fsjax.auto.contest.scoring import Metric
from fsjax.auto.reading.column_operations import nonzeros
from fsjax.auto.reading.columns import Design
from fsjax.auto.reading.notes import LEFT_OUT, ROWS, RUN, Note
from fsjax.auto.reading.target import Names

_UNKNOWN = float("nan")


class Origin(NamedTuple):
    """Where a table comes from, for the report.

    Attributes:
      source: name of its file.
      target: name of the column that is predicted.
      command: the command line.
      notes: on how the file was read.
      elapsed: seconds since the start of the process, which count towards the budget.
    """

    source: str | None = None
    target: str | None = None
    command: str | None = None
    notes: tuple[Note, ...] = ()
    elapsed: float = 0.0


class Request(NamedTuple):
    """The request behind a selection.

    Attributes:
      table: the problem with all rows.
      classes: names of the classes, if there are classes.
      fdr: false discovery rate that the selection keeps below, if any.
      notes: on how the table was read, and on columns.
      origin: where the table comes from.
      costs: of the columns by label, if any.
      labels: of the user's columns by their names, where these differ.
    """

    table: Problem
    classes: Names
    fdr: float | None
    notes: tuple[Note, ...]
    origin: Origin
    costs: Mapping[Hashable, float] | None
    labels: Mapping[str, Hashable] = {}


def answer(
    request: Request, contest: Contest, chance: Chance, finer: bool = True
) -> SelectionRecord:
    """The selection, from what ran; the time that is left goes to decoys and halves of the rows.

    Without any score it is undecided, and columns are ranked by the univariate filter.

    Args:
      finer: whether time that is left after the first decoys and halves goes to more of them.
    """
    problem, clock = contest.problem, contest.clock
    design, y, task, seed = problem.design, problem.y, problem.task, problem.seed
    choice, scores = early_choice(contest), contest.scores()
    ranked_by = choice or Choice(
        "univariate", problem.sizes[0], _UNKNOWN, "univariate", 1, _UNKNOWN, _UNKNOWN
    )
    ranking = on_all_rows(request.table, contest, ranked_by)
    order = full_order(ranking)
    findings = _no_findings(chance, design.num_units)
    counts = counts_of(problem, request.classes)
    if choice is not None:
        findings = _findings(request, contest, chance, choice, order, finer)
        score_interval = widened(findings.score, problem.metric, counts)
        findings = findings._replace(score=score_interval)
    chosen, decision, decoys = findings.chosen, findings.verdict, findings.decoys
    shown = np.concatenate([chosen, order[~np.isin(order, chosen)]]).astype(int)
    score, low, high = findings.score
    few = few_rows(score, problem.metric, counts, decision.better) if choice is not None else None
    details: dict[str, Any] = {}
    table = column_rows(design, shown, ranking, findings)
    if choice is not None:
        details["comparisons"] = comparison_table(findings.comparisons)
        described = effects(
            design, y, task, shown, request.classes, selected=len(chosen), seed=seed,
            row_groups=problem.row_groups, ordered=problem.ordered,
        )  # fmt: skip
        # The rows of both are in the order of ``shown``.
        table = table.join(described[[name for name in EFFECTS if name in described]])
        details["effects"] = _with_labels(described, request)
    if choice is not None and decision.better:
        details["confusion"] = confusion_table(contest, choice, request.classes)
    if len(chosen):
        details["likeness"] = likeness(design, y, task, chosen, seed=seed)
    return SelectionRecord(
        method=ranked_by.method,
        num_features=len(chosen),
        columns=[_label(request, design.units[unit]) for unit in chosen],
        better_than_chance=decision.better,
        undecided=decision.undecided,
        score=score,
        score_interval=(low, high) if np.isfinite([low, high]).all() else None,
        score_at_choice=problem.metric.within_bounds(ranked_by.mean),
        score_all_columns=findings.all_columns,
        score_chance=findings.no_columns,
        metric=problem.metric.name,
        judge=contest.judge.words,
        task=task,
        fdr=request.fdr,
        p_value=decision.p_value if choice is not None else _UNKNOWN,
        level=decision.level,
        seconds=round(clock.spent, 2),
        finished=choice is not None and not clock.stopped and not contest.left_out,
        stopped=clock.stopped,
        table=_with_labels(table, request),
        curves=curve_rows(scores, problem.folds, problem.metric),
        decoy_scores=(decoys.scores, decoys.decoys) if decoys.sets else None,
        statements=tuple(statements.sentences(findings, contest, request.fdr, few)),
        notes=(*request.notes, *_run_notes(request, contest, few)),
        facts=_facts(request, contest, findings, ranked_by),
        source=request.origin.source,
        target=request.origin.target,
        costs=request.costs,
        **details,
    )


def early_choice(contest: Contest) -> Choice | None:
    """What the rule says so far, if anything was scored."""
    scores, problem = contest.scores(), contest.problem
    if not scores:
        return None
    costs = None if problem.costs is None else contest.costs()
    return rule.choose(scores, problem.folds, costs=costs, margin=problem.metric.margin)


def _findings(
    request: Request,
    contest: Contest,
    chance: Chance,
    choice: Choice,
    order: np.ndarray,
    finer: bool,
) -> Findings:
    """What the scores, the permutations, the decoys and the halves of the rows show."""
    problem, scores, chance_level = contest.problem, contest.scores(), contest.chance_level()
    folds, margin = problem.folds, problem.metric.margin
    honest = rule.nested_scores(scores, folds, margin)
    decision = verdict(
        chance, honest, chance_level[:folds], problem, lambda: smallest_q_value(problem)
    )
    compared = compare(contest, choice) if decision.better else []
    decoys, stability = _certainty(contest, choice, decision, finer)
    mean, low, high = interval(honest, problem.share)
    if np.isfinite([low, high]).all():
        low, high = np.clip([low, high], *problem.metric.bounds).tolist()
    all_columns = scores.get((ALL, problem.design.num_units))
    return Findings(
        choice=choice,
        verdict=decision,
        score=(mean, low, high),
        all_columns=_UNKNOWN if all_columns is None else float(np.nanmean(all_columns)),
        no_columns=float(np.nanmean(chance_level[:folds])),
        decoys=decoys,
        stability=stability,
        chosen=_chosen(request, order, choice, decoys, decision),
        comparisons=compared,
        enough=rule.enough(scores, choice, folds, margin),
    )


def smallest_q_value(problem: Problem) -> float:
    """The smallest q-value of a single unit; NaN for rows in order of time."""
    tests = unit_tests(
        problem.design, problem.y, problem.task, problem.seed, problem.row_groups, problem.ordered
    )
    return float(tests.q_values.min())


def _no_findings(chance: Chance, units: int) -> Findings:
    """What is known where time was up before any fold was scored."""
    return Findings(
        choice=None,
        verdict=Verdict(False, True, chance, 1.0),
        score=(_UNKNOWN, _UNKNOWN, _UNKNOWN),
        all_columns=_UNKNOWN,
        no_columns=_UNKNOWN,
        decoys=no_decoys(units, "l1"),
        stability=Frequencies(np.full(units, np.nan), 0),
        chosen=np.zeros(0, int),
    )


def _certainty(
    contest: Contest, choice: Choice, decision: Verdict, finer: bool
) -> tuple[Decoys, Frequencies]:
    """Decoys and halves of the rows, as many as there is time for, if there is a finding."""
    problem = contest.problem
    units = problem.design.num_units
    means = _best_means(contest.scores())
    dense = not issparse(problem.design.X)
    if not decision.better:
        return no_decoys(units, "l1"), Frequencies(np.full(units, np.nan), 0)
    quick = quick_statistic(contest, 0.85)
    statistic = decoy_statistic(means, max(means.values()) - choice.error, dense, quick)
    decoys = compete_with_decoys(contest, statistic, 0.9, SETS)
    stability = frequencies(contest, choice, 0.95, PAIRS)
    if not finer:
        return decoys, stability
    # The time that is left makes both estimates finer.
    decoys = compete_with_decoys(contest, statistic, 0.95, MAX_SETS)
    for name in (quick, "l1"):
        # There may be no time for an expensive statistic; a quick one may have run before.
        if not decoys.sets:
            decoys = compete_with_decoys(contest, name, 0.95, SETS)
    return decoys, frequencies(contest, choice, 1.0, MAX_PAIRS)


def _chosen(
    request: Request, order: np.ndarray, choice: Choice, decoys: Decoys, decision: Verdict
) -> np.ndarray:
    """The selected units, the most important first."""
    if not decision.better:
        return np.zeros(0, int)
    if request.fdr is not None:
        keep = np.isin(order, request.table.keep)
        low = np.nan_to_num(decoys.rates[order], nan=1.0) <= request.fdr
        return order[keep | (low & (decoys.sets > 0))]
    return order[: len(order) if choice.method == ALL else choice.size]


def _label(request: Request, name: str) -> Hashable:
    """The user's label of a column."""
    return request.labels.get(name, name)


def _with_labels(frame: pd.DataFrame, request: Request) -> pd.DataFrame:
    """A table about columns with the user's labels instead of their names."""
    for name in ("column", "group"):
        if name in frame:
            frame[name] = pd.Series([_label(request, unit) for unit in frame[name]], frame.index)
    return frame


def _run_notes(request: Request, contest: Contest, few: str | None) -> list[Note]:
    """What limits the answer: methods, rows and work that are missing from it."""
    notes = statements.left_out(contest.left_out)
    if few is not None:
        notes.append(Note(ROWS, "few rows", few))
    rows, compared = len(request.table.y), len(contest.problem.y)
    if compared < rows:
        notes.append(
            Note(ROWS, "rows", f"methods were compared on {compared:,} of the {rows:,} rows")
        )
    if contest.ledger.damaged:
        text = (
            "lines of progress.jsonl that are damaged, or belong to another request: "
            f"{contest.ledger.damaged}; the work that they recorded was repeated"
        )
        notes.append(Note(RUN, "ledger", text))
    if contest.clock.stopped:
        text = "stopped before it was complete; run it again to continue"
        notes.append(Note(RUN, "stopped", text))
    return notes


def _facts(
    request: Request, contest: Contest, findings: Findings, choice: Choice
) -> dict[str, Any]:
    problem, design, chance = contest.problem, contest.problem.design, findings.verdict.chance
    return {
        "rows": len(request.table.y),
        "rows_compared": len(problem.y),
        "columns_offered": design.num_units,
        "columns_left_out": sum(note.kind in LEFT_OUT for note in request.notes),
        "classes": None if request.classes is None else list(request.classes),
        "row_groups": problem.row_groups is not None,
        "folds": problem.folds,
        "rounds": len(problem.rounds),
        "judge_name": contest.judge.name,
        "judges_tried": {trial.name: trial.score for trial in problem.tried},
        "permutations": chance.draws,
        "as_good": chance.as_good,
        "permutation_p_value": chance.p_value if chance.draws else None,
        "folds_p_value": findings.verdict.folds_p_value,
        "halves": findings.stability.halves,
        "decoy_sets": findings.decoys.sets,
        "decoy_statistic": findings.decoys.statistic,
        "methods_left_out": dict(contest.left_out),
        "best_method": choice.best_method,
        "best_num_features": choice.best_size,
        "best_score": problem.metric.within_bounds(choice.best),
        "standard_error": choice.error,
        "kept": [_label(request, design.units[unit]) for unit in problem.keep],
        "nonzeros": nonzeros(design.X),
        "seed": problem.seed,
        "version": __version__,
    }


def _best_means(scores: FoldScores) -> dict[str, float]:
    """The best mean score of each method."""
    best: dict[str, float] = {}
    for (name, _), mean in rule.means_on_common_folds(scores).items():
        best[name] = max(best.get(name, -np.inf), mean)
    return best


def confusion_table(contest: Contest, choice: Choice, classes: Names) -> pd.DataFrame | None:
    """Counts of out-of-fold predictions by true and predicted class, in the first round."""
    problem = contest.problem
    if problem.task != "classification" or classes is None:
        return None
    counts = np.zeros((len(classes), len(classes)), int)
    for place, fold in enumerate(problem.rounds[0]):
        if (piece := contest.piece(choice.method, (0, place))) is None:
            return None
        columns = np.arange(len(problem.design.names))
        if choice.method != ALL:
            order = piece["order"][: choice.size]
            if len(order) < choice.size:
                return None
            columns = problem.design.columns_of(order)
        train, test = parts(problem.design, problem.y, fold, problem.weights)
        model, X = fitted(contest.judge, problem.task, train, test, columns)
        np.add.at(counts, (test.y, model.predict(X).astype(int)), 1)
    return pd.DataFrame(counts, index=list(classes), columns=list(classes))


def column_rows(
    design: Design, order: np.ndarray, ranking: Ranking, findings: Findings
) -> pd.DataFrame:
    """``columns.csv``: every column that took part, in an order of its units ``(G,)``."""
    compared = order[:LEADERS]
    likeness = alike(design, compared)
    leader = leaders(likeness, compared)
    selected = np.isin(order, findings.chosen)
    scores = np.where(np.isfinite(ranking.scores), ranking.scores, np.nan)
    return pd.DataFrame(
        {
            "column": [design.units[unit] for unit in order],
            "selected": selected.astype(int),
            "frequency": findings.stability.frequency[order],
            "score": scores[order],
            "false_discovery_rate": findings.decoys.known_rates[order],
            "group": [design.units[leader[unit]] for unit in order],
            "alike": [
                _replacements(design, unit, likeness[place])
                if selected[place] and place < LEADERS
                else ""
                for place, unit in enumerate(order)
            ],
        }
    )


def _replacements(design: Design, unit: int, likeness: np.ndarray) -> str:
    """The units most correlated with one, with their correlations ``(G,)``."""
    order = np.argsort(-likeness, kind="stable")
    named = [
        f"{design.units[other]} ({likeness[other]:.2f})"
        for other in order[:6]
        if other != unit and likeness[other] >= ALIKE
    ]
    return ", ".join(named[:5])


def curve_rows(scores: FoldScores, folds: int, metric: Metric) -> pd.DataFrame:
    """``curves.csv``: mean score and standard error of each method and number of columns."""
    means = rule.means_on_common_folds(scores) if scores else {}
    rows = [
        {
            "method": name,
            "num_features": size,
            "mean": metric.within_bounds(means[name, size]),
            "error": rule.standard_error(values, folds),
            "folds": int((~np.isnan(values)).sum()),
        }
        for (name, size), values in scores.items()
    ]
    return pd.DataFrame(rows, columns=["method", "num_features", "mean", "error", "folds"])
