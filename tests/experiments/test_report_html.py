"""The page of a run, and that of a folder of runs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from bad_calls import refuses
from matplotlib.figure import Figure

from experiments import artifacts
from experiments.artifacts import page as page_of_runs
from fsjax import report


def leave_run(folder: Path, accuracy: list[float]) -> Path:
    """Writes the files of a launcher that the page reads."""
    folder.mkdir(parents=True)
    config = {"method": {"name": "cae"}, "data": {"name": "<digits>"}, "seeds": (0, 1)}
    artifacts.write_config_json(
        config, folder / "config.json", "python -m experiments.run --a='<b>'"
    )
    result = {
        "method": "cae",
        "dataset": "<digits>",
        "num_features": 2,
        "selected": [[3, 5], [3, 8]],
        "metrics": {"embedded_accuracy": accuracy},
        "paper": {"embedded_accuracy": {"mean": 90.5, "std": 1.25, "source": "CAE, Table 1"}},
    }
    (folder / "result.json").write_text(json.dumps(result))
    return folder


def test_a_run(tmp_path: Path) -> None:
    folder = leave_run(tmp_path / "run", [80.0, 90.0])
    for name in ("curves", "selection"):
        figure = Figure()
        figure.subplots().plot([1, 2])
        report.save_figure(figure, folder / f"{name}.svg")
    page = artifacts.write_report(folder).read_text()
    # Student's interval of two values: 85 +- 12.706 x 5.
    for text in ("85.00", "21.47 to 148.53", "90.50 ± 1.25", "CAE, Table 1", "3 (2/2), 5 (1/2)"):
        assert text in page, text
    assert "&lt;digits&gt;" in page and "<digits>" not in page
    assert "python -m experiments.run --a=&#x27;&lt;b&gt;&#x27;" in page
    assert page.index("Training, epoch by epoch") < page.index("Selected columns")
    assert page.count("<svg ") == 2 and "<?xml" not in page


def test_a_sweep_names_all_its_numbers_of_columns() -> None:
    config = {"num_features": 3, "train": {"num_epochs": 7}}
    settings = [{"num_features": 2, "rate": 1}, {"num_features": 4, "rate": 1}]
    facts = dict.fromkeys(("device", "versions", "git_revision"))
    shown = page_of_runs._what(config, {"settings": settings}, facts)
    assert shown["columns selected"] == "2, 4" and shown["epochs"] == "7"


def test_a_folder_of_runs(tmp_path: Path) -> None:
    leave_run(tmp_path / "one", [80.0, 90.0])
    leave_run(tmp_path / "two", [70.0, 71.0])
    page = artifacts.write_report(tmp_path).read_text()
    assert "<a href='one/report.html'>" in page and "70.50" in page and "published" in page
    table = page_of_runs.metrics_table([{"method": "cae", "metrics": {"auc": [0.5, 0.6]}}])
    assert "0.55" in table and "published" not in table
    assert (tmp_path / "two" / "report.html").exists()


def test_a_folder_without_finished_runs_is_refused(tmp_path: Path) -> None:
    refuses(lambda: artifacts.write_report(tmp_path), "holds no finished run")
    folder = leave_run(tmp_path / "run", [80.0, 90.0])
    (folder / "result.json").rename(folder / "metrics.csv")
    refuses(lambda: artifacts.write_report(folder), "run holds an unfinished run; give its command")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *itertools.product(("config.json", "result.json"), (b"", b"[]", b'{"method": "c', b"\xff")),
        *itertools.product(("accuracy.csv",), (b"", b"\xff", b"a\n1,2,3\n1,2,3,4\n")),
    ],
)
def test_damaged_files_are_named(name: str, content: bytes, tmp_path: Path) -> None:
    folder = leave_run(tmp_path / "run", [80.0, 90.0])
    (folder / name).write_bytes(content)
    refuses(lambda: artifacts.write_report(folder), f"{folder / name} is damaged (")
