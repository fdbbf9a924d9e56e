"""The page of the documentation with the papers' tables, ours beside every published number."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.papers.cells import Cell
from experiments.papers.results import KEY
from fsjax.storage.atomic_files import write_text

TITLES = {
    "wast": "WAST (Sokar et al., NeurIPS 2022)",
    "ctre": "CTRE (Atashgahi et al., Machine Learning 2022)",
    "ip_cae": "IP-CAE (Nilsson et al., ICML 2024)",
}

#: What a table is about, as captions.
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

HEAD = """\
# The papers' tables, cell by cell

Each cell has the published mean and, below it, ours: <span class="agrees">in agreement</span>,
<span class="differs">not in agreement</span> or not run. A cell agrees when our mean over the
seeds is within 1.5 points (5 % of an error or a count) or two published standard deviations of the
paper's, whichever is more. Runs have three seeds where they take less than a minute, as a rule, and
two otherwise; the number of seeds, the spread and the price of each cell are in
`reproduction/results.csv`, and shown when the pointer rests on a cell.

    python -m experiments.reproduce --workdir=runs/papers

makes this page, a run at a time, the cheapest first; see {doc}`reproducing`.

"""


def _number(value: float, metric: str) -> str:
    if metric.startswith("reconstruction"):
        return f"{value:.2e}"
    if metric == "train_flops":
        return f"{value:.2g}"
    if metric in ("params", "connections"):
        return f"{value:,.0f}"
    return f"{value:.1f}" if metric == "density_pct" else f"{value:.2f}"


def _variant(cell: Cell) -> str:
    """The method with the options that make it a row of its own."""
    hide = ("hidden", "epsilon", "th", "impl", "task")
    parts = [f"{name}={value}" for name, value in cell.row.options.items() if name not in hide]
    if cell.row.num_epochs:
        parts.append(f"{cell.row.num_epochs} epochs")
    return f"{cell.row.method} ({', '.join(parts)})" if parts else cell.row.method


def _network(cell: Cell) -> str:
    hidden, epsilon = cell.row.options.get("hidden", ("",)), cell.row.options.get("epsilon")
    return f"{hidden[0]}" if epsilon is None else f"{hidden[0]}, ε {epsilon}"


#: For each table: what splits it into parts, and what names rows and columns.
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


def _td(cell: Cell, row: Mapping[str, Any] | None) -> str:
    metric, mean = cell.row.metric, cell.row.mean
    published = "" if math.isnan(mean) else _number(mean, metric)
    if row is None:
        return f"<td class='missing'>{published}<br>–</td>"
    title = f"{row['seeds']} seeds, {row['epochs']} epochs, ± {row['std']:.3g}"
    if row["cpu_seconds"] == row["cpu_seconds"]:
        title += f", {row['cpu_seconds']:.0f} s of CPU for the run"
    if row["reason"]:
        title += f". {row['reason']}"
    state = {1: "agrees", 0: "differs"}.get(row["agrees"], "own")
    ours = _number(row["mean"], metric)
    title = html.escape(title, quote=True)
    return f"<td class='{state}' title='{title}'>{published}<br>{ours}</td>"


def _table(cells: Sequence[Cell], rows: Mapping[tuple[str, ...], Mapping[str, Any]]) -> str:
    """One part of a table."""
    grid: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    for cell in cells:
        _, name, column = (text_of(cell) for text_of in _layout(cell))
        columns[column] = None
        grid.setdefault(name, {})[column] = _td(cell, rows.get(cell.key))
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "\n".join(
        f"<tr><th>{html.escape(name)}</th>"
        + "".join(of_row.get(column, "<td></td>") for column in columns)
        + "</tr>"
        for name, of_row in grid.items()
    )
    return f"<tr><th></th>{head}</tr>\n{body}"


def make_page(cells: Sequence[Cell], table: pd.DataFrame, summary: pd.DataFrame) -> str:
    """The page in Markdown, its tables in HTML.

    Args:
      cells: all cells that the page shows.
      table: the rows of ``results.csv``.
      summary: what :func:`experiments.papers.results.coverage` gives.
    """
    rows = {tuple(row[name] for name in KEY): row for row in table.to_dict("records")}
    summary = summary.assign(
        coverage=_percent(summary["run"], summary["data here"]),
        agreement=_percent(summary["agree"], summary["run"]),
    )
    names = list(summary.columns)
    text = [HEAD, "| " + " | ".join(names) + " |", "| " + " | ".join("---" for _ in names) + " |"]
    text += ["| " + " | ".join(map(str, row)) + " |" for row in summary.itertuples(index=False)]
    for paper in dict.fromkeys(cell.paper for cell in cells):
        text.append(f"\n## {TITLES[paper]}\n")
        of_paper = [cell for cell in cells if cell.paper == paper]
        for number in sorted({cell.table for cell in of_paper}, key=int):
            of_table = [cell for cell in of_paper if cell.table == number]
            text.append(f"### Table {number}: {CAPTIONS.get((paper, number), '')}\n")
            parts: dict[str, list[Cell]] = {}
            for cell in of_table:
                parts.setdefault(_layout(cell)[0](cell), []).append(cell)
            for part, of_part in parts.items():
                # Parts of which nothing was run would only make the page long.
                if not any(cell.key in rows for cell in of_part):
                    text.append(f"{part or 'This table'}: {len(of_part)} cells, none run.\n")
                    continue
                caption = f"<caption>{html.escape(part)}</caption>" if part else ""
                text.append(
                    "```{raw} html\n<div class='reproduction'><table>"
                    f"{caption}\n{_table(of_part, rows)}\n</table></div>\n```\n"
                )
            reasons: dict[str, dict[str, None]] = {}
            for cell in of_table:
                if (row := rows.get(cell.key)) and row["reason"]:
                    where = f"{cell.row.method}, {cell.row.dataset}"
                    reasons.setdefault(row["reason"], {})[where] = None
            text += [f"- **{'; '.join(where)}**: {reason}" for reason, where in reasons.items()]
            text.append("")
    return "\n".join(text)


def _percent(part: pd.Series, whole: pd.Series) -> list[str]:
    """Shares as ``74 %``; ``-`` of nothing."""
    pairs = zip(part, whole, strict=True)
    return [f"{100 * value / other:.0f} %" if other else "-" for value, other in pairs]


def write_page(
    cells: Sequence[Cell], table: pd.DataFrame, summary: pd.DataFrame, path: Path
) -> None:
    """Writes :func:`make_page`."""
    write_text(path, make_page(cells, table, summary))
