"""Mistakes of a user of the launchers, found before anything is trained."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from bad_calls import bad_calls, refuses
from launcher import launch, launch_here
from ml_collections import ConfigDict
from quick_configs import quick

from configs import any as any_method
from configs import ctre_sim, ip_cae, regularize, wast
from experiments.launch import config as configuration
from experiments.launch.experiment import run_experiment


@bad_calls(
    (ip_cae, {"num_features": 65}, "num_features=65", "64 columns"),
    (ip_cae, {"method.name": "ipcae"}, "did you mean 'ip_cae'"),
    (ip_cae, {"method.noise": "rows"}, "did you mean 'row'"),
    (ip_cae, {"data.name": "digit"}, "did you mean 'digits'"),
    (ip_cae, {"data.dir": "no/such/folder"}, "data.dir='no/such/folder'"),
    (ip_cae, {"data.name": "nothing/here.csv"}, "nothing/here.csv"),
    (ip_cae, {"task": "reconstruct"}, "did you mean 'reconstruction'"),
    (ip_cae, {"evaluation.protocols": ("embeded",)}, "did you mean 'embedded'"),
    (wast, {"evaluation.num_features": (5, 65)}, "evaluation.num_features has 65"),
    (wast, {"task": "classification"}, "wast is for the task reconstruction"),
    (wast, {"train.best_by": "accuracy"}, "needs classes"),
    (ctre_sim, {"method.density": 0.1}, "epsilon=5.0 and density=0.1"),
)
def test_mistakes_train_nothing_and_leave_nothing(bad: tuple, tmp_path: Path) -> None:
    config = quick(bad[0])
    config.update_from_flattened_dict(bad[1])
    refuses(lambda: run_experiment(config, tmp_path / "run", progress=False), *bad[2:])
    assert not (tmp_path / "run").exists()


def test_workdir_that_is_no_workdir(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "config.json").write_text("[]")
    for path, words in ((tmp_path / "file", "is a file"), (tmp_path, "not a configuration")):
        refuses(functools.partial(run_experiment, quick(), path, progress=False), words)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "--config is missing"),
        ("--config={c}", "--workdir is missing"),
        ("--config={c} --workdir=", "--workdir is missing"),
        ("--config=configs/ipcae.py", "did you mean 'configs/ip_cae.py'"),
        ("--config={c}:coil21", "did you mean 'coil20'"),
        ("--config={c} --config.trian.num_epochs=3", "did you mean 'train."),
        ("--config={c} --config.num_epochs=3", "did you mean 'train.num_epochs'"),
        ("--config={c} --config.train.num_epochs=many", "'many' is not a whole"),
        ("--config={c} --config.method.bias=maybe", "'maybe' is not true or"),
        ("--config={c} --config.seeds=a,b", "'a,b' is not a tuple such as (1"),
        ("--config={c} --wrokdir=x", "workdir"),
        ("--config={c} configs/cae.py", "unexpected argument"),
        ("--config={c} --workdir={tmp} --config.num_features=99", "choose at most 64"),
    ],
)
def test_mistakes_on_the_command_line(arguments: str, message: str, tmp_path: Path) -> None:
    given = arguments.format(c="configs/ip_cae.py", tmp=tmp_path / "run").split()
    done = launch_here("run", *given)
    assert done.returncode == 2 and done.stderr.startswith("error: ")
    assert message in done.stderr and "Traceback" not in done.stderr
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


@bad_calls(
    ("stgg,digits", "", "unknown variant 'stgg': did you mean 'stg'"),
    ("stg,cae", "", "the methods stg and cae"),
    ("no_such_file:deep_lasso", "", "no module 'no_such_file'"),
    ("math:sqrt", "", "'math:sqrt' is not registered"),
    ("quick", "", "config.method.name is empty"),
    ("quick", "method.strength=3", "'method.strength'"),
    ("stg", "method.strenght=3", "did you mean 'method.strength'"),
    ("stg", "method.name=lassonet", "does not fit lassonet", "configs/any.py:lassonet"),
    ("fisher_score", "evaluation.protocols=embedded", "the method makes no predictions"),
)
def test_mistakes_with_any_method(bad: tuple) -> None:
    def planned() -> None:
        config = any_method.get_config(bad[0])
        if bad[1]:
            configuration.override(config, bad[1])
        run_experiment(config, Path("run"), progress=False)

    refuses(planned, *bad[2:])
    assert not Path("run").exists()


def test_another_data_set_does_not_take_the_options_of_the_first() -> None:
    config = regularize.get_config("ehr_like,quick")
    configuration.override(config, "data.name=ehr_like")
    assert config.data.options.num_features == 300
    configuration.override(config, "data.name=breast_cancer.csv")
    assert "options" not in config.data
    table = ConfigDict({"data": {"name": "a.csv", "options": {"separator": ";"}}})
    configuration.override(table, "data.name=b.csv")
    assert table.data.options.separator == ";"


def test_overrides_of_fields_that_are_still_empty() -> None:
    config = quick(ctre_sim)
    for assignment in ("evaluation.num_features=5,8", "method.density=0.1", "data.target=label"):
        configuration.override(config, assignment)
    assert config.evaluation.num_features == (5, 8)
    assert (config.method.density, config.data.target) == (0.1, "label")


@bad_calls(("train.num_epochs",), ("train.epochs=3",), ("train.num_epochs=x",), ("task.deep=1",))
def test_bad_overrides(bad: tuple) -> None:
    refuses(lambda: configuration.override(quick(), bad[0]), bad[0].split("=")[0])


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
