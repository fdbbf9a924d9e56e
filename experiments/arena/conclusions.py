"""Conclusions from the rows: the best by shape, beside a forest, below chance, and the truth."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from experiments.arena.ratings import MIN_TABLES, TIE, Scores, by_split, rate
from experiments.arena.selectors import OURS, RANDOM
from experiments.arena.verdict import SHAPES, of_shapes
from experiments.artifacts.statistics.trials import mean_interval

#: The simple selector that the others are compared with.
REFERENCE = "extra trees"

#: How many selectors are named for each shape of tables.
_BEST = 5


def best(scores: Scores, summary: pd.DataFrame) -> pd.DataFrame:
    """The best rated selectors by shape of tables, of those that have a score on half of them.

    Args:
      summary: the table of :func:`verdict.summary`, with ``seconds``.

    Returns:
      Text: the shape and number of tables, the best selectors with their Elo ratings on these
      tables and median CPU seconds on all, and how many are certainly worse than the first.
    """
    lines = []
    for shape in ("all", *SHAPES):
        part = of_shapes(scores, SHAPES if shape == "all" else (shape,))
        if not part.tables:
            continue
        ratings = rate(part)
        many = ratings.elo[2 * ratings.tables >= len(part.tables)]
        if len(many) < 2:
            continue
        first, *others = (str(name) for name in many.index)
        named = [
            f"{name} {elo:.0f} ({summary['seconds'].get(name, np.nan):.1f} s)"
            for name, elo in many.head(_BEST).items()
        ]
        worse = sum(ratings.certainly_better(first, other) for other in others)
        lines.append(
            {
                "tables": shape,
                "number": str(len(part.tables)),
                "best rated, Elo and CPU seconds": ", ".join(named),
                "certainly worse than the first": f"{worse} of {len(others)}"
                if len(part.tables) >= MIN_TABLES
                else "too few tables",
            }
        )
    return pd.DataFrame(lines)


def beside(scores: Scores, reference: str = REFERENCE) -> pd.DataFrame:
    """Mean differences of scores from those of a reference, on the splits that both have.

    Returns:
      By selector, best first: ``mean`` and ``half`` width of its 95 % interval over tables
      (Student's t), and the numbers of tables on which it is ``better``, ``equal`` and ``worse``.
    """
    lines = {}
    for name, column in scores.minus(reference).drop(columns=reference).items():
        values = column.dropna()
        mean, half = mean_interval(values)
        counts = (int((values > TIE).sum()), int((values < -TIE).sum()))
        lines[name] = (mean, half, counts[0], len(values) - sum(counts), counts[1])
    columns = ["mean", "half", "better", "equal", "worse"]
    table = pd.DataFrame.from_dict(lines, orient="index", columns=columns)
    return table.dropna(subset=["mean"]).sort_values("mean", ascending=False, kind="stable")


def below_random(scores: Scores) -> dict[str, list[str]]:
    """The tables on which random columns score more, by selector, who has most first."""
    below = scores.minus(RANDOM) < -TIE
    tables = {str(name): list(column.index[column]) for name, column in below.items()}
    return dict(sorted(tables.items(), key=lambda item: -len(item[1])))


def found_by_table(rows: pd.DataFrame, order: Sequence[str]) -> pd.DataFrame:
    """Shares of the informative columns among as many first ones, ``(selectors, tables)`` in %.

    A failure counts as random columns.

    Args:
      order: of the selectors.
    """
    means = by_split(rows, rows["found"]).means().T
    return 100 * means.reindex(index=order).dropna(axis=1, how="all")


def contender_order(scores: Scores, shapes: Collection[str], names: Sequence[str]) -> list[str]:
    """Methods of the library by their rating on tables of some shapes, the best first.

    Args:
      names: of methods, as in ``fsjax.methods.METHODS``; those without a game come last, in order.
    """
    elo = rate(of_shapes(scores, shapes), 1).elo
    return sorted(names, key=lambda name: -elo.get(_class_of(name), -np.inf))


def _class_of(method: str) -> str:
    return next((selector for selector, name in OURS.items() if name == method), "")
