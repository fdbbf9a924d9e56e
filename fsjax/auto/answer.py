"""From the scores to the answer: what was chosen, how sure that is, and what else is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fsjax.auto import rule, statements
from fsjax.auto.answer_tables import (
    column_rows,
    comparison_table,
    confusion_table,
    curve_rows,
)
from fsjax.auto.budget import Clock
from fsjax.auto.chance import Chance
from fsjax.auto.columns import LEFT_OUT, Note
from fsjax.auto.compete import ALL, NO_TIME, Contest
from fsjax.auto.differences import Difference, difference, interval
from fsjax.auto.discoveries import decoy_statistic
from fsjax.auto.effects import effects, likeness
from fsjax.auto.problem import Problem
from fsjax.auto.progress_file import Ledger
from fsjax.auto.rule import Choice, Scores
from fsjax.auto.selection import Selection
from fsjax.auto.stability import (
    MOST_PAIRS,
    MOST_SETS,
    PAIRS,
    SETS,
    Decoys,
    Frequencies,
    beside_decoys,
    frequencies,
    full_order,
    no_decoys,
    on_all_rows,
)
from fsjax.auto.statements import Comparison, title
from fsjax.auto.target import Names
from fsjax.auto.verdict import Verdict, verdict
from fsjax.tables.base import as_table
from fsjax.tables.columns import nonzeros
from fsjax.version import __version__


class Request(NamedTuple):
    """What an answer needs beside the scores.

    Attributes:
      table: what is asked, with all rows.
      classes: names of the classes, where there are some.
      fdr: false discovery rate that the selection keeps below, if any.
      notes: on how the table was read, and on columns.
      source, target: names of the file and of the target, for the report.
      costs: of the columns by name, if any.
    """

    table: Problem
    classes: Names
    fdr: float | None
    notes: tuple[Note, ...]
    source: str | None = None
    target: str | None = None
    costs: Mapping[str, float] | None = None


def answer(
    request: Request, contest: Contest, chance: Chance, ledger: Ledger, clock: Clock
) -> Selection:
    """The selection, from what ran.

    Args:
      request: what is asked.
      contest: the methods under cross-validation.
      chance: what permuted targets gave.
      ledger: of what is done.
      clock: the time; what is left goes to decoys and halves.
    """
    problem, folds = contest.problem, contest.problem.folds
    scores = contest.scores()
    if not scores:
        return _without_scores(request, contest, chance, ledger, clock)
    choice = _choose(scores, contest)
    honest = rule.honest_scores(scores, folds, problem.metric.margin)
    nothing = contest.chance_level()
    decision = verdict(chance, honest, nothing[:folds], problem)
    units = problem.design.num_units
    ranking = on_all_rows(request.table, contest, choice, ledger, clock)
    known = Frequencies(np.full(units, np.nan), 0)
    means = _best_means(scores)
    dense = not as_table(problem.design.X).sparse
    statistic = decoy_statistic(means, max(means.values()) - choice.error, dense)
    if decision.better:
        beside_decoys(problem, statistic, contest, ledger, clock, 0.9, SETS)
        frequencies(problem, contest, choice, ledger, clock, 0.95, PAIRS)
        # What time is left makes both finer.
        decoys = beside_decoys(problem, statistic, contest, ledger, clock, 0.95, MOST_SETS)
        if not decoys.sets:
            # A dear statistic may find no time; what quick ones gave before is an answer too.
            decoys = beside_decoys(problem, "l1", contest, ledger, clock, 0.95, SETS)
        known = frequencies(problem, contest, choice, ledger, clock, 1.0, MOST_PAIRS)
    else:
        decoys = no_decoys(units, statistic)
    order = full_order(ranking)
    chosen = _chosen(request, order, choice, decoys, decision)
    mean, low, high = interval(honest, problem.share)
    if np.isfinite([low, high]).all():
        low, high = np.clip([low, high], *problem.metric.bounds).tolist()
    everything = _mean(scores, (ALL, units))
    level = float(np.nanmean(nothing))
    compared = _comparisons(scores, choice, problem)
    enough = rule.enough(scores, choice, folds, problem.metric.margin)
    lines = _lines(
        request, contest, choice, decision, decoys, known, chosen, compared, enough,
        (mean, low, high), everything, level, clock,
    )  # fmt: skip
    names = request.classes
    shown = np.concatenate([chosen, order[~np.isin(order, chosen)]]).astype(int)
    return Selection(
        **_common(request, contest, clock),
        method=choice.method,
        num_features=len(chosen),
        columns=tuple(problem.design.units[unit] for unit in chosen),
        better_than_chance=decision.better,
        undecided=decision.undecided,
        score=mean,
        score_interval=(low, high) if np.isfinite([low, high]).all() else None,
        score_at_choice=choice.mean,
        score_all_columns=everything,
        score_chance=level,
        p_value=decision.p_value,
        level=decision.level,
        finished=not clock.stopped and not contest.left_out,
        table=column_rows(problem.design, shown, chosen, ranking, known, decoys),
        curves=curve_rows(scores, folds),
        comparisons=comparison_table(compared),
        confusion=confusion_table(contest, choice, names) if decision.better else None,
        effects=effects(
            problem.design,
            problem.y,
            problem.task,
            shown,
            names,
            selected=len(chosen),
            seed=problem.seed,
        ),
        likeness=likeness(problem.design, problem.y, problem.task, chosen, seed=problem.seed)
        if len(chosen)
        else None,
        decoy_scores=(decoys.scores, decoys.decoys) if decoys.sets else None,
        statements=tuple(lines),
        facts=_facts(request, contest, chance, choice, known, decoys),
    )


def _common(request: Request, contest: Contest, clock: Clock) -> dict[str, Any]:
    """What an answer says of the question, whatever was found."""
    problem = contest.problem
    return {
        "metric": problem.metric.name,
        "judge": contest.judge.words,
        "task": problem.task,
        "fdr": request.fdr,
        "seconds": round(clock.spent, 2),
        "stopped": clock.stopped,
        "source": request.source,
        "target": request.target,
        "costs": request.costs,
        "notes": request.notes,
    }


def early_choice(contest: Contest) -> Choice | None:
    """What the rule says so far, if anything was scored."""
    scores = contest.scores()
    return _choose(scores, contest) if scores else None


def _choose(scores: Scores, contest: Contest) -> Choice:
    problem = contest.problem
    costs = None if problem.costs is None else contest.costs()
    return rule.choose(scores, problem.folds, costs=costs, margin=problem.metric.margin)


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


def _lines(
    request: Request,
    contest: Contest,
    choice: Choice,
    decision: Verdict,
    decoys: Decoys,
    known: Frequencies,
    chosen: np.ndarray,
    compared: Sequence[Comparison],
    enough: Mapping[str, int],
    honest: tuple[float, float, float],
    everything: float,
    level: float,
    clock: Clock,
) -> list[str]:
    problem = contest.problem
    metric, units = problem.metric, problem.design.num_units
    mean, low, high = honest
    if decision.better:
        lines = [
            statements.selected(choice, units, len(chosen), request.fdr, decoys),
            *statements.scores(
                metric, choice, mean, (low, high), everything, level, decision, contest.judge.words
            ),
            *statements.certainty(chosen, decoys.rates, known, choice),
            *statements.comparisons(compared, metric),
            *statements.stand_ins(enough, choice, units),
        ]
    else:
        lines = statements.nothing_found(decision, metric, choice, mean, level)
    return [*lines, *_last_lines(request, contest, clock)]


def _last_lines(request: Request, contest: Contest, clock: Clock) -> list[str]:
    problem = contest.problem
    lines = statements.left_out(contest.left_out, NO_TIME)
    if len(problem.y) < len(request.table.y):
        lines.append(
            f"Methods were compared on {len(problem.y):,} of the {len(request.table.y):,} rows."
        )
    if contest.ledger.damaged:
        lines.append(
            f"{contest.ledger.damaged} lines of progress.jsonl were damaged; these pieces of work "
            "were done again."
        )
    if clock.stopped:
        lines.append("It was stopped before all was done; the same command goes on.")
    return lines


def _without_scores(
    request: Request, contest: Contest, chance: Chance, ledger: Ledger, clock: Clock
) -> Selection:
    """The answer where time was up before any fold was judged: a ranking, and no finding."""
    problem = contest.problem
    units, unknown = problem.design.num_units, float("nan")
    choice = Choice("univariate", problem.sizes[0], unknown, "univariate", 1, unknown, unknown)
    ranking = on_all_rows(request.table, contest, choice, ledger, clock)
    decision = Verdict(False, True, chance._replace(as_good=0, draws=0), 1.0)
    order, chosen = full_order(ranking), np.zeros(0, int)
    known, decoys = Frequencies(np.full(units, np.nan), 0), no_decoys(units, "l1")
    lines = statements.nothing_found(decision, problem.metric, None, unknown, unknown)
    return Selection(
        **_common(request, contest, clock),
        method=choice.method,
        num_features=0,
        columns=(),
        better_than_chance=False,
        undecided=True,
        score=unknown,
        score_at_choice=unknown,
        score_all_columns=unknown,
        score_chance=unknown,
        p_value=unknown,
        level=decision.level,
        finished=False,
        table=column_rows(problem.design, order, chosen, ranking, known, decoys),
        curves=curve_rows({}, problem.folds),
        statements=(*lines, *_last_lines(request, contest, clock)),
        facts=_facts(request, contest, chance, choice, known, decoys),
    )


def _facts(
    request: Request,
    contest: Contest,
    chance: Chance,
    choice: Choice,
    known: Frequencies,
    decoys: Decoys,
) -> dict[str, Any]:
    problem, design = contest.problem, contest.problem.design
    return {
        "rows": len(request.table.y),
        "rows_compared": len(problem.y),
        "columns_offered": design.num_units,
        "columns_left_out": sum(note.kind in LEFT_OUT for note in request.notes),
        "classes": None if request.classes is None else list(request.classes),
        "folds": problem.folds,
        "rounds": len(problem.rounds),
        "judge_name": contest.judge.name,
        "judges_tried": {trial.name: trial.score for trial in problem.tried},
        "permutations": chance.draws,
        "as_good": chance.as_good,
        "permutation_p_value": chance.p_value if chance.draws else None,
        "halves": known.halves,
        "decoy_sets": decoys.sets,
        "decoy_statistic": decoys.statistic,
        "methods_left_out": dict(contest.left_out),
        "best_method": choice.best_method,
        "best_num_features": choice.best_size,
        "best_score": choice.best,
        "standard_error": choice.error,
        "kept": [design.units[unit] for unit in problem.keep],
        "nonzeros": nonzeros(design.X),
        "seed": problem.seed,
        "version": __version__,
    }


def _best_means(scores: Scores) -> dict[str, float]:
    best: dict[str, float] = {}
    for (name, _), mean in rule.levelled_means(scores).items():
        best[name] = max(best.get(name, -np.inf), mean)
    return best


def _mean(scores: Scores, key: rule.Key) -> float:
    return float(np.nanmean(scores[key])) if key in scores else float("nan")


def _comparisons(scores: Scores, choice: Choice, problem: Problem) -> list[Comparison]:
    """The choice against all columns, random ones, and the other methods with as many columns."""
    units = problem.design.num_units
    chosen = scores[choice.method, choice.size]
    others: list[tuple[str, rule.Key]] = []
    if choice.method != ALL:
        number = statements.columns(choice.size)
        others.append((f"all {units:,} columns", (ALL, units)))
        names = dict.fromkeys(name for name, _ in scores if name not in (ALL, choice.method))
        others += [(f"{number} {title(name)}", (name, choice.size)) for name in names]
    rows = []
    for against, key in others:
        if key not in scores:
            continue
        paired: Difference = difference(chosen, scores[key], problem.share)
        rows.append(Comparison(against, paired, paired.verdict(problem.metric.margin)))
    # All columns and random ones first, then those that come closest.
    first = [row for row in rows if row.against.startswith("all") or "at random" in row.against]
    return first + sorted(
        (row for row in rows if row not in first), key=lambda row: row.difference.mean
    )
