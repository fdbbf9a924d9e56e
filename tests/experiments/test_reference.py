"""``experiments.reference`` and ``experiments.papers.packages``, with a fake package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from absl.flags import FLAGS
from absl.testing import flagsaver
from launcher import temporary_flags
from ml_collections import ConfigDict

from experiments.papers import packages, reference
from experiments.papers.cells import cells_of
from experiments.papers.packages import Package, Problem
from fsjax.data import load
from fsjax.errors import ConfigError
from fsjax.evaluation import svm_accuracy
from fsjax.tasks.split_protocols import make_split


def by_variance(problem: Problem) -> dict[int, np.ndarray]:
    order = np.argsort(-problem.x.var(0), kind="stable")
    return {k: order[:k] for k in problem.ks}


def test_columns_are_selected_and_judged_on_the_rows_of_the_protocol() -> None:
    dataset = load("digits")
    split = make_split(dataset, "wast", valid_fraction=0.1)
    seen: list[Problem] = []

    def select(problem: Problem) -> dict[int, np.ndarray]:
        seen.append(problem)
        return by_variance(problem)

    config = ConfigDict({"data": {"scaling": "none"}, "method": {"penalty": 0.3}})
    package = Package("numpy", "select(X)", select)
    values, _ = reference.judged(package, dataset, split, config, [5, 10], [3, 4])
    rows = np.sort(np.concatenate([split.train, split.valid]))
    assert [problem.seed for problem in seen] == [3, 4]
    np.testing.assert_array_equal(seen[0].x, dataset.X[rows])
    np.testing.assert_array_equal(seen[0].y, dataset.y[rows])
    assert seen[0].settings["penalty"] == 0.3
    columns = by_variance(seen[0])
    for k in (5, 10):
        assert values[k] == [svm_accuracy(dataset, split, columns[k])] * 2
    assert values[5][0] < values[10][0]


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(ConfigError, match="no-such-package is not installed"):
        _ = Package("no-such-package", "", by_variance).version


def test_cells_of_a_training_are_accuracies_without_options() -> None:
    by_training = reference.cells_by_training(cells_of("wast"))
    ks = {cell.row.num_features for cell in by_training["fisher_score", "isolet"]}
    assert ks == {25, 50, 75, 100, 150, 200}
    assert all(not cell.row.options for cells in by_training.values() for cell in cells)


@pytest.fixture
def defined_flags() -> Iterator[None]:
    with temporary_flags():
        reference.define_flags()
        yield


def test_what_is_in_the_table_is_not_run_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    defined_flags: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs: list[int] = []

    def select(problem: Problem) -> dict[int, np.ndarray]:
        runs.append(problem.seed)
        return by_variance(problem)

    package = Package("numpy", "by_variance(X)", select, random=True)
    monkeypatch.setitem(packages.PACKAGES, "fisher_score", package)
    monkeypatch.setattr(reference, "load_data", lambda config: load("digits"))
    path = tmp_path / "reference.csv"
    FLAGS.mark_as_parsed()
    with flagsaver.flagsaver(
        method=["fisher_score"], datasets=["isolet"], seeds=2, largest=50, results=str(path)
    ):
        reference.main()
        assert runs == [0, 1]
        reference.main()
        assert runs == [0, 1]
    table = reference.read_reference(path)
    # Tables 2 and 6 both have K = 50.
    assert sorted(table["setting"]) == ["K=25", "K=50", "K=50"]
    assert set(table["code"]) == {"numpy"} and set(table["seeds"]) == {2}
    assert "fisher_score, isolet: K=25" in capsys.readouterr().out
    pd.DataFrame({"paper": []}).to_csv(path)
    with pytest.raises(ConfigError, match="another version"):
        reference.read_reference(path)
