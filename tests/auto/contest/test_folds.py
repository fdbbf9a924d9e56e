"""Folds of cross-validation and halves: what they keep together, and when they cannot be made."""

import time

import numpy as np
import pandas as pd
import pytest
from bad_calls import bad_calls, refuses

from fsjax.auto.contest.folds import common_classes, group_numbers, halves, rounds_of
from fsjax.errors import DataError


def test_each_row_judges_once_per_round():
    y = np.resize([0, 0, 0, 1], 80)
    rounds = rounds_of(y, "classification", 0)
    assert len(rounds) == 4
    for folds in rounds:
        assert np.array_equal(np.sort(np.concatenate([f.test for f in folds])), np.arange(80))
        assert {int(y[fold.test].sum()) for fold in folds} == {4}
        assert all(not set(fold.train) & set(fold.test) for fold in folds)


@pytest.mark.parametrize(
    "task", ["classification", "regression", "multilabel", "counts", "survival"]
)
def test_groups_stay_on_one_side_for_all_tasks(task):
    y = np.resize([0, 0, 0, 1], 80)
    if task in ("multilabel", "survival"):
        y = np.stack([np.arange(80) % 3 + 1 if task == "survival" else 1 - y, y], axis=1)
    labels = np.array([f"patient {i // 5}" for i in range(80)], object)
    for folds in rounds_of(y, task, 0, labels):
        assert np.array_equal(np.sort(np.concatenate([f.test for f in folds])), np.arange(80))
        for fold in folds:
            assert not set(labels[fold.train]) & set(labels[fold.test])


@pytest.mark.parametrize("task", ["classification", "regression", "survival"])
def test_earlier_rows_teach_in_order_of_time(task):
    y = np.resize([0, 1, 1], 30)
    if task == "survival":
        y = np.stack([np.arange(1.0, 31.0), y], axis=1)
    folds = rounds_of(y, task, 0, ordered=True)[0]
    assert len(folds) == 5
    assert all(fold.train.max() < fold.test.min() for fold in folds)


def test_order_of_time_with_late_second_class_is_used_where_it_can_be():
    # Until row 70 there is one class, and from row 90 on as well.
    y = np.repeat([0, 1, 0], [70, 20, 30])
    folds = rounds_of(y, "classification", 0, ordered=True)[0]
    assert folds and all(np.unique(y[fold.train]).size == 2 for fold in folds)
    assert folds[-1].test.max() == 119
    with pytest.raises(DataError, match="in order of time, the rows before or after every split"):
        rounds_of(np.repeat([0, 1], [100, 4]), "classification", 0, ordered=True)


def test_folds_of_one_class_are_merged():
    # Sixteen patients with one class each, of very different sizes.
    labels = np.repeat(np.arange(16), np.resize([2, 30, 1, 5], 16))
    y = (labels % 8 == 0).astype(int)
    for seed in range(20):
        rounds = rounds_of(y, "classification", seed, labels)
        assert len({len(folds) for folds in rounds}) == 1
        for folds in rounds:
            assert all(np.unique(y[rows]).size == 2 for fold in folds for rows in fold)


def test_rare_classes_are_named_and_their_rows_set_aside():
    y = np.repeat([0, 1, 2, 3], [30, 3, 2, 1])
    common = common_classes(y, "classification")
    assert common.rare == (2, 3)
    assert np.array_equal(common.rows, y < 2)
    # A class of one patient cannot both teach and judge.
    labels = np.concatenate([np.arange(30), [50, 50, 50, 51, 52, 53]])
    assert common_classes(y, "classification", labels).rare == (1, 3)
    # Where all classes have two rows, two are enough.
    pairs = np.repeat(np.arange(20), 2)
    assert common_classes(pairs, "classification").rare == ()
    assert [len(fold.test) for fold in rounds_of(pairs, "classification", 0)[0]] == [20, 20]
    assert common_classes(y.astype(float), "regression").rows.all()


def test_one_rare_class_does_not_lower_the_number_of_folds():
    y = np.repeat([0, 1, 2], [40, 40, 3])
    assert len(rounds_of(y, "classification", 0)[0]) == 5
    # Of two classes, each fold needs both.
    assert len(rounds_of(np.repeat([0, 1], [40, 3]), "classification", 0)[0]) == 3


@pytest.mark.parametrize(("rows", "count"), [(4, 2), (5, 2), (9, 3), (12, 4), (15, 5), (40, 5)])
def test_few_rows_have_fewer_folds(rows, count):
    rounds = rounds_of(np.arange(float(rows)), "regression", 0)
    assert {len(folds) for folds in rounds} == {count}
    assert min(len(fold.test) for folds in rounds for fold in folds) >= 2


def test_survival_needs_events_but_no_censored_rows():
    times = np.arange(1.0, 21.0)
    assert len(rounds_of(np.stack([times, np.ones(20)], axis=1), "survival", 0)[0]) == 5
    few = np.stack([times, times < 4], axis=1)
    for fold in rounds_of(few, "survival", 0)[0]:
        assert few[fold.train, 1].any() and few[fold.test, 1].any()
    with pytest.raises(DataError, match="an event is in 1 row;"):
        rounds_of(np.stack([times, times < 2], axis=1), "survival", 0)


NO_LABEL = pd.Series([*["a"] * 10, None, *["b"] * 9], dtype=object)


@bad_calls(
    (lambda: group_numbers(NO_LABEL, 20), "row_groups has no label in 1 of 20 rows ", "row 10"),
    (lambda: group_numbers(NO_LABEL.fillna("").to_numpy(), 20), "no label in 1 of 20 rows"),
    (lambda: group_numbers(NO_LABEL.fillna(np.nan).tolist(), 20), "no label in 1 of 20 rows"),
    (lambda: group_numbers([pd.NA, "a", pd.NaT], 3), "no label in 2 of 3 rows"),
    (lambda: group_numbers([1.0, np.nan, 2.0], 3), "row_groups has no label in 1 of 3 rows"),
    (lambda: rounds_of(np.arange(3.0), "regression", 0), "3 rows; ", "at least 4"),
    (lambda: rounds_of(np.arange(5.0), "regression", 0, ordered=True), "5 rows", "least 6"),
    (lambda: rounds_of(np.eye(5, dtype=int)[4], "classification", 0), "second class is in 1 row"),
    (lambda: rounds_of(np.zeros(9, int), "classification", 0), "a second class is in 0 rows"),
    (lambda: rounds_of(np.arange(9.0), "regression", 0, ["a"] * 9), "all rows are in one group"),
    (
        lambda: rounds_of(np.repeat([1.0, 2.0], 4), "regression", 0, np.repeat([0, 1], 4)),
        "of every fold share one target",
    ),
    (
        lambda: rounds_of(np.arange(80.0), "regression", 0, np.arange(5)),
        "row_groups has shape (5,)",
    ),
    (lambda: rounds_of(np.arange(80.0), "regression", 0, np.arange(80), True), "not both"),
    (lambda: halves(np.arange(80.0), "regression", 0, np.arange(80), True), "not both"),
)
def test_bad_calls(bad):
    refuses(*bad)


@pytest.mark.slow
def test_a_long_table_is_split_quickly():
    rng = np.random.default_rng(0)
    y, labels = rng.integers(0, 3, 1_000_000), rng.integers(0, 50_000, 1_000_000)
    before = time.process_time()
    assert len(rounds_of(y, "classification", 0)[0]) == 5
    folds = rounds_of(y, "classification", 0, labels)[0]
    assert time.process_time() - before < 4
    sides = np.zeros(50_000, int)
    for fold in folds:
        sides[np.unique(labels[fold.test])] += 1
    assert (sides == 1).all()
    assert abs(y[folds[0].test].mean() - 1) < 0.02


def complementary(parts: list[np.ndarray], rows: int) -> bool:
    return np.array_equal(np.sort(np.concatenate(parts)), np.arange(rows))


def test_halves_keep_groups_whole_and_classes_even():
    y = np.resize([0, 0, 1], 90)
    labels = np.repeat(np.arange(18), 5)
    plain = halves(y, "classification", 0)
    assert complementary(plain, 90) and [y[half].sum() for half in plain] == [15, 15]
    drawn = set()
    for seed in range(5):
        for task in ("classification", "regression"):
            parts = halves(y, task, seed, labels)
            assert complementary(parts, 90)
            assert not set(labels[parts[0]]) & set(labels[parts[1]])
            assert min(map(len, parts)) >= 40
        drawn.add(tuple(parts[0]))
    assert len(drawn) == 5


def test_halves_of_a_series_are_blocks():
    y = np.arange(100.0)
    drawn = set()
    for seed in range(5):
        parts = halves(y, "regression", seed, ordered=True)
        assert complementary(parts, 100) and {len(half) for half in parts} == {50}
        assert (np.diff(parts[0]) > 1).sum() <= 10
        drawn.add(tuple(parts[0]))
    assert len(drawn) == 5
    assert complementary(halves(y[:5], "regression", 0, ordered=True), 5)
