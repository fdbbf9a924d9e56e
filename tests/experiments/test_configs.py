"""Configs: the papers' settings, for every method and data set."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from bad_calls import refuses
from marks import slow_ids, some_long
from quick_configs import MODULES, quick, quick_any

from configs import any as any_method
from configs import feature_selection, regularize, wast
from experiments.launch.experiment import build_method, load_data, make_plan, run_experiment
from fsjax.data import available
from fsjax.errors import ConfigError
from fsjax.evaluation import check_protocols
from fsjax.methods import METHODS
from fsjax.tables.datasets.catalog import ENTRIES

#: Configs that run without ``-m slow``: one of each kind of artifacts.
RUN = ("binmask", "ctre_seq", "fisher_score", "icap")

#: Configs of a concrete selector, of gates, of a path, of a filter and of a sparse network.
KINDS = ("ip_cae", "binmask", "lassonet", "fisher_score", "wast")


def quick_config(name: str):
    """The method's own config, or that of any method, on a network of one layer."""
    module = MODULES.get(name)
    config = quick(module) if module else quick_any(name)
    if len(config.method.get("hidden", ())) > 1:
        # The same network with fewer layers, to save compilation.
        config.method.hidden = (20,)
    if "search" in config.method:
        config.method.search = False
    config.train.min_steps_per_epoch = config.evaluation.retrain.num_epochs = 1
    return config


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_config_that_can_be_run(name: str) -> None:
    config = quick_config(name)
    assert config.method.name == name
    about = {"task": config.task, "num_features": config.num_features}
    planned = make_plan(config, build_method(config), load_data(config), **about)
    assert planned.method.name == name
    module = MODULES.get(name)
    for variant in ("coil20,quick", "isolet,reconstruction", "madelon") if module else ():
        assert module.get_config(variant).data.name == variant.split(",")[0]


@pytest.mark.slow
@slow_ids("binmask", "ctre_seq", "fisher_score")
@pytest.mark.parametrize("name", some_long(METHODS, {*METHODS} - {*RUN}))
def test_every_config_runs(name: str, tmp_path: Path) -> None:
    result = run_experiment(quick_config(name), tmp_path / name, progress=False)
    assert result["method"] == name


@pytest.mark.parametrize("quick_run", [False, True], ids=["whole", "quick"])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in KINDS else pytest.mark.slow) for n in MODULES]
)
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


@pytest.mark.parametrize(
    ("config", "variant", "words"),
    [
        (feature_selection, "digits,reconstruction", "unknown variant 'reconstruction'"),
        (regularize, "quick,classification", "unknown variant 'classification'"),
        (regularize, "madelon,ehr_like", "has madelon and ehr_like; choose one"),
        (any_method, "snip,digits,isolet", "has digits and isolet; choose one"),
        (any_method, "digits,regression,classification", "has regression and classification;"),
    ],
)
def test_no_word_of_a_variant_is_ignored(config: ModuleType, variant: str, words: str) -> None:
    refuses(lambda: config.get_config(variant), words)


def test_a_task_that_an_autoencoder_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="leave 'regression' out"):
        wast.get_config("digits,regression")
    assert wast.get_config("digits,reconstruction").task == "reconstruction"
