"""The files of a run: their contents, and atomic writes."""

import csv
import json
import math
import subprocess

import jax
import numpy as np
import pytest
from synthetic_result import make_result, named

from experiments.artifacts import (
    environment,
    result_dict,
    write_config_json,
    write_metrics_csv,
    write_result_json,
    write_scores,
)
from fsjax.report import save_figure
from fsjax.report.style import new_figure

RESULT_KEYS = [
    "method",
    "dataset",
    "task",
    "num_features",
    "seeds",
    "selected",
    "metrics",
    "best_epoch",
    "constant_columns",
    "stability",
    "cost",
    "paper",
]


def read_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_metrics_csv_holds_the_history_and_the_test_metrics(tmp_path):
    result = make_result(num_seeds=2, num_epochs=4)
    write_metrics_csv(result, tmp_path / "metrics.csv")
    rows = read_rows(tmp_path / "metrics.csv")
    assert list(rows[0]) == ["seed", "epoch", "split", "metric", "value"]
    assert len(rows) == 2 * 4 * len(result.history) + 2 * len(result.metrics)
    values = {
        (int(r["seed"]), int(r["epoch"]), f"{r['split']}/{r['metric']}"): float(r["value"])
        for r in rows
    }
    for name, recorded in result.history.items():
        for row, seed in enumerate(result.seeds):
            read = [values[seed, epoch, name] for epoch in range(1, 5)]
            np.testing.assert_array_equal(np.float32(read), recorded[row])
    for name, recorded in result.metrics.items():
        for row, seed in enumerate(result.seeds):
            assert values[seed, result.best_epoch[row], f"test/{name}"] == pytest.approx(
                recorded[row], rel=1e-7
            )


def test_metrics_csv_keeps_what_is_not_finite(tmp_path):
    history = {"valid/loss": np.array([[np.nan, np.inf, 0.1]], np.float32)}
    result = make_result(num_seeds=1, history=history, metrics={"auc": np.array([np.nan])})
    write_metrics_csv(result, tmp_path / "metrics.csv")
    assert [r["value"] for r in read_rows(tmp_path / "metrics.csv")] == ["nan", "inf", "0.1", "nan"]


def test_result_json_is_the_result_dict(tmp_path):
    result = make_result(num_features=50, columns=100)
    write_result_json(result, tmp_path / "result.json")
    read = json.loads((tmp_path / "result.json").read_text())
    assert read == result_dict(result)
    assert list(read) == RESULT_KEYS
    assert (read["method"], read["dataset"], read["num_features"]) == ("ip_cae", "coil20", 50)
    assert read["seeds"] == [1, 2, 3]
    assert read["selected"] == result.selected.tolist()
    assert read["metrics"]["embedded_accuracy"] == result.metrics["embedded_accuracy"].tolist()
    assert read["best_epoch"] == result.best_epoch.tolist()
    assert read["paper"]["embedded_accuracy"]["mean"] == 97.92


@pytest.mark.parametrize(("split", "compared"), [(None, True), ("paper", True), ("wast", False)])
def test_published_numbers_are_those_of_the_same_split(split, compared):
    options = {"dataset": "coil20", "num_features": 50, "columns": 100}
    paper = result_dict(make_result(**options), split)["paper"]
    assert ("embedded_accuracy" in paper) == compared


def test_options_of_the_method_choose_the_published_numbers():
    def mean(**options):
        method = named("wast", 20, **options)
        task = "reconstruction"
        result = make_result(dataset="madelon", task=task, num_features=20, method=method)
        return result_dict(result)["paper"]["svm_accuracy"]["mean"]

    assert mean(sensitivity_weight=0.9, accumulate=True) == 83.27
    assert mean(sensitivity_weight=0.0, accumulate=True) == 55.50


def test_result_json_has_null_for_what_is_not_finite(tmp_path):
    metrics = {"auc": np.array([0.5, np.nan, np.inf])}
    result = make_result(metrics=metrics, cost={"train_flops": math.nan, "params": np.int64(3)})
    write_result_json(result, tmp_path / "result.json")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    read = json.loads((tmp_path / "result.json").read_text(), parse_constant=refuse)
    assert read["metrics"]["auc"] == [0.5, None, None]
    assert read["cost"] == {"train_flops": None, "params": 3}


def test_scores(tmp_path):
    result = make_result(num_seeds=4, columns=20, num_features=6)
    write_scores(result, tmp_path / "scores.npz")
    with np.load(tmp_path / "scores.npz") as archive:
        assert sorted(archive) == ["scores", "selection_frequency"]
        np.testing.assert_array_equal(archive["scores"], result.scores)
        frequency = archive["selection_frequency"]
    assert frequency.shape == (20,)
    assert frequency.sum() == pytest.approx(6)
    assert frequency[7] == np.mean([7 in row for row in result.selected])


def test_config_json(tmp_path):
    write_config_json({"seeds": (1, 2), "method": {"name": "cae"}}, tmp_path / "config.json")
    read = json.loads((tmp_path / "config.json").read_text())
    assert read["seeds"] == [1, 2] and read["method"] == {"name": "cae"}
    assert set(read["versions"]) == {
        "python",
        "jax",
        "jaxlib",
        "flax",
        "optax",
        "numpy",
        "scikit-learn",
        "fsjax",
    }
    assert read["versions"]["jax"] == jax.__version__
    assert read["device"] == {
        "platform": jax.devices()[0].platform,
        "kind": jax.devices()[0].device_kind,
        "count": jax.device_count(),
    }
    assert "git_revision" in read


def test_git_revision(tmp_path):
    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert environment.git_revision(tmp_path) is None
    package = tmp_path / "package"
    package.mkdir()
    (package / "code.py").write_text("1\n")
    git("init")
    assert environment.git_revision(package) is None
    git("add", ".")
    assert environment.git_revision(package) is None, "nothing is committed yet"
    git("commit", "-m", "first", "--no-verify")
    clean = environment.git_revision(package)
    assert len(clean) == 40
    (package / "code.py").write_text("2\n")
    assert environment.git_revision(package) == f"{clean}-dirty"

    installed = tmp_path / "venv"
    installed.mkdir()
    (installed / "code.py").write_text("1\n")
    assert environment.git_revision(installed) is None, "an untracked copy in a checkout"


def test_save_figure(tmp_path):
    save_figure(new_figure(2.0), tmp_path / "a.png")
    save_figure(new_figure(2.0), tmp_path / "a.pdf")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(ValueError):
        save_figure(new_figure(2.0), tmp_path / "a.nonsense")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pdf", "a.png"]
