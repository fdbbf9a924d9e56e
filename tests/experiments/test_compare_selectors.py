"""The comparison of selectors: what runs, what is skipped, and what is written."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bad_calls import refuses

from experiments.studies import compare_selectors
from experiments.studies.selectors import publish
from experiments.studies.selectors.contenders import (
    CONTROLS,
    RIVALS,
    SELECTORS,
    task_of,
)
from experiments.studies.selectors.judge import judge
from experiments.studies.selectors.tables import MAX_ROWS, TABLES, read, split
from fsjax.auto.contest.rankers.parts import Part


@pytest.mark.slow
def test_rows_are_made_once_and_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The earlier CPU time of the process does not count.
    spent = compare_selectors.time.process_time
    monkeypatch.setattr(compare_selectors.time, "process_time", lambda: spent() + 1e4)
    path, names = tmp_path / "rows.csv", ["random columns", "F test", "FisherScore"]
    rows = compare_selectors.run(["wine"], names, path, 10.0, 60.0)
    assert len(rows) == 9 and rows["svm"].min() > 60
    best = rows.groupby("selector")["svm"].mean()
    assert best["F test"] > best["random columns"]

    def fail(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(compare_selectors, "measure", fail)
    again = compare_selectors.run(["wine"], names, path, 10.0, 60.0)
    assert again["svm"].tolist() == rows["svm"].tolist()
    assert len(compare_selectors.run(["wine"], [*names, "Lasso"], path, 0.0, 60.0)) == 9


def test_what_is_too_slow_is_skipped_on_larger_tables_too(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    tables = ["wine", "breast_cancer"]
    rows = compare_selectors.run(tables, ["F test", "Lasso", "RFE"], path, 10.0, 0.0)
    skipped = rows.set_index(["table", "selector", "split"])["skipped"]
    assert skipped["wine", "Lasso", 0] == ""
    assert skipped["wine", "Lasso", 1] == "more than 0 CPU seconds"
    assert skipped["breast_cancer", "RFE", 0] == "more than 0 CPU seconds"


def test_patience_is_for_larger_tables_but_not_for_other_splits() -> None:
    wine, digits = read("wine"), read("digits")
    line = {"table": "wine", "selector": "WAST", "cpu_seconds": 13.0, "cells": wine.X.size}
    rows = pd.DataFrame([line])
    for data, patience, skipped in ((digits, 0.0, True), (digits, 14.0, False), (wine, 14.0, True)):
        why = compare_selectors.reason("WAST", data, "classification", rows, 12.0, patience)
        assert bool(why) == skipped


def test_tasks_and_controls() -> None:
    rows = pd.DataFrame(columns=[*compare_selectors.COLUMNS, "cells"])
    numbers, wine, digits = read("diabetes"), read("wine"), read("digits")
    why = compare_selectors.reason
    assert why("FisherScore", numbers, "regression", rows, 9.0) == "not for regression"
    assert why("WAST", numbers, "regression", rows, 9.0) == ""
    assert why("RigL", wine, "classification", rows, 9.0) == ""
    assert "5000 cells" in why("RigL", digits, "classification", rows, 9.0)
    assert why("CTRESim", digits, "classification", rows, 9.0) == ""
    assert task_of("wast", "regression") == "reconstruction"
    assert task_of("lassonet", "regression") == "regression"


@pytest.mark.parametrize("name", ["wine+corrupted", "xor, 128", "diabetes", "digits"])
def test_tables_are_sampled_and_split(name: str) -> None:
    table, data = TABLES[name], read(name)
    assert len(data.y) <= MAX_ROWS and data.X.dtype == np.float32
    rows = split(data, table.task, 1)
    assert abs(len(rows.y_test) / len(data.y) - 0.3) < 0.01
    if table.kind == "generated":
        assert len(data.informative) == table.k
    if table.task == "classification":
        shares = [np.bincount(y) / len(y) for y in (rows.y, rows.y_test)]
        np.testing.assert_allclose(*shares, atol=0.02)
    assert judge(rows, table.task, np.arange(table.k)).svm < 100.0


@pytest.mark.parametrize("name", sorted(set(RIVALS) | set(CONTROLS) - {"all columns"}))
def test_rivals_find_the_columns_of_a_sum(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    y = (X[:, 3] + X[:, 7] > 0).astype(int)
    part = Part((X - X.mean(axis=0)) / X.std(axis=0), y)
    columns = SELECTORS[name](X, part, 2, "classification", 0)
    assert len(set(columns.tolist())) == 2
    assert name == "random columns" or set(columns.tolist()) == {3, 7}


def test_means_ranks_and_files(tmp_path: Path) -> None:
    rows = []
    names = {"random columns": 50.0, "all columns": 90.0, "F test": 70.0, "Lasso": 80.0}
    tables = ["wine", "digits", "wine+corrupted", "xor, 128", "ring, 128", "wine+second_order"]
    for table in [*tables, "diabetes"]:
        for place, (name, value) in enumerate(
            {**names, "WAST": 60.0, "STG": 85.0, "Dense": 95.0}.items()
        ):
            for seed in range(3):
                gone = name == "STG" and table == "digits" or name == "Dense" and table != "wine"
                rows.append(
                    {
                        "table": table, "selector": name, "split": seed, "k": 5,
                        "svm": np.nan if gone else value + seed,
                        "trees": np.nan if gone else value - seed,
                        "true": 0.5 if table == "xor, 128" else np.nan,
                        "cpu_seconds": np.nan if gone else 10.0 * place + seed,
                        "skipped": "more than 12 CPU seconds" if gone else "",
                    }
                )  # fmt: skip
    averages = publish.means(pd.DataFrame(rows).replace({"skipped": {"": np.nan}}))
    lasso = averages.set_index(["table", "selector"]).loc[("wine", "Lasso")]
    assert lasso["score"] == 80.0 and lasso["svm"] == 81.0 and lasso["trees"] == 79.0
    assert lasso["cpu_seconds"] == 30.0 and lasso["cpu_seconds_again"] == 31.5
    mean = publish.ranks(averages).mean
    # Six tables: all columns are no selection, and numbers have another measure. On the digits,
    # where it was skipped, STG is as good as random columns; Dense ran on too few tables.
    expected = {"STG": 9.5, "Lasso": 11.0, "F test": 17.0, "WAST": 23.0, "random columns": 29.5}
    assert (6 * mean).round(6).to_dict() == expected
    # 80 for Lasso on every table, 85 for STG but 50 on the digits.
    assert publish.best_simple(averages) == "Lasso"
    beside = publish.against(averages, "Lasso")
    assert beside["STG"].startswith("-0.8 (") and beside["WAST"].startswith("-20.0 (0.0")
    for folder in ("reproduction", "docs/tables", "docs/pictures"):
        (tmp_path / folder).mkdir(parents=True)
    begun = [{**rows[0], "table": "madelon"}]
    publish.write(pd.DataFrame(rows + begun), tmp_path)
    written = pd.read_csv(tmp_path / "reproduction" / "selectors.csv")
    assert len(written) == 7 * 7 and written["skipped"].notna().sum() == 7
    lines = (tmp_path / "docs" / "tables" / "selectors.md").read_text().splitlines()
    assert lines[2].startswith("| STG | 1.6 |") and len(lines) == 8
    assert lines[7].startswith("| Dense |  |")
    assert (tmp_path / "docs" / "pictures" / "ranks.png").stat().st_size > 5000


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    for tables, names, meant in ((["wne"], ["F test"], "wine"), (["wine"], ["Laso"], "Lasso")):
        run = partial(compare_selectors.run, tables, names, tmp_path / "rows.csv", 1.0, 1.0)
        refuses(run, f"did you mean '{meant}'")
