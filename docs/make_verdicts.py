"""Writes the summary of the papers' tables for results.md: ``python docs/make_verdicts.py``.

It writes ``docs/tables/verdicts*.md`` and ``docs/pictures/bias.png`` from ``reproduction/*.csv``. A
test fails if a table differs from what this would write.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from scipy import stats

from fsjax.report import style
from fsjax.storage.atomic_files import write_text

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from configs.papers import WAST_ON, WAST_SETTINGS  # noqa: E402
from experiments.artifacts.figures import marks  # noqa: E402
from experiments.artifacts.markdown import as_rows  # noqa: E402
from experiments.artifacts.published import read_table  # noqa: E402
from experiments.papers import reference, results, verify  # noqa: E402
from experiments.papers.cells import COSTS, PAPERS, cells_of, run_of, trains  # noqa: E402
from experiments.papers.equivalence import VERDICTS, Side, compare, margin, published_side  # noqa: E402
from experiments.papers.verdicts import Verdict, distinct, verdicts_of  # noqa: E402

KEPT, TABLES = ROOT / "reproduction", ROOT / "docs" / "tables"

#: The names of the papers in tables.
NAMES = {"wast": "WAST", "ctre": "CTRE", "ip_cae": "IP-CAE"}

#: With fewer cells of a method and data set, its bias has no row and no interval in the picture.
FEWEST = 5

#: Ticks of the picture, in points; between the first two around 0 the axis is linear.
TICKS = (-10, -2, 0, 2, 10, 50)

#: One more colour than the figures of a launcher have, for the seventh data set.
SEVENTH = marks.Look("black", "X")


@functools.cache
def judged() -> tuple[Verdict, ...]:
    """The verdicts of all distinct cells that were run."""
    cells = [cell for paper in PAPERS for cell in cells_of(paper)]
    table = results.read_results(KEPT / "results.csv", cells)
    packages = reference.read_reference(KEPT / "reference.csv")
    reasons = results.read_reasons(KEPT / "reasons.toml")
    return tuple(distinct(verdicts_of(cells, table, packages, reasons).values()))


def accuracies(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts of accuracies and errors: those of counts and costs are left out."""
    return [verdict for verdict in verdicts if verdict.cell.row.metric not in COSTS]


def share(verdicts: Sequence[Verdict]) -> str:
    """The share of the decided cells that agree, as ``66 % of 364``."""
    words = [verdict.verdict for verdict in verdicts]
    agree = words.count("agrees")
    decided = agree + words.count("differs")
    return f"{100 * agree / decided:.0f} % of {decided}" if decided else "-"


def by_paper() -> pd.DataFrame:
    """The cells of each paper, from those that are published to those that are decided."""
    rows = []
    for paper in PAPERS:
        published = read_table(paper)
        of_paper = [verdict for verdict in judged() if verdict.cell.paper == paper]
        recorded = {verdict.cell.row.dataset for verdict in of_paper}
        rows.append(
            {
                "paper": NAMES[paper],
                "published": len(published),
                "data here": sum(row.dataset in recorded for row in published),
                "run": len(of_paper),
                "judged": len(accuracies(of_paper)),
                **_counts(accuracies(of_paper)),
                "decided that agree": share(accuracies(of_paper)),
            }
        )
    total = pd.DataFrame(rows).sum(numeric_only=True).astype(int).to_dict()
    rows.append({"paper": "all", **total, "decided that agree": share(accuracies(judged()))})
    return pd.DataFrame(rows)


def _counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    by = [(v.by_paper.verdict if v.by_paper else "", v.verdict) for v in verdicts]
    return {
        "agrees": sum(paper == "agrees" for paper, _ in by),
        "by reference code": sum(
            paper != "agrees" and verdict == "agrees" for paper, verdict in by
        ),
        **{word: sum(verdict == word for _, verdict in by) for word in VERDICTS[1:]},
    }


def by_group() -> pd.DataFrame:
    """The share of the decided cells that agree, for parts of all accuracies and errors."""
    cells = accuracies(judged())
    groups: dict[str, Callable[[Verdict], bool]] = {
        "two seeds here": lambda v: v.ours["seeds"] < 3,
        "three seeds here or more": lambda v: v.ours["seeds"] >= 3,
        "methods whose settings were chosen by the published values": _chosen,
        "all other methods": lambda v: not _chosen(v),
        "with a run of reference code": lambda v: v.reference is not None,
        "with scores that are not all equal": lambda v: not v.degenerate,
    }
    rows = []
    for name, belongs in groups.items():
        part = [verdict for verdict in cells if belongs(verdict)]
        rows.append({"cells": name, "number": len(part), **_counts(part)})
        rows[-1]["decided that agree"] = share(part)
    return pd.DataFrame(rows)


def _chosen(verdict: Verdict) -> bool:
    return verdict.cell.paper == "wast" and verdict.cell.row.method in {
        *WAST_SETTINGS,
        *(method for method, _ in WAST_ON),
    }


def undecided() -> pd.DataFrame:
    """Why accuracies and errors are undecided."""
    reasons = {
        "the paper's own seeds spread too widely for any number of seeds here": 0,
        "more seeds here may decide": 0,
    }
    wide, few = reasons
    for verdict in accuracies(judged()):
        if verdict.verdict == "undecided":
            row = verdict.cell.row
            exact = Side(row.mean, 0.0, 0)
            alone = compare(exact, published_side(verdict.cell), margin(row.metric, row.mean))
            reasons[wide if alone.verdict == "undecided" else few] += 1
    return pd.DataFrame({"undecided because": list(reasons), "cells": list(reasons.values())})


def costs() -> pd.DataFrame:
    """Counts and costs, by relative difference from the paper."""
    rows = []
    for paper in PAPERS:
        for metric in COSTS:
            part = [
                verdict
                for verdict in judged()
                if (verdict.cell.paper, verdict.cell.row.metric) == (paper, metric)
            ]
            if part:
                relative = [100 * (v.ours["mean"] / v.cell.row.mean - 1) for v in part]
                row = {"paper": NAMES[paper], "metric": f"`{metric}`", "cells": len(part)}
                row |= _counts(part)
                row["median difference, %"] = f"{np.median(relative):+.1f}"
                row["largest, %"] = f"{max(relative, key=abs):+.1f}"
                rows.append(row)
    return pd.DataFrame(rows)


def bias() -> pd.DataFrame:
    """The mean difference of accuracies from the paper, per method and data set.

    The interval is that of the mean over the cells, as if they were independent (90 %).
    """
    groups: dict[tuple[str, str, str], list[float]] = {}
    for verdict in judged():
        cell = verdict.cell
        if cell.row.metric.endswith("accuracy") and not verdict.degenerate:
            options = dict(run_of(cell).options)
            changed = {k: v for k, v in options.items() if k not in ("hidden", "epsilon")}
            extra = ", ".join(f"{name}={value}" for name, value in changed.items())
            method = f"{cell.row.method} ({extra})" if extra else cell.row.method
            key = (cell.paper, method, cell.row.dataset)
            groups.setdefault(key, []).append(verdict.ours["mean"] - cell.row.mean)
    rows = []
    for (paper, method, dataset), values in groups.items():
        n, mean = len(values), float(np.mean(values))
        half = math.nan
        if n >= 2:
            half = float(stats.t.ppf(0.95, n - 1) * np.std(values, ddof=1) / math.sqrt(n))
        row = (paper, method, dataset, n, sum(v > 0 for v in values), mean, half)
        rows.append(row)
    columns = ["paper", "method", "dataset", "cells", "above", "mean", "half"]
    return pd.DataFrame(rows, columns=columns)


def clear_biases(*, networks: bool) -> pd.DataFrame:
    """The biases whose interval excludes 0: of networks as published, or of all else.

    The latter are methods that train nothing, and ablations.
    """
    table = bias()
    plain = ~table["method"].str.contains("(", regex=False)
    trained = plain & table["method"].str.split().str[0].map(trains)
    chosen = table[trained == networks]
    clear = chosen[(chosen["cells"] >= FEWEST) & (chosen["mean"].abs() > chosen["half"])]
    return pd.DataFrame(
        [
            {
                "paper": NAMES[row.paper],
                "method": row.method,
                "data": row.dataset,
                "cells above the paper": f"{row.above} of {row.cells}",
                "mean difference, points": f"{row.mean:+.1f}",
                "interval": f"{row.mean - row.half:+.1f} to {row.mean + row.half:+.1f}",
            }
            for row in clear.sort_values(["paper", "dataset", "method"]).itertuples()
        ]
    )


def choices() -> pd.DataFrame:
    """The cells whose options were chosen for one data set, with the library's defaults beside."""
    verdicts = {
        (v.cell.row.method, v.cell.row.dataset): v for v in reversed(judged()) if v.by_paper
    }
    defaults = pd.read_csv(KEPT / "defaults.csv").set_index(["method", "dataset"])
    rows = []
    for (method, dataset), options in WAST_ON.items():
        verdict = verdicts.get((method, dataset))
        default = defaults.loc[(method, dataset)]
        ran = not math.isnan(default["mean"])
        rows.append(
            {
                "method": method,
                "data": dataset,
                "chosen": ", ".join(f"`{name}={value}`" for name, value in options.items()),
                "paper": f"{verdict.cell.row.mean:.1f}" if verdict else "",
                "with these": f"{verdict.ours['mean']:.1f}" if verdict else "not run",
                "with the library's defaults": f"{default['mean']:.1f}"
                if ran
                else f"`{default['command']}`",
            }
        )
    return pd.DataFrame(rows)


def verification() -> pd.DataFrame:
    """The outcomes of ``python -m experiments.reproduce --verify``."""
    path = KEPT / "verification.csv"
    table = results.read_cells(path, verify.COLUMNS, verify.TEXT)
    lines = [
        (
            f"{NAMES[row.paper]}, Table {row.table}",
            f"{row.method}, {row.dataset}: {row.setting.replace(';', ', ')}",
            f"{row.recorded_mean:.2f} ({row.recorded_seeds})",
            f"{row.mean:.2f} ({row.seeds})",
            "none" if math.isnan(row.low) else f"{row.low:+.2f} to {row.high:+.2f}",
            row.verdict,
        )
        for row in table.itertuples()
    ]
    words = list(table["verdict"])
    counts = ", ".join(f"{words.count(word)} {word}" for word in VERDICTS)
    minutes = f"{table['cpu_seconds'].sum() / 60:.0f} CPU minutes"
    lines.append(("all", f"{len(words)} cells", "", minutes, "", counts))
    columns = ["paper", "cell", "recorded", "fresh", "interval", "verdict"]
    return pd.DataFrame(lines, columns=columns)


def tables() -> dict[Path, str]:
    """The text of all tables."""
    tables = {
        "verdicts": by_paper(),
        "verdicts_groups": by_group(),
        "verdicts_undecided": undecided(),
        "verdicts_costs": costs(),
        "verdicts_bias": clear_biases(networks=True),
        "verdicts_bias_others": clear_biases(networks=False),
        "verdicts_choices": choices(),
        "verdicts_again": verification(),
    }
    return {TABLES / f"{name}.md": _markdown(table) for name, table in tables.items()}


def _markdown(table: pd.DataFrame) -> str:
    """A table with numbers to the right and text to the left."""
    head, _, *rows = as_rows(table.astype(str)).splitlines(keepends=True)
    numeric = [
        not len(table) or table[name].astype(str).str[-1:].str.isdigit().all() for name in table
    ]
    rule = " | ".join("---:" if is_number else "---" for is_number in numeric)
    return "".join([head, f"| {rule} |\n", *rows])


def picture() -> None:
    """Draws the bias of each method, one mark per data set, and writes ``bias.png``."""
    table = bias()
    table = table[~table["method"].str.contains("(", regex=False)]
    datasets = sorted(table["dataset"].unique())
    looks = {**marks.looks(datasets), datasets[-1]: SEVENTH}
    rows = list(dict.fromkeys(zip(table["paper"], table["method"], strict=True)))
    figure = style.new_figure(0.36 * len(rows) + 1.6, width=4.2)
    axes = figure.subplots()
    axes.axvspan(-1.5, 1.5, color="#e8e8e8", zorder=0)
    axes.axvline(0.0, color="black", linewidth=0.8, zorder=1)
    for position, (paper, method) in enumerate(rows):
        part = table[(table["paper"] == paper) & (table["method"] == method)]
        shifts = np.linspace(-0.3, 0.3, len(part)) if len(part) > 1 else [0.0]
        for shift, row in zip(shifts, part.itertuples(), strict=True):
            look = looks[row.dataset]
            error = row.half if row.cells >= FEWEST else None
            shape = {"color": look.color, "marker": look.marker, "markersize": 4.5}
            axes.errorbar(row.mean, position + shift, xerr=error, linewidth=1.1, **shape)
        if not position or paper != rows[position - 1][0]:
            place = {"ha": "right", "va": "top", "transform": axes.get_yaxis_transform()}
            height = position - (0.42 if position else 0.92)
            axes.text(0.98, height, NAMES[paper], fontsize=9, fontweight="bold", **place)
            axes.axhline(position - 0.5, color=style.GREY, linewidth=0.8)
    axes.set_xscale("symlog", linthresh=2.0, linscale=1.6)
    axes.set_xticks(TICKS, [f"{tick:+d}" if tick else "0" for tick in TICKS], fontsize=8)
    axes.minorticks_off()
    axes.set_yticks(range(len(rows)), [method for _, method in rows], fontsize=9)
    axes.set_ylim(len(rows) - 0.5, -1.0)
    axes.set_xlabel("accuracy here minus published, points", fontsize=9)
    handles = [
        Line2D([], [], color=look.color, marker=look.marker, linestyle="", label=name)
        for name, look in looks.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    style.save_figure(figure, ROOT / "docs" / "pictures" / "bias.png")


if __name__ == "__main__":
    for _path, _text in tables().items():
        write_text(_path, _text)
    picture()
