"""``report.html`` of a selection: the verdict, the picture, the columns, and how it was done."""

from __future__ import annotations

import html
import io
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.figure import Figure

from fsjax.auto.columns import LEFT_OUT, Note
from fsjax.auto.models import METRICS
from fsjax.auto.pictures import plot_columns, plot_curves
from fsjax.auto.sparse import FEW
from fsjax.report.html import facts_table, inline_svg, page_of, rows_table

if TYPE_CHECKING:
    from fsjax.auto.selection import Selection

#: Columns and notes that the page shows; the files have all.
_COLUMNS, _NOTES = 100, 50

_HEAD = {
    "column": "column",
    "frequency": "selected by halves",
    "score": "importance",
    "false_discovery_rate": "false discovery rate",
    "alike": "could be replaced by (correlation)",
}


def page(selection: Selection, command: str | None = None) -> str:
    """The page as HTML; ``command`` is what made it."""
    return page_of("Which columns to keep", _sections(selection, command))


def _sections(selection: Selection, command: str | None) -> Iterable[str]:
    first, *others = (html.escape(text) for text in selection.statements)
    yield f"<p><strong>{first}</strong></p>"
    yield "".join(f"<p>{text}</p>" for text in others)
    leaks = [note for note in selection.notes if note.kind == "leak"]
    if leaks:
        yield "<h2>Look at these first</h2>" + _notes(leaks)
    yield _picture(
        plot_curves(selection),
        "curves",
        "Score by the number of columns, with one standard error; the band is within one of the "
        "best",
    )
    yield "<h2>Columns</h2>" + _columns(selection)
    if figure := plot_columns(selection):
        halves = selection.facts["halves"]
        yield _picture(figure, "columns", f"How often {halves} halves of the rows select a column")
    yield "<h2>Methods</h2>" + _methods(selection)
    done = [note for note in selection.notes if note.kind not in LEFT_OUT and note.kind != "leak"]
    left = [note for note in selection.notes if note.kind in LEFT_OUT]
    if left:
        yield "<h2>Left out</h2>" + _notes(left)
    if done:
        yield "<h2>How columns were read</h2>" + _notes(done)
    yield "<h2>How it was done</h2>" + facts_table(_how(selection))
    if command:
        yield f"<h2>How to run it again</h2><pre>{html.escape(command)}</pre>"


def _columns(selection: Selection) -> str:
    chosen = selection.table[selection.table["selected"] == 1]
    if not len(chosen):
        return "<p>None is selected. All columns, by importance, are in columns.csv.</p>"
    shown = chosen.head(_COLUMNS)
    keep = [name for name in _HEAD if shown[name].notna().any() and (shown[name] != "").any()]
    rows = [[_cell(name, value) for name, value in zip(keep, row, strict=True)]
            for row in shown[keep].itertuples(index=False)]  # fmt: skip
    more = len(chosen) - len(shown)
    note = f"<p>{more} more in columns.csv.</p>" if more else ""
    return rows_table([_HEAD[name] for name in keep], rows, words=("alike" in keep)) + note


def _cell(name: str, value: object) -> str:
    if isinstance(value, float):
        if pd.isna(value):
            return ""
        return f"{100 * value:.0f} %" if name == "frequency" else f"{value:.3g}"
    return str(value)


def _methods(selection: Selection) -> str:
    digits = METRICS[selection.metric].digits
    sizes = sorted(selection.curves["num_features"].unique())
    rows = []
    for name, own in selection.curves.groupby("method", sort=False):
        told = dict(zip(own["num_features"], zip(own["mean"], own["error"], strict=True)))  # noqa: B905
        cells = [
            f"{told[size][0]:.{digits}f} ± {told[size][1]:.{digits}f}" if size in told else ""
            for size in sizes
        ]
        rows.append([str(name), str(int(own["folds"].max())), *cells])
    left = selection.facts["methods_left_out"]
    note = "".join(f"<p>{html.escape(name)}: {html.escape(why)}.</p>" for name, why in left.items())
    return rows_table(["method", "folds", *map(str, sizes)], rows) + note


def _notes(notes: list[Note]) -> str:
    rows = [[note.column, note.text] for note in notes[:_NOTES]]
    more = len(notes) - len(rows)
    table = rows_table(["column", "what was found"], rows, words=True)
    return table + (f"<p>{more} more in selection.json.</p>" if more else "")


def _how(selection: Selection) -> dict[str, str]:
    facts = selection.facts
    rounds = f", {facts['rounds']} rounds" if facts["rounds"] > 1 else ""
    model, sparse = METRICS[selection.metric].model, {}
    if facts["nonzeros"] is not None:
        share = facts["nonzeros"] / facts["rows"] / facts["columns_offered"]
        sparse["values that are not zero"] = f"{facts['nonzeros']:,} ({100 * share:.2g} %)"
        if facts["columns_offered"] > FEW:
            model += METRICS[selection.metric].wide
    told = {
        "rows": facts["rows"],
        "columns to choose from": facts["columns_offered"],
        **sparse,
        "task": selection.task,
        "score": METRICS[selection.metric].label,
        "cross-validation": f"{facts['folds']} folds{rounds}, selection within the training rows",
        "model behind": model,
        "rule": "fewest columns within one standard error of the best",
        "permutations of the target": f"{facts['permutations']}, {facts['as_good']} as good",
        "decoys": f"{facts['decoy_sets']} sets, importance by {facts['decoy_statistic']}",
        "seconds": selection.seconds,
        "seed": facts["seed"],
        "version": facts["version"],
    }
    return {name: str(value) for name, value in told.items()}


def _picture(figure: Figure, name: str, caption: str) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = html.escape(caption)
    return (
        f"<figure><figcaption>{text}</figcaption>"
        f"{inline_svg(buffer.getvalue(), name, text)}</figure>"
    )
