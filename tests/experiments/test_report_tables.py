"""The text table of results next to the papers' numbers."""

import numpy as np
import pytest
from synthetic_result import make_result

from experiments.artifacts import result_dict, summary_table
from experiments.artifacts.text_tables import format_value


def row(**options):
    return result_dict(make_result(**{"num_features": 50, "columns": 100, **options}))


def cells(table):
    """The lines below the rule, split at double spaces."""
    return [[part.strip() for part in line.split("  ") if part] for line in table.split("\n")[2:]]


def test_classification_next_to_the_paper():
    metrics = {
        "unique_percentage": np.array([98.0, 100.0]),
        "svm_accuracy": np.array([90.0, 90.0]),
        "embedded_accuracy": np.array([97.0, 98.0]),
    }
    table = summary_table([row(num_seeds=2, metrics=metrics)])
    about = ["ip_cae", "coil20", "50", "classification"]
    paper = ["97.92 +- 0.57", "-0.42", "IP-CAE, Table 2"]
    assert cells(table) == [
        [*about, "svm_accuracy", "90.00 +- 0.00", "2", "-", "-"],
        [*about, "embedded_accuracy", "97.50 +- 0.50", "2", *paper],
        [*about, "unique_percentage", "99.00 +- 1.00", "2", "-", "-"],
    ]


def test_missing_values():
    metrics = {"embedded_accuracy": np.array([90.0, np.nan, 92.0]), "auc": np.full(3, np.nan)}
    first, second = cells(summary_table([row(dataset="digits", metrics=metrics)]))
    assert first[5:] == ["91.00 +- 1.00", "2 of 3", "-", "-"]
    assert second[5:] == ["-", "0 of 3", "-", "-"]


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("svm_accuracy", 0.001, "0.00"),
        ("svm_accuracy_k200", 0.001, "0.00"),
        ("auc", 0.98765, "0.9877"),
        ("mse", 0.0, "0.0000"),
        ("mse", 0.01234, "1.23e-02"),
        ("mse", 123456.0, "1.23e+05"),
    ],
)
def test_format(metric, value, text):
    assert format_value(metric, value) == text
