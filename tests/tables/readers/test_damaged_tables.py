"""Files with a wrong byte, and small files of huge tables, are refused before unpacking.

Covers ``fsjax.tables.readers.matlab``.
"""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
from marks import slow_ids

from fsjax.data import load
from fsjax.engine.environment import memory_limits as limits
from fsjax.errors import DataError
from fsjax.tables.datasets.files import FileForm, find_file
from fsjax.tables.readers.formats import plain
from fsjax.tables.readers.table_files import load_frame
from fsjax.tables.sparse import check_size
from fsjax.tables.sparse import dense as to_dense


def sparse_mat(path: Path) -> Path:
    """Write a sparse 6 x 5 table."""
    X = scipy.sparse.csc_matrix(np.eye(6, 5, dtype=np.float64))
    scipy.io.savemat(path, {"X": X, "Y": np.arange(6) % 2})
    return path


def test_a_sparse_table(tmp_path: Path) -> None:
    X = load(str(sparse_mat(tmp_path / "a.mat"))).X
    np.testing.assert_array_equal(X.toarray(), np.eye(6, 5))


@pytest.mark.parametrize(
    ("indices", "starts"),
    [((0, 1, 9), (0, 1, 2, 3)), ((0, 1, -2), (0, 1, 2, 3)), ((0, 1, 2), (0, 3, 2, 3))],
)
def test_a_damaged_matrix_is_not_unfolded(indices: tuple, starts: tuple) -> None:
    X = scipy.sparse.csr_matrix(np.eye(3, 4))
    X.indices, X.indptr = np.array(indices, np.int32), np.array(starts, np.int32)
    with pytest.raises(DataError, match="its sparse matrix is damaged"):
        to_dense(X)


def test_a_small_file_of_a_huge_dense_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda: 16 * 2**20)
    path = tmp_path / "a.libsvm"
    path.write_text("0 1:1 100000:1\n" + 39 * "1 5:1\n")
    with pytest.raises(DataError, match="a.libsvm: a dense table of 40 x 100,000 would take 15.3"):
        load(str(path), dense=True)
    assert load(str(path), dense=True, max_bytes=2**24).X.shape == (40, 100_000)
    assert load(str(path)).X.shape == (40, 100_000)
    path.write_text("0 1:1 50000:1\n" + 39 * "1 5:1\n")
    assert load(str(path), dense=True).X.shape == (40, 50000)
    check_size((2, 2**20), np.dtype(np.float32))
    with pytest.raises(DataError, match=r"8.0 MiB \(half of the free memory\) are allowed"):
        check_size((2, 2**20 + 1), np.dtype(np.float32))


def bomb(kind: str, path: Path) -> Path:
    """Write a small file whose contents would take 150 MB or more."""
    if kind == "libsvm":
        path.write_text("0 1:1 1999999999:1\n1 5:1\n")
    elif kind == "sparse mat":
        X = scipy.sparse.csc_matrix(([1.0], ([7], [3])), shape=(10**8, 20))
        scipy.io.savemat(path, {"X": X, "Y": np.arange(2)})
    elif kind == "packed mat":
        scipy.io.savemat(path, {"X": np.zeros((10**7, 2))}, do_compression=True)
    elif kind == "npz":
        np.savez_compressed(path, X=np.zeros((10**7, 2)))
    elif kind == "npz of a shape":
        scipy.sparse.save_npz(path, scipy.sparse.csc_matrix((10**8, 20)))
    else:
        pd.DataFrame({"a": np.zeros(2 * 10**7, np.int8)}).to_parquet(path)
    return path


@slow_ids("packed mat")
@pytest.mark.parametrize(
    "kind", ["libsvm", "sparse mat", "packed mat", "npz", "npz of a shape", "parquet"]
)
def test_a_small_file_is_not_unfolded(kind: str, tmp_path: Path) -> None:
    suffix = "npz" if "npz" in kind else kind.split()[-1]
    path = bomb(kind, tmp_path / f"a.{suffix}")
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    try:
        for read in (load, load_frame):
            with pytest.raises(DataError, match=r"100.0 MiB \(max_bytes\) are allowed"):
                read(str(path), target="a" if kind == "parquet" else None, max_bytes=100 * 2**20)
        # SciPy unpacks a block of the file before it tells the shape.
        assert tracemalloc.get_traced_memory()[1] < (300 if kind == "packed mat" else 50) * 2**20
    finally:
        tracemalloc.stop()


def test_a_frame_of_many_columns_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "a.libsvm"
    path.write_text("0 1:1 1000000:1\n1 5:1\n")
    with pytest.raises(DataError, match="as a frame of 1,000,000 columns, would take 1.9 GiB"):
        load_frame(str(path), max_bytes=2**30)


def test_a_packed_stream_is_unpacked_no_further_than_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda: 2**20)
    with pytest.raises(DataError, match="unpacked, it would take .* 512.0 KiB"):
        plain(gzip.compress(bytes(10**7)))
    assert plain(gzip.compress(bytes(1000))) == bytes(1000)


def mat_of_kinds(path: Path, packed: bool) -> Path:
    """Write a file with every kind of array of version 5."""
    X = scipy.sparse.random(12, 6, 0.4, format="csc", random_state=0)
    classes = np.array([["one"], ["two"]] * 6, dtype=object)
    others = {"note": "text", "more": {"a": 1}, "z": np.eye(2) + 1j}
    content = {"X": X, "Y": classes, **others}
    scipy.io.savemat(path, content, do_compression=packed)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_what_scipy_writes_is_read(packed: bool, tmp_path: Path) -> None:
    path = mat_of_kinds(tmp_path / "a.mat", packed)
    dataset = load(str(path))
    assert dataset.class_names == ("one", "two")
    np.testing.assert_allclose(dataset.X.toarray(), scipy.io.loadmat(path)["X"].toarray())
    with pytest.raises(DataError, match="'more' is not an array of numbers or text"):
        load(str(path), target="more")
    with pytest.raises(DataError, match="no array named 'Z'; it holds X, Y, note, more, z"):
        load(str(path), target="Z")


def test_a_big_endian_file(tmp_path: Path) -> None:
    values = np.arange(6.0)
    flags, shape = struct.pack(">IIII", 6, 8, 6, 0), struct.pack(">IIii", 5, 8, 3, 2)
    name = struct.pack(">HH4s", 1, 1, b"X")
    body = flags + shape + name + struct.pack(">II", 9, 48) + values.astype(">f8").tobytes()
    head = b"MATLAB 5.0".ljust(124) + struct.pack(">H2s", 0x0100, b"MI")
    path = tmp_path / "a.mat"
    path.write_bytes(head + struct.pack(">II", 14, len(body)) + body)
    np.testing.assert_array_equal(load(str(path)).X, values.reshape(2, 3).T)


def test_a_matlab_file_of_version_4(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    X, y = scipy.sparse.csc_array(np.eye(4, 3)), np.arange(4) % 2
    scipy.io.savemat(path, {"X": X, "Y": y, "more": np.eye(2)}, format="4")
    np.testing.assert_array_equal(load(str(path)).X.toarray(), np.eye(4, 3))
    with pytest.raises(DataError, match="no array named 'Z'; it holds X, Y, more"):
        load(str(path), target="Z")


def test_a_shape_in_a_head_that_hides_the_rest(tmp_path: Path) -> None:
    stored = io.BytesIO()
    np.savez(stored, X=np.random.default_rng(0).normal(size=(45, 25)), y=np.arange(45) % 2)
    data = bytearray(stored.getvalue())
    start = data.index(b"(45, 25)")
    data[start : start + 8] = b"(45, 24)"
    path = tmp_path / "a.npz"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"the checksum of 'X.npy' is wrong"):
        load(str(path))


@pytest.mark.slow
def test_a_long_text_that_a_file_holds_once(tmp_path: Path) -> None:
    long = pa.DictionaryArray.from_arrays(np.arange(2000) % 2, pa.array(["x" * 10**5, "y"]))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": np.arange(2000.0), "label": long}), path, store_schema=False)
    assert path.stat().st_size < 2**20
    with pytest.raises(DataError, match=r"with its texts would take 95.* 50.0 MiB \(max_bytes\)"):
        load_frame(str(path), target="label", max_bytes=50 * 2**20)
    frame, target, _, _ = load_frame(str(path), target="label")
    assert len(frame) == 2000 and set(map(len, target)) == {1, 10**5}


@pytest.mark.parametrize("kind", ["zip", "zip in a zip", "tar.gz"])
def test_an_archive_of_zeros_is_not_unpacked(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda: 2**20)
    path, member = tmp_path / f"a.{kind.split()[0]}", tmp_path / "a.bin"
    member.write_bytes(bytes(10**6))
    if kind == "tar.gz":
        with tarfile.open(path, "w:gz") as archive:
            archive.add(member, "a.bin")
    else:
        inner = tmp_path / "b.zip" if "in" in kind else member
        if inner is not member:
            with zipfile.ZipFile(inner, "w") as archive:
                archive.write(member, "a.bin")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(inner, inner.name)
    member.unlink()
    form = FileForm("file", lambda contents: contents, (("a.bin",),), folders=(path.name,))
    with pytest.raises(DataError, match=r"its files would take .* 512.0 KiB \(half of the free"):
        find_file("a", [form], [tmp_path], "its source")
