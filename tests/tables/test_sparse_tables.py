"""Sparse tables: canonical form, and the same statistics, scaling and errors as dense ones."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from fsjax.data import KINDS, Dataset, as_dataset, constant_columns, fit_scaler, load
from fsjax.errors import ConfigError, DataError
from fsjax.tables.checks import check_features
from fsjax.tables.scaling import apply, apply_sparse
from fsjax.tables.sparse import as_csr, as_frame, has_sparse_columns, joined_rows

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


def test_what_is_in_order_is_not_copied() -> None:
    matrix = sp.csr_array(random_table(0))
    assert np.shares_memory(as_csr(matrix).data, matrix.data)


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


@pytest.mark.parametrize("kind", [object, complex])
def test_what_is_no_real_number(kind: type) -> None:
    X = sp.csr_matrix(random_table(0))
    X.data = X.data.astype(kind)
    with pytest.raises(DataError, match="give real numbers"):
        as_csr(X)


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("bad", [-1, 1_000_000])
def test_indices_outside_the_table(form: str, bad: int) -> None:
    X = getattr(sp, f"{form}_matrix")(random_table(0))
    X.indices = X.indices.copy()
    X.indices[2] = bad
    with pytest.raises(DataError, match="sparse matrix is damaged"):
        as_csr(X)


@pytest.mark.parametrize("bad", [-1, 1_000_000])
@pytest.mark.parametrize("axis", ["row", "col"])
def test_coordinates_outside_the_table(axis: str, bad: int) -> None:
    X = sp.coo_matrix(random_table(0))
    getattr(X, axis)[2] = bad
    with pytest.raises(DataError, match=rf"{axis}.* indices from .*{bad}"):
        as_csr(X)


def test_other_dimensions_and_sizes() -> None:
    with pytest.raises(DataError, match="rows, columns"):
        as_csr(sp.coo_array(np.ones(3)))
    with pytest.raises(DataError, match="at most"):
        as_csr(sp.csr_array((1, 2**31)))
    with (
        mock.patch("fsjax.tables.sparse.MAX_SIZE", 10),
        pytest.raises(DataError, match="non-zeros"),
    ):
        as_csr(sp.csr_array(np.ones((4, 4))))


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


def test_a_data_set_takes_any_sparse_form() -> None:
    dataset = Dataset("mine", sp.coo_matrix(random_table(0)), None)
    assert isinstance(dataset.X, sp.csr_array)
    assert (dataset.num_samples, dataset.num_features) == (30, 8)


def test_targets_have_to_be_dense_and_as_many() -> None:
    X = sp.csr_array(random_table(0))
    with pytest.raises(ConfigError, match="y is a sparse matrix"):
        as_dataset(X, sp.csr_array(np.ones((30, 1))))
    with pytest.raises(ConfigError, match="X has 30 rows but y has 3"):
        as_dataset(X, np.arange(3))


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
    with pytest.raises(DataError, match=r"a\.npz"):
        load(str(path))
    np.savez(path, format=b"lil", **parts)
    with pytest.raises(
        DataError, match="its sparse matrix has the format 'lil'; save a CSR matrix"
    ):
        load(str(path))


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
    with pytest.raises(ConfigError, match="no option 'dense'"):
        load("digits", dense=True)
    with pytest.raises(ConfigError, match="dense='yes'"):
        load(str(files[0]), dense="yes")
    with pytest.raises(DataError, match=r"1,000 bytes \(max_bytes\) are allowed"):
        load(str(files[0]), dense=True, max_bytes=1_000)


def test_rows_are_joined_in_one_form() -> None:
    X = random_table(0)
    sparse = sp.csr_array(X)
    names = ("X", "validation_data")
    np.testing.assert_array_equal(joined_rows(X, X[:2], names), np.concatenate([X, X[:2]]))
    rows = joined_rows(sparse, sparse[:2], names)
    np.testing.assert_array_equal(rows.toarray(), np.concatenate([X, X[:2]]))
    with pytest.raises(DataError, match="X is sparse and validation_data is dense"):
        joined_rows(sparse, X, names)
    with pytest.raises(DataError, match="validation_data is sparse and X is dense"):
        joined_rows(X, sparse, names)


def test_frames_of_both_forms_are_equal() -> None:
    X = random_table(0)
    frames = [as_frame(table, list("abcdefgh")) for table in (X, sp.csr_array(X))]
    assert has_sparse_columns(frames[1]) and not has_sparse_columns(frames[0])
    np.testing.assert_array_equal(frames[1].to_numpy(), frames[0].to_numpy())
