"""The launchers as a user meets them: artifacts, overrides, continuing, mistakes."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from configs import cae, gjsd, ip_cae, random_selection
from experiments import compare
from experiments.launch import run_experiment
from fsjax.errors import ConfigError, DataError
from fsjax.methods import METHODS

ROOT = Path(__file__).parents[2]
MODULES = {"cae": cae, "gjsd": gjsd, "ip_cae": ip_cae, "random_selection": random_selection}


def launch(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a launcher in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", f"experiments.{module}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


def quick(module=ip_cae, **train):
    config = module.get_config("digits,quick")
    config.train.num_epochs = 1
    for name, value in train.items():
        config.train[name] = value
    return config


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The workdir of a one-epoch run from the command line."""
    workdir = tmp_path_factory.mktemp("run") / "digits"
    done = launch(
        "run",
        "--config=configs/ip_cae.py:digits,quick",
        "--config.train.num_epochs=1",
        "--config.seeds=3,5",
        "--config.num_features=7",
        f"--workdir={workdir}",
    )
    assert done.returncode == 0, done.stderr
    assert "embedded_accuracy" in done.stdout
    assert "4 of 64 columns are constant" in done.stdout
    return workdir


def test_artifacts(finished: Path) -> None:
    config = json.loads((finished / "config.json").read_text())
    assert config["num_features"] == 7
    assert config["train"]["num_epochs"] == 1
    assert {"python", "jax", "flax", "optax"} <= set(config["versions"])
    assert config["device"]["platform"] == "cpu"

    result = json.loads((finished / "result.json").read_text())
    assert result["method"] == "ip_cae"
    assert result["dataset"] == "digits"
    assert result["seeds"] == [3, 5]
    assert len(result["selected"]) == 2
    for row in result["selected"]:
        assert len(row) == len(set(row)) == 7
        assert all(0 <= column < 64 for column in row)
    assert len(result["metrics"]["embedded_accuracy"]) == 2
    assert {"params", "train_flops", "train_seconds", "compile_seconds"} <= set(result["cost"])
    assert result["paper"] == {}

    with (finished / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["seed", "epoch", "split", "metric", "value"]
    assert {"train", "valid", "test"} == {row["split"] for row in rows}
    scores = np.load(finished / "scores.npz")
    assert scores["scores"].shape == (2, 64)
    assert scores["selection_frequency"].sum() == pytest.approx(7)
    for picture in ("curves.png", "selection.png"):
        assert (finished / picture).stat().st_size > 5000
    assert any((finished / "checkpoints").iterdir())


def test_a_finished_run_is_read_again_and_another_one_refused(finished: Path) -> None:
    config = quick()
    config.seeds, config.num_features = (3, 5), 7
    before = (finished / "result.json").stat().st_mtime_ns
    result = run_experiment(config, finished, progress=False)
    assert result["seeds"] == [3, 5]
    assert (finished / "result.json").stat().st_mtime_ns == before
    config.num_features = 8
    with pytest.raises(ConfigError, match="holds another run .*num_features is 7 there and 8"):
        run_experiment(config, finished, progress=False)


def test_a_killed_run_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsjax.engine.checkpoint as checkpoint

    config = quick(num_epochs=3, checkpoint_every=1)
    whole = run_experiment(config, tmp_path / "whole", progress=False)
    saved = checkpoint.Checkpoints.save

    def save_then_die(self, epoch, states, history) -> None:
        saved(self, epoch, states, history)
        if epoch == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Checkpoints, "save", save_then_die)
        with pytest.raises(KeyboardInterrupt):
            run_experiment(config, tmp_path / "killed", progress=False)
    assert not (tmp_path / "killed" / "result.json").exists()
    resumed = run_experiment(config, tmp_path / "killed", progress=False)
    assert resumed["cost"]["trained_epochs"] == 1
    for key in ("selected", "metrics", "best_epoch"):
        assert resumed[key] == whole[key]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_config_that_runs(name: str, tmp_path: Path) -> None:
    config = quick(MODULES[name])
    assert config.method.name == name
    result = run_experiment(config, tmp_path / name, progress=False)
    assert result["method"] == name
    for variant in ("coil20,quick", "isolet,reconstruction", "madelon"):
        assert MODULES[name].get_config(variant).data.name == variant.split(",")[0]


def test_configs_are_the_papers_settings() -> None:
    config = ip_cae.get_config("isolet,reconstruction")
    assert (config.num_features, config.train.batch_size, config.train.num_epochs) == (50, 128, 200)
    assert config.method.noise == "row"
    assert config.seeds == (11, 22, 33, 44, 55, 66, 77, 88, 99, 1010)
    assert gjsd.get_config("isolet,reconstruction").method.gjsd_weight == 0.005
    assert gjsd.get_config("coil20,reconstruction").method.gjsd_weight == 0.05
    assert gjsd.get_config("isolet").method.gjsd_weight == 0.05
    assert ip_cae.get_config("mice_protein").num_features == 10
    assert ip_cae.get_config().data.name == "digits"


def test_own_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5))
    lines = ["a,b,c,d,e,label"]
    lines += [",".join(f"{v:.4f}" for v in row) + ("," + "ny"[int(row[2] > 0)]) for row in x]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(lines))
    config = quick(num_epochs=100)
    config.data.name, config.data.target, config.num_features = str(table), "label", 1
    result = run_experiment(config, tmp_path / "run", progress=False)
    assert result["selected"] == [[2], [2]]

    config.data.target = "lable"
    with pytest.raises(DataError, match="label"):
        run_experiment(config, tmp_path / "other", progress=False)
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_features": 65}, "num_features=65 but X has 64 columns; choose at most 64"),
        ({"num_features": 0}, "num_features=0"),
        ({"method.name": "ipcae"}, "did you mean 'ip_cae'"),
        ({"method.noise": "rows"}, "did you mean 'row'"),
        ({"data.name": "digit"}, "did you mean 'digits'"),
        ({"data.name": "nothing/here.csv"}, "nothing/here.csv"),
        ({"task": "reconstruct"}, "did you mean 'reconstruction'"),
        ({"evaluation.protocols": ("embeded",)}, "did you mean 'embedded'"),
    ],
)
def test_mistakes_train_nothing_and_leave_nothing(
    changes: dict, message: str, tmp_path: Path
) -> None:
    config = quick()
    config.update_from_flattened_dict(changes)
    with pytest.raises((ConfigError, DataError), match=message):
        run_experiment(config, tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_workdir_that_is_no_workdir(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="is a file"):
        run_experiment(quick(), tmp_path / "file", progress=False)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ConfigError, match="not a configuration of fsjax"):
        run_experiment(quick(), tmp_path, progress=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--config is missing"),
        (["--config=configs/ip_cae.py"], "--workdir is missing"),
        (["--config=configs/ipcae.py"], "did you mean 'configs/ip_cae.py'"),
        (["--config=configs/ip_cae.py:coil21"], "did you mean 'coil20'"),
        (["--config=configs/ip_cae.py", "--config.trian.num_epochs=3"], "did you mean 'train'"),
        (["--config=configs/ip_cae.py", "--config.num_featurs=3"], "did you mean 'num_features'"),
        (["--config=configs/ip_cae.py", "--config.train.num_epochs=many"], "many"),
        (["--config=configs/ip_cae.py", "--wrokdir=x"], "workdir"),
        (["--config=configs/ip_cae.py", "configs/cae.py"], "unexpected argument"),
        (
            ["--config=configs/ip_cae.py", "--workdir={tmp}", "--config.num_features=99"],
            "choose at most 64",
        ),
    ],
)
def test_mistakes_on_the_command_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = launch("run", *(a.format(tmp=tmp_path / "run") for a in arguments))
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_compare_prints_one_table(tmp_path: Path) -> None:
    done = launch(
        "compare",
        "--configs=configs/ip_cae.py:quick,configs/random_selection.py:quick",
        f"--workdir={tmp_path}",
        "--set=train.num_epochs=1",
        "--set=seeds=1,2,3",
        "--set=data.split_per_seed=true",
    )
    assert done.returncode == 0, done.stderr
    assert "ip_cae" in done.stdout
    assert "random_selection" in done.stdout
    assert (tmp_path / "table.txt").exists()
    results = list(tmp_path.glob("*/result.json"))
    assert len(results) == 2
    assert json.loads(results[0].read_text())["seeds"] == [1, 2, 3]


@pytest.mark.parametrize(
    "assignment", ["train.num_epochs", "train.epochs=3", "train.num_epochs=x", "task.deep=1"]
)
def test_bad_overrides(assignment: str) -> None:
    with pytest.raises(ConfigError, match=assignment.split("=")[0]):
        compare.override(quick(), assignment)
