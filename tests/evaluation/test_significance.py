"""The Kolmogorov-Smirnov test against its exact small-sample values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsjax.errors import ConfigError
from fsjax.evaluation import KSResult, ks_matrix, ks_test
from fsjax.evaluation.significance import smallest_pvalue

SAMPLES = st.lists(st.floats(0, 100), min_size=2, max_size=8)


@pytest.mark.parametrize(("n", "pvalue"), [(5, 0.0079), (4, 0.0286), (3, 0.1)])
def test_samples_that_do_not_overlap(n: int, pvalue: float) -> None:
    found = ks_test(np.arange(n), np.arange(n) + 50.0)
    assert found.statistic == 1.0
    assert found.pvalue == pytest.approx(pvalue, abs=5e-5)
    assert found.pvalue == pytest.approx(smallest_pvalue(n, n))
    assert found.significant == (n > 3)


def test_equal_samples_and_unequal_sizes() -> None:
    assert ks_test([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) == KSResult(0.0, 1.0, False)
    # SciPy's exact p is above 1 by rounding here.
    assert ks_test([0.0, 1.0, 2.0, 3.0, 4.0], [0.5, 1.5, 2.5, 3.5, 4.5]).pvalue == 1.0
    assert ks_test([0.0, 1.0], [2.0] * 10).pvalue == pytest.approx(smallest_pvalue(2, 10))


@given(SAMPLES, SAMPLES)
def test_symmetric_and_bounded(a: list[float], b: list[float]) -> None:
    found = ks_test(a, b)
    assert ks_test(b, a) == pytest.approx(found)
    assert smallest_pvalue(len(a), len(b)) <= found.pvalue * (1 + 1e-9)
    assert found.pvalue <= 1
    assert found.significant == (found.pvalue < 0.05)


def test_matrix_has_each_pair_once() -> None:
    samples = {"a": [1.0, 2.0, 3.0, 4.0], "b": [5.0, 6.0, 7.0, 8.0], "c": [1.5, 2.5, 5.5, 6.5]}
    found = ks_matrix(samples)
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found["a", "b"].significant
    assert not found["a", "c"].significant
    assert found["b", "c"] == ks_test(samples["b"], samples["c"])
    assert ks_matrix({"a": [1.0, 2.0]}) == {}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "a sample of 0 values"),
        ([1.0], "needs at least 2"),
        ([1.0, np.nan], "a sample of 2 values, 1 of them finite"),
    ],
)
def test_samples_that_cannot_be_tested(bad: list[float], message: str) -> None:
    for pair in ((bad, [1.0, 2.0]), ([1.0, 2.0], bad)):
        with pytest.raises(ConfigError, match=message):
            ks_test(*pair)
