"""Equal rows, and repeated measurements of one unit, are groups of rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from auto_helpers import QUICK
from marks import slow_ids
from sklearn import datasets

import fsjax
from fsjax.auto.certainty.repeated_rows import repeated_rows
from fsjax.auto.reading.columns import design
from fsjax.auto.reading.sparse_columns import sparse_design


def rows_of(X, y, **options):
    table = (
        sparse_design(X) if sp.issparse(X) else design(pd.DataFrame(X).add_prefix("x"), "median")
    )
    return repeated_rows(table, np.asarray(y), **options)


def kinds(result) -> list[str]:
    return [note.kind for note in result.notes]


def same_groups(first, second) -> bool:
    pairs = len(np.unique(np.column_stack([first, second]), axis=0))
    return pairs == len(np.unique(first)) == len(np.unique(second))


def repeated_tables():
    rng = np.random.default_rng(0)
    units = np.arange(300) % 75
    y = rng.integers(0, 2, 75)[units]
    numbers = rng.normal(size=(75, 12))
    yield "numbers", numbers[units], y, units
    yield "categories", rng.integers(0, 5, (75, 12))[units], y, units
    missing = np.where(rng.random((75, 12)) < 0.2, np.nan, numbers)
    yield "missing values", missing[units], y, units
    yield "two zeros", np.where(numbers > 0, numbers, 0.0 * np.sign(numbers))[units], y, units
    yield "another target", numbers[units], rng.normal(size=300), units
    survival = np.column_stack([rng.exponential(size=75), rng.random(75) < 0.5])[units]
    yield "time and event", numbers[units], survival, units
    yield "sparse", sp.csr_array(np.where(numbers > 0.3, numbers, 0.0)[units]), y, units


@pytest.mark.parametrize(("X", "y", "units"), [case[1:] for case in repeated_tables()],
                         ids=[case[0] for case in repeated_tables()])  # fmt: skip
def test_equal_rows_are_one_group(X, y, units):
    result = rows_of(X, y)
    assert same_groups(result.groups, units) and result.kept.all()
    assert kinds(result) == ["equal rows"] and "225 of the 300 rows" in result.notes[0].text


def coincidences():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(500, 1))
    X = rng.integers(0, 2, (500, 3))
    yield "three truth values", X, X[:, 0]
    X = rng.integers(0, 2, (500, 10))
    yield "a rule of ten", X, X[:, 0] & X[:, 1]
    gaps = np.where(rng.random((500, 3)) < 0.3, np.nan, rng.integers(0, 2, (500, 3)))
    yield "missing values", gaps, rng.integers(0, 2, 500)
    survey = (common + 0.5 * rng.normal(size=(500, 10)) > 0).astype(int)
    yield "a survey", survey, (common[:, 0] + 0.5 * rng.normal(size=500) > 0).astype(int)
    zeros = rng.normal(size=(500, 6)) * (np.arange(500) > 200)[:, None]
    likert = np.clip(np.round(common + 0.4 * rng.normal(size=(500, 12)) + 3), 1, 5)
    yield "a scale", likert, (common[:, 0] + 0.5 * rng.normal(size=500) > 0).astype(int)
    yield "empty rows", zeros, rng.integers(0, 2, 500)
    yield "sparse", sp.random(300, 200, 0.01, "csr", rng=1), rng.integers(0, 2, 300)


@pytest.mark.parametrize(("X", "y"), [case[1:] for case in coincidences()],
                         ids=[case[0] for case in coincidences()])  # fmt: skip
def test_rows_that_are_equal_by_coincidence_stay_as_they_are(X, y):
    result = rows_of(X, y)
    assert result.groups is None and kinds(result) == ["rows"]


def test_equal_rows_join_the_groups_of_the_user():
    X = np.random.default_rng(0).normal(size=(100, 6))
    result = rows_of(np.vstack([X, X]), np.zeros(200), row_groups=np.arange(200) // 4)
    assert same_groups(result.groups, np.arange(200) % 100 // 4)


def test_of_a_series_the_first_of_equal_rows_is_kept():
    X = np.random.default_rng(0).normal(size=(100, 6))
    result = rows_of(np.vstack([X, X]), np.arange(200) % 100, ordered=True)
    assert result.groups is None and result.kept.tolist() == [True] * 100 + [False] * 100
    assert "only the first" in result.notes[0].text


@pytest.mark.parametrize(
    ("sizes", "columns", "noise"),
    [([6], 12, 0.01), ([6], 12, 0.3), ([2], 8, 0.1), ([1, 3, 8], 30, 0.01), ([1, 3, 8], 30, 0.3)],
)
def test_repeated_measurements_are_one_group(sizes, columns, noise):
    rng = np.random.default_rng(1)
    units = np.repeat(np.arange(60), np.resize(sizes, 60))
    X = rng.normal(size=(60, columns))[units] * 10.0 ** rng.integers(-3, 3, columns)
    X += noise * X.std(axis=0) * rng.normal(size=X.shape)
    result = rows_of(X, rng.integers(0, 2, 60)[units])
    assert kinds(result) == ["equal rows"] and "--groups" in result.notes[0].text
    # Units are not cut; a few that are close to each other may be merged.
    cut = len(np.unique(np.column_stack([units, result.groups]), axis=0)) - 60
    assert cut <= 3 and len(np.unique(result.groups)) >= 45


def independent_tables():
    rng = np.random.default_rng(0)
    for rows, columns in ((60, 300), (300, 1), (300, 2), (1000, 5), (200, 20)):
        yield rng.normal(size=(rows, columns))
        yield rng.standard_t(1.5, size=(rows, columns))
    factors = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 30))
    yield np.exp(factors + 0.05 * rng.normal(size=(500, 30)))
    yield np.cumsum(rng.normal(size=(500, 5)), axis=0)
    yield 3 * rng.normal(size=(5, 6))[rng.integers(0, 5, 400)] + 0.3 * rng.normal(size=(400, 6))


@pytest.mark.parametrize("X", list(independent_tables()))
def test_independent_rows_are_not_taken_for_measurements(X):
    result = rows_of(X, np.arange(len(X)))
    assert result.groups is None and not result.notes


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "diabetes", "digits"])
def test_ordinary_tables_have_no_warning(name):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    assert not [kind for kind in kinds(rows_of(X, y)) if kind != "rows"]


@slow_ids("0.05")
@slow_ids("0.0")
@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_noise_in_repeated_rows_is_not_better_than_chance(spread):
    rng = np.random.default_rng(7)
    units = np.repeat(np.arange(50), 5)
    X = rng.normal(size=(50, 8))[units] + spread * rng.normal(size=(250, 8))
    y = rng.integers(0, 2, 50)[units]
    result = fsjax.select(X, y, methods=QUICK, judge="rbf", budget=None)
    assert not result.better_than_chance
    assert "of the 250 rows are" in result.statements[0]


def test_rounded_values_of_two_columns_are_no_measurements():
    # As weights of a census, which go with age: equal for people who are otherwise different.
    rng = np.random.default_rng(0)
    age = rng.integers(17, 90, 900)
    weight = 1000 * age + rng.integers(0, 8, 900)
    others = rng.integers(0, 4, (900, 6))
    result = rows_of(np.column_stack([age, weight, others]), rng.integers(0, 2, 900))
    assert "equal rows" not in kinds(result)
