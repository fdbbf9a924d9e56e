"""Mistakes of a user of the launchers, found before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest
from launcher import launch, launch_here
from quick_configs import quick

from configs import any as any_method
from configs import ctre_seq, ctre_sim, snip, wast
from experiments.launch import config as configuration
from experiments.launch.experiment import run_experiment
from fsjax.errors import ConfigError, DataError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_features": 65}, "num_features=65 but X has 64 columns"),
        ({"num_features": 0}, "num_features=0"),
        ({"method.name": "ipcae"}, "did you mean 'ip_cae'"),
        ({"method.noise": "rows"}, "did you mean 'row'"),
        ({"data.name": "digit"}, "did you mean 'digits'"),
        ({"data.impute": "foo"}, "impute='foo': allowed: 'mean', 'median'"),
        ({"data.dir": "no/such/folder"}, "data.dir='no/such/folder' does not exist"),
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
        (wast, {"evaluation.num_features": (5, 65)}, "evaluation.num_features has 65 but X"),
        (wast, {"evaluation.num_features": (0,)}, "evaluation.num_features=0; choose a whole"),
        (wast, {"evaluation.protocols": ("smv",)}, "did you mean 'svm'"),
        (wast, {"task": "classification"}, "wast is for the task reconstruction"),
        (wast, {"method.hidden": (20, 20)}, "wast has one hidden layer"),
        (wast, {"data.valid_fraction": 1.0}, "valid_fraction=1.0"),
        (wast, {"data.noise_std": -1.0}, "noise_std=-1.0"),
        (wast, {"train.best_by": "accuracy"}, "needs classes"),
        (ctre_sim, {"method.density": 0.1}, "epsilon=5.0 and density=0.1"),
        (ctre_sim, {"method.epsilon": 0.0}, "a sparse network needs one of them"),
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
        (["--config=configs/ip_cae.py", "--workdir="], "--workdir is missing"),
        (["--config=configs/ipcae.py"], "did you mean 'configs/ip_cae.py'"),
        (["--config=configs/ip_cae.py:coil21"], "did you mean 'coil20'"),
        (["--config=configs/ip_cae.py", "--config.trian.num_epochs=3"], "did you mean 'train."),
        (["--config=configs/ip_cae.py", "--config.num_featurs=3"], "did you mean 'num_features'"),
        (["--config=configs/ip_cae.py", "--config.train.num_epochs=many"], "'many' is not a whole"),
        (
            ["--config=configs/ip_cae.py", "--config.num_epochs=3"],
            "did you mean 'train.num_epochs'",
        ),
        (["--config=configs/ip_cae.py", "--config.method.bias=maybe"], "'maybe' is not true or"),
        (["--config=configs/ip_cae.py", "--config.method.bais"], "did you mean 'method.bias'"),
        (["--config=configs/ip_cae.py", "--config.seeds=a,b"], "'a,b' is not a tuple such as (1"),
        (["--config=configs/ip_cae.py", "--wrokdir=x"], "workdir"),
        (["--config=configs/ip_cae.py", "configs/cae.py"], "unexpected argument"),
        (
            ["--config=configs/ip_cae.py", "--workdir={tmp}", "--config.num_features=99"],
            "choose at most 64",
        ),
        (
            ["--config=configs/ctre_sim.py", "--workdir={tmp}", "--config.method.density=0.1"],
            "epsilon=5.0 and density=0.1",
        ),
        (
            ["--config=configs/wast.py", "--workdir={tmp}", "--config.evaluation.num_features=99"],
            "evaluation.num_features has 99 but X",
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


@pytest.mark.slow
def test_a_mistake_ends_the_process(tmp_path: Path) -> None:
    config = "--config=configs/ctre_sim.py"
    done = launch("run", config, f"--workdir={tmp_path / 'run'}", "--config.method.density=0.1")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "epsilon=5.0 and density=0.1; set one of them to 0" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("variant", "assignment", "message"),
    [
        ("stgg,digits", "", "unknown variant 'stgg': did you mean 'stg'"),
        ("stg,digit", "", "unknown variant 'digit'"),
        ("stg,cae", "", "names the methods stg and cae; give one"),
        ("no_such_file:deep_lasso", "", "there is no module 'no_such_file'"),
        ("math:sqrt", "", "'math:sqrt' is not registered"),
        ("quick", "", "config.method.name is empty"),
        ("quick", "method.name=stgg", "unknown method 'stgg': did you mean 'stg'"),
        ("quick", "method.strength=3", "'method.strength'"),
        ("stg", "method.strenght=3", "did you mean 'method.strength'"),
        ("stg", "method.strength=-3", "strength=-3.0; choose a value above 0"),
        ("stg", "method.name=lassonet", "does not fit lassonet.*configs/any.py:lassonet has its"),
        (
            "fisher_score",
            "evaluation.protocols=embedded",
            "the method makes no predictions; choose",
        ),
        ("quick", "method.name=fisher_score", "the method makes no predictions"),
        ("wast,classification", "", "wast is for the task reconstruction"),
    ],
)
def test_mistakes_with_any_method(
    variant: str, assignment: str, message: str, tmp_path: Path
) -> None:
    def launched() -> None:
        config = any_method.get_config(variant)
        if assignment:
            configuration.override(config, assignment)
        run_experiment(config, tmp_path / "run", progress=False)

    with pytest.raises(ConfigError, match=message) as caught:
        launched()
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_overrides_of_fields_that_are_still_empty() -> None:
    config = quick(ctre_sim)
    for assignment in ("evaluation.num_features=5,8", "method.density=0.1", "data.target=label"):
        configuration.override(config, assignment)
    assert config.evaluation.num_features == (5, 8)
    assert (config.method.density, config.data.target) == (0.1, "label")


@pytest.mark.parametrize(
    "assignment", ["train.num_epochs", "train.epochs=3", "train.num_epochs=x", "task.deep=1"]
)
def test_bad_overrides(assignment: str) -> None:
    with pytest.raises(ConfigError, match=assignment.split("=")[0]):
        configuration.override(quick(), assignment)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def get_config(variant=None:", "is not a config file: SyntaxError"),
        ("import nothing_here", "is not a config file: ModuleNotFoundError"),
        ("1 / 0", "is not a config file: ZeroDivisionError"),
        ("raise SystemExit(0)", "is not a config file: SystemExit"),
        ("x = 1", "it has no get_config"),
        ("def get_config(variant=None):\n    return 3", "returns int, not an ml_collections.Conf"),
        (
            "import ml_collections\n"
            "def get_config(variant=None):\n    return ml_collections.ConfigDict({'seeds': (1,)})",
            "the config lacks task, num_features, method",
        ),
    ],
)
def test_config_files_that_are_none(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text + "\n")
    done = launch_here("run", f"--config={path}", f"--workdir={tmp_path / 'run'}")
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "run").exists()


@pytest.mark.parametrize("equals", ["=", " "])
@pytest.mark.parametrize("launcher", ["run", "sparsify"])
def test_a_broken_config_file_of_any_launcher(launcher: str, equals: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def get_config(variant=None:\n")
    workdir = f"--workdir={tmp_path / 'run'}"
    done = launch_here(launcher, *f"--config{equals}{path}".split(), workdir)
    assert done.returncode == 2 and "is not a config file: SyntaxError" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("launcher", "field"),
    [("sparsify", "strengths"), ("regularize", "strengths"), ("feature_selection", "methods")],
)
def test_a_config_that_lacks_a_field(launcher: str, field: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import ml_collections\n"
        "def get_config(variant=None):\n    return ml_collections.ConfigDict({'seeds': (1,)})\n"
    )
    done = launch_here(launcher, f"--config={path}", f"--workdir={tmp_path / 'run'}")
    assert done.returncode == 2, done.stderr
    assert f"the config lacks the field {field!r}" in done.stderr
    assert "Traceback" not in done.stderr
