"""The page with the papers' tables: per cell the published number, the reference's and ours."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

from experiments.papers.cells import Cell
from experiments.papers.equivalence import VERDICTS, Comparison
from experiments.papers.results import KINDS
from experiments.papers.verdicts import Verdict, coverage

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
    ("ctre", "9"): "Accuracy (%) with cosine or Euclidean similarity",
    ("ctre", "10"): "Accuracy (%) by the order of the searches",
    ("ip_cae", "1"): "Reconstruction error (Frobenius norm over D)",
    ("ip_cae", "2"): "Accuracy (%)",
    ("ip_cae", "3"): "Speed-up: all epochs over those until CAE's last value is surpassed",
    ("ip_cae", "6"): "200 or 1000 epochs",
}

#: The meaning of each class of cells, for the legend.
LEGEND = {
    "both": "ours agrees with the paper and with the reference code",
    "agrees": "ours agrees with the paper (no reference was run, or it does not agree)",
    "reference": "ours agrees with the reference code only",
    "differs": "ours differs from one of them, and agrees with neither",
    "undecided": "the seeds do not decide",
    "degenerate": "all scores are equal, so the columns are selected by their position",
    "missing": "not run",
}

HEAD = """\
# The papers' tables, cell by cell

{verdict} [The summary](results.md) has the counts, the bias of each method and the choices behind
these runs.

Each cell shows up to three values, one below the other: the published one, that of **reference
code** (the authors' own, or the package named in the tooltip) on the same rows with the same split
and judge, and **ours**.

{legend}

A cell *agrees* if the 90 % interval of the difference of the two means lies within the margin: 1.5
points of accuracy, 3 points of a training delay, 5 % of an error, a count or a speed-up. A count
also agrees if it is printed as the paper has it: rounded, or, of operations, truncated. A cell
*differs* if the interval lies outside, and is *undecided* otherwise.
The interval comes from the seeds of both sides. It is in the tooltip of a cell, with seeds,
standard deviations and CPU seconds; the numbers are in `reproduction/results.csv` and
`reproduction/reference.csv`.

Below each table are the reasons of cells that differ from the paper, by kind: *cause shown*, with
the rows of data that show it; *not told by the paper*, a setting that the paper does not state; or
*unknown*, where the text only says what was seen.

CTRE's Table 8 is left out: it belongs to the authors' second implementation, on SciPy's sparse
matrices, with weights, optimiser and schedule of its own, which this project does not have.

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
    hide = ("hidden", "epsilon", "th", "task")
    parts = [f"{name}={value}" for name, value in cell.row.options.items() if name not in hide]
    if cell.row.num_epochs:
        parts.append(f"{cell.row.num_epochs} epochs")
    return f"{cell.row.method} ({', '.join(parts)})" if parts else cell.row.method


def _network(cell: Cell) -> str:
    hidden, epsilon = cell.row.options.get("hidden", ("",)), cell.row.options.get("epsilon")
    return f"{hidden[0]}" if epsilon is None else f"{hidden[0]}, ε {epsilon}"


def _place(cell: Cell) -> tuple[str, str, str]:
    """The part of its table that a cell is in, and its row and column there."""
    row = cell.row
    if cell.paper == "ctre":
        is_count = row.metric in ("connections", "density_pct")
        name = row.metric.removesuffix("_pct") if is_count else _variant(cell)
        return row.dataset, name, _network(cell)
    if (cell.paper, cell.table) in (("wast", "5"), ("wast", "6")):
        return row.dataset, _variant(cell), f"K = {row.num_features}"
    part = ""
    if (cell.paper, cell.table) in (("wast", "3"), ("ip_cae", "6")):
        part = row.metric
    elif (cell.paper, cell.table) == ("ip_cae", "3"):
        part = row.options["task"]
    return part, _variant(cell), row.dataset


def _state(verdict: Verdict | None) -> str:
    """The class of a cell: a name in :data:`LEGEND`, or ``own`` for a user's own method."""
    if verdict is None:
        return "missing"
    if verdict.degenerate:
        return "degenerate"
    if verdict.by_paper is None:
        return "own"
    if verdict.verdict != "agrees":
        return verdict.verdict
    by_reference = verdict.by_reference is not None and verdict.by_reference.verdict == "agrees"
    if verdict.by_paper.verdict != "agrees":
        return "reference"
    return "both" if by_reference else "agrees"


def _interval(comparison: Comparison, metric: str) -> str:
    """The interval of a difference and its verdict, for a tooltip."""
    if math.isnan(comparison.low):
        return f"{comparison.verdict}, too few seeds"
    ends = (_number(end, metric) for end in (comparison.low, comparison.high))
    return f"{comparison.verdict}, difference {' to '.join(ends)}"


def _td(cell: Cell, verdict: Verdict | None) -> str:
    metric, mean = cell.row.metric, cell.row.mean
    published = "" if math.isnan(mean) else _number(mean, metric)
    if verdict is None:
        return f"<td class='missing'>{published}<br>–</td>"
    ours, reference = verdict.ours, verdict.reference
    title = f"ours: {ours['seeds']} seeds, {ours['epochs']} epochs, ± {ours['std']:.3g}"
    if ours["cpu_seconds"] == ours["cpu_seconds"]:
        title += f", {ours['cpu_seconds']:.0f} s of CPU for the run"
    if verdict.by_paper:
        title += f"; paper: {_interval(verdict.by_paper, metric)}"
    values = [published]
    if reference is not None and verdict.by_reference:
        title += f"; reference: {reference['code']} {reference['version']}, "
        title += f"{reference['seeds']} seeds, ± {reference['std']:.3g}, "
        title += _interval(verdict.by_reference, metric)
        values.append(f"<i>{_number(reference['mean'], metric)}</i>")
    values.append(f"<b>{_number(ours['mean'], metric)}</b>")
    title = html.escape(title, quote=True)
    return f"<td class='{_state(verdict)}' title='{title}'>{'<br>'.join(values)}</td>"


def _table(cells: Sequence[Cell], verdicts: Mapping[tuple[str, ...], Verdict]) -> str:
    """The HTML of one part of a table."""
    grid: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for cell in cells:
        _, name, column = _place(cell)
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


def _folded_table(
    number: str, caption: str, cells: Sequence[Cell], verdicts: Mapping[tuple[str, ...], Verdict]
) -> list[str]:
    """A folded table of a paper, with the reasons for its differences."""
    run = [verdicts[cell.key] for cell in cells if cell.key in verdicts]
    words = [verdict.verdict for verdict in run]
    counts = ", ".join(f"{words.count(word)} {word}" for word in VERDICTS)
    counts += f", {len(cells) - len(run)} not run"
    lines = [f":::{{dropdown}} Table {number}: {caption} ({counts})", ""]
    parts: dict[str, list[Cell]] = {}
    for cell in cells:
        parts.setdefault(_place(cell)[0], []).append(cell)
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
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for cell in cells:
        verdict = verdicts.get(cell.key)
        if verdict is not None and verdict.kind:
            text = verdict.reason["text"] if verdict.reason else "Nothing more is known."
            where = f"{cell.row.method}, {cell.row.dataset}"
            reasons.setdefault((verdict.kind, text), {})[where] = None
    for kind in KINDS:
        lines += [
            f"- *{kind}*: **{'; '.join(where)}**: {text}"
            for (its_kind, text), where in reasons.items()
            if its_kind == kind
        ]
    return [*lines, ":::", ""]


def make_page(
    cells: Sequence[Cell], verdicts: Mapping[tuple[str, ...], Verdict], further: str = ""
) -> str:
    """The page in Markdown, with folded HTML tables.

    Args:
      cells: all cells that the page shows.
      verdicts: the result of :func:`experiments.papers.verdicts.verdicts_of`.
      further: sections at the end, as :func:`experiments.papers.claims.page_of` makes them.
    """
    text = [HEAD.format(legend=_legend(), verdict=_sentence(verdicts))]
    for paper in dict.fromkeys(cell.paper for cell in cells):
        text.append(f"\n## {TITLES[paper]}\n")
        of_paper = [cell for cell in cells if cell.paper == paper]
        for number in sorted({cell.table for cell in of_paper}, key=int):
            of_table = [cell for cell in of_paper if cell.table == number]
            text += _folded_table(number, CAPTIONS.get((paper, number), ""), of_table, verdicts)
    return "\n".join([*text, further] if further else text)


def _sentence(verdicts: Mapping[tuple[str, ...], Verdict]) -> str:
    """The verdict on all accuracies and errors in one sentence."""
    counts = coverage([v.cell for v in verdicts.values()], verdicts, ())[list(VERDICTS)].sum()
    return (
        f"Of {counts.sum()} accuracies and errors that were run, {counts['agrees']} agree with the "
        f"paper or with reference code, {counts['differs']} differ, and {counts['undecided']} are "
        "undecided: their seeds spread too widely."
    )
