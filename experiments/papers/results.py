"""``reproduction/results.csv``: all cells that were run, with the published number and ours."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.papers.cells import Cell, Run, number_of, run_of, value_of
from experiments.papers.curves import compared_values, compared_with
from fsjax.errors import ConfigError
from fsjax.storage.atomic_files import write_text

#: The columns that identify a cell.
KEY = ("paper", "table", "dataset", "method", "setting", "metric")

COLUMNS = (
    *KEY,
    "published_mean",
    "published_std",
    "mean",
    "std",
    "seeds",
    "epochs",
    "cpu_seconds",
    "commit",
    "agrees",
    "reason",
    "verdict",
    "low",
    "high",
    "reason_kind",
)

#: What a reason is: a cause that rows of ``reproduction`` show, a setting that the paper does not
#: tell, or only what was seen.
KINDS = ("cause shown", "not told by the paper", "unknown")


class Cost(NamedTuple):
    """The measured cost of a run: its CPU seconds and number of seeds."""

    seconds: float
    seeds: int


def by_key(table: pd.DataFrame) -> dict[tuple[str, ...], dict[str, Any]]:
    """The rows of a table by the key of their cell."""
    return {tuple(row[name] for name in KEY): row for row in table.to_dict("records")}


def read_cells(path: Path, columns: Sequence[str], text: Sequence[str]) -> pd.DataFrame:
    """Reads a CSV file with a row per cell; the table is empty if there is no file.

    Args:
      path: the file.
      columns: the columns that the file must have.
      text: those of them that hold text; where the file has none, it is empty.

    Raises:
      ConfigError: if the file has other columns.
    """
    if not path.exists():
        return pd.DataFrame(columns=columns)
    table = pd.read_csv(path, dtype=dict.fromkeys(text, str))
    if tuple(table.columns) != tuple(columns):
        odd = sorted(set(table.columns) ^ set(columns))
        raise ConfigError(
            f"{path} is from another version: its columns differ in {', '.join(odd)}; name another "
            "file, or delete it"
        )
    return table.fillna(dict.fromkeys(text, ""))


def read_results(path: Path, cells: Iterable[Cell] = ()) -> pd.DataFrame:
    """Reads a file of results; the table is empty if there is no file.

    Args:
      path: the file.
      cells: the current cells of the papers' tables.

    Raises:
      ConfigError: if the file has other columns, or if a published number has changed.
    """
    table = read_cells(path, COLUMNS, (*KEY, "commit", "reason", "verdict", "reason_kind"))
    published = {cell.key: cell.row.mean for cell in cells}
    for key, row in by_key(table).items():
        before = row["published_mean"]
        now = published.get(key, before)
        if not np.isclose(now, before, rtol=1e-9, equal_nan=True):
            raise ConfigError(
                f"{path} was made with another version of the tables: {', '.join(key)} was "
                f"{before} and is {now}; name another file by --results"
            )
    return table


def read_reasons(path: Path) -> list[dict[str, Any]]:
    """Reads the entries of ``reasons.toml``.

    An entry has the fields that a cell must match, the ``text`` of the reason, and its ``kind``,
    one of :data:`KINDS`. A *cause shown* has ``shown_by``, the name and the fields of rows of a CSV
    file next to ``path``; ``degenerate`` marks cells whose scores are all equal.

    Raises:
      ConfigError: for an entry without a text or kind, with an unknown field, or a cause that no
        row shows.
    """
    if not path.exists():
        return []
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("reason", [])
    for number, entry in enumerate(entries, start=1):
        where = f"{path}: reason {number}"
        if odd := set(entry) - {*KEY, "text", "kind", "shown_by", "degenerate"}:
            raise ConfigError(f"{where} has unknown fields: {', '.join(odd)}")
        if not entry.get("text"):
            raise ConfigError(f"{where} has no text")
        if entry.get("kind") not in KINDS:
            raise ConfigError(f"{where} has no kind; choose from {', '.join(KINDS)}")
        if entry["kind"] == KINDS[0]:
            fields = dict(entry.get("shown_by", {}))
            file = path.with_name(fields.pop("file", ""))
            rows = pd.read_csv(file, dtype=str, keep_default_na=False).to_dict("records")
            if not any(_matches(row, fields) for row in rows):
                raise ConfigError(f"{where}: no row of {file.name} shows the cause")
    return entries


def reason_of(
    cell: Mapping[str, Any], reasons: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The first reason that matches the cell, or ``None``.

    A field of a reason may be a list of values. A setting matches if the cell has all its parts.
    """
    return next((entry for entry in reasons if _matches(cell, entry)), None)


def _matches(row: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    for name in KEY:
        patterns = fields.get(name)
        if patterns is None:
            continue
        patterns = [patterns] if isinstance(patterns, str) else patterns
        if name == "setting":
            parts = set(row[name].split(";"))
            if not any(set(pattern.split(";")) <= parts for pattern in patterns):
                return False
        elif row[name] not in patterns:
            return False
    return True


def _about(cell: Cell) -> dict[str, Any]:
    """The columns of a row that do not depend on the run."""
    return {
        **dict(zip(KEY, cell.key, strict=True)),
        "published_mean": cell.row.mean,
        "published_std": math.nan if cell.row.std is None else cell.row.std,
    }


def row_of(cell: Cell, values: list[float], result: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the file, without its verdict and reason."""
    mean = float(np.mean(values))
    return {
        **_about(cell),
        "mean": float(f"{mean:.6g}"),
        "std": float(f"{np.std(values):.4g}"),
        # A delay or a speed-up has a value for the seeds that reach the accuracy only.
        "seeds": len(values) if compared_with(cell) else len(result["seeds"]),
        "epochs": result["epochs"],
        "cpu_seconds": result["cpu_seconds"],
        "commit": (result["commit"] or "")[:7],
    }


def collect(
    cells: Iterable[Cell], finished: Mapping[Run, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Rows for all cells whose runs are finished."""
    rows = []
    for cell in cells:
        result = finished.get(run_of(cell))
        if result is None:
            continue
        if compared_with(cell):
            values = compared_values(cell, finished)
        else:
            values = value_of(cell, result)
        if values:
            rows.append(row_of(cell, values, result))
    return rows


def merged(
    old_table: pd.DataFrame, rows: list[dict[str, Any]], cells: Iterable[Cell] = ()
) -> pd.DataFrame:
    """Replaces the rows of cells that have new ones; their verdicts are looked up later.

    Those of ``cells`` that repeat the number of a new row, in another table, get its values, too.
    """
    row_by_key = by_key(old_table)
    repeats: dict[object, list[Cell]] = {}
    for cell in cells:
        repeats.setdefault(number_of(cell), []).append(cell)
    same = {cell.key: group for group in repeats.values() for cell in group}
    for row in rows:
        key = tuple(row[name] for name in KEY)
        about = {other.key: _about(other) for other in same.get(key, ())} or {key: {}}
        # A row with more seeds is kept, even if it is older.
        if all(row["seeds"] >= row_by_key.get(other, row)["seeds"] for other in about):
            row_by_key |= {other: {**row, **facts} for other, facts in about.items()}
    result = pd.DataFrame(list(row_by_key.values()), columns=COLUMNS)
    return result.sort_values(list(KEY), kind="stable", ignore_index=True)


def write_results(table: pd.DataFrame, path: Path) -> None:
    """Writes the file atomically."""
    write_text(path, table.to_csv(index=False, lineterminator="\n"))


def known_costs(cells: Iterable[Cell], table: pd.DataFrame) -> dict[Run, Cost]:
    """The measured costs of the runs behind the rows of a table."""
    costs = {
        key: Cost(row["cpu_seconds"], int(row["seeds"]))
        for key, row in by_key(table).items()
        if row["cpu_seconds"] == row["cpu_seconds"]
    }
    return {run_of(cell): costs[cell.key] for cell in cells if cell.key in costs}
