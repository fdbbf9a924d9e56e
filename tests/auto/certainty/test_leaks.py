"""Likely leaks, near leaks, and honest columns that are neither."""

import numpy as np
import pandas as pd
import pytest
from marks import slow_ids
from sklearn import datasets

from fsjax.auto.certainty.leaks import goals_of, leaks
from fsjax.auto.certainty.near_leaks import near_leaks, telling_absences
from fsjax.auto.reading.columns import design

ROWS = 400


def noise(seed: int = 0, columns: int = 6) -> tuple[np.random.Generator, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    return rng, pd.DataFrame(rng.normal(size=(ROWS, columns)), columns=list("abcdefgh")[:columns])


def names(notes) -> list[str]:
    return sorted(note.column for note in notes)


def near(frame, y, task="classification", without=()):
    return near_leaks(design(frame, "median"), np.asarray(y), task, set(without))


def test_what_is_missing_with_a_leak_is_a_leak():
    """As the year, month and day of death, of which the latter are known for four more."""
    rng, frame = noise()
    y = (rng.random(ROWS) < 0.3).astype(int)
    known = (y == 1) | (np.cumsum(y == 0) <= 2)
    frame["year"] = np.where(y == 1, rng.integers(83, 93, ROWS), np.nan)
    frame["month"] = np.where(known, rng.integers(1, 13, ROWS), np.nan)
    frame["day"] = np.where(known, rng.integers(1, 31, ROWS), np.nan)
    assert names(leaks(design(frame, "median"), y, "classification")) == ["day", "month", "year"]
    without = frame.drop(columns="year")
    assert names(leaks(design(without, "median"), y, "classification")) == ["day", "month"]


@pytest.mark.parametrize("value", ["yes", "no", True])
def test_texts_of_one_value_that_are_missing_with_a_class_are_leaks(value):
    rng, frame = noise()
    y = rng.integers(0, 2, ROWS)
    known = np.where(np.arange(ROWS) < 2, y == 0, y == 1)
    frame["left"] = pd.Series([value] * ROWS, dtype=object).where(known)
    (note,) = leaks(design(frame, "median"), y, "classification")
    assert note.column == "left" and "is missing almost exactly where a class is" in note.text


def test_near_copies_of_a_leak_are_leaks_and_other_predictors_are_not():
    rng, frame = noise()
    y = rng.integers(0, 2, ROWS)
    frame["dead"] = y
    frame["died"] = np.where(np.arange(ROWS) < 4, 1 - y, y)
    frame["died too"] = np.where(np.arange(ROWS) < 8, 1 - y, y)
    frame["age"] = y + 0.3 * rng.normal(size=ROWS)
    assert names(leaks(design(frame, "median"), y, "classification")) == [
        "dead",
        "died",
        "died too",
    ]
    number = rng.normal(size=ROWS)
    frame = frame[["a", "b"]].assign(same=number, copy=number + 0.1 * rng.normal(size=ROWS))
    assert names(leaks(design(frame), number, "regression")) == ["copy", "same"]


def test_categories_that_determine_the_target_are_leaks():
    rng, frame = noise()
    y = rng.integers(0, 4, ROWS)
    frame["code"] = np.array(list("cadb"))[y]
    frame["site"] = rng.choice(list("uvw"), ROWS)
    assert names(leaks(design(frame), y, "classification")) == ["code"]
    assert names(leaks(design(frame), np.array([2.0, 5.0, 1.0, 9.0])[y], "regression")) == ["code"]


def test_few_rows_separate_the_classes_by_chance():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(20, 200))).add_prefix("g")
    X["g7"] = np.sort(X["g7"])
    assert leaks(design(X), np.repeat([0, 1], 10), "classification") == []
    # A gap between the classes is no chance.
    rows = np.resize([0, 0, 0, 1], 60)
    X = pd.DataFrame({"flag": rows + 0.1 * rng.random(60), "x": rng.normal(size=60)})
    assert names(leaks(design(X), rows, "classification")) == ["flag"]


def test_a_strong_predictor_of_few_patients_is_no_leak():
    rng = np.random.default_rng(2)
    patients = np.repeat(np.arange(24), 5)
    y = np.resize([0, 1], 24)[patients]
    value = np.sort(rng.normal(size=24))[
        np.argsort(np.argsort(np.resize([0, 1], 24), kind="stable"))
    ]
    X = pd.DataFrame({"x": value[patients] + 1e-3 * rng.random(120), "z": rng.normal(size=120)})
    assert names(leaks(design(X), y, "classification")) == ["x"]
    assert leaks(design(X), y, "classification", patients) == []


def targets_with_a_near_leak():
    rng, frame = noise()
    score = frame["a"] + rng.normal(size=ROWS)
    two = (score > 0).astype(int)
    yield "classification", two, two + 0.3 * rng.normal(size=ROWS)
    four = np.digitize(score, [-1, 0, 1])
    code = np.where(rng.random(ROWS) < 0.03, "b", np.array(list("cadb"))[four])
    yield "classification", four, code
    yield "regression", score, score + 0.3 * rng.normal(size=ROWS)
    yield "regression", score, pd.cut(score, 7, labels=False)
    counts = rng.poisson(np.exp(frame["a"]))
    yield "counts", counts.astype(float), rng.binomial(counts, 0.9)
    time = rng.exponential(np.exp(-frame["a"]))
    event = rng.random(ROWS) < 0.6
    yield "survival", np.column_stack([time, event]), time * (1 + 0.05 * rng.normal(size=ROWS))
    yield "survival", np.column_stack([time, event]), event + 0.25 * rng.normal(size=ROWS)
    labels = (rng.random((ROWS, 3)) < [0.5, 0.3, 0.2]).astype(float)
    yield "multilabel", labels, labels[:, 1] + 0.25 * rng.normal(size=ROWS)


@slow_ids("multilabel*", "survival*", "counts*")
@slow_ids("classification-y1-*", "regression-y3-*", "survival-y6-*")
@pytest.mark.parametrize(("task", "y", "result"), list(targets_with_a_near_leak()))
def test_a_column_far_above_all_others_is_a_near_leak(task, y, result):
    _, frame = noise()
    notes = near(frame.assign(result=result), y, task)
    assert names(notes) == ["result"] and "near leak" in notes[0].text
    assert task != "multilabel" or " for label 1, all columns" in notes[0].text
    assert near(frame, y, task) == []


def test_near_leaks_of_two_groups_of_rows():
    rng, frame = noise()
    score = (frame["a"] + rng.normal(size=ROWS)).to_numpy()
    site = np.resize([0, 1], ROWS)
    for task, y in (("classification", (score > 0).astype(int)), ("regression", score)):
        table = design(frame.assign(result=y + 0.3 * rng.normal(size=ROWS)), "median")
        assert names(near_leaks(table, y, task, set(), site)) == ["result"]
    # No fold could learn the classes of a site that has one only.
    assert near_leaks(design(frame, "median"), site, "classification", set(), site) == []


def test_near_leaks_of_drawn_rows_without_a_second_group_or_any_value(monkeypatch):
    rng, frame = noise()
    y, few = frame["a"].to_numpy(), np.full(ROWS, np.nan)
    # Of 4 rows none are drawn.
    monkeypatch.setattr("fsjax.auto.certainty.near_leaks._ROWS", 100)
    rows = np.setdiff1d(np.arange(ROWS), np.random.default_rng(0).permutation(ROWS)[:100])[:4]
    few[rows] = [1.0, 2.0, 3.0, 4.0]
    table = design(frame.assign(few=few, result=y + 0.1 * rng.normal(size=ROWS)), "median")
    small = np.isin(np.arange(ROWS), rows).astype(int)
    assert near_leaks(table, y, "regression", {"a"}, small) == []
    assert names(near_leaks(table, y, "regression", {"a"})) == ["result"]


@pytest.mark.slow
def test_near_leaks_in_pairs():
    rng, frame = noise()
    y = (frame["a"] + rng.normal(size=ROWS) > 0).astype(int)
    frame["first"], frame["second"] = y.to_numpy() + 0.3 * rng.normal(size=(2, ROWS))
    assert names(near(frame, y)) == ["first", "second"]
    frame["second"] = -2 * frame["first"] + 0.01 * rng.normal(size=ROWS)
    assert names(near(frame, y)) == ["first", "second"]
    assert names(near(frame, y, without=["first"])) == ["second"]


@slow_ids("breast_cancer")
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "diabetes"])
def test_honest_tables_have_no_near_leak(name):
    data = getattr(datasets, f"load_{name}")(as_frame=True)
    task = "regression" if name == "diabetes" else "classification"
    columns = design(data.data)
    assert near_leaks(columns, data.target.to_numpy(), task, set()) == []
    assert leaks(columns, data.target.to_numpy(), task) == []


def absences(frame, y, task="classification", classes=None):
    goals = goals_of(np.asarray(y), task, classes)
    return telling_absences(design(frame, "median"), goals, classes)


def test_values_that_are_there_only_in_one_class():
    rng, frame = noise()
    y = (rng.random(ROWS) < 0.3).astype(int)
    known = (y == 1) & (rng.random(ROWS) < 0.6)
    frame["number"] = np.where(known, rng.integers(1, 9, ROWS), np.nan)
    frame["text"] = pd.Series(rng.choice(list("uvw"), ROWS)).where(known)
    frame["constant"] = np.where(known, 1.0, np.nan)
    frame["code"] = np.where((y == 0) & (rng.random(ROWS) < 0.4), -4000.0, 50 + frame["a"])
    frame["random"] = frame["b"].where(rng.random(ROWS) < 0.6)
    frame.loc[frame.index[y == 1][:5], "rare"] = 1.0
    notes = absences(frame, y, classes=("alive", "dead"))
    assert names(notes) == ["code", "constant", "number", "text"]
    by_column = {note.column: note.text for note in notes}
    assert f"has a value in {known.sum()} rows, all of class 'dead'" in by_column["number"]
    assert "is -4000 in" in by_column["code"] and "all of class 'alive'" in by_column["code"]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_rows_of_a_group_are_one_witness_of_a_missing_value(task):
    """One of 60 patients without a measurement says nothing, however many rows there are of him."""
    rng = np.random.default_rng(0)
    of_group = np.arange(60) % 2 if task == "classification" else rng.normal(size=60).round(2)
    groups = np.repeat(np.arange(60), np.where(np.arange(60) == np.argmax(of_group), 100, 20))
    frame = pd.DataFrame(rng.normal(size=(len(groups), 2)), columns=list("ab"))
    y = of_group[groups]
    frame.loc[groups == np.argmax(of_group), "a"] = np.nan
    frame.loc[y > np.median(of_group), "b"] = np.nan
    found = telling_absences(design(frame, "median"), goals_of(y, task), None, groups)
    assert names(found) == ["b"]
    assert ("30 groups of rows" in found[0].text) == (task == "classification")
    assert names(absences(frame, y, task)) == ["a", "b"]


def test_many_bins_of_a_target_are_a_near_leak():
    """A small tree of indicators splits off few of them; a linear model knows all."""
    rng, frame = noise()
    y = 10 * frame["a"] + 5 * frame["b"] + 5 * rng.normal(size=ROWS)
    frame["bin"] = pd.cut(y, 18).astype(str)
    frame["town"] = rng.choice(list("uvwxyz"), ROWS)
    assert names(near(frame, y, "regression")) == ["bin"]


def test_values_that_are_missing_by_target_of_other_tasks():
    rng, frame = noise()
    score = frame["a"] + rng.normal(size=ROWS)
    high = score > 0.8
    frame["bill"] = frame["b"].where(high)
    assert names(absences(frame, score, "regression")) == ["bill"]
    labels = np.column_stack([rng.random(ROWS) < 0.5, high]).astype(float)
    survival = np.column_stack([rng.exponential(size=ROWS), high])
    # The label and its value are named, also after a label that no row has.
    for y, task, called, where in (
        (labels, "multilabel", ("smoker", "ill"), "all with 'ill', as"),
        (1 - labels, "multilabel", ("smoker", "ill"), "all without 'ill', as"),
        (np.insert(labels, 0, 0.0, axis=1), "multilabel", None, "all with label 2, as"),
        (survival, "survival", None, "all with an event, as"),
    ):
        (note,) = absences(frame, y, task, called)
        assert note.column == "bill" and where in note.text


def test_a_column_that_gives_one_of_several_outputs_away_is_a_leak_and_names_it():
    rng, frame = noise()
    labels = (rng.random((ROWS, 2)) < [0.5, 0.3]).astype(float)
    frame["both"] = labels.sum(axis=1) + 3 * rng.random(ROWS)
    frame["result"] = labels[:, 1] + 0.9 * rng.random(ROWS)
    frame["code"] = np.char.add(rng.choice(["u", "v"], ROWS), labels[:, 0].astype(str))
    time = np.column_stack([rng.exponential(size=ROWS), labels[:, 1]])
    found = leaks(design(frame), labels, "multilabel", None, ("smoker", "ill"))
    texts = {note.column: note.text for note in found}
    assert sorted(texts) == ["code", "result"]
    assert "the rows with and without 'ill' by itself" in texts["result"]
    assert "categories that determine 'smoker'" in texts["code"]
    (note,) = leaks(design(frame), time, "survival")
    assert note.column == "result" and "with and without an event" in note.text
