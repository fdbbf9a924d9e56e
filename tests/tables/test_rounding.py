"""Numbers whose differences float32 does not hold, in ``fsjax.tables.rounding``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fsjax
from fsjax.errors import DataError
from fsjax.tables.rounding import single_or_double

METHOD = fsjax.methods.neural_network()
OFFSETS = {0.0: np.float32, 1e3: np.float32, 1e8: np.float64, 1.7e9: np.float64}


@pytest.mark.parametrize(("offset", "expected"), OFFSETS.items())
@pytest.mark.parametrize("shape", [(60,), (30, 2)])
def test_numbers_are_float64_only_where_float32_is_too_coarse(offset, expected, shape) -> None:
    values = offset + np.random.default_rng(0).normal(size=shape)
    assert single_or_double(values).dtype == expected


def test_a_target_beyond_float32_is_refused() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(DataError, match="values up to .*, beyond the range of float32; scale it"):
        fsjax.fit(METHOD, (X, 1e39 * X[:, 0]), num_features=1, task="regression")


def test_a_target_from_a_file_keeps_its_digits_and_fit_says_what_to_do(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), 1.7e9 + rng.normal(size=60)
    path = tmp_path / "table.csv"
    np.savetxt(path, np.column_stack([X, y]), "%.17g", ",", header="a,b,c,y", comments="")
    data = fsjax.data.load_table(path, target="y")
    np.testing.assert_array_equal(data.y, y)
    with pytest.raises(DataError, match="float32 is too coarse for the target .* its mean"):
        fsjax.fit(METHOD, data, num_features=1, task="regression")
