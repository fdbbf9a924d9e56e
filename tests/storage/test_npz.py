"""Files of a header and arrays: a round trip, and files that are refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fsjax
from fsjax.errors import ConfigError, DataError
from fsjax.storage.npz import VERSION, read, write


@pytest.mark.parametrize(
    ("header", "arrays", "reason"),
    [
        ({}, {"a": np.array([object()])}, "'a' has the type object, which needs pickle"),
        ({}, {"header": np.zeros(2)}, "'header' is reserved"),
        ({}, {"file": np.zeros(2)}, "'file' is reserved"),
        ({"a": object()}, {}, "cannot be written as JSON"),
    ],
)
def test_what_needs_pickle_is_not_written(
    header: dict, arrays: dict, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    path.write_text("older")
    with pytest.raises(ConfigError, match=reason):
        write(path, {"kind": "a", **header}, arrays)
    assert path.read_text() == "older"


def _head(**changes: Any) -> np.ndarray:
    header = {"format": "fsjax", "version": VERSION, "kind": "result", "fsjax": "9.9", **changes}
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"x": np.zeros(2)}, "it has no array 'header'"),
        ({"header": np.zeros(2)}, "its header is not JSON"),
        ({"header": np.frombuffer(b"\xff{", np.uint8)}, "its header is not JSON"),
        ({"header": np.frombuffer(b"[" * 100_000, np.uint8)}, "its header is not JSON"),
        ({"header": np.frombuffer(b"[1]", np.uint8)}, "another format"),
        ({"header": _head(format="other")}, "another format"),
        ({"header": _head(version="1")}, "version is '1'"),
        ({"header": _head(version=True)}, "version is True"),
        (
            {"header": _head(version=1)},
            "version 1 .* by fsjax 9.9, .*use that version, or fit again",
        ),
        ({"header": _head(version=VERSION + 1)}, "version 4 .* by fsjax 9.9; .*install a newer"),
    ],
)
def test_files_of_others_are_refused(entries: dict, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, **entries)
    with pytest.raises(DataError, match=reason):
        read(path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b/c": np.array(["x", "yz"]), "d": np.array(True)}
    write(tmp_path / "new" / "a.v1", {"kind": "a", "more": [1, None]}, arrays)
    header, stored = read(tmp_path / "new" / "a.v1")
    restored = {name: stored[name] for name in arrays}
    assert header["kind"] == "a" and header["more"] == [1, None]
    assert (header["version"], header["fsjax"]) == (VERSION, fsjax.__version__)
    assert stored.keys() == {*arrays, "header"}
    for name, values in arrays.items():
        assert restored[name].dtype == values.dtype
        np.testing.assert_array_equal(restored[name], values)
    with pytest.raises(ConfigError, match="new is a folder; give the name of a file"):
        write(tmp_path / "new", {"kind": "a"}, arrays)


def test_broken_files_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    many = {f"array {i}": rng.normal(size=(20, 30)) for i in range(10)}
    write(tmp_path / "whole", {"kind": "a"}, many)
    path, contents = tmp_path / "broken", (tmp_path / "whole").read_bytes()

    def refused(reason: str, content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(DataError, match=reason):
            dict(read(path)[1])

    with pytest.raises(DataError, match="cannot be read: No such file"):
        read(path)
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read(tmp_path)
    refused("not an npz file", b"")
    refused("not an npz file", b"seed,accuracy\n0,99\n")
    for length in (10, len(contents) // 2, len(contents) - 1):
        refused("incomplete", contents[:length])
    middle = len(contents) // 4
    refused("checksum of .array", contents[:middle] + bytes(50) + contents[middle + 50 :])
    end, table = contents.rindex(b"PK\x05\x06"), contents.index(b"PK\x01\x02")
    # A table of contents that begins with its last entry.
    last = contents.rindex(b"PK\x01\x02")
    where = (end - last).to_bytes(4, "little") + last.to_bytes(4, "little")
    shorter = contents[: end + 12] + where + contents[end + 20 :]
    refused("it has 1 of 11 entries", shorter)
    refused("is damaged", contents[:table] + bytes(8) + contents[table + 8 :])
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.npy", "no array")
    with pytest.raises(DataError, match="'header' cannot be read: it is not an array"):
        read(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.npz"
    write(path, {"kind": "a"}, {"x": np.zeros(2)})
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("x.npy", file.read("x.npy"))
    with pytest.raises(DataError, match="several entries with the same name"):
        read(path)


class _Trap:
    """An object that writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["header", "scores"])
def test_pickles_are_never_opened(name: str, tmp_path: Path) -> None:
    sprung, path = tmp_path / "sprung", tmp_path / "trap.npz"
    np.savez(path, **{"header": _head(), name: np.array([_Trap(sprung)], object)})
    with np.load(path, allow_pickle=True) as stored:
        stored[name]
    assert sprung.exists()
    sprung.unlink()
    with pytest.raises(DataError, match=f"'{name}' cannot be read: it is an array of objects"):
        dict(read(path)[1])
    assert not sprung.exists()
