"""Growing CSV tables: damaged rows are discarded, complete ones are kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments.launch import checksums, csv_rows
from experiments.launch.csv_rows import add_rows, read_rows
from experiments.studies import sparsify

ROWS = [{"method": "BinMask", "strength": 0.1 + i / 3, "accuracy": 90.25 + i} for i in range(4)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "accuracy.csv"
    table = add_rows(pd.DataFrame(), ROWS[:2], path)
    add_rows(table, ROWS[2:], path)
    return path


def test_whole_tables_are_read_without_a_warning(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pd.testing.assert_frame_equal(read_rows(path), pd.DataFrame(ROWS))
        assert read_rows(path.with_name("other.csv")).empty
        # Without checksums, or with damaged ones, tables are taken as they are.
        path.with_name(checksums.NAME).write_text("{")
        assert len(read_rows(path)) == 4
        path.with_name(checksums.NAME).unlink()
        assert len(read_rows(path)) == 4


def test_damaged_tables_are_not_used(path: Path) -> None:
    content, rng = path.read_bytes(), np.random.default_rng(0)
    damaged = [content[: len(content) // 2], b"", content + b"x", content[:-2]]
    for place in rng.permutation(len(content))[:60]:
        bit = 1 << int(rng.integers(8))
        damaged.append(content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :])
    for content in damaged:
        path.write_bytes(content)
        with pytest.warns(UserWarning, match="accuracy.csv is damaged"):
            assert read_rows(path).empty
    # The next rows repair it.
    add_rows(pd.DataFrame(), ROWS[:1], path)
    assert len(read_rows(path)) == 1


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b'a,b\n"1,2\n'])
def test_what_cannot_be_parsed_counts_as_damaged(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.with_name(checksums.NAME).unlink()
    with pytest.warns(UserWarning, match="accuracy.csv is damaged"):
        assert read_rows(path).empty


def test_a_kill_while_rows_are_added_loses_these_only(path: Path, monkeypatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(csv_rows, "write_text", killed)
        add_rows(read_rows(path), ROWS[:1], path)
    pd.testing.assert_frame_equal(read_rows(path), pd.DataFrame(ROWS))


@pytest.mark.parametrize("lost", ["layers", "sparsity"])
@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"method")])
@pytest.mark.filterwarnings("ignore:.*is damaged")
def test_settings_need_both_tables(tmp_path: Path, lost: str, harm: Callable) -> None:
    settings = [{"method": sparsify.BINMASK, "strength": value} for value in (0.1, 0.5)]
    dense = {"method": sparsify.DENSE, "strength": np.nan}
    for name, rows in (("layers", settings * 3), ("sparsity", [dense, *settings])):
        add_rows(pd.DataFrame(), rows, tmp_path / f"{name}.csv")
    tables = sparsify.read_tables(tmp_path)
    assert {name: len(table) for name, table in tables.items()} == {"layers": 6, "sparsity": 3}
    # A run that was killed before it wrote the second one.
    more = [*settings, {"method": sparsify.PROBMASK, "strength": 0.5}]
    add_rows(pd.DataFrame(), more, tmp_path / "layers.csv")
    assert len(sparsify.read_tables(tmp_path)["layers"]) == 2
    harm(tmp_path / f"{lost}.csv")
    tables = sparsify.read_tables(tmp_path)
    assert tables["layers"].empty
    assert list(tables["sparsity"].get("method", [])) == [sparsify.DENSE] * (lost == "layers")
