"""The numbers that the text of BinMask's paper states, beside ours, for the page of the papers.

They are about the searches of section 4.1. The runs are those of ``experiments.feature_selection``;
``python -m experiments.reproduce --claims_of=FOLDER`` collects them in ``reproduction/claims.csv``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.artifacts.files import read_json
from experiments.artifacts.markdown import as_rows
from experiments.artifacts.published import published_value
from experiments.papers.results import read_cells

#: Columns of ``reproduction/claims.csv``.
COLUMNS = ("run", "method", "metric", "mean", "std", "trials", "commit")

#: The runs of section 4.1, by variant of their config; AP-Breast-Ovary, the sixth, is not here.
SELECTIONS = ("basehock", "dexter", "isolet", "mnist", "mnist,lenet5")

#: Our metric for a published one of the searches, and its name on the page.
SEARCHES = {
    "search_steps": ("search_steps", "trainings per search for K"),
    "mask_converged_pct": ("mask_converged", "masks that converge, %"),
}

#: A metric of the searches that the paper has no number for.
EXACT = ("exact_selection", "searches that meet K exactly, %")


def read_claims(path: Path) -> pd.DataFrame:
    """Reads ``claims.csv``; the table is empty if there is no file."""
    return read_cells(path, COLUMNS, ("run", "method", "metric", "commit"))


def collect(folder: Path) -> list[dict[str, Any]]:
    """The rows of all finished runs in the subfolders of a folder."""
    rows = []
    for path in sorted(folder.glob("*/accuracy.csv")):
        config = read_json(path.parent / "config.json")
        name, network = config["data"]["name"], config["network"]["network"]
        variant = name if network == "mlp" else f"{name},{network}"
        commit = (config.get("git_revision") or "")[:7]
        rows += _of_searches(pd.read_csv(path), f"feature_selection:{variant}", commit)
    return rows


def _of_searches(table: pd.DataFrame, run: str, commit: str) -> list[dict[str, Any]]:
    """Means over sizes, with the deviation between trials; methods without a search have none."""
    rows = []
    for method, part in table.dropna(subset=["search_steps"]).groupby("method"):
        for metric in ("accuracy", EXACT[0], *(ours for ours, _ in SEARCHES.values())):
            values = part.groupby("trial")[metric].mean()
            mean, std = float(f"{values.mean():.5g}"), float(f"{values.std(ddof=0):.4g}")
            row = (run, str(method), metric, mean, std, len(values), commit)
            rows.append(dict(zip(COLUMNS, row, strict=True)))
    return rows


def merged(table: pd.DataFrame, rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Replaces the rows that have new ones, unless those have fewer trials."""
    both = pd.concat([table, pd.DataFrame(rows, columns=COLUMNS)], ignore_index=True)
    both = both.sort_values("trials", kind="stable")
    both = both.drop_duplicates(["run", "method", "metric"], keep="last")
    return both.sort_values(["run", "method", "metric"], kind="stable", ignore_index=True)


def page_of(table: pd.DataFrame) -> str:
    """The section of the page: statements with both numbers, and the runs that are missing."""
    return "\n".join(
        [
            "\n## BinMask (Jia and Rinard, 2023)\n",
            "The paper's figures have no tables, so these are the numbers of its text.\n",
            as_rows(_searches_table(table)),
            "In brackets: trials. The sixth benchmark, AP-Breast-Ovary, is not among the data sets "
            "here. Not run:\n",
            _missing(table),
            "Nor are the networks of section 4.2 on CIFAR, for example `python -m "
            "experiments.sparsify --config=configs/sparsify.py:cifar10,vgg19 --workdir=runs/a`.",
        ]
    )


def _value(table: pd.DataFrame, run: str, method: str, metric: str) -> str:
    row = table[(table["run"] == run) & (table["method"] == method) & (table["metric"] == metric)]
    return "" if row.empty else f"{row['mean'].iloc[0]:.1f} ({row['trials'].iloc[0]})"


def _searches_table(table: pd.DataFrame) -> pd.DataFrame:
    runs = [f"feature_selection:{variant}" for variant in SELECTIONS]
    lines = []
    for method in ("binmask", "stg"):
        metrics = [(ours, text, published) for published, (ours, text) in SEARCHES.items()]
        for ours, text, published in [*metrics, (*EXACT, "")]:
            part = table[
                table["run"].isin(runs) & (table["method"] == method) & (table["metric"] == ours)
            ]
            paper = published and f"{published_value('binmask', 'all', method, published):g}"
            line = {"section 4.1": f"{method}: {text}", "paper, six sets": paper}
            line["ours, mean"] = "" if part.empty else f"{part['mean'].mean():.1f}"
            for run, variant in zip(runs, SELECTIONS, strict=True):
                line[variant] = _value(table, run, method, ours)
            lines.append(line)
    return pd.DataFrame(lines)


def _missing(table: pd.DataFrame) -> str:
    """The commands of the runs that are missing, as a list."""
    return "".join(
        "- `python -m experiments.feature_selection "
        f"--config=configs/feature_selection.py:{variant} --workdir=runs/feature_selection`\n"
        for variant in SELECTIONS
        if f"feature_selection:{variant}" not in set(table["run"])
    )
