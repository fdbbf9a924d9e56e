"""The published numbers under our names."""

import pytest

from fsjax.report import published
from fsjax.report.paper import DATASETS, METHODS, parse_row, published_rows


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
    found = published(method, "coil20", "reconstruction", 50)
    assert list(found) == ["reconstruction_frobenius"]
    assert found["reconstruction_frobenius"]["mean"] == error
    assert found["reconstruction_frobenius"]["source"] == "IP-CAE, Table 1"


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


def test_every_method_and_data_set_is_in_both_main_tables():
    for method in METHODS.values():
        for dataset in DATASETS.values():
            k = 10 if dataset == "mice_protein" else 50
            for task in ("classification", "reconstruction"):
                (entry,) = published(method, dataset, task, k).values()
                assert entry["mean"] > 0 and entry["std"] > 0


@pytest.mark.parametrize("method", ["stg", "lassonet"])
def test_retrained_networks_have_their_own_accuracy(method):
    assert list(published(method, "isolet", "classification", 50)) == ["retrain_accuracy"]


def test_number_of_epochs_chooses_the_table():
    def source(num_epochs):
        found = published("cae", "isolet", "classification", 50, num_epochs)
        return found["embedded_accuracy"]["mean"], found["embedded_accuracy"]["source"]

    usual = (75.82, "IP-CAE, Table 2")
    assert [source(n) for n in (None, 10, 200)] == [usual] * 3
    assert source(1000) == (91.0, "IP-CAE, Table 6")
    assert (
        published("cae", "isolet", "classification", 50, 1000)["embedded_accuracy"]["std"] is None
    )


def test_error_on_another_scale_is_left_out():
    rows = [row for row in published_rows() if row.source == "IP-CAE, Table 6"]
    assert {row.metric for row in rows} == {"embedded_accuracy"}
    found = published("cae", "isolet", "reconstruction", 50, 1000)
    assert found["reconstruction_frobenius"]["source"] == "IP-CAE, Table 1"


def test_answers_are_fresh_copies():
    published("cae", "coil20", "classification", 50)["embedded_accuracy"]["mean"] = 0.0
    assert published("cae", "coil20", "classification", 50)["embedded_accuracy"]["mean"] == 80.70


@pytest.mark.parametrize(
    "change",
    [
        {"paper": "Another"},
        {"method": "DNN"},
        {"dataset": "Letters"},
        {"metric": "minutes"},
        {"mean": ""},
        {"setting": "K=50"},
        {"setting": ""},
    ],
)
def test_rows_without_a_name_here_are_skipped(change):
    record = {
        "paper": "IP-CAE",
        "table": "2",
        "dataset": "MNIST",
        "method": "CAE",
        "setting": "task=classification;K=50",
        "metric": "accuracy_pct",
        "mean": "1.5",
        "std": "",
        "n_repeats": "",
    }
    row = parse_row(record)
    assert (row.mean, row.std, row.n_repeats) == (1.5, None, None)
    assert parse_row({**record, **change}) is None
