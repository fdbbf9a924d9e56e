"""Means over the splits, ranks over the tables, and the files that they are written to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from experiments.artifacts.figures.ranks import plot_ranks
from experiments.artifacts.markdown import as_rows
from experiments.artifacts.statistics.ranks import Ranks, rank
from experiments.studies.selectors.contenders import CONTROLS, ON_SMALL, OURS, SELECTORS
from experiments.studies.selectors.tables import TABLES
from fsjax.report import save_figure
from fsjax.storage.atomic_files import write_text

#: Kinds of tables, as the summary names them.
KINDS: Final = {"ordinary": "ordinary", "extended": "with extra columns", "generated": "generated"}

#: The kinds of the second comparison, and a table of the first that is in it too.
WIDE: Final = ("wide",)
ALSO_WIDE: Final = "madelon"

#: The beginning of the reason of lines that were given up; their tables are not ranked.
NOT_RUN: Final = "not run"

#: Share of the tables on which a selector must have run to be ranked.
MIN_SHARE: Final = 0.75


def whole(rows: pd.DataFrame) -> pd.DataFrame:
    """The lines of selectors that have all their splits on a table."""
    splits = rows.groupby(["table", "selector"])["split"].transform("nunique")
    return rows[splits == rows["split"].nunique()]


def finished(averages: pd.DataFrame) -> pd.DataFrame:
    """The lines of finished tables: all selectors have a line, except those of small tables."""
    names = [name for name in averages["selector"].unique() if OURS.get(name) not in ON_SMALL]
    counts = averages[averages["selector"].isin(names)].groupby("table").size()
    return averages[averages["table"].isin(counts.index[counts == len(names)])]


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """Averages over splits: a line for each table and selector, or why there are no scores.

    ``score`` is the mean of the two models; ``cpu_seconds`` is that of the first split, including
    compilation, and ``cpu_seconds_again`` that of the others. A selector that was skipped on later
    splits only has the score of the first.
    """
    lines = []
    for (table, selector), part in rows.groupby(["table", "selector"], sort=False):
        ran = part[part["svm"].notna()]
        reasons = part["skipped"].dropna()
        seconds = ran.set_index("split")["cpu_seconds"]
        score = (ran["svm"].mean() + ran["trees"].mean()) / 2
        lines.append(
            {
                "table": table,
                "selector": selector,
                "k": int(part["k"].iloc[0]),
                "splits": len(ran),
                "svm": ran["svm"].mean(),
                "trees": ran["trees"].mean(),
                "score": score,
                "true": ran["true"].mean(),
                "cpu_seconds": seconds.get(0),
                "cpu_seconds_again": seconds.drop(0, errors="ignore").mean(),
                "skipped": reasons.iloc[0] if len(reasons) else "",
            }
        )
    averages = pd.DataFrame(lines).round({"svm": 2, "trees": 2, "score": 2, "true": 3})
    averages = averages.round({"cpu_seconds": 2, "cpu_seconds_again": 2})
    return _ordered(averages, list(SELECTORS))


def scores(averages: pd.DataFrame, kinds: tuple[str, ...] = tuple(KINDS)) -> pd.DataFrame:
    """Scores ``(tables, selectors)`` of the classification tables, without "all columns"."""
    tables = [
        name
        for name, table in TABLES.items()
        if (table.kind in kinds or kinds == WIDE and name == ALSO_WIDE)
        and table.task == "classification"
        and name in set(averages["table"])
    ]
    wide = averages.pivot(index="table", columns="selector", values="score")
    return wide.reindex(tables).drop(columns="all columns", errors="ignore")


def complete(
    averages: pd.DataFrame,
    kinds: tuple[str, ...] = tuple(KINDS),
    among: tuple[str, ...] = tuple(KINDS),
) -> pd.DataFrame:
    """Scores without missing values, of selectors that ran on most tables ``among`` some kinds.

    If such a selector was skipped on a table, it has the score of random columns there.
    """
    every = scores(averages, among)
    most = every.columns[every.notna().mean() >= MIN_SHARE]
    wide = scores(averages, kinds)
    return wide[most].apply(lambda column: column.fillna(wide["random columns"]))


def ranks(averages: pd.DataFrame, kinds: tuple[str, ...] = tuple(KINDS)) -> Ranks:
    """Ranks over all classification tables of some kinds."""
    return rank(complete(averages, kinds, kinds))


def best_simple(averages: pd.DataFrame, kinds: tuple[str, ...] = tuple(KINDS)) -> str:
    """The simple selector with the best mean rank."""
    names = ranks(averages, kinds).mean.index
    return next(name for name in names if name not in OURS and name not in CONTROLS)


def against(averages: pd.DataFrame, rival: str, kinds: tuple[str, ...] = tuple(KINDS)) -> pd.Series:
    """Mean score of each selector minus that of a rival, and p of Wilcoxon's test, as text.

    Over the classification tables, with the scores of :func:`complete`.
    """
    wide = complete(averages, kinds, kinds)
    differences = wide.drop(columns=rival).sub(wide[rival], axis=0)
    p_values = differences.apply(lambda difference: wilcoxon(difference, method="approx").pvalue)
    return pd.Series(
        {name: f"{differences[name].mean():+.1f} ({p_values[name]:.2f})" for name in differences}
    )


def summary(averages: pd.DataFrame) -> pd.DataFrame:
    """Makes the summary by selector: ranks and mean scores by kind of table, seconds."""
    by_kind = {kind: scores(averages, (kind,)) for kind in KINDS}
    overall, rival = ranks(averages).mean, best_simple(averages)
    beside = against(averages, rival)
    ranks_by_kind = {
        kind: complete(averages, (kind,)).rank(axis=1, ascending=False).mean() for kind in KINDS
    }
    lines = []
    for name in averages["selector"].unique():
        part = averages[averages["selector"] == name]
        if name == "all columns" or not part["score"].notna().any():
            continue
        line = {"selector": name, "mean rank": _number(overall.get(name), 1)}
        for kind, label in KINDS.items():
            line[f"rank, {label}"] = _number(ranks_by_kind[kind].get(name), 1)
            line[f"score, {label}"] = _number(by_kind[kind].get(name, pd.Series()).mean(), 1)
            if by_kind[kind].get(name, pd.Series([np.nan])).isna().any():
                line[f"score, {label}"] = ""
        line[f"minus {rival} (p)"] = beside.get(name, "")
        generated = part[part["table"].map(lambda table: TABLES[table].kind) == "generated"]
        line["true columns, %"] = _number(100 * generated["true"].mean(), 0)
        line["tables"] = str(int(part["score"].notna().sum()))
        line["CPU s, first"] = _number(part["cpu_seconds"].median(), 1)
        line["CPU s, again"] = _number(part["cpu_seconds_again"].median(), 1)
        lines.append(line)
    table = pd.DataFrame(lines)
    order = pd.to_numeric(table["mean rank"]).fillna(np.inf).argsort(kind="stable")
    return table.iloc[order]


def wide_summary(averages: pd.DataFrame) -> pd.DataFrame:
    """Makes the summary of the wide tables by selector: rank, score, tables, seconds."""
    overall, rival = ranks(averages, WIDE).mean, best_simple(averages, WIDE)
    mean_scores = complete(averages, WIDE, WIDE).mean()
    beside = against(averages, rival, WIDE)
    lines = []
    for name in scores(averages, WIDE):
        part = averages[averages["selector"] == name]
        if not part["score"].notna().any():
            continue
        lines.append(
            {
                "selector": name,
                "mean rank": _number(overall.get(name), 1),
                "mean score": _number(mean_scores.get(name), 1),
                f"minus {rival} (p)": beside.get(name, ""),
                "tables": str(int(part["score"].notna().sum())),
                "fits": str(int(part["splits"].sum())),
                "CPU s, first": _number(part["cpu_seconds"].median(), 1),
                "CPU s, again": _number(part["cpu_seconds_again"].median(), 1),
            }
        )
    table = pd.DataFrame(lines)
    order = pd.to_numeric(table["mean rank"]).fillna(np.inf).argsort(kind="stable")
    return table.iloc[order]


def by_table(averages: pd.DataFrame, selectors: Iterable[str]) -> pd.DataFrame:
    """The score of every selector on every table, in the order of the selectors."""
    wide = averages.pivot(index="selector", columns="table", values="score")
    wide = wide[[name for name in TABLES if name in wide]]
    order = ["all columns", *selectors]
    wide = wide.reindex([name for name in order if name in wide.index])
    cells = wide.map(lambda value: _number(value, 1))
    return cells.reset_index()


def _number(value: float | None, digits: int) -> str:
    return "" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def write(rows: pd.DataFrame, root: Path) -> None:
    """Writes the files of the comparisons, ordinary and wide, of which there are lines.

    These are ``reproduction/selectors.csv``, two tables and the picture of the documentation, and
    the same with ``_wide``. New lines replace those of the same table and selector in the files, so
    that a run of one selector renews it alone. Unfinished tables are left out.
    """
    new = means(whole(rows))
    is_wide = new["table"].map(lambda name: TABLES[name].kind in WIDE)
    renews_madelon = (new["table"] == ALSO_WIDE).any() and _file(root, "_wide").is_file()
    if not is_wide.all():
        averages = finished(merged(_published(root, ""), new[~is_wide]))
        _write(averages, summary(averages), tuple(KINDS), root, "")
    if is_wide.any() or renews_madelon:
        averages = finished(_with_madelon(merged(_published(root, "_wide"), new[is_wide]), root))
        _write(averages, wide_summary(run_in_full(averages)), WIDE, root, "_wide")


def merged(published: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """The published lines, those of the new tables and selectors replaced, in the usual order."""
    lines = pd.concat([published, new]) if len(published) else new
    # Packages that are published but not installed here are not in SELECTORS.
    names = list(dict.fromkeys([*published["selector"], *SELECTORS]))
    return _ordered(lines.drop_duplicates(["table", "selector"], keep="last"), names)


def _ordered(averages: pd.DataFrame, selectors: Sequence[str]) -> pd.DataFrame:
    keys = (("selector", selectors), ("table", list(TABLES)))
    order = np.lexsort([averages[column].map(names.index) for column, names in keys])
    return averages.iloc[order].reset_index(drop=True)


def _file(root: Path, suffix: str) -> Path:
    return root / "reproduction" / f"selectors{suffix}.csv"


def _published(root: Path, suffix: str) -> pd.DataFrame:
    path = _file(root, suffix)
    return pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=["table", "selector"])


def run_in_full(averages: pd.DataFrame) -> pd.DataFrame:
    """The lines of tables on which no selector was given up."""
    given_up = averages["skipped"].fillna("").str.startswith(NOT_RUN)
    return averages[~averages["table"].isin(averages.loc[given_up, "table"])]


def _with_madelon(averages: pd.DataFrame, root: Path) -> pd.DataFrame:
    """Takes the lines of :data:`ALSO_WIDE` from the first comparison, of the same selectors."""
    averages = averages[averages["table"] != ALSO_WIDE]
    first = _published(root, "")
    also = first[
        (first["table"] == ALSO_WIDE) & first["selector"].isin(averages["selector"].unique())
    ]
    return pd.concat([also, averages], ignore_index=True)


def _write(
    averages: pd.DataFrame, table: pd.DataFrame, kinds: tuple[str, ...], root: Path, suffix: str
) -> None:
    write_text(_file(root, suffix), averages.to_csv(index=False))
    docs = root / "docs"
    write_text(docs / "tables" / f"selectors{suffix}.md", as_rows(table))
    cells = as_rows(by_table(averages, table["selector"]))
    write_text(docs / "tables" / f"selectors_by_table{suffix}.md", cells)
    averages = run_in_full(averages)
    over_all = ranks(averages, kinds)
    save_figure(plot_ranks(over_all, OURS), docs / "pictures" / f"ranks{suffix}.png")
    print(
        f"Friedman p = {over_all.p_value:.2g} on {over_all.tables} tables, critical difference "
        f"{over_all.critical_difference:.1f}; best simple selector {best_simple(averages, kinds)}"
    )
