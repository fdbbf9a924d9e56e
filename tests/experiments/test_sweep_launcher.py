"""``experiments.sweep`` in use: artifacts, groups, mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from launcher import launch_here
from quick_configs import quick
from synthetic_result import make_result

from experiments.launch import experiment as launch
from experiments.launch import sweep
from fsjax import Sweep
from fsjax.data import load

SHORT = ("--config=configs/wast.py:digits", "--config.train.num_epochs=2", "--noprogress")


@pytest.mark.slow
def test_a_table_a_picture_and_the_best(tmp_path: Path) -> None:
    arguments = [
        *SHORT,
        "--config.data.valid_fraction=0.2",
        "--config.seeds=3,4",
        "--sweep=method.sensitivity_weight=0.1,0.9",
        "--sweep=num_features=5,10",
        f"--workdir={tmp_path / 'sweep'}",
    ]
    done = launch_here("sweep", *arguments)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "sweep" / "sweep.csv")
    assert len(table) == 2 * 2 * 2
    rows = set(zip(table.sensitivity_weight, table.num_features, table.seed, strict=True))
    assert (0.1, 5, 3) in rows and (0.9, 10, 4) in rows
    # More columns give a higher accuracy.
    by_k = table.groupby("num_features")["svm_accuracy"].mean()
    assert by_k[10] > by_k[5] > 30
    means = table.groupby(["sensitivity_weight", "num_features"])["validation"].mean()
    weight, k = means.idxmin()
    best = f"best on the validation rows: sensitivity_weight={weight}, num_features={k}"
    assert best in done.stdout and "validation (smaller is better)" in done.stdout
    result = json.loads((tmp_path / "sweep" / "result.json").read_text())
    assert result["settings"][result["best"]] == {"sensitivity_weight": weight, "num_features": k}
    assert (tmp_path / "sweep" / "sweep.png").stat().st_size > 5000
    page = (tmp_path / "sweep" / "report.html").read_text()
    assert "<svg" in page and "sensitivity_weight" in page

    # A process that was killed after result.json was written left no page and no checksums.
    (tmp_path / "sweep" / "report.html").unlink()
    (tmp_path / "sweep" / "checksums.json").unlink()
    again = launch_here("sweep", *arguments, "--progress")
    assert "already holds this finished run" in again.stdout and best in again.stdout
    assert "sensitivity_weight" in (tmp_path / "sweep" / "report.html").read_text()
    assert (tmp_path / "sweep" / "checksums.json").exists()
    other = launch_here("sweep", *arguments, "--sweep=method.drop_fraction=0.1")
    assert other.returncode == 2 and "holds another run" in other.stderr


def test_the_summary_has_the_best_by_each_criterion() -> None:
    table = pd.DataFrame({"best_by": ["loss", "auc"], "rate": [1, 2], "seed": 0, "best_epoch": 1})
    table = table.assign(
        criterion=["validation='loss'", "validation='auc'"], validation=[0.5, -0.9]
    )
    text = sweep.summary(table, ["best_by", "rate"])
    for criterion, setting in (("loss", "best_by=loss, rate=1"), ("auc", "best_by=auc, rate=2")):
        assert f"best on the validation rows (validation='{criterion}'): {setting}" in text


def test_published_numbers_are_beside_settings_on_the_same_data(tmp_path: Path) -> None:
    settings = tuple(
        {"split": split, "noise_std": noise}
        for split, noise in (("paper", 0.0), ("wast", 0.0), ("paper", 0.4))
    )
    states = SimpleNamespace(spec=SimpleNamespace(best_by="accuracy"))
    result = make_result(dataset="coil20", num_features=50, columns=100, states=states)
    swept = Sweep(("split", "noise_std"), settings, (result,) * 3)
    sweep._write(swept, tmp_path, quick())
    papers = [
        each["paper"] for each in json.loads((tmp_path / "result.json").read_text())["results"]
    ]
    assert "embedded_accuracy" in papers[0] and papers[1:] == [{}, {}]


def test_protocols_judge_each_setting_with_its_own_options(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(launch, "evaluate", lambda *args, **options: calls.append(options) or {})
    config = quick()
    config.data.noise_std = 0.5
    config.evaluation.sample_rows = 77
    settings = ({"noise_std": 0.1, "scaling": "none"}, {"noise_std": 0.2, "scaling": "minmax"})
    swept = Sweep(("noise_std", "scaling"), settings, (make_result(), make_result()))
    without = Sweep(("learning_rate",), ({"learning_rate": 0.1},), (make_result(),))
    for trained in (swept, without):
        planned = SimpleNamespace(fit=lambda trained=trained: trained)
        sweep.fitted(planned, load("digits"), config)
    expected = (*settings, {"noise_std": 0.5, "scaling": "paper"})
    for options, setting in zip(calls, expected, strict=True):
        assert options == {"retrain": config.evaluation.retrain, "sample_rows": 77, **setting}


@pytest.mark.parametrize(
    ("sweeps", "message"),
    [
        ([], "--sweep is missing"),
        (["method.sensitivity_weigth=0.1,0.2"], "did you mean 'method.sensitivity_weight'"),
        (["method.sensitivity_weight=a,b"], "'a' is not a number"),
        (["method.sensitivity_weight=0.1,2"], "sensitivity_weight=2.0"),
        (["method.sensitivity_weight"], "write field=value,value"),
        (["method.name=wast,set"], "cannot sweep over method.name"),
        (["data.name=digits,madelon"], "cannot sweep over data.name"),
        (["method.density=0.1,0.1"], "give at least one value, and each only once"),
        (["method.density=0.1", "method.density=0.2"], "is given twice"),
        (["method.hidden=(100,),(2"], "write tuples as (100,),(200,100)"),
        ([f"num_features={','.join(map(str, range(1, 22)))}"], "105 rows (settings times seeds)"),
        (["num_features=5,65"], "num_features=65 but X has 64 columns"),
    ],
)
def test_mistakes_train_nothing(
    sweeps: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "MANY", 100)
    flags = [f"--sweep={sweep}" for sweep in sweeps]
    folder = tmp_path / "sweep"
    done = launch_here("sweep", *SHORT, "--config.seeds=0,1,2,3,4", *flags, f"--workdir={folder}")
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert not folder.exists()
