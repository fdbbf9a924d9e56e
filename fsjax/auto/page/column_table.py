"""The table of columns in ``report.html``: effects, evidence, curves, and a search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np
import pandas as pd

from fsjax.auto.answer.effects import DependenceCurve
from fsjax.auto.answer.selection_record import SelectionRecord
from fsjax.auto.answer.tables import entries
from fsjax.report.wording import shorten

#: Most rows that are shown unfolded, of selected columns, and of columns that are not selected.
OPEN, SELECTED, OTHERS = 20, 300, 100

#: Files that the page links to: all columns of the selection, and of the one with leaks.
FILE, WITH_LEAKS = "columns.csv", "columns-with-leaks.csv"

#: Most class means, and most correlated columns, that a row shows.
_MEANS, _ALIKE = 3, 3

#: Pixels of a partial dependence curve.
_WIDTH, _HEIGHT = 110, 32

#: Table headings by name; columns without any value are left out.
_HEAD: Final = {
    "column": "column",
    "direction": "effect",
    "auc": "AUC",
    "difference": "difference (SD)",
    "correlation": "rank correlation",
    "slope": "slope per SD",
    "curve": "partial dependence",
    "frequency": "selection frequency",
    "false_discovery_rate": "false discovery rate",
    "p_value": "p-value",
    "q_value": "q-value",
    "cost": "cost",
    "score": "importance",
    "alike": "correlated with",
}


class Sparkline(NamedTuple):
    """A small picture of a partial dependence curve: an SVG polyline, and what it shows."""

    label: str
    points: str
    width: int
    height: int


class PageCell(NamedTuple):
    """A cell of the table.

    Attributes:
      name: of its heading, for the style.
      lines: of text.
      small: further texts below, in small print.
      curve: a picture above the text, or ``None``.
    """

    name: str
    lines: Sequence[str]
    small: Sequence[str] = ()
    curve: Sparkline | None = None


class Row(NamedTuple):
    """A column of the user's table: its name as the search compares it, and its cells."""

    name: str
    cells: list[PageCell]


class Head(NamedTuple):
    """A heading."""

    name: str
    title: str


class PageTable(NamedTuple):
    """Some of the columns."""

    heads: list[Head]
    rows: list[Row]


class Columns(NamedTuple):
    """Selected columns, the first of them unfolded; then the most important others, folded.

    Attributes:
      file: name of the CSV file of all columns, beside the page.
      first, more, others: the columns.
      beyond: number of selected columns that the page does not show.
      legend: what the headings mean.
    """

    file: str
    first: PageTable
    more: PageTable
    others: PageTable
    beyond: int
    legend: dict[str, str]


def columns_of(selection: SelectionRecord, file: str = FILE) -> Columns:
    """The columns of a selection for the template.

    Args:
      file: name of the CSV file of all columns, beside the page.
    """
    table = _rows(selection)
    chosen = table[table["selected"] == 1].head(SELECTED)
    others = table[table["selected"] == 0].head(OTHERS)
    first = chosen.head(OPEN)
    shown = table.loc[first.index] if len(first) else table
    heads = [name for name in _HEAD if name in table and _has_values(shown[name])]
    of_others = [name for name in heads if name != "alike"]
    span = _span(table)
    return Columns(
        file,
        _table(first, heads, span),
        _table(chosen.iloc[OPEN:], heads, span),
        _table(others, of_others, span),
        int(table["selected"].sum()) - len(chosen),
        _legend(selection, table, of_others if len(others) else heads),
    )


def _rows(selection: SelectionRecord) -> pd.DataFrame:
    """Columns by importance, with their effects and costs."""
    table = selection.table
    if selection.effects is not None:
        # Both have the same columns in the same order.
        table = table.join(selection.effects.drop(columns=table.columns, errors="ignore"))
    if selection.costs is not None:
        table = table.assign(cost=table["column"].map(selection.costs))
    return table


def _has_values(values: pd.Series) -> bool:
    return bool((values.notna() & (values != "")).any())


def _table(table: pd.DataFrame, heads: Sequence[str], span: tuple[float, float]) -> PageTable:
    rows = [
        Row(str(row["column"]).lower(), [_cell(name, row, span) for name in heads])
        for row in table.to_dict("records")
    ]
    return PageTable([Head(name, _HEAD[name]) for name in heads], rows)


def _cell(name: str, row: dict[str, Any], span: tuple[float, float]) -> PageCell:
    value = row[name]
    if name == "column":
        return PageCell(name, [str(value)])
    if name == "direction":
        return _direction(row)
    if name == "curve":
        return _curve(value, str(row["curve_of"]), span) if _is_curve(value) else PageCell(name, [])
    if name == "alike":
        return PageCell(name, _alike(value))
    return PageCell(name, [_text(name, value)])


def _text(name: str, value: Any) -> str:
    """A number as its column shows it; empty if it is missing."""
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return ""
    if name == "frequency":
        return f"{100 * value:.0f} %"
    if name in ("p_value", "q_value"):
        return _probability(value)
    digits = {"auc": ".3f", "difference": ".2f", "correlation": "+.2f", "slope": "+.3g",
              "false_discovery_rate": ".2f"}.get(name, ".3g")  # fmt: skip
    return _number(value, digits)


def _number(value: float, digits: str) -> str:
    return f"{value:{digits}}".replace("-", "\N{MINUS SIGN}")


def _probability(value: float) -> str:
    if value == 0:
        return "< 1e-300"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"


def _direction(row: dict[str, Any]) -> PageCell:
    """The direction; below it the part of the column that it describes, and means by class."""
    if not isinstance(row["direction"], str):
        return PageCell("direction", [])
    small = []
    if row["part"] != str(row["column"]):
        small.append(str(row["part"]))
    means = row.get("means")
    if isinstance(means, dict):
        small += _means(means)
    return PageCell("direction", [row["direction"]], small)


def _means(means: dict[str, float]) -> list[str]:
    """Standardised class means, one per line; of many classes the largest and the smallest."""
    ordered = sorted(means, key=lambda label: -means[label])
    lines = [f"{label} {_number(means[label], '+.2f')}" for label in ordered]
    return lines if len(lines) <= _MEANS else [lines[0], "...", lines[-1]]


def _alike(text: str) -> list[str]:
    """The first correlated columns, one per line."""
    columns = entries(text)
    more = [f"and {len(columns) - _ALIKE} more"] if len(columns) > _ALIKE else []
    return [shorten(line, 40) for line in [*columns[:_ALIKE], *more]]


def _span(table: pd.DataFrame) -> tuple[float, float]:
    """The smallest and the largest prediction of all curves, which share an axis."""
    drawn = [curve for curve in table.get("curve", ()) if _is_curve(curve)]
    if not drawn:
        return 0.0, 1.0
    values = np.concatenate([curve.predictions for curve in drawn])
    return float(values.min()), float(values.max())


def _is_curve(value: object) -> TypeGuard[DependenceCurve]:
    """Whether a cell holds a curve, and not a missing value of pandas."""
    return isinstance(value, tuple)


def _curve(curve: DependenceCurve, output: str, span: tuple[float, float]) -> PageCell:
    """A small picture of a curve, with the predictions at both ends below it."""
    low, high = span
    x, y = np.asarray(curve.values, float), np.asarray(curve.predictions, float)
    across = 2 + (x - x[0]) / max(x[-1] - x[0], 1e-300) * (_WIDTH - 4)
    up = _HEIGHT - 2 - (y - low) / max(high - low, 1e-300) * (_HEIGHT - 4)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
    label = (
        f"{output} from {y[0]:.3g} to {y[-1]:.3g} as the column goes from {x[0]:.4g} to {x[-1]:.4g}"
    )
    ends = f"{_number(y[0], '.3g')} \N{RIGHTWARDS ARROW} {_number(y[-1], '.3g')}"
    small = [ends] if output == "target" else [ends, output]
    return PageCell("curve", [], small, Sparkline(label, points, _WIDTH, _HEIGHT))


def _legend(
    selection: SelectionRecord, table: pd.DataFrame, heads: Sequence[str]
) -> dict[str, str]:
    """What the headings of the table mean, and how the values were computed."""
    facts, classes = selection.facts, selection.task == "classification"
    test = "Kruskal-Wallis test" if classes else "Spearman's rank correlation"
    goal, moves = "the target", "how the target changes as the column increases"
    if selection.task == "survival":
        goal = "the martingale residuals (events beyond those expected by then, without any column)"
        moves = "whether events are earlier or later as the column increases"
        test += " with the martingale residuals"
    low, high = _span(table)
    tested = facts.rows
    if selection.effects is not None:
        tested = selection.effects.attrs.get("rows", tested)
    part = f" on {tested:,} rows drawn at random" if tested < facts.rows else ""
    meanings = {
        "direction": "in which class the column is higher, with standardised means by class"
        if classes
        else moves,
        "auc": "area under the ROC curve of the column by itself, for the named class against the "
        "rest: 0.5 is chance, 1 is perfect separation",
        "difference": "largest minus smallest class mean, in standard deviations within classes",
        "correlation": f"Spearman's rank correlation of the column with {goal}",
        "slope": f"change of {goal} per standard deviation of the column",
        "curve": "mean prediction of a random forest as this column changes and the others stay "
        f"fixed; all curves share one axis, from {low:.3g} to {high:.3g}",
        "frequency": f"stability selection: share of {facts.halves} complementary halves of the "
        "rows on which the column is selected",
        "score": "importance by the chosen method on all rows",
        "false_discovery_rate": "estimated share of false discoveries among the columns that gain "
        "at least as much over their decoys (knockoffs of numeric columns, permuted copies of the "
        "others); none where the sets of decoys are too few or differ too much to tell",
        "p_value": f"of the column by itself ({test}){part}, assuming independent "
        f"{'groups of rows' if facts.row_groups else 'rows'}",
        "q_value": "false discovery rate by Benjamini and Hochberg over all "
        f"{facts.columns_offered} columns",
        "cost": "cost of the column, as given",
        "alike": "columns that could replace it, with their absolute rank correlation",
    }
    return {_HEAD[name]: meanings[name] for name in heads if name in meanings}
