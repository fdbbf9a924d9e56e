"""Files of a header and arrays: a round trip, and files that are refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bad_calls import bad_calls, refuses

import fsjax
from fsjax.errors import ConfigError, DataError
from fsjax.storage.npz import VERSION, read, write


@bad_calls(
    ({}, {"a": np.array([object()])}, "'a' has the type object, which needs pickle"),
    ({}, {"header": np.zeros(2)}, "'header' is reserved"),
    ({}, {"file": np.zeros(2)}, "'file' is reserved"),
    ({}, {"sha256": np.zeros(2)}, "'sha256' is reserved"),
    ({"a": object()}, {}, "cannot be written as JSON"),
)
def test_what_needs_pickle_is_not_written(bad: tuple, tmp_path: Path) -> None:
    header, arrays, reason = bad
    path = tmp_path / "a"
    path.write_text("older")
    refuses(lambda: write(path, {"kind": "a", **header}, arrays), reason)
    assert path.read_text() == "older"


def _head(**changes: Any) -> np.ndarray:
    header = {"format": "fsjax", "version": VERSION, "kind": "result", "fsjax": "9.9", **changes}
    return np.frombuffer(json.dumps(header).encode(), np.uint8)


def _bytes(content: bytes) -> np.ndarray:
    return np.frombuffer(content, np.uint8)


@bad_calls(
    ({"x": np.zeros(2)}, "was not written by fsjax"),
    ({"header": np.zeros(2)}, "was not written by fsjax"),
    ({"header": _bytes(b"\xff{")}, "was not written by fsjax"),
    ({"header": _bytes(b"[" * 100_000)}, "was not written by fsjax"),
    ({"header": _bytes(b"[1]")}, "was not written by fsjax"),
    ({"header": _head(format="other")}, "was not written by fsjax"),
    ({"header": _head(version="4")}, "has version 4 of"),
    ({"header": _head(version=2)}, "has version 2 ", " by fsjax 9.9", "use that", "or fit again"),
    ({"header": _head(version=5)}, "has version 5 ", " by fsjax 9.9", " versions 3 to 4"),
    ({"header": _head()}, "damaged: its SHA-256 is wrong"),
    ({"header": _head(), "sha256": "0" * 64}, "damaged: its SHA-256 is wrong"),
)
def test_files_of_others_are_refused(bad: tuple, tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, **bad[0])
    refuses(lambda: read(path), "other.npz", *bad[1:])


def test_what_is_written_is_read(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b/c": np.array(["x", "yz"]), "d": np.array(True)}
    write(tmp_path / "new" / "a.v1", {"kind": "a", "more": [1, None]}, arrays)
    header, stored = read(tmp_path / "new" / "a.v1")
    assert header["kind"] == "a" and header["more"] == [1, None]
    assert (header["version"], header["fsjax"]) == (VERSION, fsjax.__version__)
    assert stored.keys() == arrays.keys()
    for name, values in arrays.items():
        assert stored[name].dtype == values.dtype
        np.testing.assert_array_equal(stored[name], values)
    with pytest.raises(ConfigError, match="new is a folder; give the name of a file"):
        write(tmp_path / "new", {"kind": "a"}, arrays)


def test_broken_files_are_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    many = {f"array {i}": rng.normal(size=(20, 30)) for i in range(10)}
    write(tmp_path / "whole", {"kind": "a"}, many)
    path, contents = tmp_path / "broken", (tmp_path / "whole").read_bytes()

    def refused(reason: str, content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"broken {reason}"):
            read(path)

    with pytest.raises(DataError, match="cannot be read: No such file"):
        read(path)
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read(tmp_path)
    refused("is not a complete npz file", b"")
    refused("is not a complete npz file", b"seed,accuracy\n0,99\n")
    for length in (10, len(contents) // 2, len(contents) - 1):
        refused("is not a complete npz file", contents[:length])
    middle = len(contents) // 4
    refused("is damaged|is not a c", contents[:middle] + bytes(50) + contents[middle + 50 :])
    end, table = contents.rindex(b"PK\x05\x06"), contents.index(b"PK\x01\x02")
    # A table of contents that begins with its last entry.
    last = contents.rindex(b"PK\x01\x02")
    where = (end - last).to_bytes(4, "little") + last.to_bytes(4, "little")
    refused("was not written by fsjax", contents[: end + 12] + where + contents[end + 20 :])
    refused("is not a complete", contents[:table] + bytes(8) + contents[table + 8 :])
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("header.npy", "not an array")
    with pytest.raises(DataError, match="was not written by fsjax"):
        read(path)


@pytest.mark.parametrize("change", ["value", "shape", "name", "missing", "added", "header"])
def test_another_content_is_damage(change: str, tmp_path: Path) -> None:
    """Checksums of the zip file do not see a file that was written again with other arrays."""
    path = tmp_path / "a.npz"
    write(path, {"kind": "a"}, {"x": np.arange(6.0), "y": np.zeros(2)})
    with np.load(path) as file:
        entries = dict(file)
    x, header = (
        entries.pop("x"),
        entries["header"].tobytes().replace(b'"kind": "a"', b'"kind": "b"'),
    )
    changed = {
        "value": {"x": x + (x == 3)},
        "shape": {"x": x.reshape(2, 3)},
        "name": {"z": x},
        "missing": {},
        "added": {"x": x, "z": x},
        "header": {"x": x, "header": np.frombuffer(header, np.uint8)},
    }[change]
    np.savez(path, **{**entries, **changed})
    with pytest.raises(DataError, match="a.npz is damaged: its SHA-256 is wrong"):
        read(path)


def test_arrays_that_are_too_large_are_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write(path, {"kind": "a"}, {"x": np.zeros(10**6)})
    assert path.stat().st_size < 20_000
    with pytest.raises(DataError, match=r"a.npz would take 7.6 MiB, but only .* \(max_bytes\)"):
        read(path, max_bytes=10**6)
    assert read(path, max_bytes=10**7)[1]["x"].shape == (10**6,)


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
    with pytest.raises(DataError, match="is damaged .Object arrays cannot be loaded"):
        read(path)
    assert not sprung.exists()
