"""Tables that grow: what is damaged is not believed, what is whole is kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import sparsify
from experiments.launch import ledger
from experiments.launch.ledger import add_rows, read_table

ROWS = [{"method": "BinMask", "strength": 0.1 + i / 3, "accuracy": 90.25 + i} for i in range(4)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "accuracy.csv"
    table = add_rows(pd.DataFrame(), ROWS[:2], path)
    add_rows(table, ROWS[2:], path)
    return path


def test_whole_tables_are_read_without_a_word(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pd.testing.assert_frame_equal(read_table(path), pd.DataFrame(ROWS))
        # As versions without a seal left them.
        path.with_name("accuracy.csv.seal").unlink()
        assert len(read_table(path)) == 4
        assert read_table(path.with_name("other.csv")).empty


@pytest.mark.parametrize("name", ["accuracy.csv", "accuracy.csv.seal"])
def test_damaged_tables_are_told_and_not_believed(path: Path, name: str) -> None:
    file = path.with_name(name)
    whole, rng = file.read_bytes(), np.random.default_rng(0)
    damaged = [whole[: len(whole) // 2], b"", whole + b"x", whole[:-2]]
    for place in rng.permutation(len(whole))[:60]:
        bit = 1 << int(rng.integers(8))
        damaged.append(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
    for content in damaged:
        file.write_bytes(content)
        with pytest.warns(UserWarning, match="accuracy.csv is not what was written"):
            assert read_table(path).empty
    # What is written next is whole again.
    add_rows(pd.DataFrame(), ROWS[:1], path)
    assert len(read_table(path)) == 1


def test_a_kill_between_both_files_loses_the_last_rows_only(path: Path, monkeypatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(ledger, "write_text", killed)
        add_rows(read_table(path), ROWS[:1], path)
    pd.testing.assert_frame_equal(read_table(path), pd.DataFrame(ROWS))


@pytest.mark.parametrize("lost", ["layers", "sparsity"])
@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"method")])
@pytest.mark.filterwarnings("ignore:.*is not what was written")
def test_settings_need_both_tables(tmp_path: Path, lost: str, harm: Callable) -> None:
    settings = [{"method": sparsify.BINMASK, "strength": value} for value in (0.1, 0.5)]
    dense = {"method": sparsify.DENSE, "strength": np.nan}
    for name, rows in (("layers", settings * 3), ("sparsity", [dense, *settings])):
        add_rows(pd.DataFrame(), rows, tmp_path / f"{name}.csv")
    found = sparsify.read_tables(tmp_path)
    assert {name: len(table) for name, table in found.items()} == {"layers": 6, "sparsity": 3}
    # A run that was killed before it wrote the second one.
    more = [*settings, {"method": sparsify.PROBMASK, "strength": 0.5}]
    add_rows(pd.DataFrame(), more, tmp_path / "layers.csv")
    assert len(sparsify.read_tables(tmp_path)["layers"]) == 2
    harm(tmp_path / f"{lost}.csv")
    found = sparsify.read_tables(tmp_path)
    assert found["layers"].empty
    assert list(found["sparsity"].get("method", [])) == [sparsify.DENSE] * (lost == "layers")
