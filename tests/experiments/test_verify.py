"""``experiments.papers.verify``: recorded cells are drawn at random and run again."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from launcher import launch_here

from experiments.papers import results, runs, verify
from experiments.papers.cells import Cell, cells_of, number_of
from fsjax.data import load
from fsjax.errors import ConfigError, DataError

CELLS = [cell for cell in cells_of("wast") if cell.row.metric == "svm_accuracy"]


def recorded(seconds: float) -> pd.DataFrame:
    """Every cell at 80 %, with runs of some CPU seconds."""
    facts = {"seeds": range(3), "epochs": 10, "cpu_seconds": seconds, "commit": "abcdef0123"}
    rows = [results.row_of(cell, [80.0, 80.5, 81.0], facts) for cell in CELLS]
    return results.merged(pd.DataFrame(columns=results.COLUMNS), rows)


def test_the_draw_is_that_of_its_seed_and_takes_no_number_twice() -> None:
    table = recorded(verify.LIMIT)
    first, again, other = (verify.drawn(CELLS, table, 300, draw) for draw in (0, 0, 1))
    assert first == again != other
    assert len({number_of(cell) for cell in first}) == len(first) == 300
    # A longer draw begins with the shorter one, so that --verify=40 resumes --verify=20.
    assert verify.drawn(CELLS, table, 20, 0) == first[:20]
    assert not verify.drawn(CELLS, recorded(verify.LIMIT + 1), 300, 0)


def run_again(cells: list[Cell], done: pd.DataFrame, draw: int = 0) -> list[dict]:
    return list(verify.verified(cells, recorded(1.0), done, Path("none"), draw))


def test_fresh_seeds_are_compared_and_what_is_done_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def train(run: runs.Run, seeds: int, workdir: Path, first: int) -> dict:
        config = runs.config_of(run, seeds, first)
        seen.append(config.seeds)
        if run.method == "wast":
            raise ConfigError("broken")
        value = [80.0, 80.5, 81.0] if run.method == "aefs" else [60.0, 60.5, 61.0]
        metrics = {f"svm_accuracy_k{k}": value for k in range(20, 201)} | {"svm_accuracy": value}
        facts = {"epochs": 10, "cpu_seconds": 2.0, "commit": "fedcba9876", "cost": {}}
        return {"num_features": 50, "metrics": metrics, "seeds": config.seeds, **facts}

    monkeypatch.setattr(runs, "train", train)
    methods = ("aefs", "wast", "quick_selection")
    cells = [c for c in CELLS if c.key[1:3] == ("2", "usps") and c.row.method in methods]
    rows = run_again(cells, pd.DataFrame(columns=verify.COLUMNS))
    assert set(seen) == {(1000, 1001, 1002)}
    assert [row["method"] for row in rows] == ["aefs", "quick_selection"]
    assert [row["verdict"] for row in rows] == ["agrees", "differs"]
    assert [row["difference"] for row in rows] == [0.0, -20.0]
    done = pd.DataFrame(rows, columns=verify.COLUMNS)
    assert [row["method"] for row in run_again(cells, done[:1])] == ["quick_selection"]
    assert len(run_again(cells, done, draw=1)) == 2


@pytest.mark.slow
def test_the_launcher_adds_a_row_for_a_cell_once(tmp_path: Path) -> None:
    try:
        load("madelon", download=False)
    except DataError as error:
        pytest.skip(str(error))
    flags = ["--paper=wast", "--tables=2", "--datasets=madelon", "--methods=fisher_score"]
    paths = [f"--results={tmp_path / 'results.csv'}", f"--workdir={tmp_path}", "--page="]
    paths.append(f"--verification={tmp_path / 'verification.csv'}")
    assert launch_here("reproduce", *flags, *paths).returncode == 0
    for _ in range(2):
        done = launch_here("reproduce", *flags, *paths, "--verify=5")
        assert done.returncode == 0, done.stderr
        (row,) = pd.read_csv(tmp_path / "verification.csv").to_dict("records")
    assert (row["verdict"], row["difference"], row["draw"]) == ("agrees", 0.0, 0)
    assert row["limit_seconds"] == verify.LIMIT and "jax" in row["versions"]
