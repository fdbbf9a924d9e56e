"""The launchers from the command line: artifacts, overrides, resuming."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import ml_collections
import numpy as np
import pytest
from bad_calls import refuses
from launcher import launch_here
from quick_configs import quick

from configs import fisher_score
from experiments import artifacts
from experiments.launch import checksums, compare
from experiments.launch import experiment as launch_module
from experiments.launch.config import load_config
from experiments.launch.experiment import run_experiment
from experiments.launch.run_folder import begin_run, check_workdir, end_run
from fsjax.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The workdir of a one-epoch run."""
    workdir = tmp_path_factory.mktemp("run") / "digits"
    done = launch_here(
        "run",
        "--config=configs/fisher_score.py:digits,quick",
        "--config.train.num_epochs=1",
        "--config.method.hidden=8,",
        "--config.seeds=3,5",
        "--config.num_features=7",
        f"--workdir={workdir}",
    )
    assert done.returncode == 0, done.stderr
    assert "embedded_accuracy" in done.stdout
    assert "4 of 64 columns are constant" in done.stdout
    return workdir


def finished_config() -> ml_collections.ConfigDict:
    """The configuration of the finished run."""
    config = quick(fisher_score)
    config.seeds, config.num_features, config.method.hidden = (3, 5), 7, (8,)
    return config


def test_artifacts(finished: Path) -> None:
    config = json.loads((finished / "config.json").read_text())
    assert config["num_features"] == 7
    assert config["train"]["num_epochs"] == 1
    assert {"python", "jax", "flax", "optax"} <= set(config["versions"])
    assert config["device"]["platform"] == "cpu"

    result = json.loads((finished / "result.json").read_text())
    assert result["method"] == "fisher_score"
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
    page = (finished / "report.html").read_text()
    assert page.count("<svg ") == 3 and "<img" not in page and "embedded accuracy" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 10
    assert {*re.findall(r'(?:url\(|href=")#([^")]+)', page)} <= set(ids)
    assert not re.search("https?://(?!www.w3)", page)
    assert any((finished / "checkpoints").iterdir())


def test_a_finished_run_is_read_again_and_another_one_refused(finished: Path) -> None:
    config = finished_config()
    before = (finished / "result.json").stat().st_mtime_ns
    result = run_experiment(config, finished, progress=False)
    assert result["seeds"] == [3, 5]
    assert (finished / "result.json").stat().st_mtime_ns == before
    (finished / "report.html").unlink()
    run_experiment(config, finished, progress=False)
    assert (finished / "report.html").exists()
    config.num_features = 8
    with pytest.raises(ConfigError, match="holds another run .*num_features was 7, is 8"):
        run_experiment(config, finished, progress=False)


@pytest.mark.slow
def test_what_is_lost_of_a_finished_run_is_made_anew(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = finished_config()
    folder = shutil.copytree(finished, tmp_path / "copy")
    (folder / "metrics.csv").unlink()
    (folder / "scores.npz").write_bytes((folder / "scores.npz").read_bytes()[:-9])
    (folder / "result.json").write_text('{"method": "ip_c')
    (folder / "config.json").write_text("")
    again = run_experiment(config, folder, progress=False)
    assert "config.json, metrics.csv, result.json, scores.npz" in capsys.readouterr().out
    assert again["selected"] == json.loads((finished / "result.json").read_text())["selected"]
    assert (folder / "metrics.csv").read_text() == (finished / "metrics.csv").read_text()
    np.testing.assert_array_equal(
        *(np.load(run_folder / "scores.npz")["scores"] for run_folder in (finished, folder))
    )
    assert not checksums.damaged(folder)


@pytest.mark.slow
def test_a_finished_run_without_checksums_is_read(finished: Path, tmp_path: Path) -> None:
    config = finished_config()
    folder = shutil.copytree(finished, tmp_path / "copy")
    (folder / checksums.NAME).unlink()
    before = (folder / "result.json").stat().st_mtime_ns
    run_experiment(config, folder, progress=False)
    assert (folder / "result.json").stat().st_mtime_ns == before
    # Killed before them, or of an earlier version: what is there counts from now on.
    (folder / checksums.NAME).unlink()
    (folder / "result.json").write_text('{"method": "ip_c')
    with pytest.raises(ConfigError, match=r"result.json is damaged .* remove it"):
        run_experiment(config, folder, progress=False)
    (folder / "metrics.csv").unlink()
    run_experiment(config, folder, progress=False)
    assert (folder / "metrics.csv").exists() and (folder / checksums.NAME).exists()


@pytest.mark.parametrize("how", ["cut", "emptied", "removed", "flipped", "replaced"])
def test_any_damage_of_a_finished_run_is_noticed(finished: Path, how: str) -> None:
    names = json.loads((finished / checksums.NAME).read_text())["files"]
    assert {"config.json", "result.json", "metrics.csv", "scores.npz", "curves.png"} <= {*names}
    for name in (*names, checksums.NAME):
        path = finished / name
        content = path.read_bytes()
        middle = len(content) // 2
        damage = {
            "cut": content[:-2],
            "emptied": b"",
            "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "replaced": (finished / "report.html").read_bytes(),
        }
        path.unlink() if how == "removed" else path.write_bytes(damage[how])
        gone = how == "removed" and name == checksums.NAME
        assert checksums.damaged(finished) == ([] if gone else [name])
        path.write_bytes(content)
    assert checksums.damaged(finished) == []


def test_a_changed_file_of_an_own_method_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "own_ranking.py"
    code.write_text("from fsjax.methods import random_selection\n")
    monkeypatch.syspath_prepend(tmp_path)
    config, folder = quick(), tmp_path / "run"
    with config.unlocked():
        config.method = {"name": "own_ranking:random_selection"}
    folder.mkdir()
    begin_run(config, folder)
    check_workdir(config, folder)
    code.write_text(code.read_text() + "# changed\n")
    with pytest.raises(ConfigError, match="holds another run .*files of method.name"):
        check_workdir(config, folder)


def test_a_damaged_run_that_is_repeated_is_unfinished_until_its_end(
    finished: Path, tmp_path: Path
) -> None:
    config, folder = finished_config(), shutil.copytree(finished, tmp_path / "copy")
    (folder / "curves.png").unlink()
    assert not check_workdir(config, folder)
    begin_run(config, folder)
    # As after a kill of the repeated run.
    assert not check_workdir(config, folder)


def test_a_run_that_goes_on_elsewhere_says_where_it_began(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    artifacts.write_config_json({"a": 1}, path, "first")
    for command in ("first", "second", "second"):
        earlier = json.loads(path.read_text())
        artifacts.write_config_json({"a": 1}, path, command, earlier)
    config = json.loads(path.read_text())
    assert config["command"] == "first"
    assert [entry["command"] for entry in config["continued"]] == ["second"]


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "curves.png").write_text("mine")
    with pytest.raises(ConfigError, match="files that the run would replace"):
        run_experiment(quick(), tmp_path, progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["curves.png"]


@pytest.mark.slow
def test_a_killed_run_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fsjax.storage.checkpoints import Checkpoints

    config = quick(num_epochs=3, checkpoint_every=1)
    uninterrupted = run_experiment(config, tmp_path / "whole", progress=False)
    saved = Checkpoints.save

    def save_then_die(self, epoch, states, history) -> None:
        saved(self, epoch, states, history)
        if epoch == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_then_die)
        with pytest.raises(KeyboardInterrupt):
            run_experiment(config, tmp_path / "killed", progress=False)
    assert not (tmp_path / "killed" / "result.json").exists()
    resumed = run_experiment(config, tmp_path / "killed", progress=False)
    assert resumed["cost"]["trained_epochs"] == 1
    for key in ("selected", "metrics", "best_epoch"):
        assert resumed[key] == uninterrupted[key]


@pytest.mark.slow
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


def test_fields_of_the_data_and_of_the_training_reach_the_plan() -> None:
    config = quick(num_epochs=3)
    data = {"split": "random", "split_per_seed": True, "scaling": "minmax"}
    data |= {"valid_fraction": 0.3, "noise_std": 0.5}
    config.data.update(data)
    config.seeds = (3, 5)
    options = launch_module.plan_options(config)
    assert options == {"seeds": (3, 5), **data, **config.train}
    assert options["num_epochs"] == 3


def test_protocols_have_the_options_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Judged(Exception):
        """Ends the run; its arguments are those of the protocols."""

    def judged(*args: object, **options: object) -> None:
        raise Judged(args, options)

    trained = SimpleNamespace(constant_columns=np.zeros(1, int))
    plan = SimpleNamespace(fit=lambda: [trained])
    monkeypatch.setattr(launch_module, "make_plan", lambda *_, **__: plan)
    monkeypatch.setattr(launch_module, "evaluate", judged)
    config = quick()
    config.data.update(noise_std=0.5, scaling="minmax")
    config.evaluation.update(protocols=("svm", "retrain"), num_features=(5,), sample_rows=77)
    config.evaluation.retrain.num_epochs = 2
    with pytest.raises(Judged) as caught:
        run_experiment(config, tmp_path, progress=False)
    (result, dataset, *protocols), options = caught.value.args
    assert result is trained and dataset.name == "digits"
    assert protocols == [("svm", "retrain"), (5,)]
    assert options.pop("retrain").num_epochs == 2
    assert options == {"noise_std": 0.5, "scaling": "minmax", "sample_rows": 77}


def test_variants_that_the_comma_has_cut_are_joined() -> None:
    parts = "configs/wast.py:madelon,quick,configs/set.py,configs/snip.py:isolet".split(",")
    names = compare.join_variants(parts)
    assert names == ["configs/wast.py:madelon,quick", "configs/set.py", "configs/snip.py:isolet"]
    assert compare.join_variants([]) == []
    assert compare.label_of(names[0]) == "wast-madelon-quick"
    several = ["a/x.py:digits", "a/x.py:isolet", "b/x.py:digits"]
    refuses(lambda: compare.labelled(several), "both be in the folder x-digits; name each config")
    assert list(compare.labelled(several[:2])) == ["x-digits", "x-isolet"]
    config = load_config(names[0])
    assert (config.method.name, config.data.name, len(config.seeds)) == ("wast", "madelon", 2)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("table.csv", "table.csv"),
        ("X.npy", "X.y.npy"),
        ("X.npy", "labels.npy"),
        ("all", "all/X.npy"),
    ],
)
@pytest.mark.parametrize("is_finished", [True, False])
def test_a_folder_is_not_used_again_for_another_content_of_a_table(
    name: str, changed: str, is_finished: bool, tmp_path: Path
) -> None:
    (tmp_path / "all").mkdir()
    for file in ("table.csv", "X.npy", "X.y.npy", "labels.npy", "all/X.npy", "all/y.npy"):
        (tmp_path / file).write_text("1")
    config, workdir = quick(fisher_score), tmp_path / "run"
    config.data.update(name=f"{tmp_path / name}", target="labels.npy")
    workdir.mkdir()
    begin_run(config, workdir)
    if is_finished:
        (workdir / "result.json").write_text("{}")
        end_run(config, workdir)
    assert check_workdir(config, workdir) is is_finished
    content = (tmp_path / changed).read_text()
    (tmp_path / changed).write_text("2")
    refuses(lambda: check_workdir(config, workdir), "another run (sha256 of data.name was '")
    (tmp_path / changed).write_text(content)
    assert check_workdir(config, workdir) is is_finished
    # Of an earlier version.
    (workdir / checksums.NAME).unlink(missing_ok=True)
    fields = json.loads((workdir / "config.json").read_text())
    del fields["sha256 of data.name"]
    (workdir / "config.json").write_text(json.dumps(fields))
    assert check_workdir(config, workdir) is is_finished


def test_the_table_of_a_run_is_the_one_with_which_it_began(tmp_path: Path) -> None:
    config, table = quick(fisher_score), tmp_path / "table.csv"
    config.data.name = str(table)
    table.write_text("1")
    begin_run(config, tmp_path)
    table.write_text("changed meanwhile")
    (tmp_path / "result.json").write_text("{}")
    end_run(config, tmp_path)
    refuses(lambda: check_workdir(config, tmp_path), "holds another run")
