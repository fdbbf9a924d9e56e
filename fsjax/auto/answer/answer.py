"""From what was found to the record of a selection, which files, pictures and pages show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from fsjax import __version__
from fsjax.auto.answer import statements
from fsjax.auto.answer.effects import effects, likeness
from fsjax.auto.answer.facts import Facts
from fsjax.auto.answer.selection_record import EFFECTS, SelectionRecord
from fsjax.auto.answer.tables import column_rows, confusion_table, curve_rows
from fsjax.auto.certainty.comparisons import comparison_table
from fsjax.auto.certainty.few_rows import counts_of, few_rows
from fsjax.auto.certainty.findings import Findings, by_filter
from fsjax.auto.contest.cross_validation import Contest
from fsjax.auto.contest.request import Request
from fsjax.auto.contest.row_rankings import full_order
from fsjax.auto.contest.rule import Choice
from fsjax.auto.reading.column_operations import nonzeros
from fsjax.auto.reading.notes import LEFT_OUT, ROWS, RUN, Note

_UNKNOWN = float("nan")


def answer(request: Request, contest: Contest, findings: Findings) -> SelectionRecord:
    """The record of a selection; it is undecided if nothing was scored."""
    problem, clock = contest.problem, contest.clock
    choice, chosen, decision = findings.choice, findings.chosen, findings.verdict
    best = choice or by_filter(problem)
    order = full_order(findings.ranking)
    shown = np.concatenate([chosen, order[~np.isin(order, chosen)]]).astype(int)
    score, low, high = findings.score
    few = None
    if choice is not None:
        counts = counts_of(problem, request.classes)
        few = few_rows(score, problem.metric, counts, decision.better)
    decoys = findings.decoys
    return SelectionRecord(
        method=best.method,
        num_features=len(chosen),
        columns=[request.label(problem.design.units[unit]) for unit in chosen],
        better_than_chance=decision.better,
        undecided=decision.undecided,
        score=score,
        score_interval=(low, high) if np.isfinite([low, high]).all() else None,
        score_at_choice=problem.metric.within_bounds(best.mean),
        score_all_columns=findings.all_columns,
        score_chance=findings.no_columns,
        metric=problem.metric.name,
        judge=contest.judge.words,
        task=problem.task,
        fdr=request.fdr,
        p_value=decision.p_value if choice is not None else _UNKNOWN,
        level=decision.level,
        seconds=round(clock.spent, 2),
        finished=choice is not None and not clock.stopped and not contest.left_out,
        stopped=clock.stopped,
        curves=curve_rows(contest.records.scores(), problem.folds, problem.metric),
        decoy_scores=(decoys.scores, decoys.decoys) if decoys.sets else None,
        statements=tuple(statements.sentences(findings, contest, request.fdr, few)),
        notes=(*request.notes, *_run_notes(request, contest, few)),
        facts=_facts(request, contest, findings, best),
        source=request.origin.source,
        target=request.origin.target,
        costs=request.costs,
        **_tables(request, contest, findings, shown),
    )


def _tables(
    request: Request, contest: Contest, findings: Findings, shown: np.ndarray
) -> dict[str, Any]:
    """The tables of a selection, by field of the record.

    Args:
      shown: ``(G,)`` all units, the selected ones first.
    """
    problem, choice, chosen = contest.problem, findings.choice, findings.chosen
    design, task, seed = problem.design, problem.task, problem.seed
    y = problem.y if problem.unranked is None else problem.unranked
    tables: dict[str, Any] = {"table": column_rows(design, shown, findings)}
    if choice is not None:
        tables["comparisons"] = comparison_table(findings.comparisons)
        described = effects(
            design, y, task, shown, request.classes, selected=len(chosen), seed=seed,
            row_groups=problem.row_groups, ordered=problem.ordered,
        )  # fmt: skip
        # The rows of both are in the order of ``shown``.
        of_effects = described[[name for name in EFFECTS if name in described]]
        tables["table"] = tables["table"].join(of_effects)
        tables["effects"] = _with_labels(described, request)
    tables["table"] = _with_labels(tables["table"], request)
    if choice is not None and findings.verdict.better:
        tables["confusion"] = confusion_table(contest, choice, request.classes)
    if len(chosen):
        tables["likeness"] = likeness(design, y, task, chosen, seed=seed)
    return tables


def _with_labels(frame: pd.DataFrame, request: Request) -> pd.DataFrame:
    """A table about columns with the user's labels instead of their names."""
    for name in ("column", "group"):
        if name in frame:
            frame[name] = pd.Series([request.label(unit) for unit in frame[name]], frame.index)
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


def _facts(request: Request, contest: Contest, findings: Findings, choice: Choice) -> Facts:
    problem, design, chance = contest.problem, contest.problem.design, findings.verdict.chance
    return Facts(
        rows=len(request.table.y),
        rows_compared=len(problem.y),
        columns_offered=design.num_units,
        columns_left_out=sum(note.kind in LEFT_OUT for note in request.notes),
        classes=list(request.classes or ()) if problem.task == "classification" else None,
        row_groups=problem.row_groups is not None,
        folds=problem.folds,
        rounds=contest.records.rounds(),
        judge_name=contest.judge.name,
        judges_tried={trial.name: trial.score for trial in problem.tried},
        permutations=chance.draws,
        as_good=chance.as_good,
        permutation_p_value=chance.p_value if chance.draws else None,
        folds_p_value=findings.verdict.folds_p_value,
        halves=findings.stability.halves,
        decoy_sets=findings.decoys.sets,
        decoy_statistic=findings.decoys.statistic,
        methods_left_out=dict(contest.left_out),
        best_method=choice.best_method,
        best_num_features=choice.best_size,
        best_score=problem.metric.within_bounds(choice.best),
        standard_error=choice.error,
        kept=[request.label(design.units[unit]) for unit in problem.keep],
        nonzeros=nonzeros(design.X),
        seed=problem.seed,
        version=__version__,
    )
