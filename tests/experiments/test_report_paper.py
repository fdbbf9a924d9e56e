"""The published numbers under our names."""

import inspect

import pytest

from configs.rewiring import classifier_config
from experiments.artifacts import published, published_value
from experiments.artifacts.published import MAIN_RESULTS, Besides, agrees, parse_row, published_rows
from experiments.launch.experiment import build_method
from fsjax.datasets.catalog import ENTRIES
from fsjax.errors import ConfigError
from fsjax.methods import METHODS


def test_the_task_chooses_the_metric():
    assert published("ip_cae", "coil20", "classification", 50) == {
        "embedded_accuracy": {
            "mean": 97.92,
            "std": 0.57,
            "n_repeats": 10,
            "source": "IP-CAE, Table 2",
        }
    }
    entries = published("ip_cae", "coil20", "reconstruction", 50)
    assert list(entries) == ["reconstruction_frobenius"]
    assert entries["reconstruction_frobenius"]["source"] == "IP-CAE, Table 1"


@pytest.mark.parametrize(
    "experiment",
    [
        ("ip_cae", "digits", "classification", 50),
        ("ip_cae", "coil20", "classification", 25),
        ("ip_cae", "coil20", "regression", 50),
        ("random_selection", "coil20", "classification", 50),
        ("ip_cae", "mice_protein", "classification", 50),
    ],
)
def test_unknown_experiments_have_no_numbers(experiment):
    assert published(*experiment) == {}


@pytest.mark.parametrize("settings", [{}, {"noise": "row", "hidden": (200,)}])
def test_settings_do_not_matter_where_no_table_depends_on_them(settings):
    plain = published("cae", "isolet", "classification", 50)
    assert published("cae", "isolet", "classification", 50, settings=settings) == plain


def test_data_sets_are_registered():
    assert {row.dataset for row in published_rows()} <= set(ENTRIES)


def test_methods_and_metrics_have_our_names():
    rows = published_rows()
    assert {row.method for row in rows} | MAIN_RESULTS.keys() <= set(METHODS)
    accuracies = {"embedded_accuracy", "retrain_accuracy", "svm_accuracy"}
    errors = {"reconstruction_frobenius", "retrain_reconstruction_frobenius"}
    others = errors | {"params", "train_flops"}
    assert {row.metric for row in rows} == accuracies | others


def svm(method, dataset, k, num_epochs=None, **settings):
    """The published accuracy of an SVM, and its paper and table."""
    entries = published(method, dataset, "reconstruction", k, num_epochs, settings)
    entry = entries["svm_accuracy"]
    return entry["mean"], entry["source"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"sensitivity_weight": 0.9}, "WAST, Table 2"),
        ({"sensitivity_weight": None, "num_hidden": 200}, "WAST, Table 2"),
        ({"drop": "per_sign"}, "WAST, Table 2"),
        ({"drop": "magnitude"}, "WAST, Table 4"),
        ({"update": "epoch"}, "WAST, Table 9"),
        (
            {"sensitivity_weight": 0.4, "accumulate": True, "drop": "importance", "update": "step"},
            "WAST, Table 2",
        ),
    ],
)
def test_options_of_wast_choose_the_table(settings, expected):
    assert svm("wast", "madelon", 20, 10, **settings)[1] == expected


def test_options_of_wast_choose_the_row():
    ablations = ({"sensitivity_weight": 0.0}, {"sensitivity_weight": 1}, {"accumulate": False})
    rows = [svm("wast", "madelon", 20, 10, **settings) for settings in ablations]
    assert {source for _, source in rows} == {"WAST, Table 4"}
    assert len(set(rows)) == len(ablations)


@pytest.mark.parametrize(
    ("dataset", "settings"),
    [
        ("madelon", {"sensitivity_weight": 0.0, "accumulate": False}),
        ("madelon", {"update": "epoch", "drop": "magnitude"}),
        ("isolet", {"sensitivity_weight": 0.0}),
        ("isolet", {"update": "epoch"}),
    ],
)
def test_main_results_do_not_stand_for_other_options(dataset, settings):
    assert published("wast", dataset, "reconstruction", 50, 10, settings) == {}


def test_quick_selection_depends_on_the_epochs():
    tables = [svm("quick_selection", "madelon", 20, epochs)[1] for epochs in (None, 100, 10)]
    assert tables == ["WAST, Table 2", "WAST, Table 2", "WAST, Table 7"]


def test_further_numbers_of_features():
    entries = published("wast", "har", "reconstruction", 50, 10)
    further = [f"svm_accuracy_k{k}" for k in (25, 75, 100, 150, 200)]
    assert [name for name in entries if name.startswith("svm")] == ["svm_accuracy", *further]
    assert entries.keys() == {"svm_accuracy", "params", "train_flops", *further}
    at_25 = published("wast", "har", "reconstruction", 25, 10)
    assert at_25["svm_accuracy"] == entries["svm_accuracy_k25"]
    assert at_25["svm_accuracy_k50"] == entries["svm_accuracy"]
    assert "svm_accuracy" not in published("wast", "har", "reconstruction", 30, 10)


def test_operations_depend_on_the_epochs():
    usual = published("quick_selection", "mnist", "reconstruction", 25, 100)
    shorter = published("quick_selection", "mnist", "reconstruction", 25, 10)
    assert "params" in usual and "train_flops" in usual
    assert "params" in shorter and "train_flops" not in shorter


def test_cae_has_the_numbers_of_two_papers():
    entries = published("cae", "coil20", "reconstruction", 50)
    assert entries["reconstruction_frobenius"]["source"] == "IP-CAE, Table 1"
    assert entries["svm_accuracy"]["source"] == "WAST, Table 2"
    assert "reconstruction_frobenius" not in published("cae", "usps", "reconstruction", 50)


@pytest.mark.parametrize("method", ["stg", "lassonet"])
def test_wast_trained_these_with_labels(method):
    entries = published(method, "coil20", "reconstruction", 50)
    assert list(entries) == ["retrain_reconstruction_frobenius"]
    assert published(method, "usps", "reconstruction", 50) == {}
    assert "svm_accuracy" in published(method, "usps", "classification", 50)


def test_a_row_without_epochs_holds_for_any():
    sources = {
        published("stg", "madelon", "classification", 20, epochs)["svm_accuracy"]["source"]
        for epochs in (None, 100, 1000)
    }
    assert sources == {"WAST, Table 2"}


@pytest.mark.parametrize("name", sorted({row.method for row in published_rows()} & set(METHODS)))
def test_options_of_the_tables_are_options_of_the_methods(name):
    settings = inspect.signature(METHODS[name]).parameters
    for row in published_rows():
        if row.method == name:
            assert set(row.options) <= set(settings)


@pytest.mark.parametrize("name", ["ctre_sim", "ctre_seq", "set", "rigl", "snip", "dense"])
def test_settings_of_the_configs_are_those_of_table_2(name):
    settings = dict(build_method(classifier_config(name)("madelon")).about.settings)
    (entry,) = published(name, "madelon", "classification", 20, 500, settings).values()
    assert entry["source"] == "CTRE, Table 2"


def ctre(method, dataset="madelon", width=1000, **settings):
    all_settings = {"hidden": (width,) * 3, **settings}
    return published(method, dataset, "classification", 20, 500, all_settings)


@pytest.mark.parametrize(
    ("method", "settings", "table"),
    [
        ("ctre_sim", {}, 2),
        ("ctre_sim", {"grow": "similar"}, 4),
        ("ctre_sim", {"similarity": "hebb"}, 5),
        ("ctre_sim", {"similarity": "euclidean"}, 9),
        ("ctre_sim", {"similarity_fraction": 0.5}, 7),
        ("ctre_seq", {}, 2),
        ("ctre_seq", {"similarity": "hebb"}, 5),
        ("ctre_seq", {"order": "random_first"}, 10),
        ("set", {}, 2),
    ],
)
def test_options_of_ctre_choose_the_table(method, settings, table):
    (entry,) = ctre(method, epsilon=1, **settings).values()
    assert entry["source"] == f"CTRE, Table {table}"
    assert ctre(method, epsilon=1.0, **settings) == {"embedded_accuracy": entry}


def test_options_of_ctre_choose_the_row():
    for method, option, values in (
        ("ctre_sim", "grow", ("similar", "dissimilar_or_random")),
        ("ctre_sim", "similarity_fraction", (0.5, 0.25)),
        ("ctre_seq", "order", ("random_first", "half")),
    ):
        first, second = (ctre(method, epsilon=1, **{option: value}) for value in values)
        assert first != second


def test_ctre_depends_on_the_network_alone():
    entries = ctre("ctre_sim", width=100, epsilon=13)
    assert list(entries) == ["embedded_accuracy"]
    listed = {"hidden": [100, 100, 100], "epsilon": 13}
    assert published("ctre_sim", "madelon", "classification", 50, 10, listed) == entries
    for settings in (
        {"hidden": (100, 100, 100)},
        {"hidden": (100, 100), "epsilon": 1},
        {"hidden": (200, 200, 200), "epsilon": 1},
        {"hidden": (100, 100, 100), "epsilon": 2},
        {"hidden": (100, 100, 100), "epsilon": None, "density": 0.1},
        {"hidden": (100, 100, 100), "epsilon": 1, "drop": "random"},
        {"hidden": (100, 100, 100), "epsilon": 1, "grow": "similar", "similarity": "hebb"},
        {},
    ):
        assert published("ctre_sim", "madelon", "classification", 20, 500, settings) == {}


def test_one_experiment_has_one_number():
    numbers = {}
    for row in published_rows():
        if not row.source.startswith("IP-CAE"):  # whose Table 6 rounds
            key = (*row[1:6], str(row.options), row.metric)
            assert numbers.setdefault(key, (row.mean, row.std)) == (row.mean, row.std), row


@pytest.mark.parametrize(
    ("wanted", "value", "same"),
    [
        (1.0, 1, True),
        ((1, 2), [1, 2], True),
        ("similar", "random", False),
        (Besides((0.0, 1.0)), 0.4, True),
        (Besides((0.0, 1.0)), None, True),
        (Besides((0.0, 1.0)), Besides((0.0, 1.0)), True),
        (Besides((0.0, 1.0)), 1, False),
        (0.0, Besides((0.0, 1.0)), False),
    ],
)
def test_agreement_of_options(wanted, value, same):
    assert agrees(wanted, value) is same


@pytest.mark.parametrize("method", ["stg", "lassonet"])
def test_retrained_networks_have_their_own_accuracy(method):
    entries = published(method, "coil20", "classification", 50)
    assert entries["retrain_accuracy"]["source"] == "IP-CAE, Table 2"
    assert all("svm" in name for name in entries if name != "retrain_accuracy")
    assert "retrain_accuracy" not in published(method, "coil20", "classification", 25)


def test_a_number_of_the_text_is_found_by_its_options():
    assert published_value("binmask", "all", "binmask", "search_steps") == 1.7
    of_network = published_value("binmask", "cifar100", "probmask", "slowdown_x", network="VGG19")
    assert of_network == 1.9


@pytest.mark.parametrize(
    ("arguments", "setting", "number"),
    [
        (("binmask", "all", "lassonet", "search_steps"), {}, 0),
        (("binmask", "mnist", "binmask", "search_steps"), {}, 0),
        (("binmask", "cifar10", "probmask", "slowdown_x"), {}, 2),
        (("binmask", "cifar10", "probmask", "slowdown_x"), {"network": "LeNet5"}, 0),
        (("another", "all", "binmask", "search_steps"), {}, 0),
        (("wast", "madelon", "stg", "svm_accuracy_pct"), {}, 0),  # of a table, not of the text
    ],
)
def test_text_without_one_number(arguments, setting, number):
    with pytest.raises(ConfigError, match=f"{number} numbers for {', '.join(arguments)}"):
        published_value(*arguments, **setting)


def test_runs_have_no_number_of_the_text():
    assert not any(row.source.startswith("BinMask") for row in published_rows())
    assert not {"binmask", "probmask"} & {row.method for row in published_rows()}


def test_number_of_epochs_chooses_the_table():
    def source(num_epochs):
        entries = published("cae", "isolet", "classification", 50, num_epochs)
        return entries["embedded_accuracy"]["source"]

    assert {source(n) for n in (None, 10, 200)} == {"IP-CAE, Table 2"}
    assert source(1000) == "IP-CAE, Table 6"


def test_error_on_another_scale_is_left_out():
    entries = published("cae", "isolet", "reconstruction", 50, 1000)
    assert entries["reconstruction_frobenius"]["source"] == "IP-CAE, Table 1"


def test_answers_are_fresh_copies():
    published("cae", "coil20", "classification", 50)["embedded_accuracy"]["mean"] = 0.0
    assert published("cae", "coil20", "classification", 50)["embedded_accuracy"]["mean"] > 0


def test_empty_cells():
    record = {
        "source": "IP-CAE, Table 2",
        "method": "cae",
        "dataset": "mnist",
        "task": "classification",
        "num_features": "",
        "num_epochs": "",
        "options": "hidden=(5,5);update=step",
        "metric": "embedded_accuracy",
        "mean": "1.5",
        "std": "",
        "n_repeats": "",
    }
    row = parse_row(record)
    assert row.options == {"hidden": (5, 5), "update": "step"}
    assert (row.num_features, row.num_epochs, row.std, row.n_repeats) == (None,) * 4
    assert row.mean == 1.5
