"""Numbers in README, the documentation and the configs, filled in from the files of measurements.

Two kinds of text are filled, by ``python docs/make_tables.py``; a test fails if one differs:

- Cells of Markdown tables below the headings in :data:`MEASURED`: the figures of a method on a data
  set, from ``reproduction/results.csv``, or from ``reproduction/configs.csv`` if the setting is not
  one of a paper's table.
- Phrases in ``docs/values.toml``, in which ``{file; row; column}`` stands for a number: the cell of
  a Markdown table, for example ``{arena; ICAP; Elo}`` of ``docs/tables/arena.md``.
"""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

ROOT = Path(__file__).parents[1]

#: Headings of columns with measured figures, and whose: of the method of the row, or of another.
MEASURED = {"here": None, "random columns": "random_selection"}

#: A placeholder of a phrase, and the numbers that may stand in its place.
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e-?\d+)?")

#: The metrics of a paper's tables that are figures of a method, and the decimals of a paper.
METRICS = {
    "ip_cae": ("embedded_accuracy", "retrain_accuracy", "reconstruction_frobenius"),
    "wast": ("svm_accuracy",),
    "ctre": ("embedded_accuracy",),
}
DECIMALS = {"ctre": 1, "sand": 1}


class Figure(NamedTuple):
    """A published and a measured figure, as they are printed."""

    paper: str
    here: str
    seeds: str


class Run(NamedTuple):
    """What a row of a table says about its runs: ``settings`` are options, words and the task."""

    method: str
    dataset: str
    settings: tuple[str, ...]
    num_features: str


def filled(path: Path, text: str) -> str:
    """The text of a file with all its measured figures up to date.

    Raises:
      ValueError: for a figure without a measurement, or a phrase that is not in the text once.
    """
    text = _with_tables(path, text)
    for phrase in _phrases().get(str(path.relative_to(ROOT)), ()):
        text = _with_phrase(path, text, phrase)
    return text


def files() -> list[Path]:
    """The files that are filled: all pages and configs with a table or phrase of figures."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").rglob("*/*.md")]
    paths = {path for path in pages if path.parent.name != "tables"}
    paths |= {*(ROOT / "configs").glob("*.py"), *(ROOT / name for name in _phrases())}
    return sorted(paths)


@functools.cache
def _phrases() -> Mapping[str, list[str]]:
    return tomllib.loads((ROOT / "docs" / "values.toml").read_text(encoding="utf-8"))


# --- Phrases ---------------------------------------------------------------------------------


def _with_phrase(path: Path, text: str, phrase: str) -> str:
    literal_parts = PLACEHOLDER.split(phrase)
    pattern = "".join(
        rf"(?P<value{index}>{NUMBER.pattern})" if index % 2 else _any_spaces(part)
        for index, part in enumerate(literal_parts)
    )
    matches = list(re.finditer(pattern, text))
    name = path.relative_to(ROOT)
    if len(matches) != 1:
        raise ValueError(
            f"{name} has {len(matches)} times the phrase {phrase!r} of docs/values.toml; "
            "change the phrase there as in the text"
        )
    match = matches[0]
    for index in reversed(range(1, len(literal_parts), 2)):
        start, end = match.span(f"value{index}")
        text = text[:start] + value_of(literal_parts[index]) + text[end:]
    return text


def _any_spaces(literal: str) -> str:
    return r"\s+".join(re.escape(part) for part in re.split(r"\s+", literal))


def value_of(placeholder: str) -> str:
    """The number that ``file; row; column`` names.

    A fourth part chooses among several numbers in the cell, from 0: ``1`` is the p of ``-4.0
    (0.06)``. A fifth is how to print it: rounded, as in ``.1f``, or ``abs``, without its sign.

    Raises:
      ValueError: if there is no such cell, or no number in it.
    """
    source, row, column, *options = (part.strip() for part in placeholder.split(";"))
    for table in _tables_of(source):
        if row in table and column in table[row]:
            numbers = NUMBER.findall(table[row][column])
            index = int(options[0]) if options else 0
            if index < len(numbers):
                value, form = numbers[index], "".join(options[1:])
                if form == "abs":
                    return value.lstrip("+-")
                return f"{float(value):{form}}" if form else value
    raise ValueError(f"docs/values.toml: {source} has no number in row {row!r}, column {column!r}")


@functools.cache
def _tables_of(source: str) -> list[dict[str, dict[str, str]]]:
    """The Markdown tables of a file as cells by row, the first cell, and column."""
    path = ROOT / "docs" / "tables" / f"{source}.md"
    path = path if path.is_file() else ROOT / source
    tables: list[dict[str, dict[str, str]]] = []
    for line in _rows(_with_tables(path, path.read_text(encoding="utf-8"))):
        if line.first:
            tables.append({})
        tables[-1][_plain(line.cells[0])] = dict(zip(line.header, line.cells, strict=False))
    return tables


# --- Tables ----------------------------------------------------------------------------------


class _Row(NamedTuple):
    number: int
    first: bool
    header: list[str]
    cells: list[str]


def _rows(text: str) -> Iterator[_Row]:
    """The rows of all Markdown tables of a text, with the number of their line."""
    lines = text.splitlines()
    header: list[str] = []
    first = False
    for number, line in enumerate(lines):
        if not line.startswith("|"):
            header = []
        elif not header:
            header, first = [_plain(cell) for cell in _cells(line)], True
        elif set(line) - set("|-: "):
            yield _Row(number, first, header, _cells(line))
            first = False


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _plain(cell: str) -> str:
    return cell.replace("`", "")


def _with_tables(path: Path, text: str) -> str:
    lines = text.splitlines(keepends=True)
    for row in _rows(text):
        columns = [column for column in MEASURED if column in row.header]
        if not columns:
            continue
        cells = dict(zip(row.header, row.cells, strict=False))
        for column in columns:
            run = _run_of(cells, MEASURED[column] or cells.get("method", path.stem))
            figure = figure_of(run)
            if figure is None:
                raise ValueError(
                    f"{path.relative_to(ROOT)}: no measurement of {run}; run it, and add it to "
                    "reproduction/configs.csv"
                )
            one = figure.seeds == "1"
            seeds = f" ({figure.seeds} seed{'' if one else 's'})"
            shown = figure.here if "seeds" in cells or MEASURED[column] else figure.here + seeds
            updates = {column: shown}
            if column == "here":
                updates |= {"paper": figure.paper or cells.get("paper", ""), "seeds": figure.seeds}
            cells |= {name: value for name, value in updates.items() if name in cells}
        lines[row.number] = "| " + " | ".join(cells.values()) + " |\n"
    return "".join(lines)


def _run_of(cells: Mapping[str, str], method: str) -> Run:
    label = _plain(next(iter(cells.values())))
    dataset, *settings = [
        part.strip() for part in re.split(r", |,(?=[a-z])| \(|\)", label) if part.strip()
    ]
    if method == "random_selection":
        settings = []
    elif cells.get("task") == "reconstruction":
        settings.append("reconstruction")
    default = "20" if dataset == "madelon" else "50"
    name = method.lower().replace("-", "_").replace("quickselection", "quick_selection")
    return Run(name, dataset, tuple(settings), cells.get("K", default))


def figure_of(run: Run) -> Figure | None:
    """The figure of a run: of ``configs.csv`` if it is there, else of a paper's table."""
    rows = rows_of_configs(run)
    rows = rows if len(rows) else rows_of_papers(run)
    if not len(rows):
        return None
    row = rows.iloc[0]
    decimals = DECIMALS.get(row["paper"], 2)
    published = (row["published_mean"], row["published_std"])
    error = row["metric"] == "reconstruction_frobenius"
    return Figure(
        paper="" if math.isnan(published[0]) else _text(*published, decimals, error),
        here=_text(row["mean"], row["std"], 2, error),
        seeds=str(row["seeds"]),
    )


def rows_of_configs(run: Run) -> pd.DataFrame:
    """The rows of ``reproduction/configs.csv`` for a run."""
    table = _measurements("configs")
    return table[
        (table["method"] == run.method)
        & (table["dataset"] == run.dataset)
        & (table["setting"] == ", ".join(run.settings))
        & (table["num_features"] == int(run.num_features))
    ]


def rows_of_papers(run: Run) -> pd.DataFrame:
    """The rows of ``reproduction/results.csv`` for a run."""
    table = _measurements("results")
    same = (table["method"] == run.method) & (table["dataset"] == run.dataset)
    chosen = pd.Series(data=False, index=table.index)
    for paper, setting in _settings(run).items():
        cells = (table["paper"] == paper) & table["metric"].isin(METRICS[paper])
        chosen |= same & cells & (table["setting"] == setting)
    return table[chosen]


def _settings(run: Run) -> dict[str, str]:
    """The setting of a run as each paper's cells have it."""
    options = [part for part in run.settings if "=" in part]
    task = "reconstruction" if "reconstruction" in run.settings else "classification"
    if len(run.settings) > len(options) + (task == "reconstruction"):
        return {}  # a setting in words is in no paper's table
    k = f"K={run.num_features}"
    hidden = next((o.removeprefix("hidden=") for o in options if "hidden=" in o), "1000,1000,1000")
    return {
        "wast": ";".join([k, *options]),
        "ip_cae": ";".join([f"task={task}", k, *options]),
        "ctre": f"task=classification;hidden=({hidden});epsilon=1",
    }


def _text(mean: float, std: float, decimals: int, is_error: bool) -> str:
    if not is_error:
        spread = "" if math.isnan(std) else f" +- {std:.{decimals}f}"
        return f"{mean:.{decimals}f}{spread}"
    exponent = math.floor(math.log10(mean))
    scaled = f"{mean / 10**exponent:.2f}e{exponent}"
    return scaled if math.isnan(std) else f"{scaled} +- {std / 10**exponent:.2f}e{exponent}"


@functools.cache
def _measurements(name: str) -> pd.DataFrame:
    path = ROOT / "reproduction" / f"{name}.csv"
    table = pd.read_csv(path)
    return table.fillna({"setting": ""})
