"""``experiments.papers.claims``: the numbers of BinMask's text, collected and shown."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from experiments.papers import claims
from experiments.papers.results import write_results


def searches(folder: Path, name: str, steps: list[float], network: str = "mlp") -> None:
    """Writes what ``experiments.feature_selection`` leaves, one size and a trial per value."""
    folder.mkdir(parents=True)
    config = {"data": {"name": name}, "network": {"network": network}, "git_revision": "a" * 40}
    (folder / "config.json").write_text(json.dumps(config))
    lines = [
        {
            "method": method, "trial": trial, "num_features": 5, "accuracy": 90.0,
            "search_steps": value if method == "binmask" else None,
            "exact_selection": 100.0, "mask_converged": 50.0 * trial,
        }
        for method in ("binmask", "all features")
        for trial, value in enumerate(steps)
    ]  # fmt: skip
    pd.DataFrame(lines).to_csv(folder / "accuracy.csv", index=False)


def values(rows: pd.DataFrame) -> dict[tuple[str, str, str], float]:
    return rows.set_index(["run", "method", "metric"])["mean"].to_dict()


def test_figures_of_finished_runs_are_collected(tmp_path: Path) -> None:
    searches(tmp_path / "first", "isolet", [1.0, 2.0])
    searches(tmp_path / "second", "mnist", [3.0], network="lenet5")
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "config.json").write_text(
        json.dumps({"data": {"name": "pcmac"}, "network": {"network": "mlp"}})
    )
    rows = pd.DataFrame(claims.collect(tmp_path))
    found = values(rows)
    assert found["feature_selection:isolet", "binmask", "search_steps"] == 1.5
    assert found["feature_selection:isolet", "binmask", "mask_converged"] == 25.0
    assert found["feature_selection:mnist,lenet5", "binmask", "search_steps"] == 3.0
    (spread,) = rows.loc[rows["metric"].eq("search_steps") & rows["trials"].eq(2), "std"]
    assert spread == 0.5
    assert set(rows["method"]) == {"binmask"}
    assert len(rows) == 8


def test_more_trials_replace_fewer(tmp_path: Path) -> None:
    searches(tmp_path / "few" / "isolet", "isolet", [1.0])
    searches(tmp_path / "many" / "isolet", "isolet", [2.0, 3.0])
    path = tmp_path / "claims.csv"
    table = claims.read_claims(path)
    for folder in ("few", "many", "few"):
        table = claims.merged(table, claims.collect(tmp_path / folder))
        write_results(table, path)
        table = claims.read_claims(path)
    assert values(table)["feature_selection:isolet", "binmask", "search_steps"] == 2.5
    assert len(table) == 4
