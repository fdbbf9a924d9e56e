"""The table of columns in ``report.html``: effects, evidence, curves, and a search."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import numpy as np
import pandas as pd

from fsjax.auto.page.html import facts_table, folded, scrolling_table
from fsjax.report.wording import shorten

if TYPE_CHECKING:
    from fsjax.auto.answer.effects import DependenceCurve
    from fsjax.auto.answer.selection_record import SelectionRecord

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

COLUMN_STYLE: Final = """
.columns { border-collapse: separate; border-spacing: 0; }
.columns td { vertical-align: top; } .columns small { display: block; opacity: 0.75; }
.columns td, .columns th { padding: 0.3rem 0.5rem; }
.columns .column { white-space: normal; overflow-wrap: anywhere; min-width: 11em; max-width: 18em;
  position: sticky; left: 0; background: var(--page); text-align: left; font-weight: 600; }
.columns thead .column { background: var(--soft); }
.columns thead th { white-space: normal; vertical-align: bottom; }
.columns .direction { text-align: left; white-space: normal; overflow-wrap: anywhere;
  min-width: 9em; max-width: 16em; }
.columns .alike { text-align: left; font-size: 0.8rem; white-space: normal;
  overflow-wrap: anywhere; min-width: 10em; max-width: 18em; }
.columns .curve polyline { fill: none; stroke: var(--ink-0072b2); stroke-width: 2; }
.columns .curve line { stroke: var(--line); }
.columns .curve svg { background: none; padding: 0; display: block; margin-left: auto; }
.search input { font: inherit; color: inherit; background: var(--soft); width: 100%;
  max-width: 24rem; border: 1px solid var(--line); border-radius: 4px; padding: 0.3rem 0.5rem; }
@media (max-width: 84rem) { .columns .p_value, .columns .score { display: none; } }
@media (max-width: 64rem) { .columns .alike, .columns .difference { display: none; } }
@media (max-width: 40rem) {
  .columns { font-size: 0.78rem; } .columns td, .columns th { padding: 0.25rem 0.2rem; }
  .columns thead th { font-size: 0.7rem; }
  .columns .column { max-width: 11em; min-width: 7em; } .columns .direction { min-width: 5.5em; }
  .columns .auc, .columns .correlation, .columns .slope, .columns .curve { display: none; }
}
"""

#: The page works without it, but has no search.
SEARCH_SCRIPT: Final = """
<script>
for (const part of document.querySelectorAll("section.search")) {
  const box = part.querySelector("p"), input = part.querySelector("input");
  const rows = [...part.querySelectorAll("tr[data-name]")];
  const folds = [...part.querySelectorAll("details.rows")];
  box.hidden = false;
  input.addEventListener("input", () => {
    const text = input.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.dataset.name.includes(text);
      shown += !row.hidden;
    }
    for (const fold of folds) fold.open = text && fold.querySelector("tr[data-name]:not([hidden])");
    part.querySelector("output").textContent = text
      ? `${shown} of ${rows.length} rows of this page; ${part.dataset.file} has all columns` : "";
  });
}
</script>
"""


def columns_section(selection: SelectionRecord, file: str = FILE) -> str:
    """Selected columns, the first of them unfolded; then the most important others, folded.

    Args:
      file: name of the CSV file of all columns, beside the page.
    """
    table = _rows(selection)
    chosen = table[table["selected"] == 1].head(SELECTED)
    others = table[table["selected"] == 0].head(OTHERS)
    first, more = chosen.head(OPEN), chosen.iloc[OPEN:]
    number = int(table["selected"].sum())
    heads = [name for name in _HEAD if name in table and _has_values(table.loc[first.index, name])]
    span = _span(table)
    parts = [
        f"<section class='search' data-file='{file}'>"
        "<p hidden><input type='search' placeholder='search columns' "
        "aria-label='search columns'> <output></output></p>"
    ]
    if len(first):
        parts.append(_table(first, heads, span))
    else:
        parts.append("<p>No column is selected.</p>")
        heads = [name for name in _HEAD if name in table and _has_values(table[name])]
    if len(more):
        rest = f"{len(more)} more selected columns"
        parts.append(folded(rest, _table(more, heads, span), "rows"))
    if len(others):
        what = f"the {len(others)} most important columns that are not selected"
        heads = [name for name in heads if name != "alike"]
        parts.append(folded(what, _table(others, heads, span), "rows"))
    left = number - len(chosen)
    beyond = f"{left} more selected columns and all others" if left else "All columns and numbers"
    parts.append(f"<p>{beyond}: <a href='{file}'>{file}</a>.</p></section>")
    legend = _legend(selection, table, heads)
    return "".join(parts) + folded("what the numbers mean", facts_table(legend), "legend")


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


def _table(table: pd.DataFrame, heads: Sequence[str], span: tuple[float, float]) -> str:
    top = "".join(f"<th class='{name}'>{_HEAD[name]}</th>" for name in heads)
    body = "".join(_row(row, heads, span) for row in table.to_dict("records"))
    return scrolling_table(body, top, "columns")


def _row(row: dict[str, Any], heads: Iterable[str], span: tuple[float, float]) -> str:
    cells = "".join(f"<td class='{name}'>{_cell(name, row, span)}</td>" for name in heads)
    return f"<tr data-name='{html.escape(str(row['column']).lower())}'>{cells}</tr>"


def _cell(name: str, row: dict[str, Any], span: tuple[float, float]) -> str:
    value = row[name]
    if name == "column":
        return html.escape(str(value))
    if name == "direction":
        return _direction(row)
    if name == "curve":
        return _curve(value, str(row["curve_of"]), span) if _is_curve(value) else ""
    if name == "alike":
        return _alike(value)
    if isinstance(value, str):
        return html.escape(value)
    if value is None or math.isnan(value):
        return ""
    if name == "frequency":
        return f"{100 * value:.0f} %"
    if name in ("p_value", "q_value"):
        return html.escape(_probability(value))
    digits = {"auc": ".3f", "difference": ".2f", "correlation": "+.2f", "slope": "+.3g",
              "false_discovery_rate": ".2f"}.get(name, ".3g")  # fmt: skip
    return _number(value, digits)


def _number(value: float, digits: str) -> str:
    return f"{value:{digits}}".replace("-", "\N{MINUS SIGN}")


def _probability(value: float) -> str:
    if value == 0:
        return "< 1e-300"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"


def _direction(row: dict[str, Any]) -> str:
    """The direction; below it the part of the column that it describes, and means by class."""
    if not isinstance(row["direction"], str):
        return ""
    small = []
    if row["part"] != str(row["column"]):
        small.append(str(row["part"]))
    means = row.get("means")
    if isinstance(means, dict):
        small += _means(means)
    notes = "".join(f"<small>{html.escape(text)}</small>" for text in small)
    return html.escape(row["direction"]) + notes


def _means(means: dict[str, float]) -> list[str]:
    """Standardised class means, one per line; of many classes the largest and the smallest."""
    ordered = sorted(means, key=lambda label: -means[label])
    lines = [f"{label} {_number(means[label], '+.2f')}" for label in ordered]
    return lines if len(lines) <= _MEANS else [lines[0], "...", lines[-1]]


def _alike(text: str) -> str:
    """The first correlated columns, one per line."""
    # Names may contain commas, so entries are split after their correlation.
    columns = text.replace("), ", ")\n").splitlines()
    more = [f"and {len(columns) - _ALIKE} more"] if len(columns) > _ALIKE else []
    return "<br>".join(html.escape(shorten(line, 40)) for line in [*columns[:_ALIKE], *more])


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


def _curve(curve: DependenceCurve, output: str, span: tuple[float, float]) -> str:
    """A small picture of a curve, with the predictions at both ends below it."""
    low, high = span
    x, y = np.asarray(curve.values, float), np.asarray(curve.predictions, float)
    across = 2 + (x - x[0]) / max(x[-1] - x[0], 1e-300) * (_WIDTH - 4)
    up = _HEIGHT - 2 - (y - low) / max(high - low, 1e-300) * (_HEIGHT - 4)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))
    label = html.escape(
        f"{output} from {y[0]:.3g} to {y[-1]:.3g} as the column goes from {x[0]:.4g} to {x[-1]:.4g}"
    )
    ends = f"{_number(y[0], '.3g')} \N{RIGHTWARDS ARROW} {_number(y[-1], '.3g')}"
    what = "" if output == "target" else f"<small>{html.escape(output)}</small>"
    return (
        f"<svg role='img' aria-label='{label}' width='{_WIDTH}' height='{_HEIGHT}' "
        f"viewBox='0 0 {_WIDTH} {_HEIGHT}'><title>{label}</title>"
        f"<line x1='0' x2='{_WIDTH}' y1='{_HEIGHT - 1}' y2='{_HEIGHT - 1}'/>"
        f"<polyline points='{points}'/></svg><small>{ends}</small>{what}"
    )


def _legend(
    selection: SelectionRecord, table: pd.DataFrame, heads: Sequence[str]
) -> dict[str, str]:
    """What the headings of the table mean, and how the values were computed."""
    facts, classes = selection.facts, selection.task == "classification"
    test = "Kruskal-Wallis test" if classes else "Spearman's rank correlation"
    low, high = _span(table)
    tested = facts["rows"]
    if selection.effects is not None:
        tested = selection.effects.attrs.get("rows", tested)
    part = f" on {tested:,} rows drawn at random" if tested < facts["rows"] else ""
    meanings = {
        "direction": "in which class the column is higher, with standardised means by class"
        if classes
        else "how the target changes as the column increases",
        "auc": "area under the ROC curve of the column by itself, for the named class against the "
        "rest: 0.5 is chance, 1 is perfect separation",
        "difference": "largest minus smallest class mean, in standard deviations within classes",
        "correlation": "Spearman's rank correlation of the column with the target",
        "slope": "change of the target per standard deviation of the column",
        "curve": "mean prediction of a random forest as this column changes and the others stay "
        f"fixed; all curves share one axis, from {low:.3g} to {high:.3g}",
        "frequency": f"stability selection: share of {facts['halves']} complementary halves of the "
        "rows on which the column is selected",
        "score": "importance by the chosen method on all rows",
        "false_discovery_rate": "estimated share of false discoveries among the columns that gain "
        "at least as much over their decoys (knockoffs of numeric columns, permuted copies of the "
        "others); none where the sets of decoys are too few or differ too much to tell",
        "p_value": f"of the column by itself ({test}){part}, assuming independent "
        f"{'groups of rows' if facts.get('row_groups') else 'rows'}",
        "q_value": "false discovery rate by Benjamini and Hochberg over all "
        f"{facts['columns_offered']} columns",
        "cost": "cost of the column, as given",
        "alike": "columns that could replace it, with their absolute rank correlation",
    }
    return {_HEAD[name]: meanings[name] for name in heads if name in meanings}
