"""Writes ``figures.md`` and its pictures from rows of data: ``python docs/make_figures.py``.

The page has every figure and claim of the five papers (``reproduction/figures.toml``): those with
rows in ``reproduction/figures/`` with a picture and whether they hold here, the others with the
reason. A test fails if the page differs from what this would write.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fsjax.report import style
from fsjax.storage.atomic_files import write_text

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from docs.draw_figures import draw  # noqa: E402
from experiments.papers.figures.entries import ENTRIES, Entry, read_entries  # noqa: E402
from experiments.papers.figures.outcome import HOLDS, Outcome, outcome_of  # noqa: E402
from experiments.papers.figures.rows import COST, ROWS, path_of, read_rows  # noqa: E402

PAGE = ROOT / "docs" / "figures.md"
PICTURES = ROOT / "docs" / "pictures" / "figures"

#: The names of the papers as headings.
NAMES = {
    "wast": "WAST",
    "binmask": "BinMask",
    "ctre": "CTRE",
    "ip_cae": "IP-CAE",
    "ip_cae_poster": "IP-CAE, the poster",
}

HEAD = """# The papers' figures and claims

{count} figures and claims of the five papers are listed; {runs} have rows of data here: of these,
{holds}.

`python -m experiments.figures --list` prints this list; `--figure=wast/5` computes one again. The
rows are in `reproduction/figures/`; the messages, in our words, are in `reproduction/figures.toml`.

**Whether a figure holds** follows from its rows by a rule. Each check compares two values at every
panel and place, by the 90 % interval of their difference (in brackets), which is the wider of
Student's and Welch's and knows only the seeds that were run. Where all comparisons hold, the figure
does (*yes*); where some do, *partly*; *no* if none holds and at least half are contradicted; else
it is *undecided*. The comparisons of a figure are not independent, and nothing is corrected for
their number. Bars in the pictures are 90 % intervals too.
"""


def table_of(entry: Entry) -> pd.DataFrame:
    """The rows of a figure."""
    return read_rows(path_of(ROOT / ROWS, entry.key))


def picture_of(entry: Entry) -> Path:
    """The file of a picture."""
    return PICTURES / f"{entry.key.replace('/', '_')}.png"


def cost_of(table: pd.DataFrame) -> tuple[float, str]:
    """The CPU seconds of a figure, and the numbers of its seeds as text."""
    seconds = table.loc[table["metric"] == COST, "mean"].sum()
    seeds = sorted({int(n) for n in table["seeds"]} - {0})
    return float(seconds), " to ".join(map(str, sorted({*seeds[:1], *seeds[-1:]}))) or "none"


def page(entries: Sequence[Entry]) -> str:
    """The text of the page."""
    outcomes = {e.key: outcome_of(e, table_of(e)) for e in entries if e.runs}
    words = [outcome.holds for outcome in outcomes.values()]
    holds = ", ".join(f"{words.count(word)} {word}" for word in HOLDS if word in words)
    text = [HEAD.format(count=len(entries), runs=len(outcomes), holds=holds)]
    text += ["| paper | figure or claim | holds here | command, or why not |", "|---|---|---|---|"]
    for entry in entries:
        name, last, word = f"{entry.title}", entry.why_not, "no run"
        if entry.runs:
            name, last = f"[{entry.title}](#{anchor(entry)})", f"`{entry.how}`"
            word = outcomes[entry.key].holds
        text.append(f"| {NAMES[entry.paper]} | {name} | {word} | {last} |")
    for paper in dict.fromkeys(entry.paper for entry in entries if entry.runs):
        text.append(f"\n## {NAMES[paper]}")
        text += [
            section(entry, outcomes[entry.key])
            for entry in entries
            if entry.runs and entry.paper == paper
        ]
    return "\n".join(text) + "\n"


def anchor(entry: Entry) -> str:
    """The target of a section's link."""
    return f"{entry.paper}-{entry.name}".replace("_", "-")


def section(entry: Entry, outcome: Outcome) -> str:
    """The section of a figure: picture beside message and outcome, and what it costs."""
    picture = picture_of(entry).relative_to(PAGE.parent)
    seconds, seeds = cost_of(table_of(entry))
    cell = [entry.message, f"**Holds here: {outcome.holds}.**", *outcome.sentences]
    cell += [entry.scope] if entry.scope else []
    cost = f"`{entry.how}`: {seconds:.0f} CPU seconds; seeds: {seeds}."
    return "\n".join(
        [
            f"\n({anchor(entry)})=\n### {entry.title}\n",
            "| picture | what the paper says, and whether it holds here |\n|---|---|",
            f"| ![{entry.title} of {NAMES[entry.paper]}]({picture}) | {'<br>'.join(cell)} |\n",
            *([entry.picture.note] if entry.picture.note else []),
            cost,
        ]
    )


def pictures(entries: Sequence[Entry]) -> None:
    """Draws all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        if entry.runs:
            style.save_figure(draw(entry, table_of(entry)), picture_of(entry))


if __name__ == "__main__":
    _entries = read_entries(ROOT / ENTRIES)
    write_text(PAGE, page(_entries))
    pictures([entry for entry in _entries if entry.key in sys.argv[1:] or not sys.argv[1:]])
