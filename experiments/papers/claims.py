"""The numbers that the text of BinMask's paper states, beside ours, for the page of the papers.

The paper has few tables: its statements are about searches, masks and sparse networks. The runs are
those of ``experiments.feature_selection`` and ``experiments.sparsify``; their figures are collected
into ``reproduction/claims.csv`` by ``python -m experiments.reproduce --claims_of=FOLDER``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.artifacts.markdown import as_rows
from experiments.artifacts.published import published_value
from experiments.papers.results import read_cells, write_results
from experiments.studies.sparsify import BINMASK, PROBMASK

#: Columns of ``reproduction/claims.csv``; ``run`` is a key of :data:`RUNS`.
COLUMNS = ("run", "method", "metric", "mean", "std", "trials", "commit")

#: The runs of section 4.1, by variant of their config, with a guess of the CPU hours of the paper's
#: eight trials of all methods, from the sizes of data and networks: none was timed.
SELECTIONS = {
    "isolet": 0.5,
    "pcmac": 1.0,
    "arcene": 2.0,
    "dexter": 4.0,
    "mnist": 20.0,
    "mnist,lenet5": 120.0,
}

#: The runs of section 4.2 on the paper's data, then smaller ones, with hours as above.
SPARSE = {
    "cifar10,resnet32": 7_000.0,
    "cifar100,resnet32": 7_000.0,
    "cifar10,vgg19": 40_000.0,
    "cifar100,vgg19": 40_000.0,
    "mnist,mlp": 2.0,
    "mnist,lenet5": 12.0,
    "digits,mlp": 0.05,
    "digits,lenet5": 0.2,
}

#: Launcher and hours of every run, by a name of the launcher and the variant.
RUNS = {
    **{("feature_selection", variant): hours for variant, hours in SELECTIONS.items()},
    **{("sparsify", variant): hours for variant, hours in SPARSE.items()},
}

#: Our metric for a published one of the searches, and its name on the page.
SEARCHES = {
    "search_steps": ("search_steps", "trainings per search for K"),
    "mask_converged_pct": ("mask_converged", "masks that converge, %"),
}

#: A metric of the searches that the paper has no number for.
EXACT = ("exact_selection", "searches that meet K exactly, %")


class Claim(NamedTuple):
    """A number of the text that needs the data or the hardware of the paper.

    Attributes:
      text: what it is.
      method, metric, dataset, setting: as in ``paper_results/binmask.csv``.
      variant: of the config of ``experiments.sparsify``.
    """

    text: str
    method: str
    metric: str
    dataset: str
    setting: dict[str, str]
    variant: str


#: The statements of section 4.2.
NETWORKS = tuple(
    claim
    for network in ("ResNet32", "VGG19")
    for claim in (
        Claim(
            f"time of an epoch of {network} above that of the dense network, %",
            "binmask",
            "training_slowdown_pct",
            "cifar10",
            {"network": network},
            f"cifar10,{network.lower()}",
        ),
        Claim(
            f"time of ProbMask's epoch of {network} over BinMask's",
            "probmask",
            "slowdown_x",
            "cifar10",
            {"network": network},
            f"cifar10,{network.lower()}",
        ),
    )
)


def read_claims(path: Path) -> pd.DataFrame:
    """Reads ``claims.csv``; the table is empty if there is no file."""
    return read_cells(path, COLUMNS, ("run", "method", "metric", "commit"))


def collect(folder: Path) -> list[dict[str, Any]]:
    """The rows of all finished runs in the subfolders of a folder."""
    rows = []
    for config_path in sorted(folder.glob("*/config.json")):
        run = config_path.parent
        config = json.loads(config_path.read_text())
        commit = (config.get("git_revision") or "")[:7]
        if (run / "accuracy.csv").exists():
            table = pd.read_csv(run / "accuracy.csv")
            rows += _of_searches(table, _variant("feature_selection", config), commit)
        elif (run / "result.json").exists() and (run / "sparsity.csv").exists():
            table = pd.read_csv(run / "sparsity.csv")
            rows += _of_networks(table, _variant("sparsify", config), commit)
    return rows


def _variant(launcher: str, config: dict[str, Any]) -> str:
    name, network = config["data"]["name"], config["network"]["network"]
    plain = launcher == "feature_selection" and network == "mlp"
    return f"{launcher}:{name}" if plain else f"{launcher}:{name},{network}"


def _row(about: tuple[str, str, str], values: pd.Series, trials: int, commit: str) -> dict:
    mean, deviation = float(values.mean()), float(values.std(ddof=0))
    row = dict(zip(("run", "method", "metric"), about, strict=True))
    numbers = {"mean": float(f"{mean:.5g}"), "std": float(f"{deviation:.4g}"), "trials": trials}
    return {**row, **numbers, "commit": commit}


def _of_searches(table: pd.DataFrame, run: str, commit: str) -> list[dict[str, Any]]:
    """Means over sizes, with the deviation between trials; methods without a search have none."""
    searched = table.dropna(subset=["search_steps"])
    names = ("accuracy", EXACT[0], *(ours for ours, _ in SEARCHES.values()))
    return [
        _row((run, str(method), name), part.groupby("trial")[name].mean(), trials, commit)
        for method, part in searched.groupby("method")
        for trials in (part["trial"].nunique(),)
        for name in names
    ]


def _of_networks(table: pd.DataFrame, run: str, commit: str) -> list[dict[str, Any]]:
    """Points lost before fine-tuning by each method at BinMask's largest sparsity below 99 %."""
    dense = table[table["method"] == "dense"].set_index("trial")["accuracy"]
    sparse = table[table["method"] == BINMASK].groupby("strength")["sparsity"].mean()
    below = sparse[sparse < 0.99]
    if not len(below):
        return []
    rows = []
    for method in (BINMASK, PROBMASK):
        part = table[(table["method"] == method) & np.isclose(table["strength"], below.idxmax())]
        if not len(part):
            continue
        part = part.set_index("trial")
        for metric, values in (
            ("sparsity_pct", 100 * part["sparsity"]),
            ("points_lost", dense - part["accuracy"]),
        ):
            rows.append(_row((run, method, metric), values, len(part), commit))
    return rows


def merged(table: pd.DataFrame, rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Replaces the rows that have new ones, unless those have fewer trials."""
    both = pd.concat([table, pd.DataFrame(rows, columns=COLUMNS)], ignore_index=True)
    both = both.sort_values("trials", kind="stable")
    both = both.drop_duplicates(["run", "method", "metric"], keep="last")
    return both.sort_values(["run", "method", "metric"], kind="stable", ignore_index=True)


def write_claims(table: pd.DataFrame, path: Path) -> None:
    """Writes the file atomically."""
    write_results(table, path)


def page_of(table: pd.DataFrame) -> str:
    """The section of the page: statements with both numbers, and the runs that are missing."""
    return "\n".join(
        [
            "\n## BinMask (Jia and Rinard, 2023)\n",
            "The paper's figures have no tables, so these are the numbers of its text.\n",
            as_rows(_searches_table(table)),
            _networks_table(table),
            "Not run. The CPU hours for all trials of the paper are a rough guess, not measured:\n",
            as_rows(_missing_table(table)),
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


def _networks_table(table: pd.DataFrame) -> str:
    """Sparsity and accuracy before fine-tuning, of the runs of section 4.2 that were made."""
    lines = []
    for variant in SPARSE:
        run = f"sparsify:{variant}"
        for method in (BINMASK, PROBMASK):
            sparsity = _value(table, run, method, "sparsity_pct")
            if sparsity:
                lost = _value(table, run, method, "points_lost")
                lines.append(
                    {
                        "section 4.2": f"{variant}: {method}",
                        "sparsity, %": sparsity,
                        "points lost before fine-tuning": lost,
                    }
                )
    note = (
        "In brackets: trials. On CIFAR the paper states up to 97 % sparsity for BinMask without a "
        "significant difference from the dense network, and a drop of ProbMask without "
        "fine-tuning.\n"
    )
    return f"{as_rows(pd.DataFrame(lines))}\n{note}" if lines else note


def _missing_table(table: pd.DataFrame) -> pd.DataFrame:
    done = set(table["run"])
    stated: dict[str, list[str]] = {}
    for claim in NETWORKS:
        number = published_value(
            "binmask", claim.dataset, claim.method, claim.metric, **claim.setting
        )
        stated.setdefault(claim.variant, []).append(f"{claim.text} ({number:g})")
    return pd.DataFrame(
        [
            {
                "run": f"`python -m experiments.{launcher} "
                f"--config=configs/{launcher}.py:{variant} --workdir=runs/{launcher}`",
                "hours": f"{hours:,.3g}" if hours < 1000 else f"{hours:,.0f}",
                "gives, besides accuracies": "; ".join(stated.get(variant, [])),
            }
            for (launcher, variant), hours in RUNS.items()
            if f"{launcher}:{variant}" not in done
        ],
        columns=["run", "hours", "gives, besides accuracies"],
    )
