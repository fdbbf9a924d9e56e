"""p- and q-values where rows are not independent: groups are tested, and series are not."""

import numpy as np
import pytest
import scipy.sparse as sp
from marks import slow_ids
from scipy import stats

from fsjax.auto.answer.effects import effects
from fsjax.auto.certainty.unit_tests import unit_tests
from fsjax.auto.certainty.univariate_tests import column_tests
from fsjax.auto.reading.columns import design_of_array


def by_patient(seed: int, kind: str = "classification", patients: int = 25, rows: int = 4):
    """Columns and target that depend on the patient, and not on each other."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(patients), rows))
    X = rng.normal(size=(patients, 30))[groups] + 0.2 * rng.normal(size=(len(groups), 30))
    y = rng.normal(size=patients)[groups]
    if kind == "classification":
        y = np.digitize(y, [-0.4, 0.4])
    if kind == "survival":
        y = np.stack([np.exp(y), rng.integers(0, 2, len(y))], axis=1)
    return X, y, groups


@slow_ids("classification")
@slow_ids("survival")
@slow_ids("regression")
@pytest.mark.parametrize("kind", ["classification", "regression", "survival"])
def test_noise_by_patient_has_no_small_q_value(kind):
    small = {True: 0, False: 0}
    for seed in range(40):
        X, y, groups = by_patient(seed, kind)
        for grouped in small:
            tests = unit_tests(
                design_of_array(X, None, None), y, kind, row_groups=groups if grouped else None
            )
            small[grouped] += tests.q_values.min() < 0.05
    # 2 of 40 are expected.
    assert small[True] <= 5 and small[False] >= 20


def test_p_values_by_group_are_uniform():
    p_values = np.concatenate(
        [
            column_tests(X[:, :3], y, "regression", groups).p_values
            for X, y, groups in (by_patient(seed, "regression") for seed in range(200))
        ]
    )
    for level in (0.01, 0.05, 0.5):
        assert stats.binomtest(int((p_values <= level).sum()), 600, level).pvalue > 0.01


def test_a_relation_between_patients_is_seen():
    X, y, groups = by_patient(0, "regression", patients=40)
    X[:, 3] = y + 0.3 * X[:, 4]
    tests = unit_tests(design_of_array(X, None, None), y, "regression", row_groups=groups)
    assert tests.q_values[3] < 1e-3 and np.delete(tests.q_values, 3).min() > 0.05


def test_sparse_and_dense_tables_are_tested_alike():
    X, y, groups = by_patient(1)
    X = np.where(X > 0.5, X, 0.0)
    dense = column_tests(X, y, "classification", groups)
    sparse = column_tests(sp.csr_array(X), y, "classification", groups)
    np.testing.assert_allclose(sparse.p_values, dense.p_values, rtol=1e-6)


def test_a_series_has_no_p_values():
    X, y, _ = by_patient(0, "regression")
    frame = effects(design_of_array(X, None, None), y, "regression", range(3), ordered=True)
    assert frame[["p_value", "q_value"]].isna().all(axis=None)
    assert (frame["direction"] == "").all()


@pytest.mark.parametrize("patients", [2, 4, 5])
def test_a_few_groups_have_no_p_values(patients):
    groups = np.repeat(np.arange(patients), 6)
    X = np.random.default_rng(0).normal(size=(patients, 40))[groups]
    y = np.arange(patients)[groups] % 2
    # The sums of two groups are equal up to their last bits.
    assert column_tests(X, y, "classification", groups).p_values.min() > 1e-4
    tests = unit_tests(design_of_array(X, None, None), y, "classification", row_groups=groups)
    assert np.isnan(tests.p_values).all() and np.isnan(tests.q_values).all()
