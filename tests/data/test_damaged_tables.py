"""Files with one wrong byte, and small files of huge tables: refused before they are unfolded."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from fsjax.data import dense, load
from fsjax.data.dense import check_size
from fsjax.data.dense import dense as to_dense
from fsjax.errors import DataError


def sparse_mat(path: Path, damage: tuple[tuple[int, ...], tuple[int, ...]] | None = None) -> Path:
    """A sparse table of 6 x 5; five numbers in a row of the file may be others."""
    X = scipy.sparse.csc_matrix(np.eye(6, 5, dtype=np.float64))
    scipy.io.savemat(path, {"X": X, "Y": np.arange(6) % 2})
    if damage:
        before, after = (struct.pack(f"<{len(one)}i", *one) for one in damage)
        data = path.read_bytes()
        assert data.count(before) >= 1
        path.write_bytes(data.replace(before, after, 1))
    return path


def test_a_sparse_table(tmp_path: Path) -> None:
    found = load(str(sparse_mat(tmp_path / "a.mat"))).X
    np.testing.assert_array_equal(found.toarray(), np.eye(6, 5))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((0, 1, 2, 3, 4), (0, 1, 2, 3, 1_000_000)),
        ((0, 1, 2, 3, 4), (0, 1, 2, 3, -7)),
        ((0, 1, 2, 3, 4, 5), (0, 1, 2, 9, 4, 5)),
    ],
)
def test_indices_beyond_the_table_are_refused(before: tuple, after: tuple, tmp_path: Path) -> None:
    path = sparse_mat(tmp_path / "a.mat", (before, after))
    with pytest.raises(DataError, match="a.mat"):
        load(str(path))


@pytest.mark.parametrize(
    ("indices", "starts"),
    [((0, 1, 9), (0, 1, 2, 3)), ((0, 1, -2), (0, 1, 2, 3)), ((0, 1, 2), (0, 3, 2, 3))],
)
def test_a_damaged_matrix_is_not_unfolded(indices: tuple, starts: tuple) -> None:
    X = scipy.sparse.csr_matrix(np.eye(3, 4))
    X.indices, X.indptr = np.array(indices, np.int32), np.array(starts, np.int32)
    with pytest.raises(DataError, match="its sparse matrix is damaged"):
        to_dense(X)


def test_a_small_file_of_a_huge_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "memory", lambda: 2**20)
    path = tmp_path / "a.libsvm"
    path.write_text("0 1:1 100000:1\n1 5:1\n")
    with pytest.raises(DataError, match="dense table of 2 x 100,000 it would need"):
        load(str(path), dense=True)
    assert load(str(path)).X.shape == (2, 100_000)
    path.write_text("0 1:1 50000:1\n1 5:1\n")
    assert load(str(path), dense=True).X.shape == (2, 50000)
    check_size((2, 65536), np.dtype(np.float32))
    with pytest.raises(DataError, match="half of this machine's memory"):
        check_size((2, 65537), np.dtype(np.float32))


def test_a_shape_in_a_head_that_hides_the_rest(tmp_path: Path) -> None:
    stored = io.BytesIO()
    np.savez(stored, X=np.random.default_rng(0).normal(size=(45, 25)), y=np.arange(45) % 2)
    data = bytearray(stored.getvalue())
    at = data.index(b"(45, 25)")
    data[at : at + 8] = b"(45, 24)"
    path = tmp_path / "a.npz"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"the checksum of 'X.npy' does not fit"):
        load(str(path))


def test_every_byte_of_a_member_counts(tmp_path: Path) -> None:
    whole = io.BytesIO()
    X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    np.savez(whole, X=X, y=np.arange(12) % 2)
    with zipfile.ZipFile(whole) as archive:
        info = archive.getinfo("X.npy")
    name, extra = struct.unpack("<HH", whole.getvalue()[info.header_offset + 26 :][:4])
    start = info.header_offset + 30 + name + extra
    for at in range(start, start + info.file_size, 7):
        data = bytearray(whole.getvalue())
        data[at] ^= 16
        path = tmp_path / "a.npz"
        path.write_bytes(data)
        with pytest.raises(DataError, match="does not fit"):
            load(str(path))
