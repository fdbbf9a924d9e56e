"""The page with the papers' tables: per cell the published number, the reference's and ours."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from experiments.papers.cells import Cell
from experiments.papers.verdicts import Verdict

TITLES = {
    "wast": "WAST (Sokar et al., NeurIPS 2022)",
    "ctre": "CTRE (Atashgahi et al., Machine Learning 2022)",
    "ip_cae": "IP-CAE (Nilsson et al., ICML 2024)",
}

#: The captions of the tables.
CAPTIONS = {
    ("wast", "2"): "Accuracy (%) of a support vector machine on 50 columns, 20 of Madelon",
    ("wast", "3"): "Connections, and operations of training",
    ("wast", "4"): "Accuracy (%) without parts of the importance criterion",
    ("wast", "5"): "Accuracy (%) for six K, image data sets",
    ("wast", "6"): "Accuracy (%) for six K, other data sets",
    ("wast", "7"): "Accuracy (%) after 10 epochs",
    ("wast", "9"): "Accuracy (%) with updates in every step or epoch",
    ("ctre", "2"): "Accuracy (%), connections and density (%) of three hidden layers",
    ("ctre", "4"): "Accuracy (%) without random search, and with the least similar first",
    ("ctre", "5"): "Accuracy (%) with the Hebbian rule",
    ("ctre", "6"): "Training delay (%)",
    ("ctre", "7"): "Accuracy (%) with similarities from fewer rows",
    ("ctre", "8"): "Accuracy (%) of the authors' purely sparse implementation",
    ("ctre", "9"): "Accuracy (%) with cosine or Euclidean similarity",
    ("ctre", "10"): "Accuracy (%) by the order of the searches",
    ("ip_cae", "1"): "Reconstruction error (Frobenius norm over D)",
    ("ip_cae", "2"): "Accuracy (%)",
    (
        "ip_cae",
        "3",
    ): "Speed-up: all epochs over those until CAE's last value is surpassed",
    ("ip_cae", "6"): "200 or 1000 epochs",
}

#: The meaning of each class of cells, for the legend.
LEGEND = {
    "both": "ours agrees with the paper and with the reference code",
    "agrees": "ours agrees with the paper (no reference was run, or it differs)",
    "reference": "ours agrees with the reference code only",
    "differs": "ours agrees with neither",
    "degenerate": "all scores are equal, so the columns are selected by their position",
    "missing": "not run",
}

HEAD = """\
# The papers' tables, cell by cell

Each cell shows up to three values, one below the other: the published one, that of **reference
code** (the authors' own, or the package named in the tooltip) on the same rows with the same split
and judge, and **ours**.

{legend}

Two values agree when they differ by at most 1.5 points (5 % of an error or a count), or by at most
two standard deviations if that is more: the published one for the paper, the larger of ours and
theirs for the reference. A cell holds when ours agrees with the paper or with the reference.
Reasons for differences are listed below each table. Runs have at least two seeds; their number,
standard deviations and CPU seconds are in the tooltip of a cell, in `reproduction/results.csv` and
in `reproduction/reference.csv`. AEFS on COIL-20 and CAE on
MNIST (IP-CAE, Table 2) were given one and two more seeds because they differed with two; IP-CAE on
COIL-20 (Table 2) has the ten seeds of its config.

    python -m experiments.reproduce --workdir=runs/papers

writes this page, starting with the runs that take the least time per cell; see
{{doc}}`reproducing`. The reference packages are run by `python -m experiments.reference`.

"""


def _number(value: float, metric: str) -> str:
    if "reconstruction" in metric:
        return f"{value:.2e}"
    if metric == "train_flops":
        return f"{value:.2g}"
    if metric in ("params", "connections"):
        return f"{value:,.0f}"
    return f"{value:.1f}" if metric == "density_pct" else f"{value:.2f}"


def _variant(cell: Cell) -> str:
    """The name of a row: the method, with the options that distinguish it from other rows."""
    hide = ("hidden", "epsilon", "th", "impl", "task")
    parts = [f"{name}={value}" for name, value in cell.row.options.items() if name not in hide]
    if cell.row.num_epochs:
        parts.append(f"{cell.row.num_epochs} epochs")
    return f"{cell.row.method} ({', '.join(parts)})" if parts else cell.row.method


def _network(cell: Cell) -> str:
    hidden, epsilon = cell.row.options.get("hidden", ("",)), cell.row.options.get("epsilon")
    return f"{hidden[0]}" if epsilon is None else f"{hidden[0]}, ε {epsilon}"


#: Layouts of tables: functions that name the part, the row and the column of a cell.
Name = Callable[[Cell], str]
_BY_DATASET: tuple[Name, Name, Name] = (
    lambda cell: "",
    _variant,
    lambda cell: cell.row.dataset,
)
_BY_K: tuple[Name, Name, Name] = (
    lambda cell: cell.row.dataset,
    _variant,
    lambda cell: f"K = {cell.row.num_features}",
)
_BY_NETWORK: tuple[Name, Name, Name] = (lambda cell: cell.row.dataset, _variant, _network)
_BY_METRIC: tuple[Name, Name, Name] = (lambda cell: cell.row.metric, *_BY_DATASET[1:])
_BY_TASK: tuple[Name, Name, Name] = (lambda cell: cell.row.options["task"], *_BY_DATASET[1:])


def _layout(cell: Cell) -> tuple[Name, Name, Name]:
    if cell.paper == "ctre":
        of_counts = cell.row.metric in ("connections", "density_pct")
        row = (lambda cell: cell.row.metric.removesuffix("_pct")) if of_counts else _variant
        return _BY_NETWORK[0], row, _network
    if (cell.paper, cell.table) in (("wast", "3"), ("ip_cae", "6")):
        return _BY_METRIC
    if (cell.paper, cell.table) == ("ip_cae", "3"):
        return _BY_TASK
    return _BY_K if (cell.paper, cell.table) in (("wast", "5"), ("wast", "6")) else _BY_DATASET


def _state(verdict: Verdict | None) -> str:
    """The class of a cell: a name in :data:`LEGEND`, or ``own`` for a user's own method."""
    if verdict is None:
        return "missing"
    if verdict.degenerate:
        return "degenerate"
    if verdict.agrees_with_paper is None:
        return "own"
    if verdict.agrees_with_paper:
        return "both" if verdict.agrees_with_reference else "agrees"
    return "reference" if verdict.agrees_with_reference else "differs"


def _td(cell: Cell, verdict: Verdict | None) -> str:
    metric, mean = cell.row.metric, cell.row.mean
    published = "" if math.isnan(mean) else _number(mean, metric)
    if verdict is None:
        return f"<td class='missing'>{published}<br>–</td>"
    ours, reference = verdict.ours, verdict.reference
    title = f"ours: {ours['seeds']} seeds, {ours['epochs']} epochs, ± {ours['std']:.3g}"
    if ours["cpu_seconds"] == ours["cpu_seconds"]:
        title += f", {ours['cpu_seconds']:.0f} s of CPU for the run"
    values = [published]
    if reference is not None:
        title += f"; reference: {reference['code']} {reference['version']}, "
        title += f"{reference['seeds']} seeds, ± {reference['std']:.3g}"
        values.append(f"<i>{_number(reference['mean'], metric)}</i>")
    if not verdict.holds and ours["reason"]:
        title += f". {ours['reason']}"
    values.append(f"<b>{_number(ours['mean'], metric)}</b>")
    title = html.escape(title, quote=True)
    return f"<td class='{_state(verdict)}' title='{title}'>{'<br>'.join(values)}</td>"


def _table(cells: Sequence[Cell], verdicts: Mapping[tuple[str, ...], Verdict]) -> str:
    """The HTML of one part of a table."""
    grid: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for cell in cells:
        _, name, column = (text_of(cell) for text_of in _layout(cell))
        columns[column] = None
        grid.setdefault(name, {})[column] = _td(cell, verdicts.get(cell.key))
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "\n".join(
        f"<tr><th>{html.escape(name)}</th>"
        + "".join(of_row.get(column, "<td></td>") for column in columns)
        + "</tr>"
        for name, of_row in grid.items()
    )
    return f"<tr><th></th>{head}</tr>\n{body}"


def _legend() -> str:
    items = "".join(
        f"<li><span class='{name}'>&nbsp;0.00&nbsp;</span> {html.escape(text)}</li>"
        for name, text in LEGEND.items()
    )
    return f"```{{raw}} html\n<ul class='reproduction-legend'>{items}</ul>\n```"


def _summary(summary: pd.DataFrame) -> list[str]:
    """The table of counts in Markdown, with percentages of cells that were run and that hold."""
    summary = summary.assign(
        coverage=_percent(summary["run"], summary["data"]),
        holds=_percent(summary["by either"], summary["run"]),
    )
    names = list(summary.columns)
    head = ["| " + " | ".join(names) + " |", "| " + " | ".join("---" for _ in names) + " |"]
    return head + [
        "| " + " | ".join(map(str, row)) + " |" for row in summary.itertuples(index=False)
    ]


def _folded_table(
    number: str, caption: str, cells: Sequence[Cell], verdicts: Mapping[tuple[str, ...], Verdict]
) -> list[str]:
    """A folded table of a paper, with the reasons for its differences."""
    run = [verdicts[cell.key] for cell in cells if cell.key in verdicts]
    held = sum(verdict.holds for verdict in run)
    counts = f"{held} of {len(run)} hold, {len(cells)} cells"
    lines = [f":::{{dropdown}} Table {number}: {caption} ({counts})", ""]
    parts: dict[str, list[Cell]] = {}
    for cell in cells:
        parts.setdefault(_layout(cell)[0](cell), []).append(cell)
    for part, of_part in parts.items():
        # Parts in which no cell was run would only make the page long.
        if not any(cell.key in verdicts for cell in of_part):
            lines.append(f"{part or 'This table'}: {len(of_part)} cells, none run.\n")
            continue
        heading = f"<caption>{html.escape(part)}</caption>" if part else ""
        lines.append(
            "```{raw} html\n<div class='reproduction'><table>"
            f"{heading}\n{_table(of_part, verdicts)}\n</table></div>\n```\n"
        )
    reasons: dict[str, dict[str, None]] = {}
    for cell in cells:
        verdict = verdicts.get(cell.key)
        if verdict is not None and not verdict.holds and verdict.ours["reason"]:
            where = f"{cell.row.method}, {cell.row.dataset}"
            reasons.setdefault(verdict.ours["reason"], {})[where] = None
    lines += [f"- **{'; '.join(where)}**: {reason}" for reason, where in reasons.items()]
    return [*lines, ":::", ""]


def make_page(
    cells: Sequence[Cell],
    verdicts: Mapping[tuple[str, ...], Verdict],
    summary: pd.DataFrame,
    further: str = "",
) -> str:
    """The page in Markdown, with folded HTML tables.

    Args:
      cells: all cells that the page shows.
      verdicts: the result of :func:`experiments.papers.verdicts.verdicts_of`.
      summary: the result of :func:`experiments.papers.verdicts.coverage`.
      further: sections at the end, as :func:`experiments.papers.claims.page_of` makes them.
    """
    text = [HEAD.format(legend=_legend()), *_summary(summary)]
    for paper in dict.fromkeys(cell.paper for cell in cells):
        text.append(f"\n## {TITLES[paper]}\n")
        of_paper = [cell for cell in cells if cell.paper == paper]
        for number in sorted({cell.table for cell in of_paper}, key=int):
            of_table = [cell for cell in of_paper if cell.table == number]
            text += _folded_table(number, CAPTIONS.get((paper, number), ""), of_table, verdicts)
    return "\n".join([*text, further] if further else text)


def _percent(part: pd.Series, whole: pd.Series) -> list[str]:
    """Percentages such as ``74 %``; ``-`` if the whole is 0."""
    pairs = zip(part, whole, strict=True)
    return [f"{100 * value / other:.0f} %" if other else "-" for value, other in pairs]
