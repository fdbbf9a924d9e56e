"""What the flags of ``fsjax select`` hand to ``fsjax.select``, which is replaced here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls

import fsjax.auto
from fsjax import __main__ as cli
from fsjax.__main__ import main


@pytest.fixture
def calls(tmp_path, monkeypatch) -> list[dict[str, Any]]:
    """The calls of ``select``; the command runs in a folder with a table."""
    monkeypatch.chdir(tmp_path)
    days = pd.date_range("2024-01-20", periods=20, freq="D")
    frame = pd.DataFrame(
        {
            "a": np.arange(20) / 2,
            "b": np.arange(20.0) ** 2,
            "c": np.arange(20.0) ** 3,
            "day": days.strftime("%d.%m.%Y"),
            "site": np.repeat(["x", "y", "z", None], 5),
            "y": np.resize(["p", "q"], 20),
        }
    )
    shuffled = frame.iloc[np.random.default_rng(0).permutation(20)]
    shuffled.to_csv("t.csv", index=False, sep=";", decimal=",")
    calls_made: list[dict[str, Any]] = []

    def select(X: pd.DataFrame, y: np.ndarray, **options: Any) -> SimpleNamespace:
        calls_made.append({"X": X, "y": y, **options})
        return SimpleNamespace(seconds=1.0, stopped=False)

    monkeypatch.setattr(fsjax.auto, "select", select)
    return calls_made


def test_the_order_of_dates_separators_and_their_notes(calls, capsys, monkeypatch) -> None:
    monkeypatch.setattr(cli, "seconds_since_process_start", lambda: 1e4)
    assert main(["select", "t.csv", "--target=y", "--order=day", "--drop=site"]) == 0
    (call,) = calls
    np.testing.assert_array_equal(call["X"]["a"], np.arange(20) / 2)
    np.testing.assert_array_equal(call["y"], np.resize(["p", "q"], 20))
    assert list(call["X"].columns) == ["a", "b", "c"] and call["ordered"] is True
    assert call["origin"].command == "fsjax select t.csv --target=y --order=day --drop=site"
    assert [note.kind for note in call["origin"].notes] == ["file", "file"]
    assert (call["origin"].source, call["origin"].target) == ("t.csv", "y")
    # Reading the table counts; within another program its age does not.
    assert 0.0 < call["origin"].elapsed < 1e4
    out = capsys.readouterr().out
    assert "t.csv: its columns are separated by ';', not ','" in out
    assert "t.csv: its numbers have decimal commas" in out
    # What was not asked for is left to select.
    assert not {"keep", "judge", "costs", "metric", "row_groups", "task"} & set(call)


def test_flags_that_are_handed_on(calls) -> None:
    # Columns that other flags take out may have costs.
    Path("costs.csv").write_text("column,cost\na,2\nb,0.5\nday,3\nsite,4\ny,1\n")
    flags = "--keep=a,b --drop=day,site --judge=trees --metric=auc --costs=costs.csv --fdr=0.1"
    assert main(["select", "t.csv", "--target=y", *flags.split()]) == 0
    (call,) = calls
    assert call["keep"] == ["a", "b"] and call["judge"] == "trees" and call["metric"] == "auc"
    assert call["costs"] == {"a": 2.0, "b": 0.5} and call["fdr"] == 0.1
    assert list(call["X"].columns) == ["a", "b", "c"]


def test_named_separator_and_decimal(calls) -> None:
    flags = ["--separator=;", "--decimal=."]
    assert main(["select", "t.csv", "--target=y", *flags]) == 0
    (call,) = calls
    assert isinstance(call["X"]["a"].iloc[0], str) and call["origin"].notes == ()


@bad_calls(
    ("--groups=site", "groups: column 'site' has no value in 5 of 20 rows"),
    ("--order=site", "order: column 'site' has no value in 5 of 20 rows"),
    ("--keep=aa", "--keep=aa: "),
    ("--keep=a --drop=a,b", "--keep=a: --drop names this column"),
    ("--groups=y", "--groups=y: --target names this column"),
    ("--order=day --groups=day", "--order=day: --groups names this column"),
    ("--groups=dax --drop=dax", "--groups=dax: did you mean 'day'?"),
    ("--drop=a,b,c,day,site", "--drop names all columns"),
    ("--separator=ab", "separator='ab'; give one character"),
    ("--decimal=x", "decimal='x'; choose"),
    ("--costs=none.csv", "none.csv cannot be read"),
    ("name,cost\na,1\n", "two, called column and cost"),
    ("column,cost\na,1\na,2\n", "names 'a' twice"),
    ("column,cost\na,-1\n", "not a number above 0"),
    ("column,cost\na,much\n", "not a number above 0"),
    ("", "is empty"),
)
def test_mistakes(calls, capsys, bad) -> None:
    flags, message = bad
    if not flags.startswith("--"):
        Path("costs.csv").write_text(flags)
        flags = "--costs=costs.csv"
    assert main(["select", "t.csv", "--target=y", *flags.split()]) == 2
    output = capsys.readouterr().err.strip()
    assert message in output and output.count("\n") == 0 and not calls
