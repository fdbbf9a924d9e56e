"""Sparse tables: canonical form, and the same statistics, scaling and errors as dense ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from bad_calls import bad_calls, refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from fsjax.data import KINDS, as_dataset, constant_columns, fit_scaler, load
from fsjax.errors import DataError
from fsjax.tables.checks import check_features
from fsjax.tables.scaling import apply, apply_sparse
from fsjax.tables.sparse import as_csr, joined_rows

FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")


def random_table(seed: int, rows: int = 30, columns: int = 8, kind: type = np.float64):
    rng = np.random.default_rng(seed)
    X = np.round(9 * rng.normal(size=(rows, columns))) * (rng.random((rows, columns)) < 0.4)
    X[:, 0], X[:, 1], X[3] = 0, 5, 0
    return X.astype(kind)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("container", ["matrix", "array"])
def test_every_form_of_scipy_is_the_same_table(form: str, container: str) -> None:
    X = random_table(0)
    matrix = getattr(sp, f"{form}_{container}")(X)
    rows = as_csr(matrix)
    assert isinstance(rows, sp.csr_array)
    assert rows.has_canonical_format
    assert rows.indices.dtype == np.int32
    np.testing.assert_array_equal(rows.toarray(), X)
    assert rows.data.all()


def test_duplicates_are_summed_and_the_user_keeps_his_matrix() -> None:
    matrix = sp.csr_matrix(([1.0, 2.0, 4.0, 0.0], [1, 1, 0, 1], [0, 3, 4]), shape=(2, 2))
    rows = as_csr(matrix)
    np.testing.assert_array_equal(rows.toarray(), [[4, 3], [0, 0]])
    assert rows.nnz == 2
    assert matrix.nnz == 4
    # A wrong flag is ignored.
    matrix.has_canonical_format = True
    np.testing.assert_array_equal(as_csr(matrix).toarray(), [[4, 3], [0, 0]])


def test_indices_of_64_bits() -> None:
    matrix = sp.csr_array(random_table(0))
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    rows = as_csr(matrix)
    assert rows.indices.dtype == rows.indptr.dtype == np.int32
    np.testing.assert_array_equal(rows.toarray(), matrix.toarray())


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.int64, bool, np.float32])
def test_other_types_of_numbers(kind: type) -> None:
    X = random_table(1).astype(kind)
    np.testing.assert_array_equal(as_csr(sp.csr_matrix(X)).toarray(), X.astype(np.float64))


def test_truth_values_twice_are_no_overflow() -> None:
    twice = sp.coo_array((np.ones(2, bool), ([0, 0], [1, 1])), shape=(1, 2))
    assert as_csr(twice).data.tolist() in ([1], [2])


def changed(form: str, part: str, value: Any) -> Any:
    """A sparse table, one entry or the type of one of whose arrays is changed."""
    matrix = getattr(sp, f"{form}_matrix")(random_table(0))
    array = getattr(matrix, part)
    array = array.astype(value) if isinstance(value, type) else array.copy()
    if not isinstance(value, type):
        array[2] = value
    setattr(matrix, part, array)
    return matrix


@bad_calls(
    (changed("csr", "data", object), "give real numbers"),
    (changed("csr", "data", complex), "give real numbers"),
    (changed("csr", "indices", -1), "sparse matrix is damaged"),
    (changed("csc", "indices", 1_000_000), "sparse matrix is damaged"),
    (changed("coo", "row", -1), "row", " indices from -1"),
    (changed("coo", "col", 1_000_000), "column indices from", "1000000"),
    (sp.coo_array(np.ones(3)), "(rows, columns)"),
    (sp.csr_array((1, 2**31)), "at most"),
    (sp.csr_array(np.ones((400, 4))), "non-zeros"),
)
def test_bad_calls(bad: tuple, monkeypatch) -> None:
    monkeypatch.setattr("fsjax.tables.sparse.MAX_SIZE", 1000 if "zeros" in bad[1] else 2**31 - 1)
    refuses(lambda: as_csr(bad[0]), *bad[1:])


def test_targets_are_dense_and_as_many() -> None:
    X = sp.csr_array(random_table(0))
    refuses(lambda: as_dataset(X, sp.csr_array(np.ones((30, 1)))), "y is a sparse matrix")
    refuses(lambda: as_dataset(X, np.arange(3)), "X has 30 rows but y has 3")


@pytest.mark.parametrize(("bad", "fault"), [(np.nan, "missing"), (np.inf, "infinite")])
def test_values_that_are_not_finite_are_told_by_column(bad: float, fault: str) -> None:
    X = random_table(0)
    X[4, 6] = bad
    for table in (X, sp.csr_array(X)):
        with pytest.raises(DataError, match=rf"1 {fault} .* 1 of 8 columns: 'six'"):
            check_features(table, [*"abcdef", "six", "seven"], "X")


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), single=st.booleans())
@settings(max_examples=60, deadline=None)
def test_scaling_is_that_of_the_dense_table(seed: int, kind: str, single: bool) -> None:
    X = random_table(seed, kind=np.float32 if single else np.int32)
    sparse = as_csr(sp.csr_matrix(X))
    dense_scaler, sparse_scaler = fit_scaler(kind, X), fit_scaler(kind, sparse)
    for expected, actual in zip(dense_scaler, sparse_scaler, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)
    values, base = apply_sparse(dense_scaler, sparse)
    dense = np.tile(base, (len(X), 1))
    dense[sp.coo_array(sparse).coords] = values
    np.testing.assert_array_equal(dense, apply(dense_scaler, X))
    np.testing.assert_array_equal(constant_columns(sparse), constant_columns(X))


def test_maxabs_keeps_zeros_and_signs() -> None:
    scaler = fit_scaler("maxabs", np.array([[0.0, -4.0, 2.0], [1.0, 2.0, 2.0]]))
    scaled = apply(scaler, np.array([[0.0, -4.0, 2.0], [2.0, 2.0, 3.0]]))
    np.testing.assert_array_equal(scaled, [[0, -1, 0], [2, 0.5, 0]])


def test_frames_with_sparse_columns() -> None:
    X = random_table(2)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    sparse = frame.astype(pd.SparseDtype(float, 0.0))
    mixed = sparse.assign(c=frame["c"], b=pd.arrays.SparseArray(X[:, 1], fill_value=5.0))
    mixed["a"] = pd.arrays.SparseArray(X[:, 0].astype(bool), fill_value=False)
    for variant in (sparse, mixed):
        dataset = as_dataset(variant, np.arange(30) % 2)
        assert isinstance(dataset.X, sp.csr_array)
        assert dataset.feature_names == tuple("abcdefgh")
        np.testing.assert_array_equal(dataset.X.toarray(), X)
    holes = frame.assign(d=pd.arrays.SparseArray([np.nan] * 29 + [1.0]))
    with pytest.raises(DataError, match=r"29 missing values .*'d'"):
        check_features(as_dataset(holes).X, list(frame), "X")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Write a sparse table with labels in every supported file format."""
    X, y = random_table(3), np.arange(30) % 2
    paths = [tmp_path / name for name in ("a.libsvm", "a.svm", "a.txt", "a.mat", "a.npz")]
    for path in paths[:3]:
        dump_svmlight_file(X, y, str(path), zero_based=False)
    scipy.io.savemat(paths[3], {"X": sp.csc_matrix(X), "Y": y})
    sp.save_npz(paths[4], sp.csr_array(X))
    return paths


def test_sparse_files_stay_sparse(files: list[Path]) -> None:
    for path in files:
        dataset = load(str(path))
        assert isinstance(dataset.X, sp.csr_array), path
        assert dataset.X.dtype == np.float32
        X = random_table(3)
        np.testing.assert_array_equal(dataset.X.toarray(), X)
        assert (dataset.y is None) == (path.suffix == ".npz")
        np.testing.assert_array_equal(load(str(path), dense=True).X, X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_what_save_npz_writes(form: str, tmp_path: Path) -> None:
    X = random_table(3)
    for kind in ("array", "matrix"):
        sp.save_npz(tmp_path / "a.npz", getattr(sp, f"{form}_{kind}")(X))
        np.testing.assert_array_equal(load(str(tmp_path / "a.npz")).X.toarray(), X)


def test_a_target_in_the_archive_of_save_npz(tmp_path: Path) -> None:
    X, path = sp.csr_array(random_table(3)), tmp_path / "a.npz"
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    np.savez(path, format=b"csr", y=np.arange(30) % 3, **parts)
    assert load(str(path)).num_classes == 3
    assert load(str(path), target="y").num_classes == 3
    damaged = X.indices.copy()
    damaged[5] = -3
    np.savez(path, format=b"csr", **parts | {"indices": damaged})
    refuses(lambda: load(str(path)), "a.npz")
    np.savez(path, format=b"lil", **parts)
    refuses(lambda: load(str(path)), "format 'lil'; save a CSR matrix")


@pytest.mark.parametrize("rule", ["mean", "median"])
def test_missing_values_of_sparse_files_are_filled(rule: str, tmp_path: Path) -> None:
    X = random_table(3)
    X[[2, 7], [4, 5]] = np.nan
    path, dense = tmp_path / "a.npz", tmp_path / "b.npz"
    sp.save_npz(path, sp.csr_array(X))
    np.savez(dense, X=X)
    with pytest.raises(DataError, match="2 missing values"):
        load(str(path))
    imputed = load(str(path), impute=rule).X
    assert isinstance(imputed, sp.csr_array)
    np.testing.assert_allclose(imputed.toarray(), load(str(dense), impute=rule).X, rtol=1e-6)


def test_the_option_dense_is_for_own_tables(files: list[Path]) -> None:
    refuses(lambda: load("digits", dense=True), "no option 'dense'")
    refuses(lambda: load(str(files[0]), dense="yes"), "dense='yes'")
    refuses(lambda: load(str(files[0]), dense=True, max_bytes=1_000), "(max_bytes) are allowed")


def test_rows_are_joined_in_one_form() -> None:
    X = random_table(0)
    sparse = sp.csr_array(X)
    names = ("X", "validation_data")
    np.testing.assert_array_equal(joined_rows(X, X[:2], names), np.concatenate([X, X[:2]]))
    rows = joined_rows(sparse, sparse[:2], names)
    np.testing.assert_array_equal(rows.toarray(), np.concatenate([X, X[:2]]))
    refuses(lambda: joined_rows(sparse, X, names), "X is sparse and validation_data is dense")
    refuses(lambda: joined_rows(X, sparse, names), "validation_data is sparse and X is dense")
