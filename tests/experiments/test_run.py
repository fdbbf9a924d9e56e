"""The launchers as a user meets them: artifacts, overrides, continuing, mistakes."""

from __future__ import annotations

import csv
import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from launcher import ROOT, launch, launch_here

from configs import any as any_method
from configs import ctre_seq, ctre_sim, gjsd, ip_cae, quick_selection, snip, wast
from experiments import cli, compare
from experiments.launch import build_method, run_experiment
from fsjax.data import available
from fsjax.data.catalog import ENTRIES
from fsjax.errors import ConfigError, DataError
from fsjax.evaluation import check_protocols
from fsjax.methods import METHODS

#: What the configs share, and the configs of comparisons; all other files are configs of a method.
SHARED = (
    "__init__",
    "any",
    "common",
    "papers",
    "rewiring",
    "feature_selection",
    "sparsify",
    "regularize",
)
MODULES = {
    path.stem: importlib.import_module(f"configs.{path.stem}")
    for path in sorted((ROOT / "configs").glob("*.py"))
    if path.stem not in SHARED
}


def quick(module=ip_cae, **train):
    config = module.get_config("digits,quick")
    config.train.num_epochs = 1
    for name, value in train.items():
        config.train[name] = value
    return config


def quick_any(name: str):
    """The same for a method without a config of its own."""
    config = any_method.get_config(f"{name},digits,quick")
    config.train.num_epochs = 1
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


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "curves.png").write_text("mine")
    with pytest.raises(ConfigError, match=r"files of another origin \(curves.png\)"):
        run_experiment(quick(), tmp_path, progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["curves.png"]


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
    module = MODULES.get(name)
    config = quick(module) if module else quick_any(name)
    assert config.method.name == name
    if len(config.method.get("hidden", ())) > 1:
        # The same network with one layer less to compile.
        config.method.hidden = (20,)
    if "search" in config.method:
        config.method.search = False
    config.train.min_steps_per_epoch = config.evaluation.retrain.num_epochs = 1
    result = run_experiment(config, tmp_path / name, progress=False)
    assert result["method"] == name
    for variant in ("coil20,quick", "isolet,reconstruction", "madelon") if module else ():
        assert module.get_config(variant).data.name == variant.split(",")[0]


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


def test_configs_of_rewiring_networks_are_the_papers_settings() -> None:
    for module, epochs in ((wast, 10), (quick_selection, 100)):
        config = module.get_config("madelon")
        assert (config.task, config.num_features, config.seeds) == (
            "reconstruction",
            20,
            (0, 1, 2, 3, 4),
        )
        assert (config.train.num_epochs, config.train.batch_size) == (epochs, 128)
        assert (config.data.split, config.data.scaling) == ("wast", "scalar")
        assert (config.data.valid_fraction, config.train.best_by) == (0.0, "last")
        assert config.evaluation.protocols == ("svm", "embedded")
        assert config.evaluation.num_features == ()
        assert module.get_config("isolet").evaluation.num_features == (25, 75, 100, 150, 200)
        assert module.get_config("mnist").evaluation.num_features == ()
    weights = {
        name: (wast.get_config(name).method.sensitivity_weight, wast.get_config(name).num_features)
        for name in ("madelon", "coil20", "mnist", "isolet", "smk_can_187", "gla_bra_180")
    }
    assert weights == {
        "madelon": (0.9, 20),
        "coil20": (0.4, 50),
        "mnist": (0.4, 50),
        "isolet": (0.9, 50),
        "smk_can_187": (0.01, 50),
        "gla_bra_180": (0.001, 50),
    }
    assert wast.get_config("gla_bra_180").method.learning_rate == 0.001

    config = ctre_sim.get_config("madelon")
    assert (config.method.hidden, config.method.epsilon) == ((1000, 1000, 1000), 1.0)
    assert (config.train.num_epochs, config.train.batch_size) == (500, 100)
    assert (config.data.scaling, config.data.valid_fraction) == ("standard", 0.1)
    assert (config.train.best_by, config.train.record_test) == ("accuracy", True)
    assert ctre_sim.get_config("isolet").data.scaling == "minmax"
    assert ctre_sim.get_config("isolet,reconstruction").train.best_by == "loss"
    assert ctre_sim.get_config().method.hidden == (200, 200, 200)


@pytest.mark.parametrize("quick_run", [False, True], ids=["whole", "quick"])
@pytest.mark.parametrize("name", MODULES)
def test_every_config_fits_every_data_set(name: str, quick_run: bool) -> None:
    fields = set(MODULES[name].get_config().to_dict())
    options = set(MODULES[name].get_config().method)
    tasks = build_method(MODULES[name].get_config()).about.tasks
    for data, task in ((data, task) for data in available() for task in tasks):
        words = (data, task, "quick") if quick_run else (task, data)
        config = MODULES[name].get_config(",".join(words))
        assert config.data.name == data
        assert (set(config), set(config.method)) == (fields, options)
        assert (len(config.seeds) == 2) == quick_run
        assert config.train.num_epochs <= 5 or not quick_run
        method = build_method(config)
        assert method.name == name
        assert config.task == task
        columns = ENTRIES[data].shape[1]
        assert 1 <= config.num_features <= columns
        check_protocols(config.evaluation.protocols, config.evaluation.num_features, columns)


def test_wast_from_the_command_line(tmp_path: Path) -> None:
    done = launch_here(
        "run",
        "--config=configs/wast.py:digits,quick",
        "--config.train.num_epochs=1",
        "--config.evaluation.num_features=5,8",
        "--config.data.noise_std=0.1",
        f"--workdir={tmp_path / 'run'}",
    )
    assert done.returncode == 0, done.stderr
    assert "svm_accuracy" in done.stdout
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    metrics = result["metrics"]
    svm = {"svm_accuracy", "svm_accuracy_k5", "svm_accuracy_k8"}
    assert svm | {"reconstruction_frobenius", "mse"} == set(metrics)
    for name in svm:
        assert len(metrics[name]) == 2 and all(20 < value <= 100 for value in metrics[name])
    assert np.mean(metrics["svm_accuracy_k5"]) < np.mean(metrics["svm_accuracy"])
    assert (result["task"], result["num_features"]) == ("reconstruction", 10)
    assert result["best_epoch"] == [1, 1]
    with (tmp_path / "run" / "metrics.csv").open() as file:
        recorded = {f"{row['split']}/{row['metric']}" for row in csv.DictReader(file)}
    assert {"train/loss", "train/sparsity", "train/topology_change"} <= recorded
    assert not any(name.startswith("valid") for name in recorded)
    for name in ("config.json", "scores.npz", "curves.png", "selection.png", "checkpoints"):
        assert (tmp_path / "run" / name).exists()


def test_a_network_of_other_widths_from_the_command_line(tmp_path: Path) -> None:
    done = launch_here(
        "run",
        "--config=configs/ctre_sim.py:quick",
        "--config.train.num_epochs=1",
        "--config.method.hidden=20,20,20",
        "--config.method.epsilon=0",
        "--config.method.density=0.2",
        f"--workdir={tmp_path / 'run'}",
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["cost"]["params"] == 256 + 80 + 80 + 40
    with (tmp_path / "run" / "metrics.csv").open() as file:
        recorded = {f"{row['split']}/{row['metric']}" for row in csv.DictReader(file)}
    assert {"train/sparsity", "valid/accuracy", "test/accuracy"} <= recorded


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


@pytest.mark.parametrize(
    ("module", "changes", "message"),
    [
        (
            wast,
            {"evaluation.num_features": (5, 65)},
            "evaluation.num_features has 65 but X has 64 columns; choose at most 64",
        ),
        (wast, {"evaluation.num_features": (0,)}, "evaluation.num_features=0; choose a whole"),
        (wast, {"evaluation.protocols": ("smv",)}, "did you mean 'svm'"),
        (wast, {"task": "classification"}, "wast is for the task reconstruction"),
        (wast, {"method.hidden": (20, 20)}, "wast has one hidden layer"),
        (wast, {"data.valid_fraction": 1.0}, "valid_fraction=1.0"),
        (wast, {"data.noise_std": -1.0}, "noise_std=-1.0"),
        (wast, {"train.best_by": "accuracy"}, "needs classes"),
        (ctre_sim, {"method.density": 0.1}, "epsilon=5.0 and density=0.1; set one of them to 0"),
        (ctre_sim, {"method.epsilon": 0.0}, "the network is sparse; give epsilon or density"),
        (ctre_sim, {"method.grow": "similiar"}, "grow='similiar': did you mean 'similar'"),
        (ctre_seq, {"method.order": "randomfirst"}, "did you mean 'random_first'"),
        (snip, {"train.best_by": "acuracy"}, "did you mean 'accuracy'"),
    ],
)
def test_mistakes_with_rewiring_networks(
    module, changes: dict, message: str, tmp_path: Path
) -> None:
    config = quick(module)
    config.update_from_flattened_dict(changes)
    with pytest.raises((ConfigError, DataError), match=message) as caught:
        run_experiment(config, tmp_path / "run", progress=False)
    assert "\n" not in str(caught.value)
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
        (["--config=configs/ip_cae.py", "--config.trian.num_epochs=3"], "did you mean 'train."),
        (["--config=configs/ip_cae.py", "--config.num_featurs=3"], "did you mean 'num_features'"),
        (["--config=configs/ip_cae.py", "--config.train.num_epochs=many"], "'many' is no whole"),
        (
            ["--config=configs/ip_cae.py", "--config.num_epochs=3"],
            "did you mean 'train.num_epochs'",
        ),
        (["--config=configs/ip_cae.py", "--config.method.bias=maybe"], "'maybe' is not true or"),
        (["--config=configs/ip_cae.py", "--config.method.bais"], 'Did you mean "bias"'),
        (["--config=configs/ip_cae.py", "--config.seeds=a,b"], "'a,b' is not like (11, 22"),
        (["--config=configs/ip_cae.py", "--wrokdir=x"], "workdir"),
        (["--config=configs/ip_cae.py", "configs/cae.py"], "unexpected argument"),
        (
            ["--config=configs/ip_cae.py", "--workdir={tmp}", "--config.num_features=99"],
            "choose at most 64",
        ),
        (
            ["--config=configs/ctre_sim.py", "--workdir={tmp}", "--config.method.density=0.1"],
            "epsilon=5.0 and density=0.1; set one of them to 0",
        ),
        (
            ["--config=configs/wast.py", "--workdir={tmp}", "--config.evaluation.num_features=99"],
            "evaluation.num_features has 99 but X has 64 columns",
        ),
    ],
)
def test_mistakes_on_the_command_line(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = launch_here("run", *(a.format(tmp=tmp_path / "run") for a in arguments))
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_mistake_ends_the_process(tmp_path: Path) -> None:
    config = "--config=configs/ctre_sim.py"
    done = launch("run", config, f"--workdir={tmp_path / 'run'}", "--config.method.density=0.1")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "epsilon=5.0 and density=0.1; set one of them to 0" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_compare_prints_one_table(tmp_path: Path) -> None:
    done = launch_here(
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


def test_variants_that_the_comma_has_cut_are_joined() -> None:
    parts = "configs/wast.py:madelon,quick,configs/set.py,configs/snip.py:isolet".split(",")
    names = compare.join_variants(parts)
    assert names == ["configs/wast.py:madelon,quick", "configs/set.py", "configs/snip.py:isolet"]
    assert compare.join_variants([]) == []
    assert compare.label_of(names[0]) == "wast-madelon-quick"
    config = cli.load_config(names[0])
    assert (config.method.name, config.data.name, len(config.seeds)) == ("wast", "madelon", 2)


@pytest.mark.parametrize(
    ("variant", "assignment", "message"),
    [
        ("stgg,digits", "", "unknown variant 'stgg': did you mean 'stg'"),
        ("stg,digit", "", "unknown variant 'digit': did you mean 'digits'"),
        ("stg,cae", "", "names the methods stg and cae; give one"),
        ("no_such_file:deep_lasso", "", "there is no module 'no_such_file'"),
        ("math:sqrt", "", "'math:sqrt' is not registered; put @fsjax.register"),
        ("quick", "", "config.method.name is empty; name a method in the variant"),
        ("quick", "method.name=stgg", "unknown method 'stgg': did you mean 'stg'"),
        ("quick", "method.strength=3", "'method.strength': a method that the variant names has"),
        ("stg", "method.strenght=3", "did you mean 'method.strength'"),
        ("stg", "method.strength=-3", "strength=-3.0; choose a value above 0"),
        ("stg", "method.name=lassonet", "does not fit lassonet.*configs/any.py:lassonet has its"),
        ("fisher_score", "evaluation.protocols=embedded", "the method predicts nothing; choose"),
        ("quick", "method.name=fisher_score", "the method predicts nothing; choose 'retrain'"),
        ("wast,classification", "", "wast is for the task reconstruction"),
    ],
)
def test_mistakes_with_any_method(
    variant: str, assignment: str, message: str, tmp_path: Path
) -> None:
    def launched() -> None:
        config = any_method.get_config(variant)
        if assignment:
            cli.override(config, assignment)
        run_experiment(config, tmp_path / "run", progress=False)

    with pytest.raises(ConfigError, match=message) as caught:
        launched()
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", METHODS)
def test_any_method_has_a_config_of_its_own_defaults(name: str) -> None:
    config = any_method.get_config(f"{name},isolet,quick")
    assert (config.data.name, len(config.seeds)) == ("isolet", 2)
    builder = METHODS[name]
    own = {"num_features": 50} if builder.registration.takes_number else {}
    assert build_method(config) is builder(**own)
    assert config.task == builder().about.tasks[0]


def test_a_filter_is_judged_by_a_network_on_its_columns(tmp_path: Path) -> None:
    config = any_method.get_config("fisher_score,quick")
    config.evaluation.retrain.update(num_epochs=1, hidden=(8,))
    result = run_experiment(config, tmp_path, progress=False)
    assert list(result["metrics"]) == ["retrain_accuracy"]


def test_overrides_of_fields_that_are_still_empty() -> None:
    config = quick(ctre_sim)
    for assignment in ("evaluation.num_features=5,8", "method.density=0.1", "data.target=label"):
        cli.override(config, assignment)
    assert config.evaluation.num_features == (5, 8)
    assert (config.method.density, config.data.target) == (0.1, "label")


@pytest.mark.parametrize(
    "assignment", ["train.num_epochs", "train.epochs=3", "train.num_epochs=x", "task.deep=1"]
)
def test_bad_overrides(assignment: str) -> None:
    with pytest.raises(ConfigError, match=assignment.split("=")[0]):
        cli.override(quick(), assignment)


def test_a_task_that_an_autoencoder_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="leave 'regression' out"):
        wast.get_config("digits,regression")
    assert wast.get_config("digits,reconstruction").task == "reconstruction"
