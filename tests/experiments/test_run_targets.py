"""Labels, counts and survival from the command line, on tables of the user's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from launcher import launch_here

from configs import any as any_method
from configs import lassonet, stg
from fsjax.tasks import COUPLED_BATCH
from fsjax.testing import table

TARGETS = {
    "survival": (["weeks", "relapse"], "concordance_index"),
    "multilabel": (["first", "second"], "subset_accuracy"),
    "counts": (["visits"], "poisson_deviance"),
}


@pytest.mark.slow
@pytest.mark.parametrize("task", TARGETS)
def test_a_table_with_targets(task: str, tmp_path: Path) -> None:
    names, metric = TARGETS[task]
    x, y = table(task)
    frame = pd.DataFrame(np.column_stack([x, y]), columns=[*(f"x{i}" for i in range(13)), *names])
    frame.to_csv(tmp_path / "table.csv", index=False)
    workdir = tmp_path / "run"
    done = launch_here(
        "run",
        f"--config=configs/any.py:stg,{task},quick",
        f"--config.data.name={tmp_path / 'table.csv'}",
        f"--config.data.target={','.join(names)}",
        "--config.num_features=3",
        "--config.method.search=False",
        "--config.method.hidden=4,",
        "--config.evaluation.protocols='embedded','retrain'",
        "--config.evaluation.retrain.num_epochs=1",
        f"--workdir={workdir}",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((workdir / "result.json").read_text())
    assert result["task"] == task
    assert np.isfinite(result["metrics"][metric]).all()
    assert f"retrain_{metric}" in result["metrics"]
    recorded = pd.read_csv(workdir / "metrics.csv")
    assert metric in set(recorded["metric"])
    assert (workdir / "curves.png").exists()
    assert metric in done.stdout


def test_survival_takes_small_tables_as_one_batch() -> None:
    assert stg.get_config("survival").train.batch_size == COUPLED_BATCH
    assert any_method.get_config("binmask,survival").train.batch_size == COUPLED_BATCH
    # LassoNet's batch of all rows is kept.
    assert lassonet.get_config("survival").train.batch_size == 1_000_000
    assert stg.get_config("counts").train.batch_size == 128
