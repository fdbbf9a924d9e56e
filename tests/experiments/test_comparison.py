"""The text below the table of a comparison, and its statistics."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from quick_configs import quick
from synthetic_result import make_result

from experiments.artifacts import result_dict, write_metrics_csv
from experiments.artifacts.statistics.comparison import (
    delay_table,
    ks_pvalue,
    main_metric,
    significance_table,
    smallest_pvalue,
    training_delay,
)
from experiments.launch.compare import TEST_ROWS, TREATMENT, comparisons, data_of
from experiments.launch.run_folder import recorded_accuracy


def test_first_epoch_that_reaches_the_threshold() -> None:
    accuracy = np.array(
        [
            [10.0, 90.0, 95.0, 100.0],  # exactly the threshold counts
            [95.0, 20.0, 20.0, 20.0],  # reached once is reached
            [10.0, 20.0, 30.0, 91.0],
            [10.0, 20.0, 30.0, 89.0],  # never
            [np.nan, np.nan, 99.0, np.nan],
        ]
    )
    delays = training_delay(accuracy, best=100.0)
    np.testing.assert_array_equal(delays, [50.0, 25.0, 100.0, np.nan, 75.0])


@given(arrays(float, (3, 7), elements=st.floats(0, 100)), st.floats(0, 100), st.floats(0.01, 1))
def test_delay_matches_a_plain_search(accuracy: np.ndarray, best: float, threshold: float) -> None:
    for curve, delay in zip(accuracy, training_delay(accuracy, best, threshold), strict=True):
        epochs = [i for i, value in enumerate(curve, start=1) if value >= threshold * best]
        assert delay == 100 * epochs[0] / 7 if epochs else np.isnan(delay)


def test_delay_table() -> None:
    accuracies = {
        "ctre": np.array([[50.0, 95.0, 100.0, 100.0], [50.0, 50.0, 95.0, 100.0]]),
        "set": np.array([[10.0, 20.0, 30.0, 40.0, 95.0], [10.0, 20.0, 30.0, 40.0, 50.0]]),
        "rigl": np.full((3, 4), 20.0),
        "unmeasured": np.full((2, 4), np.nan),
    }
    assert delay_table(accuracies) == "\n".join(
        [
            "training delay: share of the epochs until 90.00 % test accuracy, 0.9 of the best mean",
            "method        delay, %  reached by",
            "------  --------------  ----------",
            "ctre    62.50 +- 12.50      2 of 2",
            "set     100.00 +- 0.00      1 of 2",
            "rigl                 -      0 of 3",
        ]
    )


@pytest.mark.parametrize(("n", "pvalue"), [(5, 0.0079), (4, 0.0286), (3, 0.1)])
def test_samples_that_do_not_overlap(n: int, pvalue: float) -> None:
    """Checks exact p-values of small samples."""
    p_value = ks_pvalue(np.arange(n), np.arange(n) + 50.0)
    assert p_value == pytest.approx(pvalue, abs=5e-5)
    assert p_value == pytest.approx(smallest_pvalue(n, n))


def test_significance_table() -> None:
    samples = {
        "ip_cae": [1.0, 2.0, 3.0, 4.0, 5.0],
        "cae": [11.0, 12.0, 13.0, 14.0, 15.0],
        "single": [1.0, None],
        "gjsd": [2.0, 3.0, 4.0, 5.0, None],
    }
    assert significance_table(samples, "svm_accuracy") == "\n".join(
        [
            "p of the Kolmogorov-Smirnov test of svm_accuracy over seeds (* below 0.05)",
            "method    seeds        1        2",
            "--------  -----  -------  -------",
            "1 ip_cae      5",
            "2 cae         5  0.0079*",
            "3 gjsd        4  1.0000   0.0159*",
        ]
    )


@pytest.mark.parametrize(
    ("metrics", "main"),
    [
        ([{"embedded_accuracy", "svm_accuracy"}, {"embedded_accuracy"}], "embedded_accuracy"),
        ([{"embedded_accuracy", "svm_accuracy"}, {"svm_accuracy"}], "svm_accuracy"),
        ([{"mse", "reconstruction_frobenius"}] * 2, "reconstruction_frobenius"),
        ([{"mse", "r2"}] * 2, "mse"),
        ([{"embedded_accuracy"}, {"svm_accuracy"}], None),
    ],
)
def test_main_metric(metrics: list[set[str]], main: str | None) -> None:
    assert main_metric({"metrics": dict.fromkeys(names)} for names in metrics) == main


def finished(workdir: Path, label: str, **options) -> dict:
    """A synthetic run with its ``metrics.csv``."""
    result = make_result(num_seeds=4, **options)
    write_metrics_csv(result, workdir / label / "metrics.csv")
    return result_dict(result)


def test_recorded_accuracy(tmp_path: Path) -> None:
    accuracy = np.array([[10.0, np.nan, 30.0], [20.0, 25.0, 50.0]])
    shape = {"num_epochs": 3, "seeds": (7, 3), "best_epoch": np.array([3, 3])}
    history = {"test/accuracy": accuracy[::-1], "valid/accuracy": accuracy + 1}
    finished(tmp_path, "run", history=history, metrics={}, **shape)
    np.testing.assert_array_equal(recorded_accuracy(tmp_path / "run"), accuracy)


def same_data(labels: Iterable[str]) -> dict[str, dict[str, object]]:
    """The fields of ``config.data`` of runs that all have the same."""
    return {label: dict.fromkeys((*TEST_ROWS, *TREATMENT)) for label in labels}


def test_comparisons_by_data_set_and_task(tmp_path: Path) -> None:
    history = {"test/accuracy": np.tile([10.0, 50.0, 96.0], (4, 1))}
    results = {
        "a": finished(tmp_path, "a", history=history),
        "b": finished(tmp_path, "b", history=history),
        "other_data": finished(tmp_path, "other_data", dataset="isolet"),
        "c": finished(tmp_path, "c", task="reconstruction"),
        "d": finished(tmp_path, "d", task="reconstruction"),
    }
    delay, accuracy, error = comparisons(results, tmp_path, same_data(results)).split("\n\n")[1:]
    assert delay.startswith("coil20, classification: training delay")
    assert delay.count("100.00 +- 0.00") == 2
    assert accuracy.startswith("coil20, classification: p of the Kolmogorov-Smirnov test")
    assert "embedded_accuracy" in accuracy
    assert error.startswith("coil20, reconstruction: p of the")
    assert "reconstruction_frobenius" in error
    assert "other_data" not in delay + accuracy + error


def test_runs_on_other_test_rows_are_not_compared(tmp_path: Path) -> None:
    results = {label: finished(tmp_path, label) for label in ("a", "b", "c")}
    data = same_data(results)
    data["c"]["split"], data["b"]["scaling"] = "wast", "minmax"
    separate, note, table = comparisons(results, tmp_path, data).split("\n\n")[1:]
    assert "not all are compared" in separate
    assert separate.endswith("data.split (a: None, b: None, c: 'wast')")
    assert note.endswith("also differ in data.scaling (a: None, b: 'minmax', c: None)")
    assert "1 a" in table and "2 b" in table and "c " not in table.splitlines()[-1]


def test_tables_of_the_same_file_name_are_not_compared(tmp_path: Path) -> None:
    folders = {"a": tmp_path / "one", "b": tmp_path / "two", "c": tmp_path / "two/../one"}
    results = {label: finished(tmp_path, label, dataset="table.csv") for label in folders}
    configs = {label: quick() for label in folders}
    for label, folder in folders.items():
        folder.mkdir(exist_ok=True)
        (folder / "table.csv").touch()
        configs[label].data.update(name="table.csv", dir=str(folder))
    configs["c"].data.update(name=str(folders["c"] / "table.csv"), dir="")
    data = {label: data_of(config) for label, config in configs.items()}
    separate, table = comparisons(results, tmp_path, data).split("\n\n")[1:]
    assert "not all are compared, as the runs differ in data.name (a: " in separate
    assert "1 a" in table and "2 c" in table and "b " not in table.splitlines()[-1]


def test_errors_on_other_scales_are_not_compared(tmp_path: Path) -> None:
    task = "reconstruction"
    results = {label: finished(tmp_path, label, task=task) for label in ("a", "b")}
    data = same_data(results)
    data["b"]["scaling"] = "minmax"
    text = comparisons(results, tmp_path, data)
    assert "not all are compared" in text and "Kolmogorov" not in text
