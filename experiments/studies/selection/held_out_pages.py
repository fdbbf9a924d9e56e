"""The Markdown tables of the study of held-out rows."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from experiments.artifacts.markdown import as_rows
from experiments.artifacts.statistics.trials import mean_interval
from experiments.studies.selection.baselines import SELECTORS
from fsjax.storage.atomic_files import write_text

#: The name of ``fsjax select`` among the selectors.
OURS = "select"

#: Number of columns that others choose if ``select`` finds nothing.
NOTHING_K = 10

#: Precision of the scores that are ranked.
_TOLERANCE = 0.005


class Paired(NamedTuple):
    """Mean difference of paired scores, its 95 % interval, and p of Wilcoxon's signed-rank test."""

    mean: float
    low: float
    high: float
    p_value: float


def paired(scores: np.ndarray, others: np.ndarray) -> Paired:
    """Compares the scores of two selectors on the same tables, ``(T,)`` each.

    The interval is Student's. All but the mean are NaN for one table; p is 1 without differences.
    """
    difference = np.asarray(scores, np.float64) - np.asarray(others, np.float64)
    mean, half = mean_interval(difference)
    if len(difference) < 2:
        return Paired(mean, np.nan, np.nan, np.nan)
    p_value = float(wilcoxon(difference).pvalue) if difference.any() else 1.0
    return Paired(mean, mean - half, mean + half, p_value)


def mean_ranks(scores: pd.DataFrame) -> pd.Series:
    """Mean rank of each selector over the tables, 1 is best; sorted, best first.

    Args:
      scores: ``(tables, selectors)``, higher is better, without missing values.
        Scores that are equal after rounding to multiples of :data:`_TOLERANCE` share a rank.
    """
    rounded = (scores / _TOLERANCE).round()
    return rounded.rank(axis=1, ascending=False).mean().sort_values(kind="stable")


def score_table(answers: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Mean scores by three judges, ``(runs, selectors)``, with equally many columns each.

    Runs without an answer, or whose answer is all columns, are left out. If ``select`` found
    nothing, its score is that of no columns, while the others chose :data:`NOTHING_K`.

    Args:
      answers: of ``fsjax select`` at one budget.
      scores: of all selectors.
    """
    lines = {}
    for answer in answers.itertuples():
        part = scores[(scores["table"] == answer.table) & (scores["seed"] == answer.seed)]
        ours = part[(part["selector"] == OURS) & (part["budget"] == answer.budget)]
        if ours.empty or answer.method == "all":
            continue
        others = part[part["selector"] != OURS]
        # A table may have fewer columns than NOTHING_K.
        k = ours["k"].iloc[0] or others.loc[others["k"] <= NOTHING_K, "k"].max()
        same = others[others["k"] == k].set_index("selector")["mean"]
        line = {OURS: ours["mean"].iloc[0], **same.to_dict()}
        lines[answer.table, answer.seed] = line
    return pd.DataFrame(lines.values(), index=pd.MultiIndex.from_tuples(lines))


def rank_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Makes a table, in text: mean rank and score of each selector, and ``select`` minus it.

    Args:
      table: from :func:`score_table`, without missing values.
    """
    rows = []
    for name, rank in mean_ranks(table).items():
        row = {
            "selector": str(name),
            "mean rank": f"{rank:.2f}",
            "mean score": f"{table[name].mean():.1f}",
            "select minus it": "",
            "95 % interval": "",
            "p": "",
        }
        if name != OURS:
            compared = paired(table[OURS].to_numpy(), table[name].to_numpy())
            row |= {
                "select minus it": f"{compared.mean:+.1f}",
                "95 % interval": f"{compared.low:+.1f} to {compared.high:+.1f}",
                "p": f"{compared.p_value:.2g}",
            }
        rows.append(row)
    return pd.DataFrame(rows)


def answer_rows(answers: pd.DataFrame, scores: pd.DataFrame, sizes: pd.DataFrame) -> pd.DataFrame:
    """Makes a table, in text: the answer of ``select`` by table, its cost and held-out score."""
    ours = scores[scores["selector"] == OURS]
    keys = ["table", "seed", "budget"]
    joined = answers.merge(ours[[*keys, "own_judge", "mean"]], on=keys, how="left").merge(sizes)
    rows = []
    for line in joined.itertuples():
        rows.append(
            {
                "table": line.table,
                "rows x columns": f"{line.rows:,} x {line.columns:,}",
                "seconds": f"{line.seconds:.0f}",
                "GiB": f"{line.peak_mib / 1024:.1f}",
                "verdict": line.verdict,
                "method": _text(line.method),
                "K": _number(line.k, 0),
                "networks": str(line.networks),
                "judge": line.judge,
                "claimed": _number(line.claimed),
                "held out": _number(line.own_judge),
                "three judges": _number(line.mean),
                "claimed minus held out": _number(line.claimed - line.own_judge, sign=True),
            }
        )
    return pd.DataFrame(rows)


def _text(value: object) -> str:
    return "" if pd.isna(value) else str(value)


def _number(value: float, digits: int = 1, sign: bool = False) -> str:
    if pd.isna(value):
        return ""
    return f"{value:{'+' if sign else ''}.{digits}f}"


def summary(answers: pd.DataFrame, scores: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Makes a table, in text, of the main results of the study."""
    keys = ["table", "seed", "budget"]
    ours = scores[scores["selector"] == OURS]
    joined = answers.merge(ours[[*keys, "own_judge"]], on=keys, how="left")
    optimism = (joined["claimed"] - joined["own_judge"]).dropna()
    counts = answers["verdict"].value_counts()
    ranks = mean_ranks(table)
    return pd.DataFrame(
        [
            (
                "runs with an answer",
                f"{len(answers) - counts.get('no answer', 0)} of {len(answers)}",
            ),
            ("of these, nothing", str(counts.get("nothing", 0))),
            ("of these, undecided", str(counts.get("undecided", 0))),
            ("of these, all columns", str((answers["method"] == "all").sum())),
            ("longest, seconds", f"{answers['seconds'].max():.0f}"),
            ("largest memory, GiB", f"{answers['peak_mib'].max() / 1024:.1f}"),
            ("runs that are ranked", str(len(table))),
            ("mean rank of select", f"{ranks[OURS]:.2f}"),
            ("best mean rank", f"{ranks.index[0]} ({ranks.iloc[0]:.2f})"),
            ("claimed minus held out, mean", f"{optimism.mean():+.1f}"),
            ("claimed minus held out, mean size", f"{optimism.abs().mean():.1f}"),
        ],
        columns=["figure", "value"],
    )


def publish(
    answers: pd.DataFrame, scores: pd.DataFrame, sizes: pd.DataFrame, budget: float, folder: Path
) -> None:
    """Writes the tables of one budget.

    Args:
      answers: of all budgets.
      scores: of all selectors and budgets.
      sizes: ``rows`` and ``columns`` by ``table``.
      budget: seconds.
      folder: where the Markdown files go.
    """
    chosen = answers[(answers["budget"] == budget) & answers["table"].isin(sizes["table"])]
    table = score_table(chosen, scores)
    complete = table[[OURS, *SELECTORS]].dropna()
    by_table = complete.map("{:.1f}".format).reset_index(level=1, drop=True)
    pages = {
        "answers": answer_rows(chosen, scores, sizes),
        "scores": by_table.rename_axis("table").reset_index(),
        "ranks": rank_rows(complete),
        "summary": summary(chosen, scores, complete),
    }
    for name, rows in pages.items():
        path = folder / f"selection_study_{name}_{budget:g}s.md"
        write_text(path, as_rows(rows))
        print(f"\n{path}\n{rows.to_string(index=False)}", flush=True)
