"""The tables of an answer: all columns, the scores of all methods, and the confusion matrix."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from fsjax.auto.certainty.findings import Findings
from fsjax.auto.certainty.leaks import ALIKE, LEADERS, alike, leaders
from fsjax.auto.contest import rule
from fsjax.auto.contest.cross_validation import Contest
from fsjax.auto.contest.folds import parts
from fsjax.auto.contest.judge import fitted
from fsjax.auto.contest.method_names import ALL
from fsjax.auto.contest.rule import Choice, FoldScores
from fsjax.auto.contest.scoring import Metric
from fsjax.auto.reading.columns import Design
from fsjax.auto.reading.target import Names


def confusion_table(contest: Contest, choice: Choice, classes: Names) -> pd.DataFrame | None:
    """Counts of out-of-fold predictions by true and predicted class, in the first round."""
    problem = contest.problem
    if problem.task != "classification" or classes is None:
        return None
    counts = np.zeros((len(classes), len(classes)), int)
    for place, fold in enumerate(problem.rounds[0]):
        if (piece := contest.records.piece(choice.method, (0, place))) is None:
            return None
        columns = np.arange(len(problem.design.names))
        if choice.method != ALL:
            order = piece["order"][: choice.size]
            if len(order) < choice.size:
                return None
            columns = problem.design.columns_of(order)
        train, test = parts(problem.design, problem.y, fold, problem.weights)
        model, X = fitted(contest.judged.judge((0, place)), problem.task, train, test, columns)
        np.add.at(counts, (test.y, model.predict(X).astype(int)), 1)
    return pd.DataFrame(counts, index=list(classes), columns=list(classes))


def column_rows(design: Design, order: np.ndarray, findings: Findings) -> pd.DataFrame:
    """``columns.csv``: every column that took part, in an order of its units ``(G,)``."""
    compared = order[:LEADERS]
    likeness = alike(design, compared)
    leader = leaders(likeness, compared)
    selected = np.isin(order, findings.chosen)
    scores = findings.ranking.scores
    scores = np.where(np.isfinite(scores), scores, np.nan)
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


def entries(alike: str) -> list[str]:
    """The entries of the column ``alike``; names may contain commas, so correlations end them."""
    return re.split(r"(?<=\(\d\.\d\d\)), ", alike) if alike else []


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
