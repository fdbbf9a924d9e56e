"""The rows of the arena: Parquet files, one row for each table, selector and split."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.arena.judges import JUDGES
from experiments.arena.runs import ALL
from experiments.arena.selectors import RANDOM, SELECTORS
from experiments.arena.tables import SIZES, TABLES
from fsjax.storage.atomic_files import atomic_open

#: What identifies a row.
KEY = ["table", "selector", "split"]

#: Names of scores of judges at the numbers of columns.
SCORES = [f"{judge}@{size}" for judge in JUDGES for size in SIZES]

#: Names of the scores of all columns.
SCORES_OF_ALL = [f"{judge}@all" for judge in JUDGES]

#: Columns of the files.
COLUMNS = [
    *KEY, "rows", "columns", "failure", "reason", "cpu_seconds", "memory", *SCORES,
    *(f"{judge}@own" for judge in JUDGES), *SCORES_OF_ALL,
    "number", "found", "false", "ranking", "versions", "source", "limit",
]  # fmt: skip


def read(path: Path) -> pd.DataFrame:
    """The rows of a file; none if it does not exist."""
    rows = pd.read_parquet(path) if path.is_file() else pd.DataFrame()
    return rows.reindex(columns=COLUMNS)


def write(rows: pd.DataFrame, path: Path) -> None:
    """Writes rows, which are in the order of :func:`add`."""
    with atomic_open(path) as file:
        rows.to_parquet(file, index=False, compression="zstd")


def add(rows: pd.DataFrame, new: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Adds rows, which replace those of the same key.

    They are in the order of tables and selectors, so that no page depends on when they ran.
    """
    parts = [part for part in (rows, pd.DataFrame(new).reindex(columns=COLUMNS)) if len(part)]
    if not parts:
        return rows
    return _in_order(pd.concat(parts, ignore_index=True).drop_duplicates(KEY, keep="last"))


def rivals(rows: pd.DataFrame, selector: str | None) -> pd.DataFrame:
    """Leaves out new selectors, ``FILE.py:NAME``, other than a given one."""
    names = rows["selector"].astype(str)
    return rows[(names == selector) | ~names.str.contains(":")]


def pairs_with_rivals(rows: pd.DataFrame) -> set[tuple[str, int]]:
    """Tables and splits on which selectors have run that are neither new ones nor controls."""
    old = rivals(rows, None)
    return _pairs(old[~old["selector"].isin((ALL, RANDOM))])


def to_rate(rows: pd.DataFrame, selector: str) -> pd.DataFrame:
    """The rows of the tables and splits on which both a new selector and rivals have run."""
    pairs = _pairs(rows[rows["selector"] == selector]) & pairs_with_rivals(rows)
    return rows[[pair in pairs for pair in zip(rows["table"], rows["split"], strict=True)]]


def _pairs(rows: pd.DataFrame) -> set[tuple[str, int]]:
    return set(zip(rows["table"], rows["split"], strict=True))


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows by table, selector and split; unknown selectors come last, by name."""
    places = {name: place for place, name in enumerate([*TABLES, *SELECTORS])}
    keys = (rows[key].map(lambda name: places.get(name, len(places))) for key in KEY[:2])
    order = pd.DataFrame(dict(zip(KEY, keys, strict=False))).assign(split=rows["split"])
    order["name"] = rows["selector"]
    return rows.loc[order.sort_values(["table", "selector", "name", "split"]).index]
