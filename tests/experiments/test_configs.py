"""Configs: the papers' settings, for every method and data set."""

from __future__ import annotations

from pathlib import Path

import pytest
from quick_configs import MODULES, quick, quick_any

from configs import any as any_method
from configs import ctre_sim, gjsd, ip_cae, quick_selection, wast
from configs.rewiring import CTRE_METHODS, classifier_config
from experiments.launch.experiment import build_method, run_experiment
from fsjax.data import available
from fsjax.datasets.catalog import ENTRIES
from fsjax.errors import ConfigError
from fsjax.evaluation import check_protocols
from fsjax.methods import METHODS


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


@pytest.mark.parametrize("name", METHODS)
def test_any_method_has_a_config_of_its_own_defaults(name: str) -> None:
    config = any_method.get_config(f"{name},isolet,quick")
    assert (config.data.name, len(config.seeds)) == ("isolet", 2)
    builder = METHODS[name]
    arguments = {"num_features": 50} if builder.registration.takes_number else {}
    assert build_method(config) is builder(**arguments)
    assert config.task == builder().about.tasks[0]


def test_a_task_that_an_autoencoder_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="leave 'regression' out"):
        wast.get_config("digits,regression")
    assert wast.get_config("digits,reconstruction").task == "reconstruction"


@pytest.mark.parametrize("method", CTRE_METHODS)
def test_networks_of_ctre_stay_those_of_its_paper(method: str) -> None:
    config_of = classifier_config(method)
    assert config_of("madelon").method.hidden == (1000, 1000, 1000)
    assert config_of("digits").method.hidden == (200, 200, 200)
    assert config_of("madelon").method.rank_by == config_of("digits").method.rank_by == "strength"
    if method != "dense":
        assert (config_of("madelon").method.epsilon, config_of("digits").method.epsilon) == (
            1.0,
            5.0,
        )
