"""The published numbers under our names."""

import inspect

import pytest

from configs.rewiring import classifier_config
from experiments.artifacts import published, published_value
from experiments.artifacts.published import (
    MAIN_RESULTS,
    Besides,
    agrees,
    parse_row,
    published_rows,
    read_table,
)
from experiments.launch.experiment import build_method
from fsjax.datasets.catalog import ENTRIES
from fsjax.errors import ConfigError
from fsjax.methods import METHODS


@pytest.mark.parametrize(
    ("method", "accuracy", "std", "error"),
    [
        ("cae", 80.70, 2.93, 4.21e-3),
        ("gjsd", 82.10, 3.72, 2.80e-3),
        ("ip_cae", 97.92, 0.57, 2.48e-3),
    ],
)
def test_coil20(method, accuracy, std, error):
    assert published(method, "coil20", "classification", 50) == {
        "embedded_accuracy": {
            "mean": accuracy,
            "std": std,
            "n_repeats": 10,
            "source": "IP-CAE, Table 2",
        }
    }
    entries = published(method, "coil20", "reconstruction", 50)
    assert entries["reconstruction_frobenius"]["mean"] == error
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


def test_every_method_and_data_set_is_in_both_main_tables_of_ip_cae():
    datasets = ("mnist", "fashion_mnist", "isolet", "coil20", "har", "mice_protein")
    for method in ("cae", "gjsd", "ip_cae", "stg", "lassonet"):
        for dataset in datasets:
            k = 10 if dataset == "mice_protein" else 50
            for task in ("classification", "reconstruction"):
                entries = published(method, dataset, task, k).values()
                (entry,) = (entry for entry in entries if entry["source"].startswith("IP-CAE"))
                assert entry["mean"] > 0 and entry["std"] > 0


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
    others = {"reconstruction_frobenius", "params", "train_flops"}
    assert {row.metric for row in rows} == accuracies | others


def test_rows_without_a_task_belong_to_no_run():
    assert all(row.task for row in read_table("wast"))
    alone = [row for row in read_table("ctre") if not row.task]
    assert {row.source for row in alone} == {f"CTRE, Table {number}" for number in (2, 5, 6, 8)}
    # Counts of connections, delays, and another implementation.
    assert {row.metric for row in alone if "impl" not in row.options} == {
        "connections",
        "density_pct",
        "training_delay_pct",
    }


def svm(method, dataset, k, num_epochs=None, **settings):
    entries = published(method, dataset, "reconstruction", k, num_epochs, settings)
    entry = entries["svm_accuracy"]
    return entry["mean"], entry["std"], entry["source"]


def test_wast():
    assert svm("wast", "madelon", 20, 10) == (83.27, 0.63, "WAST, Table 2")
    assert svm("wast", "smk_can_187", 50, 10) == (84.74, 1.05, "WAST, Table 2")
    assert svm("wast", "fashion_mnist", 200, 10)[2] == "WAST, Table 5"
    assert published("wast", "madelon", "classification", 20) == {}
    assert published("wast", "coil20", "reconstruction", 50)["svm_accuracy"]["n_repeats"] == 5


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"sensitivity_weight": 0.9}, (83.27, 0.63, "WAST, Table 2")),
        ({"sensitivity_weight": None, "num_hidden": 200}, (83.27, 0.63, "WAST, Table 2")),
        ({"drop": "per_sign"}, (83.27, 0.63, "WAST, Table 2")),
        ({"sensitivity_weight": 0.0}, (55.50, 2.45, "WAST, Table 4")),
        ({"sensitivity_weight": 1}, (82.47, 0.75, "WAST, Table 4")),
        ({"accumulate": False}, (81.60, 1.06, "WAST, Table 4")),
        ({"drop": "magnitude"}, (83.27, 0.63, "WAST, Table 4")),
        ({"update": "epoch"}, (83.37, 0.62, "WAST, Table 9")),
        (
            {"sensitivity_weight": 0.4, "accumulate": True, "drop": "importance", "update": "step"},
            (83.27, 0.63, "WAST, Table 2"),
        ),
    ],
)
def test_ablations_of_wast(settings, expected):
    assert svm("wast", "madelon", 20, 10, **settings) == expected


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
    assert svm("quick_selection", "madelon", 20) == (82.07, 1.10, "WAST, Table 2")
    assert svm("quick_selection", "madelon", 20, 100) == (82.07, 1.10, "WAST, Table 2")
    assert svm("quick_selection", "madelon", 20, 10) == (52.73, 2.28, "WAST, Table 7")
    assert svm("quick_selection", "mnist", 50) == (94.07, 0.04, "WAST, Table 2")


def test_further_numbers_of_features():
    entries = published("wast", "har", "reconstruction", 50, 10)
    further = [f"svm_accuracy_k{k}" for k in (25, 75, 100, 150, 200)]
    assert [name for name in entries if name.startswith("svm")] == ["svm_accuracy", *further]
    assert entries.keys() == {"svm_accuracy", "params", "train_flops", *further}
    at_25 = published("wast", "har", "reconstruction", 25, 10)
    assert at_25["svm_accuracy"] == entries["svm_accuracy_k25"]
    assert at_25["svm_accuracy_k50"] == entries["svm_accuracy"]
    assert "svm_accuracy" not in published("wast", "har", "reconstruction", 30, 10)


def test_costs_of_wast():
    for dataset in ("mnist", "fashion_mnist"):
        entries = published("wast", dataset, "reconstruction", 50, 10)
        assert entries["params"]["mean"] == 62720
        assert entries["train_flops"]["mean"] == pytest.approx(0.22e12)
        assert entries["params"]["source"] == entries["train_flops"]["source"] == "WAST, Table 3"
    entries = published("quick_selection", "mnist", "reconstruction", 25, 100)
    assert entries["params"]["mean"] == 62720
    assert entries["train_flops"]["mean"] == pytest.approx(2.25e12)
    shorter = published("quick_selection", "mnist", "reconstruction", 25, 10)
    assert "params" in shorter and "train_flops" not in shorter


def test_cae_has_the_numbers_of_two_papers():
    entries = published("cae", "coil20", "reconstruction", 50)
    assert entries["reconstruction_frobenius"]["source"] == "IP-CAE, Table 1"
    assert entries["svm_accuracy"]["source"] == "WAST, Table 2"
    assert "reconstruction_frobenius" not in published("cae", "usps", "reconstruction", 50)


@pytest.mark.parametrize("method", ["stg", "lassonet"])
def test_wast_trained_these_with_labels(method):
    assert list(published(method, "coil20", "reconstruction", 50)) == ["reconstruction_frobenius"]
    assert published(method, "usps", "reconstruction", 50) == {}
    assert "svm_accuracy" in published(method, "usps", "classification", 50)


@pytest.mark.parametrize(
    ("method", "dataset", "k", "mean", "std"),
    [
        ("stg", "madelon", 20, 59.53, 1.90),
        ("stg", "coil20", 50, 97.57, 1.70),
        ("stg", "smk_can_187", 50, 81.05, 1.29),
        ("lassonet", "madelon", 20, 79.50, 1.22),
        ("lassonet", "isolet", 50, 85.70, 0.38),
        ("lassonet", "gla_bra_180", 50, 76.67, 2.22),
    ],
)
def test_svm_on_the_columns_of_stg_and_lassonet(method, dataset, k, mean, std):
    for num_epochs in (None, 100, 1000):
        entry = published(method, dataset, "classification", k, num_epochs)["svm_accuracy"]
        assert (entry["mean"], entry["std"], entry["source"]) == (mean, std, "WAST, Table 2")


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
    ("method", "settings", "mean", "table"),
    [
        ("ctre_sim", {}, 78.8, 2),
        ("ctre_sim", {"grow": "similar"}, 50.0, 4),
        ("ctre_sim", {"grow": "dissimilar_or_random"}, 51.1, 4),
        ("ctre_sim", {"similarity": "hebb"}, 60.2, 5),
        ("ctre_sim", {"similarity": "euclidean"}, 70.6, 9),
        ("ctre_sim", {"similarity_fraction": 0.5}, 80.6, 7),
        ("ctre_sim", {"similarity_fraction": 0.25}, 78.7, 7),
        ("ctre_seq", {}, 61.1, 2),
        ("ctre_seq", {"similarity": "hebb"}, 61.6, 5),
        ("ctre_seq", {"order": "random_first"}, 61.1, 10),
        ("ctre_seq", {"order": "half"}, 61.6, 10),
        ("set", {}, 61.7, 2),
        ("rigl", {}, 50.0, 2),
        ("snip", {}, 58.1, 2),
    ],
)
def test_ctre(method, settings, mean, table):
    (entry,) = ctre(method, epsilon=1, **settings).values()
    assert (entry["mean"], entry["source"]) == (mean, f"CTRE, Table {table}")
    assert ctre(method, epsilon=1.0, **settings) == {"embedded_accuracy": entry}


def test_ctre_depends_on_the_network_alone():
    entries = ctre("ctre_sim", width=100, epsilon=13)
    assert entries["embedded_accuracy"]["mean"] == 65.6
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


def test_dense_networks_have_no_epsilon():
    assert ctre("dense", "mnist", 100)["embedded_accuracy"]["mean"] == 97.9
    assert ctre("dense", "cifar10", 1000)["embedded_accuracy"]["source"] == "CTRE, Table 2"


def test_contradictions_are_settled_for_table_2():
    entry = ctre("ctre_seq", "fashion_mnist", 100, epsilon=1)["embedded_accuracy"]
    assert (entry["std"], entry["source"]) == (0.3, "CTRE, Table 2")
    assert svm("wast", "har", 50, 10) == (91.20, 0.16, "WAST, Table 2")
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


@pytest.mark.parametrize(
    ("method", "dataset", "mean", "std"),
    [
        ("stg", "coil20", 96.80, 0.25),
        ("stg", "mnist", 92.29, 0.30),
        ("stg", "isolet", 84.95, 0.31),
        ("lassonet", "coil20", 89.37, 0.47),
        ("lassonet", "mnist", 90.06, 0.33),
        ("lassonet", "isolet", 84.33, 0.28),
    ],
)
def test_retrained_networks_have_their_own_accuracy(method, dataset, mean, std):
    entries = published(method, dataset, "classification", 50)
    expected = {"mean": mean, "std": std, "n_repeats": 10, "source": "IP-CAE, Table 2"}
    assert entries["retrain_accuracy"] == expected
    assert "embedded_accuracy" not in entries
    assert all("svm" in name for name in entries if name != "retrain_accuracy")
    assert "retrain_accuracy" not in published(method, dataset, "classification", 25)


@pytest.mark.parametrize(
    ("dataset", "method", "metric", "setting", "value"),
    [
        ("all", "binmask", "mask_converged_pct", {}, 75.0),
        ("all", "stg", "mask_converged_pct", {}, 8.86),
        ("all", "binmask", "search_steps", {}, 1.7),
        ("all", "stg", "search_steps", {}, 1.6),
        ("cifar10", "binmask", "training_slowdown_pct", {"network": "ResNet32"}, 3.4),
        ("cifar100", "binmask", "training_slowdown_pct", {"network": "VGG19"}, 10.97),
        ("cifar100", "probmask", "slowdown_x", {"network": "VGG19"}, 1.9),
        ("cifar10", "probmask", "accuracy_gain_pct", {"bound": "min"}, 12.9),
        ("cifar10", "binmask", "sparsity_pct", {}, 97.0),
    ],
)
def test_numbers_in_the_text_of_binmask(dataset, method, metric, setting, value):
    assert published_value("binmask", dataset, method, metric, **setting) == value


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
    assert {row.method for row in read_table("binmask")} == {"binmask", "probmask", "stg"}


def test_number_of_epochs_chooses_the_table():
    def source(num_epochs):
        entries = published("cae", "isolet", "classification", 50, num_epochs)
        return entries["embedded_accuracy"]["mean"], entries["embedded_accuracy"]["source"]

    usual = (75.82, "IP-CAE, Table 2")
    assert [source(n) for n in (None, 10, 200)] == [usual] * 3
    assert source(1000) == (91.0, "IP-CAE, Table 6")
    assert (
        published("cae", "isolet", "classification", 50, 1000)["embedded_accuracy"]["std"] is None
    )


def test_error_on_another_scale_is_left_out():
    rows = [row for row in published_rows() if row.source == "IP-CAE, Table 6"]
    assert {row.metric for row in rows} == {"embedded_accuracy"}
    entries = published("cae", "isolet", "reconstruction", 50, 1000)
    assert entries["reconstruction_frobenius"]["source"] == "IP-CAE, Table 1"


def test_answers_are_fresh_copies():
    published("cae", "coil20", "classification", 50)["embedded_accuracy"]["mean"] = 0.0
    assert published("cae", "coil20", "classification", 50)["embedded_accuracy"]["mean"] == 80.70


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
