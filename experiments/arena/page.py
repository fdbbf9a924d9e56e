"""What people read of the arena: a report in the terminal, Markdown tables, and a sortable page."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.arena import conclusions, pictures, verdict
from experiments.arena.ratings import by_split, scored
from experiments.arena.rows import SCORES, SCORES_OF_ALL, to_rate
from experiments.arena.runs import ALL
from experiments.arena.selectors import OURS, SELECT
from experiments.arena.tables import TABLES
from experiments.artifacts.figures.ranks import plot_ranks
from experiments.artifacts.html import page_of
from experiments.artifacts.markdown import as_rows
from fsjax.report.style import save_figure
from fsjax.storage.atomic_files import write_text

#: Headings and digits of the columns of the summary.
HEADINGS = {
    "elo": ("Elo", 0),
    "seconds": ("CPU s", 1),
    **{shape: (shape, 0) for shape in verdict.SHAPES},
    "tables": ("tables", 0),
    "failed": ("failed on", 0),
    "beats all": ("no worse than all columns, % of tables", 0),
    "found": ("true columns found, %", 0),
    "false": ("false among its own, %", 0),
    "stability": ("stability", 2),
    "memory": ("MiB", 0),
}

#: Selectors of the library, drawn in colour.
_COLOURED = (*OURS, SELECT)

#: Columns of words in the tables of conclusions.
_WORDS = ("best rated, Elo and CPU seconds", "tables")

#: Columns of the summary that are shares.
_SHARES = ("beats all", "found", "false")

#: Sorts a table by the column whose head is pressed, and shows the runs of a pressed cell.
_SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.querySelectorAll("th")];
  heads.forEach((head, index) => head.querySelector("button").addEventListener("click", () => {
    const down = head.ariaSort !== "descending";
    heads.forEach((other) => { other.ariaSort = "none"; });
    head.ariaSort = down ? "descending" : "ascending";
    const value = (row) => {
      const text = row.cells[index].dataset.value ?? row.cells[index].textContent;
      return index ? parseFloat(text) : text;
    };
    const rows = [...table.tBodies[0].rows].sort((one, other) => {
      const [a, b] = [value(one), value(other)];
      if (index === 0) return down ? a.localeCompare(b) : b.localeCompare(a);
      if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b);
      return down ? b - a : a - b;
    });
    table.tBodies[0].append(...rows);
  }));
}
const shown = document.querySelector("#runs");
document.addEventListener("click", (event) => {
  const cell = event.target.closest("td[data-runs]");
  if (cell) shown.textContent = cell.dataset.runs;
});
"""

_STYLE = """<style>
body { max-width: 90rem; }
#runs:empty { display: none; }
th button { all: unset; cursor: pointer; white-space: normal; }
th button:focus-visible { outline: 2px solid var(--link); }
th[aria-sort=descending] button::after { content: " \\2193"; }
th[aria-sort=ascending] button::after { content: " \\2191"; }
thead th { position: sticky; top: 0; vertical-align: bottom; max-width: 8em; white-space: normal; }
tbody td:first-child { position: sticky; left: 0; background: var(--page); }
td[data-runs] { cursor: pointer; }
#runs { position: sticky; bottom: 0; background: var(--soft); padding: 0.5rem; min-height: 2.5rem; }
</style>"""


def formatted(table: pd.DataFrame) -> pd.DataFrame:
    """The summary as text, a column for the selector and one for each heading."""
    text = pd.DataFrame({"selector": table.index.astype(str)}, index=table.index)
    for name, (heading, digits) in HEADINGS.items():
        if name in table:
            values = table[name].astype(float) * (100.0 if name in _SHARES else 1.0)
            text[heading] = ["" if pd.isna(value) else f"{value:.{digits}f}" for value in values]
    interval = [
        "" if np.isnan(low) else f"{low:.0f} to {high:.0f}"
        for low, high in zip(table["low"], table["high"], strict=True)
    ]
    text.insert(2, "95 % interval", interval)
    return text


def report(rows: pd.DataFrame, selector: str = "") -> str:
    """The ratings as text, on the splits that a new selector has, and the sentence about it."""
    number = int((rows["selector"] == selector).sum())
    if number:
        rows = to_rate(rows, selector)
    if not scored(rows).tables:
        return "there are no two selectors with rows on these tables yet"
    table, ratings = verdict.summary(rows)
    text = formatted(table)
    keep = ["Elo", "95 % interval", "tables", "failed on", HEADINGS["found"][0], "CPU s"]
    lines = [text[["selector", *keep]].to_string(index=False)]
    if selector in table.index:
        lines.append(verdict.sentence(selector, ratings))
    elif selector:
        lines.append(f"{selector} has no place: of its {number} rows on these tables none is rated")
    return "\n\n".join(lines)


def by_table(rows: pd.DataFrame, order: Iterable[str]) -> pd.DataFrame:
    """Mean scores ``(selectors, tables)`` in a given order of selectors, then all columns."""
    values = rows[SCORES_OF_ALL].mean(axis=1).fillna(rows[SCORES].mean(axis=1))
    return by_split(rows, values).means().T.reindex([*order, ALL])[scored(rows).tables]


def publish(rows: pd.DataFrame, root: Path) -> None:
    """Writes tables, pictures and the sortable page of the documentation."""
    table, ratings = verdict.summary(rows)
    docs = root / "docs"
    write_text(docs / "tables" / "arena.md", as_rows(formatted(table).astype(str)))
    cells = by_table(rows, table.index)
    text = cells.map(lambda value: "" if pd.isna(value) else f"{value:.1f}")
    write_text(docs / "tables" / "arena_by_table.md", as_rows(_named(text)))
    failures = verdict.failures(rows)
    text_of_failures = as_rows(failures) if len(failures) else "No selection failed.\n"
    write_text(docs / "tables" / "arena_failures.md", text_of_failures)
    write_text(docs / "tables" / "arena_places.md", as_rows(_places(rows)))
    write_text(docs / "tables" / "arena_extent.md", verdict.extent(rows) + "\n")
    for name, text_of in conclusions_as_text(rows, table).items():
        write_text(docs / "tables" / f"arena_{name}.md", as_rows(text_of, _WORDS))
    front = verdict.front(table)
    save_figure(pictures.plot_front(table, front, _COLOURED), docs / "pictures" / "arena_front.png")
    save_figure(pictures.plot_ratings(table, _COLOURED), docs / "pictures" / "arena_ratings.png")
    if (ranked := verdict.ranks(scored(rows))) is not None:
        save_figure(plot_ranks(ranked, _COLOURED), docs / "pictures" / "arena_ranks.png")
    write_text(docs / "assets" / "arena.html", sortable_page(rows, table, cells))


def conclusions_as_text(rows: pd.DataFrame, table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables of conclusions as text: ``best``, ``beside``, ``below`` and ``found``.

    Args:
      table: the summary.
    """
    scores = scored(rows)
    beside = conclusions.beside(scores)
    found = conclusions.found_by_table(rows, list(table.index))
    below = {name: tables for name, tables in conclusions.below_random(scores).items() if tables}
    return {
        "best": conclusions.best(scores, table),
        "beside": pd.DataFrame(
            {
                "selector": beside.index,
                f"minus {conclusions.REFERENCE}": beside["mean"].map(_signed),
                "95 % interval": [
                    f"{_signed(line.mean - line.half)} to {_signed(line.mean + line.half)}"
                    for line in beside.itertuples()
                ],
                **{f"{kind} on": beside[kind].astype(str) for kind in ("better", "equal", "worse")},
            }
        ),
        "below": pd.DataFrame(
            [(name, str(len(tables)), ", ".join(tables)) for name, tables in below.items()],
            columns=["selector", "number", "tables"],
        ),
        "found": _named(found.map(lambda share: "" if pd.isna(share) else f"{share:.0f}")),
    }


def _signed(value: float) -> str:
    return f"{round(value, 1) + 0.0:+.1f}"  # no -0.0


def _named(text: pd.DataFrame) -> pd.DataFrame:
    return text.rename_axis("selector").reset_index()


def _places(rows: pd.DataFrame) -> pd.DataFrame:
    """Places of all selectors, and how far they move, as text."""
    places = verdict.places(scored(rows))
    text = pd.DataFrame({"place": places["place"].map("{:.0f}".format)})
    text["without a table, or a shape of tables"] = [
        f"{low:.0f} to {high:.0f}"
        for low, high in zip(places["least"], places["most"], strict=True)
    ]
    text["among half of the rivals, % of places above it"] = [
        f"{100 * low:.0f} to {100 * high:.0f}"
        for low, high in zip(places["least_share"], places["most_share"], strict=True)
    ]
    return _named(text)


def sortable_page(rows: pd.DataFrame, table: pd.DataFrame, cells: pd.DataFrame) -> str:
    """A page with both tables; a press on a head sorts, and on a cell shows its runs."""
    runs = _runs(rows)
    scores = [
        [(name, "")]
        + [_cell(value, runs.get((table_name, name), "")) for table_name, value in line.items()]
        for name, line in cells.iterrows()
    ]
    text = formatted(table)
    summary = [[(value, "") for value in line] for line in text.to_numpy().tolist()]
    shapes = "".join(
        f"<li>{shape}: {html.escape(', '.join(names))}</li>"
        for shape in verdict.SHAPES
        if (names := [name for name in cells.columns if TABLES[name].shape == shape])
    )
    return page_of(
        "The arena",
        [
            _STYLE,
            f"<p>{html.escape(verdict.extent(rows))}</p>",
            "<p>Press the head of a column to sort by it, and a cell to see its runs.</p>",
            "<h2>All tables</h2>" + _sortable(list(text.columns), summary),
            f"<h2>Scores by table</h2><ul>{shapes}</ul>",
            _sortable(["selector", *map(str, cells.columns)], scores),
            "<p id='runs' aria-live='polite'></p>",
            f"<script>{_SCRIPT}</script>",
        ],
    )


def _cell(value: float, runs: str) -> tuple[str, str]:
    return ("" if pd.isna(value) else f"{value:.1f}", runs)


def _runs(rows: pd.DataFrame) -> dict[tuple[str, str], str]:
    """A sentence about the runs behind each cell."""
    texts: dict[tuple[str, str], list[str]] = {}
    scores = rows[SCORES].mean(axis=1)
    for line, score in zip(rows.to_dict("records"), scores, strict=True):
        what = line["failure"] + ": " + line["reason"] if line["failure"] else f"{score:.1f}"
        if line["cpu_seconds"] == line["cpu_seconds"] and line["cpu_seconds"] is not None:
            what += f" ({line['cpu_seconds']:g} CPU s)"
        texts.setdefault((line["table"], line["selector"]), []).append(
            f"split {line['split']}: {what}"
        )
    return {key: f"{key[1]} on {key[0]}: " + "; ".join(parts) for key, parts in texts.items()}


def _sortable(head: list[str], lines: Iterable[list[tuple[str, str]]]) -> str:
    top = "".join(
        f"<th aria-sort='none'><button>{html.escape(text)}</button></th>" for text in head
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{f' data-runs={json.dumps(html.escape(runs))}' if runs else ''}>"
            f"{html.escape(str(text))}</td>"
            for text, runs in line
        )
        + "</tr>"
        for line in lines
    )
    return (
        f"<div class='scroll'><table class='sortable'><thead><tr>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )
