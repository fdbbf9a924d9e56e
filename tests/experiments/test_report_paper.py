"""The published numbers under our names."""

import inspect

import pytest
from bad_calls import bad_calls, refuses

from experiments.artifacts import published, published_value
from experiments.artifacts.published import MAIN_RESULTS, published_rows
from fsjax.methods import METHODS
from fsjax.tables.datasets.catalog import ENTRIES


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


def test_an_option_of_an_ablation_has_its_own_number():
    assert svm("wast", "madelon", 20, update="epoch") == (83.37, "WAST, Table 9")
    assert svm("wast", "madelon", 20, update="step") == (83.27, "WAST, Table 2")


@pytest.mark.parametrize(
    ("split", "papers"),
    [("wast", "WAST"), ("ip_cae", "IP-CAE"), ("paper", "IP-CAE"), ("random", "")],
)
def test_numbers_of_other_rows_are_left_out(split, papers):
    of_wast = published("wast", "coil20", "reconstruction", 50, split=split)
    of_ip_cae = published("ip_cae", "coil20", "classification", 50, split=split)
    assert bool(of_wast) == (papers == "WAST") and bool(of_ip_cae) == (papers == "IP-CAE")


def test_further_numbers_of_features():
    entries = published("wast", "har", "reconstruction", 50, 10)
    further = [f"svm_accuracy_k{k}" for k in (25, 75, 100, 150, 200)]
    assert [name for name in entries if name.startswith("svm")] == ["svm_accuracy", *further]
    assert entries.keys() == {"svm_accuracy", "params", "train_flops", *further}
    at_25 = published("wast", "har", "reconstruction", 25, 10)
    assert at_25["svm_accuracy"] == entries["svm_accuracy_k25"]
    assert at_25["svm_accuracy_k50"] == entries["svm_accuracy"]
    assert "svm_accuracy" not in published("wast", "har", "reconstruction", 30, 10)


@pytest.mark.parametrize("name", sorted({row.method for row in published_rows()} & set(METHODS)))
def test_options_of_the_tables_are_options_of_the_methods(name):
    settings = inspect.signature(METHODS[name]).parameters
    for row in published_rows():
        if row.method == name:
            assert set(row.options) <= set(settings)


def ctre(method, dataset="madelon", width=1000, **settings):
    all_settings = {"hidden": (width,) * 3, **settings}
    return published(method, dataset, "classification", 20, 500, all_settings)


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


def test_a_number_of_the_text_is_found_by_its_options():
    assert published_value("binmask", "all", "binmask", "search_steps") == 1.7
    of_network = published_value("binmask", "cifar100", "probmask", "slowdown_x", network="VGG19")
    assert of_network == 1.9


@bad_calls(
    (("binmask", "all", "lassonet", "search_steps"), {}, 0),
    (("binmask", "cifar10", "probmask", "slowdown_x"), {}, 2),
    (("binmask", "cifar10", "probmask", "slowdown_x"), {"network": "LeNet5"}, 0),
    (("wast", "madelon", "stg", "svm_accuracy_pct"), {}, 0),  # of a table, not of the text
)
def test_text_without_one_number(bad: tuple) -> None:
    names, setting, number = bad
    refuses(lambda: published_value(*names, **setting), f"{number} numbers for {', '.join(names)}")


def test_number_of_epochs_chooses_the_table():
    def source(num_epochs):
        entries = published("cae", "isolet", "classification", 50, num_epochs)
        return entries["embedded_accuracy"]["source"]

    assert {source(n) for n in (None, 10, 200)} == {"IP-CAE, Table 2"}
    assert source(1000) == "IP-CAE, Table 6"
