"""``report.html`` of a selection: verdict first, numbers next, method last."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from fsjax.auto.answer.comparison_sentences import Compared, comparison_sentences
from fsjax.auto.answer.selection_record import SelectionRecord
from fsjax.auto.contest.method_names import title
from fsjax.auto.contest.scoring import metric_named
from fsjax.auto.page import summary
from fsjax.auto.page.charts import COLORS, chart
from fsjax.auto.page.column_table import FILE, WITH_LEAKS, columns_of
from fsjax.auto.page.heatmaps import confusion_of, likeness_heatmap
from fsjax.auto.page.how import how_it_was_done
from fsjax.auto.page.rendering import render
from fsjax.auto.reading.notes import LEFT_OUT, by_level
from fsjax.extras import is_installed
from fsjax.report.wording import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Most notes that the page shows; selection.json has all.
_NOTES = 50

#: From so many names on, they are written smaller.
_MANY = 9


class Comparisons(NamedTuple):
    """The paired comparisons: sentences, and a folded table with the intervals."""

    sentences: str
    title: str
    head: list[str]
    rows: list[list[str]]
    pairs: str


class Methods(NamedTuple):
    """The scores of all methods."""

    caption: str
    head: list[str]
    rows: list[list[str]]


def page(selection: SelectionRecord, command: str | None, date: datetime.date) -> str:
    """The page as HTML; ``command`` is the command line of the selection, if there was one."""
    notes = by_level(selection.notes)
    compared, likeness = selection.comparisons, selection.likeness
    leaks = selection.with_leaks
    return render(
        "page.html",
        title="Which columns to keep" + (f": {selection.source}" if selection.source else ""),
        selection=selection,
        date=f"{date:%Y-%m-%d}",
        summary=_verdict(selection),
        curves=_curves(selection, "curves"),
        comparisons=_comparisons(selection, compared) if _any(compared) else None,
        table=columns_of(selection),
        likeness=likeness_heatmap(likeness) if _any(likeness, 2) else None,
        frequencies=_frequencies(selection),
        decoys=_decoys(selection),
        confusion=None if selection.confusion is None else confusion_of(selection.confusion),
        methods=_methods(selection),
        how=how_it_was_done(selection),
        notes=notes[:_NOTES],
        more_notes=len(notes) - _NOTES,
        left_out=LEFT_OUT,
        leaks=None if leaks is None else _with_leaks(leaks),
        command=command,
        with_figures=is_installed("matplotlib"),
        **COLORS,
    )


def _any(frame: pd.DataFrame | None, least: int = 1) -> bool:
    return frame is not None and len(frame) >= least


def notebook_summary(selection: SelectionRecord) -> str:
    """What a notebook shows: the summary, without the page's style."""
    return render("notebook.html", view=_verdict(selection))


def _verdict(selection: SelectionRecord, file: str = FILE) -> dict[str, Any]:
    """What to keep, how well it predicts, how sure that is, and what to look at first."""
    kind = "better" if selection.better_than_chance else "nothing"
    kept, checks = summary.kept(selection), summary.warnings_first(selection)
    return {
        "kind": "undecided" if selection.undecided else kind,
        "size": "keep" if len(kept.names) < _MANY else "keep many",
        "kept": kept,
        "file": file,
        "sentences": summary.unsaid_sentences(selection)[:1],
        "lines": summary.lines(selection),
        "checks": checks[: summary.WARNED],
        "more_checks": len(checks) - summary.WARNED,
    }


def _with_leaks(selection: SelectionRecord) -> dict[str, Any]:
    """Verdict, picture and columns of the selection from all columns, likely leaks included."""
    return {
        "summary": _verdict(selection, WITH_LEAKS),
        "curves": _curves(selection, "with-leaks"),
        "table": columns_of(selection, WITH_LEAKS),
    }


def _curves(selection: SelectionRecord, name: str) -> Markup:
    label = metric_named(selection.metric, selection.task).label
    label = label if label[1:2].isdigit() else label[0].lower() + label[1:]
    # The scores above are those of the first round.
    rounds = selection.facts.rounds
    means = f", means of up to {rounds} rounds of folds" if rounds > 1 else ""
    caption = (
        f"Cross-validated {label} by number of columns{means}, with standard errors; the grey band "
        "is within one standard error of the best score"
    )
    return _chart(lambda pictures, width: pictures.plot_contest(selection, width), name, caption)


def _chart(draw: Callable[[Any, float], Figure | None], name: str, caption: str) -> Markup:
    """A figure that ``draw`` makes with the pictures of this folder, if Matplotlib is installed."""
    if not is_installed("matplotlib"):
        return Markup()
    from fsjax.auto.page import pictures

    return chart(lambda width: draw(pictures, width), name, caption)


def _frequencies(selection: SelectionRecord) -> Markup:
    halves = selection.facts.halves
    return _chart(
        lambda pictures, width: pictures.plot_columns(selection, width),
        "columns",
        f"Selection frequency: stability selection over {halves} complementary halves of the rows",
    )


def _decoys(selection: SelectionRecord) -> Markup:
    sets = 0 if selection.decoy_scores is None else len(selection.decoy_scores[1])
    return _chart(
        lambda pictures, width: pictures.plot_decoys(selection, width),
        "decoys",
        "By how much columns are more important than their decoys, and decoys than their "
        f"columns, in {count(sets, 'set')} of decoys (knockoffs of numeric columns, permuted "
        "copies of the others); columns above the line are filled, the band spans all sets",
    )


def _comparisons(selection: SelectionRecord, comparisons: pd.DataFrame) -> Comparisons:
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
    return Comparisons(
        " ".join(comparison_sentences([Compared(*row) for row in compared], metric)),
        f"{count(len(rows), 'comparison')} with intervals",
        ["the whole procedure minus", "it is", f"difference of {metric.short}", "95 % interval"],
        rows,
        ", or ".join(comparisons["pairs"].unique()),
    )


def _methods(selection: SelectionRecord) -> Methods:
    metric = metric_named(selection.metric, selection.task)
    sizes = sorted(selection.curves["num_features"].unique())
    rows = []
    for name, curve in selection.curves.groupby("method", sort=False):
        scores = curve.set_index("num_features")[["mean", "error"]]
        cells = [
            " ± ".join(map(metric.number, scores.loc[size])) if size in scores.index else ""
            for size in sizes
        ]
        rows.append([title(str(name)), str(int(curve["folds"].max())), *cells])
    caption = f"Cross-validated {metric.short} ± standard error, by number of columns."
    return Methods(caption, ["method", "folds", *map(str, sizes)], rows)
