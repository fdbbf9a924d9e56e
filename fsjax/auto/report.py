"""``report.html`` of a selection: verdict first, numbers next, method last."""

from __future__ import annotations

import datetime
import html
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from fsjax.auto.column_table import COLUMN_STYLE, SEARCH_SCRIPT, WITH_LEAKS, columns_section
from fsjax.auto.notes import LEFT_OUT, Note
from fsjax.auto.scoring import metric_named
from fsjax.extras import is_installed
from fsjax.report.charts import CHART_STYLE, chart
from fsjax.report.html import facts_table, page_of, rows_table, scrolling_table
from fsjax.report.wording import count
from fsjax.tables.columns import FEW

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from fsjax.auto.selection import Selection

#: Most notes that the page shows; selection.json has all.
_NOTES = 50

#: With more classes than this, only the most frequent confusions are shown.
MAX_CLASSES, _CONFUSIONS = 12, 12

_HEATMAP_STYLE: Final = """
.heatmap td, .heatmap th { padding: 0.15rem 0.3rem; text-align: center; border: none; }
.heatmap th:first-child { text-align: left; position: sticky; left: 0; background: var(--page);
  font-weight: normal; max-width: 16em; overflow: hidden; text-overflow: ellipsis; }
.heatmap thead th { white-space: normal; vertical-align: bottom; }
.heatmap td { min-width: 2.3em; background: rgb(0 114 178 / calc(0.75 * var(--share))); }
.heatmap td:first-child { text-align: center; }
@media (max-width: 40rem) { .heatmap th:first-child { max-width: 9em; } }
"""

_STYLE: Final = """
body { max-width: 72rem; } figcaption, body > p { max-width: 56rem; }
.verdict { border-left: 0.4rem solid var(--ink-0072b2); background: var(--soft);
  padding: 0.6rem 0.9rem; border-radius: 4px; margin: 1rem 0; }
.verdict.undecided { border-color: var(--ink-d55e00); }
.verdict.nothing { border-color: var(--ink-5f5f5f); }
.verdict p { margin: 0.3rem 0; overflow-wrap: anywhere; } .verdict .label { font-size: 0.85rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr));
  gap: 0.6rem; margin: 1rem 0; }
.figures div { border: 1px solid var(--line); border-radius: 4px; padding: 0.4rem 0.6rem; }
.figures dt { font-size: 0.82rem; opacity: 0.8; } .figures dl, .figures dd { margin: 0; }
.figures dd { font-size: 1.15rem; } .figures small { display: block; font-size: 0.8rem; }
.aside { border-left: 0.2rem solid var(--line); padding-left: 0.9rem; }
@media (max-width: 40rem) { .aside { padding-left: 0.5rem; } }
"""


def page(selection: Selection, command: str | None, date: datetime.date) -> str:
    """The page as HTML; ``command`` is the command line of the selection, if there was one."""
    title = "Which columns to keep" + (f": {selection.source}" if selection.source else "")
    css = CHART_STYLE + COLUMN_STYLE + _HEATMAP_STYLE + _STYLE
    return page_of(title, _sections(selection, command, date), css)


def _sections(selection: Selection, command: str | None, date: datetime.date) -> Iterable[str]:
    target = f"Target {selection.target}, " if selection.target else ""
    yield f"<p>{html.escape(target)}{selection.task}, {date:%Y-%m-%d}</p>"
    yield _verdict(selection) + _figures(selection)
    leaks = [note for note in selection.notes if note.level != "remark"]
    if leaks:
        yield "<h2>Look at these first</h2>" + _notes(leaks)
    if selection.with_leaks is not None:
        yield _with_leaks(selection.with_leaks)
    yield "<h2>Score by number of columns</h2>" + _curves(selection, "curves")
    if selection.comparisons is not None and len(selection.comparisons):
        yield "<h2>Comparisons</h2>" + _comparisons(selection, selection.comparisons)
    yield "<h2>Columns</h2>" + columns_section(selection)
    yield from _column_pictures(selection)
    if selection.confusion is not None:
        yield "<h2>Confusion matrix</h2><p>Predictions for rows that the model has not seen.</p>"
        yield confusion_table(selection.confusion)
    yield "<h2>Methods</h2>" + _methods(selection)
    kept = [
        note for note in selection.notes if note.level == "remark" and note.kind not in LEFT_OUT
    ]
    left_out = [note for note in selection.notes if note.kind in LEFT_OUT]
    if left_out:
        yield "<h2>Columns that were left out</h2>" + _notes(left_out)
    if kept:
        yield "<h2>How columns were read</h2>" + _notes(kept)
    yield "<h2>How it was done</h2>" + facts_table(_how(selection))
    if command:
        yield f"<h2>How to run it again</h2><pre>{html.escape(command)}</pre>"
    if not is_installed("matplotlib"):
        yield "<p>Without figures: Matplotlib is not installed (pip install 'fsjax[plot]').</p>"
    yield SEARCH_SCRIPT


def _verdict(selection: Selection) -> str:
    if selection.undecided:
        kind, label = "undecided", "Undecided"
    elif selection.better_than_chance:
        kind, label = "better", "Better than chance"
    else:
        kind, label = "nothing", "Not better than chance"
    first, *others = (html.escape(text) for text in selection.statements)
    more = "".join(f"<p>{text}</p>" for text in others)
    return (
        f"<div class='verdict {kind}'><p class='label'>{label}</p>"
        f"<p><strong>{first}</strong></p>{more}</div>"
    )


def _figures(selection: Selection) -> str:
    """The numbers behind the verdict: each with its label and a remark."""
    metric, facts = metric_named(selection.metric, selection.task), selection.facts
    interval = ""
    if selection.score_interval is not None:
        interval = "95 % interval " + " to ".join(map(metric.number, selection.score_interval))
    level = "" if math.isnan(selection.level) else f"level {selection.level:g}, "
    figures = [
        ("columns selected", f"{selection.num_features} of {facts['columns_offered']}",
         f"by {selection.method}" if selection.num_features else ""),
        (f"{metric.short} of the whole procedure", metric.show(selection.score), interval),
        (f"{metric.short} with all columns", metric.show(selection.score_all_columns), ""),
        (f"{metric.short} without any column", metric.show(selection.score_chance), ""),
        ("p-value", "not known" if math.isnan(selection.p_value)
         else f"{selection.p_value:.2g}", f"{level}{facts['permutations']} permutations"),
    ]  # fmt: skip
    if selection.costs is not None and selection.num_features:
        total = sum(selection.costs.get(name, 0.0) for name in selection.columns)
        figures.append(("cost of the columns", f"{total:g}", ""))
    tiles = "".join(
        f"<div><dt>{html.escape(label)}</dt><dd>{html.escape(value)}"
        + (f"<small>{html.escape(remark)}</small>" if remark else "")
        + "</dd></div>"
        for label, value, remark in figures
    )
    return f"<dl class='figures'>{tiles}</dl>"


def _with_leaks(selection: Selection) -> str:
    """Verdict, numbers and columns of the selection from all columns, likely leaks included."""
    return (
        "<h2>With the likely leaks</h2><div class='aside'>"
        f"{_verdict(selection)}{_figures(selection)}{_curves(selection, 'with-leaks')}"
        f"{columns_section(selection, WITH_LEAKS)}</div>"
    )


def _curves(selection: Selection, name: str) -> str:
    label = metric_named(selection.metric, selection.task).label
    label = label if label.isupper() or label[0].isdigit() else label[0].lower() + label[1:]
    caption = (
        f"Cross-validated {label} by number of columns, with standard errors; the grey band is "
        "within one standard error of the best score"
    )
    return _chart(lambda pictures, width: pictures.plot_curves(selection, width), name, caption)


def _chart(draw: Callable[[Any, float], Figure | None], name: str, caption: str) -> str:
    """A figure that ``draw`` makes with :mod:`fsjax.auto.pictures`, if Matplotlib is installed."""
    if not is_installed("matplotlib"):
        return ""
    from fsjax.auto import pictures

    return chart(lambda width: draw(pictures, width), name, caption)


def _column_pictures(selection: Selection) -> Iterable[str]:
    halves = selection.facts["halves"]
    sets = 0 if selection.decoy_scores is None else len(selection.decoy_scores[1])
    if selection.likeness is not None and len(selection.likeness) > 1:
        yield (
            "<h3>Correlated columns</h3><p>Absolute rank correlations of the selected columns; "
            "columns with a correlation close to 1 could replace each other.</p>"
        )
        yield likeness_heatmap(selection.likeness)
    yield _chart(
        lambda pictures, width: pictures.plot_columns(selection, width),
        "columns",
        f"Selection frequency: stability selection over {halves} complementary halves of the rows",
    )
    yield _chart(
        lambda pictures, width: pictures.plot_decoys(selection, width),
        "decoys",
        "By how much columns are more important than their decoys, and decoys than their "
        f"columns, in {count(sets, 'set')} of decoys (knockoffs of numeric columns, permuted "
        "copies of the others); columns above the line are filled, the band spans all sets",
    )


def _comparisons(selection: Selection, comparisons: pd.DataFrame) -> str:
    metric = metric_named(selection.metric, selection.task)
    rows = [
        [
            row.against,
            metric.number(row.difference, sign=True),
            f"{metric.number(row.low, sign=True)} to {metric.number(row.high, sign=True)}",
            row.verdict,
        ]
        for row in comparisons.itertuples()
    ]
    head = ["the selection minus", f"difference of {metric.short}", "95 % interval", "verdict"]
    return rows_table(head, rows, words=True, wraps=True) + "<p>Paired over the same folds.</p>"


def _methods(selection: Selection) -> str:
    metric = metric_named(selection.metric, selection.task)
    sizes = sorted(selection.curves["num_features"].unique())
    rows = []
    for name, curve in selection.curves.groupby("method", sort=False):
        scores = curve.set_index("num_features")[["mean", "error"]]
        cells = [
            "{:.{d}f} ± {:.{d}f}".format(*scores.loc[size], d=metric.digits)
            if size in scores.index
            else ""
            for size in sizes
        ]
        rows.append([str(name), str(int(curve["folds"].max())), *cells])
    left_out = "".join(
        f"<p>{html.escape(name)} {html.escape(reason)}.</p>"
        for name, reason in selection.facts["methods_left_out"].items()
    )
    caption = f"Cross-validated {metric.short} ± standard error, by number of columns."
    return f"<p>{caption}</p>" + rows_table(["method", "folds", *map(str, sizes)], rows) + left_out


def _notes(notes: Sequence[Note]) -> str:
    rows = [[note.column, note.text] for note in notes[:_NOTES]]
    more = len(notes) - len(rows)
    table = rows_table(["column", "note"], rows, words=True, wraps=True)
    return table + (f"<p>{more} more in selection.json.</p>" if more else "")


def _how(selection: Selection) -> dict[str, str]:
    facts, metric = selection.facts, metric_named(selection.metric, selection.task)
    rounds = f", {facts['rounds']} rounds" if facts["rounds"] > 1 else ""
    sparse = {}
    if facts["nonzeros"] is not None:
        share = facts["nonzeros"] / facts["rows"] / facts["columns_offered"]
        sparse["nonzero values"] = f"{facts['nonzeros']:,} ({100 * share:.2g} %)"
    values = {
        "rows": _rows(selection),
        "columns to choose from": facts["columns_offered"],
        **sparse,
        "task": selection.task,
        "score": metric.label,
        "cross-validation": f"{facts['folds']} folds{rounds}, selection within the training rows",
        "judge (model that predicts)": _judge(selection),
        "rule": "fewest columns within one standard error of the best score, paired over the folds"
        + (f", and at most {metric.margin:g} behind it" if math.isfinite(metric.margin) else ""),
        "permutation test": f"{facts['permutations']} permutations of the target, of which "
        f"{facts['as_good']} are predicted as well as the target",
        "decoys": f"{count(facts['decoy_sets'], 'set')}, importance by {facts['decoy_statistic']}"
        if facts["decoy_sets"]
        else "none",
        "seconds": selection.seconds,
        "seed": facts["seed"],
        "version": facts["version"],
    }
    return {name: str(value) for name, value in values.items()}


def _rows(selection: Selection) -> str:
    """The number of rows, and the number on which methods were compared if that is smaller."""
    rows, compared = selection.facts["rows"], selection.facts.get("rows_compared")
    fewer = compared is not None and compared < rows
    return f"{rows:,}" + (f"; methods were compared on {compared:,} of them" if fewer else "")


def _judge(selection: Selection) -> str:
    """The model that predicts from the columns, and the models that it was chosen from."""
    facts = selection.facts
    tried = {name: score for name, score in facts["judges_tried"].items() if score is not None}
    metric = metric_named(selection.metric, selection.task)
    scores = ", ".join(f"{name} {metric.show(score)}" for name, score in tried.items())
    chosen = f" (inner validation: {scores})" if scores else ""
    wide = facts["nonzeros"] is not None and facts["columns_offered"] > FEW
    return selection.judge + chosen + ("; from all columns a linear model" if wide else "")


def likeness_heatmap(likeness: pd.DataFrame) -> str:
    """Absolute rank correlations, with correlated columns next to each other."""
    values = likeness.to_numpy()
    order = _side_by_side(values)
    names = [f"{number}. {likeness.index[place]}" for number, place in enumerate(order, 1)]
    shown = values[np.ix_(order, order)]
    texts = [[f"{value:.2f}".lstrip("0").replace("1.00", "1") for value in row] for row in shown]
    return _shaded([str(number) for number in range(1, len(order) + 1)], names, texts, shown)


def _side_by_side(likeness: np.ndarray) -> list[int]:
    """The order of the leaves of a tree of average linkage."""
    if len(likeness) < 3:
        return list(range(len(likeness)))
    distance = 1.0 - (likeness + likeness.T) / 2
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return leaves_list(tree).tolist()


def confusion_table(counts: pd.DataFrame) -> str:
    """Out-of-fold predictions, a row for each class; for many classes only their confusions."""
    values = counts.to_numpy(float)
    share = values / np.maximum(values.sum(axis=1, keepdims=True), 1e-300)
    labels = [str(label) for label in counts.index]
    if len(labels) <= MAX_CLASSES:
        texts = [
            [f"{value:g} ({100 * part:.0f} %)" for value, part in zip(*rows, strict=True)]
            for rows in zip(values.round(1), share, strict=True)
        ]
        predicted = [f"predicted {label}" for label in counts.columns]
        return _shaded(predicted, [f"true {label}" for label in labels], texts, share)
    mistakes = values.copy()
    np.fill_diagonal(mistakes, 0.0)
    largest = np.argsort(-mistakes, axis=None, kind="stable")[:_CONFUSIONS]
    places = [divmod(int(place), len(labels)) for place in largest if mistakes.flat[place] > 0]
    rows = [
        [labels[true], str(counts.columns[other]), f"{values[true, other]:g}",
         f"{100 * share[true, other]:.0f} %"]
        for true, other in places
    ]  # fmt: skip
    return rows_table(["true", "predicted", "rows", "share of the class"], rows)


def _shaded(
    heads: Sequence[str], names: Sequence[str], texts: Sequence[Sequence[str]], shares: np.ndarray
) -> str:
    top = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
    body = "".join(
        f"<tr><th title='{html.escape(name)}'>{html.escape(name)}</th>"
        + "".join(
            f"<td style='--share:{share:.2f}'>{text}</td>"
            for text, share in zip(row, row_shares, strict=True)
        )
        + "</tr>"
        for name, row, row_shares in zip(names, texts, shares, strict=True)
    )
    return scrolling_table(body, f"<th></th>{top}", "heatmap")
