"""The tables of an answer: columns, curves of scores, comparisons, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fsjax.auto import rule
from fsjax.auto.columns import Design
from fsjax.auto.compete import ALL, Contest
from fsjax.auto.judge import fitted
from fsjax.auto.leaks import ALIKE, LEADERS, alike, leaders
from fsjax.auto.preparation import parts
from fsjax.auto.rankers import Ranking
from fsjax.auto.rule import Choice, Scores
from fsjax.auto.stability import Decoys, Frequencies
from fsjax.auto.statements import Comparison
from fsjax.auto.target import Names


def comparison_table(rows: Sequence[Comparison]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "what": "the selection",
                "against": row.against,
                "difference": row.difference.mean,
                "low": row.difference.low,
                "high": row.difference.high,
                "verdict": row.verdict,
            }
            for row in rows
        ],
        columns=["what", "against", "difference", "low", "high", "verdict"],
    )


def confusion_table(contest: Contest, choice: Choice, classes: Names) -> pd.DataFrame | None:
    """Counts of out-of-fold predictions by true and predicted class, in the first round."""
    problem, ledger = contest.problem, contest.ledger
    if problem.task != "classification" or classes is None:
        return None
    counts = np.zeros((len(classes), len(classes)), int)
    for place, fold in enumerate(problem.rounds[0]):
        key = f"fold/{choice.method}/0/{place}"
        if key not in ledger:
            return None
        columns = np.arange(len(problem.design.names))
        if choice.method != ALL:
            order = ledger[key]["order"][: choice.size]
            if len(order) < choice.size:
                return None
            columns = problem.design.columns_of(order)
        train, test = parts(problem.design, problem.y, fold)
        model, X = fitted(contest.judge, problem.task, train, test, columns)
        np.add.at(counts, (test.y, model.predict(X).astype(int)), 1)
    return pd.DataFrame(counts, index=list(classes), columns=list(classes))


def column_rows(
    table: Design,
    first: np.ndarray,
    chosen: np.ndarray,
    ranking: Ranking,
    known: Frequencies,
    decoys: Decoys,
) -> pd.DataFrame:
    """``columns.csv``: every column that took part, the selected ones first."""
    likeness_rows = alike(table, first[:LEADERS])
    leader = leaders(likeness_rows, first[:LEADERS])
    rows = {unit: likeness_rows[place] for place, unit in enumerate(first[:LEADERS])}
    selected = set(chosen.tolist())
    stand_ins = [
        _stand_ins(table, unit, rows[unit]) if unit in rows and unit in selected else ""
        for unit in first
    ]
    scores = np.where(np.isfinite(ranking.scores), ranking.scores, np.nan)
    return pd.DataFrame(
        {
            "column": [table.units[unit] for unit in first],
            "selected": np.isin(first, chosen).astype(int),
            "frequency": known.frequency[first],
            "score": scores[first],
            "false_discovery_rate": decoys.rates[first],
            "group": [table.units[leader[unit]] for unit in first],
            "alike": stand_ins,
        }
    )


def _stand_ins(table: Design, unit: int, likeness_row: np.ndarray) -> str:
    """The units most like one, with their correlation."""
    order = np.argsort(-likeness_row, kind="stable")
    named = [
        f"{table.units[other]} ({likeness_row[other]:.2f})"
        for other in order[:6]
        if other != unit and likeness_row[other] >= ALIKE
    ]
    return ", ".join(named[:5])


def curve_rows(scores: Scores, folds: int) -> pd.DataFrame:
    means = rule.levelled_means(scores) if scores else {}
    rows = [
        {
            "method": name,
            "num_features": size,
            "mean": means[name, size],
            "error": rule.standard_error(values, folds),
            "folds": int((~np.isnan(values)).sum()),
        }
        for (name, size), values in scores.items()
    ]
    return pd.DataFrame(rows, columns=["method", "num_features", "mean", "error", "folds"])
