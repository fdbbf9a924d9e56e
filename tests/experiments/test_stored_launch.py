"""The launcher on a table that stays on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from launcher import launch_here

from fsjax.data import convert


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A folder with 80 rows of six columns; the third determines the class."""
    rng = np.random.default_rng(0)
    X, label = rng.normal(size=(80, 6)), np.array(["a", "b"] * 40)
    X[label == "a", 2] += 4.0
    lines = [",".join([*map(str, row), name]) for row, name in zip(X, label, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join(["c0,c1,c2,c3,c4,c5,label", *lines]) + "\n")
    return convert(tmp_path / "table.csv", None, "label", progress=False)


@pytest.mark.slow
def test_a_converted_table_runs_like_any_other(table: Path, tmp_path: Path) -> None:
    done = launch_here(
        "run",
        "--config=configs/any.py:stg",
        f"--workdir={tmp_path / 'run'}",
        f"--config.data.name={table}",
        "--config.num_features=1",
        "--config.seeds=0,",
        "--config.train.num_epochs=2",
        "--config.method.search=false",
        "--config.method.hidden=4,",
        "--config.evaluation.protocols=('embedded','svm')",
        "--config.evaluation.sample_rows=40",
        "--noprogress",
    )
    assert done.returncode == 0, done.stderr
    assert "svm_accuracy of 40 rows" in done.stdout
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["judged_on"] == 40
    assert result["cost"]["wait_seconds"] >= 0
    assert len(result["metrics"]["svm_accuracy"]) == 1
    for name in ("metrics.csv", "scores.npz", "selection.png", "report.html", "checkpoints"):
        assert (tmp_path / "run" / name).exists()


@pytest.mark.slow
def test_a_sweep_judges_on_a_sample_of_the_rows(table: Path, tmp_path: Path) -> None:
    arguments = [
        "--config=configs/any.py:stg",
        "--config.train.num_epochs=1",
        "--config.method.search=false",
        "--config.method.hidden=4,",
        f"--workdir={tmp_path / 'sweep'}",
        f"--config.data.name={table}",
        "--config.seeds=0,",
        "--config.evaluation.protocols=svm",
        "--sweep=num_features=1,2",
        "--noprogress",
    ]
    done = launch_here("sweep", *arguments, "--config.evaluation.sample_rows=2")
    assert done.returncode == 2 and "evaluation.sample_rows=2; choose" in done.stderr
    done = launch_here("sweep", *arguments, "--config.evaluation.sample_rows=40")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "sweep" / "result.json").read_text())
    assert [setting["judged_on"] for setting in result["results"]] == [40, 40]
