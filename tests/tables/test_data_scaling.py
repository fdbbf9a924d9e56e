"""Scaling: the result of each kind, constant columns, and the papers' choice per data set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array

from fsjax import data
from fsjax.errors import ConfigError, DataError
from fsjax.tables.scaling import Scaler, apply, fit_scaler

tables = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 12), st.integers(1, 6)),
    elements=st.floats(-1e6, 1e6, width=32),
)


@settings(max_examples=60, deadline=None)
@given(
    X=tables, kind=st.sampled_from(["none", "minmax", "standard", "scalar", "scalar255", "unit255"])
)
def test_never_nan_and_constants_become_zero(X: np.ndarray, kind: str) -> None:
    if kind == "unit255":
        X = np.abs(X) + 2
    X = np.concatenate([X, np.full((len(X), 1), 7.3, np.float32)], axis=1)
    scaled = data.apply(data.fit_scaler(kind, X), X)
    assert scaled.dtype == np.float32 and scaled.shape == X.shape
    assert np.isfinite(scaled).all()
    if kind in ("minmax", "standard"):
        assert np.all(scaled[:, X.min(axis=0) == X.max(axis=0)] == 0)
    if kind == "minmax":
        assert scaled.min() >= 0 and scaled.max() <= 1 + 1e-5


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_standard_is_that_of_scikit_learn(dtype: type) -> None:
    from sklearn.preprocessing import StandardScaler

    X = np.random.default_rng(0).integers(0, 200, (5000, 7)).astype(dtype)
    before = X.copy()
    scaled = data.apply(data.fit_scaler("standard", X), X)
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(X.astype(float)), atol=1e-5)
    np.testing.assert_array_equal(X, before)


def test_scalar_is_one_mean_and_one_deviation() -> None:
    X = np.random.default_rng(0).normal(3, 2, (50, 4)).astype(np.float32)
    scaler = data.fit_scaler("scalar", X)
    assert scaler.shift.shape == scaler.scale.shape == ()
    np.testing.assert_allclose(
        data.apply(scaler, X), (X - X.mean()) / X.std(), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("far", [2020.0, -1e9])
def test_a_constant_far_from_all_other_values_does_not_count(far: float) -> None:
    """Otherwise the others would hardly vary; empty pixels are within the range and do count."""
    X = np.random.default_rng(0).normal(3, 2, (50, 5))
    X[:, 1] = 3.0
    expected = data.apply(data.fit_scaler("scalar", X), X)
    for table in (np.insert(X, 2, far, axis=1), csr_array(np.insert(X, 2, far, axis=1))):
        scaler = data.fit_scaler("scalar", table)
        scaled = data.apply(scaler, table if isinstance(table, np.ndarray) else table.toarray())
        np.testing.assert_allclose(np.delete(scaled, 2, axis=1), expected, rtol=1e-5, atol=1e-6)
        assert not scaled[:, 2].any()


def test_bytes_that_are_divided_after_their_mean_was_taken() -> None:
    X = np.random.default_rng(0).integers(0, 9, (50, 4)).astype(np.uint8)
    scaled = data.apply(data.fit_scaler("scalar255", X), X)
    np.testing.assert_allclose(scaled, (X / 255 - X.mean()) / X.std(), rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "mean", "std"),
    [("mnist", 0.1306, 0.3080), ("fashion_mnist", 0.2873, 0.3529), ("unit255", 0.0, 1.0)],
)
def test_fixed_pixel_scalings(kind: str, mean: float, std: float) -> None:
    X = np.array([[0, 128, 255]], np.uint8)
    expected = (X / 255 - mean) / std
    np.testing.assert_allclose(data.apply(data.fit_scaler(kind, X), X), expected, rtol=1e-5)


def test_a_column_constant_in_training_is_zero_in_test_rows() -> None:
    scaler = data.fit_scaler("standard", np.array([[1, 5], [2, 5]], np.float32))
    assert data.apply(scaler, np.array([[1, 9]], np.float32))[0, 1] == 0


@pytest.mark.parametrize("kind", ["minmax", "standard", "scalar", "scalar255"])
def test_spreads_too_small_for_float32_count_as_constant(kind: str) -> None:
    X = np.array([[0.0], [1e-44]], np.float32)
    assert np.isfinite(data.apply(data.fit_scaler(kind, X), X)).all()


@pytest.mark.parametrize("entries", [1, 4, 7, 30])
def test_blocks_change_nothing(entries: int, monkeypatch) -> None:
    X = np.random.default_rng(0).normal(2.0, 3.0, (9, 6)).astype(np.float32)
    scaler = fit_scaler("standard", X)
    expected = (X - np.float32(scaler.shift)) * np.float32(scaler.scale)
    monkeypatch.setattr("fsjax.tables.scaling._ENTRIES", entries)
    np.testing.assert_array_equal(apply(scaler, X), expected)
    column = Scaler(scaler.shift[2], scaler.scale[2])
    np.testing.assert_array_equal(apply(column, X[:, 2]), expected[:, 2])


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_large_offsets_are_taken_off_before_rounding(dtype: type) -> None:
    X = np.random.default_rng(0).integers(0, 100, (50, 3)).astype(dtype)
    for kind in ("standard", "minmax"):
        plain = data.apply(data.fit_scaler(kind, X), X)
        moved = data.apply(data.fit_scaler(kind, X + 1_700_000_000), X + 1_700_000_000)
        assert moved.dtype == np.float32
        np.testing.assert_allclose(moved, plain, rtol=1e-5, atol=1e-6)


def test_bad_requests() -> None:
    X = np.ones((2, 2), np.float32)
    with pytest.raises(ConfigError, match="did you mean 'standard'"):
        data.fit_scaler("standart", X)
    with pytest.raises(DataError, match="0 rows"):
        data.fit_scaler("minmax", X[:0])
    with pytest.raises(DataError, match="0 to 255"):
        data.fit_scaler("mnist", X)
