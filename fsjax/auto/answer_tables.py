"""The tables of an answer: columns, curves of scores, comparisons, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fsjax.auto import rule
from fsjax.auto.columns import Design
from fsjax.auto.compete import ALL, Contest
from fsjax.auto.folds import parts
from fsjax.auto.judge import fitted
from fsjax.auto.leaks import ALIKE, LEADERS, alike, leaders
from fsjax.auto.rankers import Ranking
from fsjax.auto.rule import Choice, Scores
from fsjax.auto.statements import Comparison, Findings
from fsjax.auto.target import Names


def comparison_table(rows: Sequence[Comparison]) -> pd.DataFrame:
    """A row for each comparison of the selection, as :class:`Selection` has them."""
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
    problem = contest.problem
    if problem.task != "classification" or classes is None:
        return None
    counts = np.zeros((len(classes), len(classes)), int)
    for place, fold in enumerate(problem.rounds[0]):
        if (piece := contest.piece(choice.method, 0, place)) is None:
            return None
        columns = np.arange(len(problem.design.names))
        if choice.method != ALL:
            order = piece["order"][: choice.size]
            if len(order) < choice.size:
                return None
            columns = problem.design.columns_of(order)
        train, test = parts(problem.design, problem.y, fold)
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
            "false_discovery_rate": findings.decoys.rates[order],
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


def curve_rows(scores: Scores, folds: int) -> pd.DataFrame:
    """``curves.csv``: mean score and standard error of each method and number of columns."""
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
