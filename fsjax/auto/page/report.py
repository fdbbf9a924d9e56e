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

from fsjax.auto.answer.comparison_sentences import Compared, comparison_sentences
from fsjax.auto.contest.method_names import in_words, title
from fsjax.auto.contest.scoring import metric_named
from fsjax.auto.page import summary
from fsjax.auto.page.charts import CHART_STYLE, chart
from fsjax.auto.page.column_table import (
    COLUMN_STYLE,
    FILE,
    SEARCH_SCRIPT,
    WITH_LEAKS,
    columns_section,
)
from fsjax.auto.page.html import facts_table, folded, page_of, rows_table, scrolling_table
from fsjax.auto.reading.column_operations import FEW
from fsjax.auto.reading.notes import LEFT_OUT, by_level
from fsjax.extras import is_installed
from fsjax.report.wording import count, shorten_all

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from fsjax.auto.answer.selection_record import SelectionRecord

#: Most notes that the page shows; selection.json has all.
_NOTES = 50

#: From so many names on, they are written smaller.
_MANY = 9

#: With more classes than this, only the most frequent confusions are shown.
MAX_CLASSES, _CONFUSIONS = 12, 12

#: Names of the judges that are tried.
_JUDGES: Final = {"linear": "linear model", "rbf": "RBF kernel", "trees": "boosted trees"}

_HEATMAP_STYLE: Final = """
.heatmap td, .heatmap th { padding: 0.15rem 0.3rem; text-align: center; border: none; }
.heatmap th:first-child { text-align: left; position: sticky; left: 0; background: var(--page);
  font-weight: normal; max-width: 22em; overflow-wrap: anywhere; }
.heatmap thead th { white-space: normal; vertical-align: bottom; }
.heatmap td { min-width: 2.3em; background: rgb(0 114 178 / calc(0.75 * var(--share))); }
.heatmap td:first-child { text-align: center; }
@media (max-width: 40rem) {
  .heatmap th:first-child { max-width: 10em; min-width: 8em; white-space: normal; }
}
"""

_STYLE: Final = """
body { max-width: 78rem; } h1 { font-size: 1.15rem; font-weight: 600; }
figcaption, body > p { max-width: 56rem; }
.verdict { border-left: 0.4rem solid var(--ink-0072b2); background: var(--soft);
  padding: 0.6rem 0.9rem; border-radius: 4px; margin: 0.6rem 0; }
.verdict.undecided { border-color: var(--ink-d55e00); }
.verdict.nothing { border-color: var(--ink-5f5f5f); }
.verdict p, .verdict li { margin: 0.3rem 0; overflow-wrap: anywhere; }
.verdict .keep { font-size: 1.25rem; line-height: 1.35; } .verdict ul { margin: 0;
  padding-left: 1.2rem; }
.verdict .checks { border-top: 1px solid var(--line); margin-top: 0.5rem; padding-top: 0.3rem; }
.aside { border-left: 0.2rem solid var(--line); padding-left: 0.9rem; font-size: 0.9rem; }
.aside .verdict .keep { font-size: 1rem; }
.verdict .many { font-size: 1rem; }
.notes td { vertical-align: top; } .level { font-weight: 600; }
.level.error, .level.warning { color: var(--ink-d55e00); }
@media (max-width: 40rem) {
  .aside { padding-left: 0.5rem; } .verdict { padding: 0.4rem 0.6rem; }
  .verdict .keep { font-size: 1.1rem; } .verdict .many { font-size: 0.95rem; }
}
"""


def page(selection: SelectionRecord, command: str | None, date: datetime.date) -> str:
    """The page as HTML; ``command`` is the command line of the selection, if there was one."""
    title = "Which columns to keep" + (f": {selection.source}" if selection.source else "")
    css = CHART_STYLE + COLUMN_STYLE + _HEATMAP_STYLE + _STYLE
    return page_of(title, _sections(selection, command, date), css)


def notebook_summary(selection: SelectionRecord) -> str:
    """What a notebook shows: the summary, without the page's style."""
    return _verdict(selection)


def _sections(
    selection: SelectionRecord, command: str | None, date: datetime.date
) -> Iterable[str]:
    yield _verdict(selection)
    target = f"Target {selection.target}, " if selection.target else ""
    yield f"<p><small>{html.escape(target)}{selection.task}, {date:%Y-%m-%d}</small></p>"
    yield "<h2>Score by number of columns</h2>" + _curves(selection, "curves")
    if selection.comparisons is not None and len(selection.comparisons):
        yield "<h2>Comparisons</h2>" + _comparisons(selection, selection.comparisons)
    yield "<h2>Columns</h2>" + columns_section(selection)
    yield from _column_pictures(selection)
    if selection.confusion is not None:
        yield "<h2>Confusion matrix</h2><p>Predictions for rows that the model has not seen.</p>"
        yield confusion_html(selection.confusion)
    sentences = "".join(f"<p>{html.escape(text)}</p>" for text in selection.statements)
    yield "<h2>Details</h2>" + folded("the result in sentences", sentences, "sentences")
    yield folded("scores of all methods", _methods(selection), "methods")
    yield folded("how it was done", facts_table(_how(selection)), "how")
    if selection.notes:
        yield "<h2 id='notes'>Notes</h2>" + _notes(selection)
    if selection.with_leaks is not None:
        yield _with_leaks(selection.with_leaks)
    if command:
        yield f"<h2>How to run it again</h2><pre>{html.escape(command)}</pre>"
    if not is_installed("matplotlib"):
        yield "<p>Without figures: Matplotlib is not installed (pip install 'fsjax[plot]').</p>"
    yield SEARCH_SCRIPT


def _verdict(selection: SelectionRecord, file: str = FILE) -> str:
    """What to keep, how well it predicts, how sure that is, and what to look at first."""
    kind = "better" if selection.better_than_chance else "nothing"
    lines = "".join(
        f"<p><strong>{line.label}:</strong> {html.escape(line.text)}</p>"
        for line in summary.lines(selection)
    )
    first = "".join(
        f"<p>{html.escape(text)}</p>" for text in summary.unsaid_sentences(selection)[:1]
    )
    return (
        f"<div class='verdict {'undecided' if selection.undecided else kind}'>"
        f"{_keep(selection, file)}{first}{lines}{_checks(selection)}</div>"
    )


def _keep(selection: SelectionRecord, file: str) -> str:
    number, names, more = summary.kept(selection)
    named = ", ".join(f"<strong>{html.escape(name)}</strong>" for name in names)
    if more:
        named += f" and {more:,} more in <a href='{file}'>{file}</a>"
    parts = [part for part in (f"<strong>{number}</strong>" if number else "", named) if part]
    size = "keep" if len(names) < _MANY else "keep many"
    return f"<p class='{size}'>Keep: {': '.join(parts)}</p>"


def _checks(selection: SelectionRecord) -> str:
    """Errors and warnings, leaks first."""
    checks = summary.warnings_first(selection)
    if not checks:
        return ""
    items = "".join(f"<li>{html.escape(note.sentence)}</li>" for note in checks[: summary.WARNED])
    more = len(checks) - summary.WARNED
    if more > 0:
        items += f"<li><a href='#notes'>{more} more</a></li>"
    return f"<div class='checks'><p><strong>Look at these first:</strong></p><ul>{items}</ul></div>"


def _with_leaks(selection: SelectionRecord) -> str:
    """Verdict, picture and columns of the selection from all columns, likely leaks included."""
    return (
        "<h2>With the likely leaks</h2><div class='aside'>"
        f"{_verdict(selection, WITH_LEAKS)}{_curves(selection, 'with-leaks')}"
        f"{columns_section(selection, WITH_LEAKS)}</div>"
    )


def _curves(selection: SelectionRecord, name: str) -> str:
    label = metric_named(selection.metric, selection.task).label
    label = label if label.isupper() or label[0].isdigit() else label[0].lower() + label[1:]
    caption = (
        f"Cross-validated {label} by number of columns, with standard errors; the grey band is "
        "within one standard error of the best score"
    )
    return _chart(lambda pictures, width: pictures.plot_contest(selection, width), name, caption)


def _chart(draw: Callable[[Any, float], Figure | None], name: str, caption: str) -> str:
    """A figure that ``draw`` makes with the pictures of this folder, if Matplotlib is installed."""
    if not is_installed("matplotlib"):
        return ""
    from fsjax.auto.page import pictures

    return chart(lambda width: draw(pictures, width), name, caption)


def _column_pictures(selection: SelectionRecord) -> Iterable[str]:
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


def _comparisons(selection: SelectionRecord, comparisons: pd.DataFrame) -> str:
    metric = metric_named(selection.metric, selection.task)
    rows = [
        [
            row.against,
            row.verdict,
            metric.number(row.difference, sign=True),
            f"{metric.number(row.low, sign=True)} to {metric.number(row.high, sign=True)}",
        ]
        for row in comparisons.itertuples()
    ]
    compared = comparisons[list(Compared._fields)].itertuples(index=False)
    sentences = " ".join(comparison_sentences([Compared(*row) for row in compared], metric))
    head = ["the selection minus", "it is", f"difference of {metric.short}", "95 % interval"]
    table = rows_table(head, rows, wraps=True) + _pairs(comparisons)
    what = count(len(rows), "comparison")
    return f"<p>{html.escape(sentences)}</p>" + folded(f"{what} with intervals", table, "pairs")


def _pairs(comparisons: pd.DataFrame) -> str:
    """Over what the comparisons are paired."""
    pairs = ", or ".join(comparisons["pairs"].unique())
    return (
        f"<p>Paired over {html.escape(pairs)}, predicted under cross-validation; method and number "
        "of columns are chosen without the rows that are predicted.</p>"
    )


def _methods(selection: SelectionRecord) -> str:
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
        rows.append([title(str(name)), str(int(curve["folds"].max())), *cells])
    caption = f"Cross-validated {metric.short} ± standard error, by number of columns."
    return f"<p>{caption}</p>" + rows_table(["method", "folds", *map(str, sizes)], rows)


def _notes(selection: SelectionRecord) -> str:
    """All notes in one table: errors first, then what to check, then remarks."""
    notes = by_level(selection.notes)
    rows = "".join(
        f"<tr><td class='level {note.level}'>{note.level}</td>"
        f"<td class='words'>{'left out: ' if note.kind in LEFT_OUT else ''}"
        f"{html.escape(note.sentence)}</td></tr>"
        for note in notes[:_NOTES]
    )
    more = len(notes) - _NOTES
    table = scrolling_table(rows, kind="notes")
    return table + (f"<p>{more} more in selection.json.</p>" if more > 0 else "")


def _how(selection: SelectionRecord) -> dict[str, str]:
    facts, metric = selection.facts, metric_named(selection.metric, selection.task)
    rounds = f", {facts['rounds']} rounds" if facts["rounds"] > 1 else ""
    sparse = {}
    if facts["nonzeros"] is not None:
        share = facts["nonzeros"] / facts["rows"] / facts["columns_offered"]
        sparse["nonzero values"] = f"{facts['nonzeros']:,} ({100 * share:.2g} %)"
    importance = in_words(facts["decoy_statistic"])
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
        "decoys": f"{count(facts['decoy_sets'], 'set')}, importance by {importance}"
        if facts["decoy_sets"]
        else "none",
        "seconds": selection.seconds,
        "seed": facts["seed"],
        "version": facts["version"],
    }
    return {name: str(value) for name, value in values.items()}


def _rows(selection: SelectionRecord) -> str:
    """The number of rows, and the number on which methods were compared if that is smaller."""
    rows, compared = selection.facts["rows"], selection.facts.get("rows_compared")
    fewer = compared is not None and compared < rows
    return f"{rows:,}" + (f"; methods were compared on {compared:,} of them" if fewer else "")


def _judge(selection: SelectionRecord) -> str:
    """The model that predicts from the columns, and the models that it was chosen from."""
    facts = selection.facts
    tried = {name: score for name, score in facts["judges_tried"].items() if score is not None}
    metric = metric_named(selection.metric, selection.task)
    scores = ", ".join(f"{_JUDGES[name]} {metric.show(score)}" for name, score in tried.items())
    chosen = f" (inner validation: {scores})" if scores else ""
    wide = facts["nonzeros"] is not None and facts["columns_offered"] > FEW
    return selection.judge + chosen + ("; from all columns a linear model" if wide else "")


def likeness_heatmap(likeness: pd.DataFrame) -> str:
    """Absolute rank correlations, with correlated columns next to each other."""
    values = likeness.to_numpy()
    order = _side_by_side(values)
    labels = shorten_all(likeness.index[order])
    names = [f"{number}. {label}" for number, label in enumerate(labels, 1)]
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


def confusion_html(counts: pd.DataFrame) -> str:
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
