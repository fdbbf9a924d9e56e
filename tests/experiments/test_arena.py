"""The arena: tables and splits, processes with limits, ratings, submissions and the pages."""

from __future__ import annotations

import bisect
import sys
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bad_calls import refuses
from hypothesis import given, settings
from hypothesis import strategies as st
from launcher import launch_here
from processes_that_fail import busy, fails, greedy, leaves, waits
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import fsjax
from experiments.arena import (
    conclusions,
    generated,
    page,
    processes,
    rows,
    runner,
    runs,
    tables,
    verdict,
)
from experiments.arena.conclusions import REFERENCE
from experiments.arena.judges import judge_each
from experiments.arena.processes import Limits, call
from experiments.arena.ratings import Scores, rate, scored, wins
from experiments.arena.runs import ALL, Job, ranking_of, truth
from experiments.arena.selectors import RANDOM, f_test
from experiments.arena.submission import as_selector, checksum, load
from experiments.arena.tables import TABLES, Table

#: Enough for any of these.
ENOUGH = Limits(60.0, 8000.0)


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that import nothing beforehand."""
    monkeypatch.setattr(processes, "_PRELOADED", [])


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bootstraps of twenty draws."""
    for module in (conclusions, verdict):
        monkeypatch.setattr(module, "rate", lambda scores, draws=20: rate(scores, draws))


@pytest.mark.usefixtures("light")
@pytest.mark.parametrize(
    ("function", "limits", "failure", "reason"),
    [
        (busy, Limits(0.3, 8000.0), "time", "more than 0.3 CPU seconds"),
        (waits, Limits(9.0, 8000.0), "time", "more than 0.9 seconds, of which 0."),
        (greedy, Limits(60.0, 400.0), "memory", "more than 400 MiB"),
        (fails, ENOUGH, "error", "ValueError: the table (processes_that_fail.py:"),
        (leaves, ENOUGH, "crash", "the process ended with 0, without an answer"),
    ],
)
def test_a_process_is_ended_at_its_limits(
    function: Any, limits: Limits, failure: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if function is waits:
        monkeypatch.setattr(processes, "_PATIENCE", 0.1)
    outcome = call(function, (), limits)
    assert outcome.failure == failure and outcome.reason.startswith(reason)


def test_a_worker_that_may_not_start_processes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = SimpleNamespace(daemon=True)
    monkeypatch.setattr(processes.multiprocessing, "current_process", lambda: worker)
    refuses(lambda: call(leaves, (), ENOUGH), "may not start processes; start them by dask worker")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0, 1, 1], "2 distinct ones of 3"),
        ([0, 4], "from 0 to 4"),
        ([-1, 2], "from -1 to 2"),
        ([0.5, 1.0], "return indices of columns"),
        ([], "return indices of columns"),
        ([[0], [1]], "shape"),
        (([0, 1], 5), "the number of columns is 5; return an integer from 0 to 4"),
        (([0, 1], 3.7), "the number of columns is 3.7; return an integer from 0 to 4"),
        ((0, 1, 2), "a tuple of 3; return indices of columns, best first, in an array or a list"),
        ([[0, 1], 3], "several shapes; return indices of columns, best first"),
    ],
)
def test_answers_that_are_no_ranking_are_refused(answer: Any, message: str) -> None:
    refuses(lambda: ranking_of(answer, 4, 3), message)


def test_a_short_ranking_is_a_choice() -> None:
    assert ranking_of(np.array([2, 0]), 4, 3).number == 2
    assert ranking_of(np.array([2, 0, 1]), 4, 3).number is None
    assert ranking_of((np.array([2, 0, 1]), 0), 4, 3).number == 0
    assert truth(np.array([2, 3]), np.array([2, 0, 1, 3]), 0) == {"found": 0.5, "false": 0.0}
    assert truth(np.array([2, 3]), np.array([2, 0, 1, 3]), 3)["false"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["patients 100", "drift 60", "imbalanced 100", "sines 100"])
@pytest.mark.parametrize("seed", [0, 2])
def test_no_row_group_or_moment_is_on_both_sides(name: str, seed: int) -> None:
    data, table = tables.read(name), TABLES[name]
    # Each row knows its place, its group and its moment.
    places = np.arange(len(data.y), dtype=np.float32)[:, None]
    rows = tables.split(table, data._replace(X=places), seed)
    train, test = rows.X[:, 0].astype(int), rows.X_test[:, 0].astype(int)
    assert not np.intersect1d(train, test).size
    np.testing.assert_array_equal(rows.y_test, data.y[test])
    if data.groups is not None:
        assert not np.intersect1d(data.groups[train], data.groups[test]).size
    if table.by == "time":
        assert train.max() < test.min()
    if name == "imbalanced 100":
        assert rows.y.mean() == pytest.approx(rows.y_test.mean(), abs=0.01)


def test_the_informative_columns_are_those_that_matter() -> None:
    shifted = generated.shifted(400, 40, 6, 1.0)
    assert set(f_test(shifted.X, shifted.y, 6, 0)[:5]) <= set(shifted.informative)
    linear = generated.linear(2000, 30, 4, positives=0.05, noise=0.3)
    assert linear.y.mean() == pytest.approx(0.05, abs=0.002)
    assert set(f_test(linear.X, linear.y, 4, 0)[:4]) == set(linear.informative)
    copies = generated.copies(2000, 30, 3, 4)
    alike = np.abs(np.corrcoef(copies.X.T))[copies.informative] > 0.9
    assert (alike.sum(axis=1) == 5).all()
    patients = generated.patients(40, 30, 3, 6)
    inside = np.array([patients.X[patients.groups == group].std(axis=0) for group in range(40)])
    assert ((inside.mean(axis=0) < 0.2).sum()) == 6


def test_a_judge_prefers_columns_that_matter_and_keeps_short_rankings() -> None:
    data = generated.linear(400, 20, 3, noise=0.2)
    rows = tables.split(Table(lambda: data, metric="r2"), data, 0)
    others = np.setdiff1d(np.arange(20), data.informative)
    good = judge_each(rows, "r2", np.array([*data.informative, *others]), (3, 10))
    bad, short = (judge_each(rows, "r2", order, (3,)) for order in (others, data.informative[:2]))
    assert all(good[f"{judge}@3"] > bad[f"{judge}@3"] + 30 for judge in ("linear", "svm", "trees"))
    assert short["linear@3"] < good["linear@3"]


def fake_rows(strength: dict[str, float], noise: float, seed: int = 0) -> pd.DataFrame:
    """Rows of selectors whose scores differ by their strength."""
    rng = np.random.default_rng(seed)
    names = [name for name, table in TABLES.items() if table.shape != "noise"]
    lines = []
    for table in names:
        ease = rng.normal(70, 10)
        for selector, value in strength.items():
            for split in (0, 1):
                score = ease + value + noise * rng.standard_normal()
                line = {"table": table, "selector": selector, "split": split, "failure": ""}
                line |= {"reason": "", "columns": 100, "cpu_seconds": 1.0 + value, "memory": 100}
                line |= dict.fromkeys(rows.SCORES, score)
                lines.append(line | {"ranking": rng.permutation(100)[:50].tolist()})
    return rows.add(rows.read(Path("none")), lines)


def test_ratings_order_selectors_and_know_what_is_certain() -> None:
    fake = fake_rows({RANDOM: 0.0, "a": 8.0, "b": 3.0, "c": 2.9}, 2.0)
    table, ratings = verdict.summary(fake)
    assert table.index[0] == "a" and table.index[-1] == RANDOM
    assert table.loc[RANDOM, "elo"] == pytest.approx(1000.0)
    assert (table["low"] <= table["elo"] + 1e-6).all() and (
        table["elo"] <= table["high"] + 1e-6
    ).all()
    assert ratings.certainly_better("a", "b") and not ratings.certainly_better("b", "c")
    words = verdict.sentence("b", ratings)
    assert "certainly worse than a;" in words and f"better than {RANDOM}" in words
    assert "for the other 1." in words
    # Seconds grow with the strength: b is on the front only if it is rated above c.
    assert verdict.front(table)[-1] == "a" and RANDOM not in verdict.front(table)
    assert ("b" in verdict.front(table)) == (table.loc["b", "elo"] > table.loc["c", "elo"])


def test_ratings_are_at_the_maximum_and_hardly_depend_on_the_seed() -> None:
    strength = {RANDOM: 0.0, **{f"s{number}": 0.5 * number for number in range(12)}}
    scores = scored(fake_rows(strength, 6.0))
    won = np.nansum(wins(scores), axis=0) * ~np.eye(len(strength), dtype=bool)
    first, second = np.triu_indices(len(strength), 1)
    pairs = np.eye(len(strength))[first] - np.eye(len(strength))[second]
    model = LogisticRegression(C=10.0, fit_intercept=False, tol=1e-9, max_iter=1000).fit(
        np.vstack([pairs, pairs]),
        np.repeat([1, 0], len(first)),
        np.concatenate([won[first, second], won[second, first]]),
    )
    elo = pd.Series(400.0 / np.log(10) * model.coef_[0], scores.selectors)
    elo += 1000.0 - elo[RANDOM]
    rated = [rate(scores, seed=seed) for seed in range(4)]
    pd.testing.assert_series_equal(rated[0].elo.sort_index(), elo.sort_index(), atol=0.01, rtol=0)
    better = [{p for p in permutations(elo.index, 2) if r.certainly_better(*p)} for r in rated]
    assert 40 < len(better[0]) < 50 and all(len(better[0] ^ other) < 3 for other in better)


def test_random_columns_are_the_mean_of_several_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    firsts: list[int] = []

    def judged(_: Any, __: str, order: np.ndarray, ___: tuple[int, ...]) -> dict[str, float]:
        firsts.append(int(order[0]))
        return {"linear@5": float(order[0])}

    monkeypatch.setattr(runs, "_judged", judged)
    row = runs.run(Job("xor 128", RANDOM, 1), ENOUGH)
    assert len(firsts) == 5 and len(set(firsts)) > 1
    assert row["linear@5"] == np.mean(firsts) and row["found"] == 2 / 128
    assert row["ranking"][0] == firsts[0] and row["failure"] == ""


def test_few_tables_make_nothing_certain() -> None:
    fake = fake_rows({RANDOM: 0.0, "a": 8.0, "b": 3.0}, 0.0)
    for number, certain in ((5, False), (6, True)):
        some = fake[fake["table"].isin(list(TABLES)[:number])]
        ratings = rate(scored(some))
        assert ratings.certainly_better("a", "b") is certain
        assert ratings.interval()["low"].isna().all() == (not certain)


@pytest.mark.usefixtures("few_draws")
def test_conclusions_are_the_differences_of_the_rows() -> None:
    fake = fake_rows({RANDOM: 0.0, "ICAP": 6.0, "STG": 4.0, REFERENCE: 4.0, "MCFS": -2.0}, 0.0)
    fake.loc[(fake["table"] == "wine") & (fake["selector"] == "MCFS"), rows.SCORES] = 1000.0
    fake.loc[(fake["table"] == "madelon") & (fake["selector"] == "STG"), rows.SCORES] = 1000.0
    scores = scored(fake)
    number = len(scores.tables)
    beside = conclusions.beside(scores)
    assert beside.loc["ICAP", ["mean", "half"]].tolist() == pytest.approx([2.0, 0.0], abs=1e-9)
    assert beside.loc["STG", ["better", "equal", "worse"]].tolist() == [1, number - 1, 0]
    below = conclusions.below_random(scores)
    assert below.pop("MCFS") == [name for name in scores.tables if name != "wine"]
    assert not any(below.values())
    names = ("stg", "icap", "mcfs", "cife")
    order = conclusions.contender_order(scores, {"narrow"}, names)
    assert order == ["icap", "stg", "mcfs", "cife"]
    wide = conclusions.best(scores, verdict.summary(fake)[0]).set_index("tables").loc["wide"]
    assert wide["number"] == "13" and wide.iloc[1].startswith("ICAP ")
    assert wide.iloc[2] == "4 of 4"
    # On fewer than half of the tables.
    few = fake[(fake["selector"] != "ICAP") | fake["table"].isin(["allaml", "coil20", "wine"])]
    best = conclusions.best(scored(few), verdict.summary(few)[0]).set_index("tables")
    assert "ICAP" not in best.loc["wide"].iloc[1] and "2 of 3" in best.loc["wide"].iloc[2]


@pytest.mark.usefixtures("few_draws")
def test_who_has_no_game_has_no_rating() -> None:
    fake = fake_rows({RANDOM: 0.0, "a": 8.0, "b": 3.0}, 1.0)
    grouped = fake["table"].map(lambda name: TABLES[name].shape) == "grouped"
    alone = fake["table"].eq("wine") & fake["selector"].eq("b")
    table, ratings = verdict.summary(fake[(~grouped & fake["selector"].ne("b")) | alone])
    assert list(table.index) == ["a", "b", RANDOM] and "grouped" not in table
    assert np.isnan(table.loc["b", "wide"]) and table.loc["a", "wide"] > 1000.0
    only_b = fake[fake["selector"].eq("b") | fake["table"].eq("wine")]
    assert list(verdict.summary(only_b)[0].index) == list(table.index)
    assert np.isnan(ratings.draws).any()


def test_a_failure_counts_as_random_columns_and_another_task_does_not_count() -> None:
    fake = fake_rows({RANDOM: 0.0, "a": 5.0, "b": 5.0}, 0.0)
    score = scored(fake).means()
    wine, digits = (
        fake["table"].eq(name) & fake["selector"].eq("a") for name in ("wine", "digits")
    )
    fake.loc[wine, ["failure", *rows.SCORES]] = ["time", *[np.nan] * len(rows.SCORES)]
    fake.loc[digits, ["failure", *rows.SCORES]] = [
        runs.NOT_FOR_TASK, *[np.nan] * len(rows.SCORES)
    ]  # fmt: skip
    after = scored(fake).means()
    assert after.loc["wine", "a"] == score.loc["wine", RANDOM]
    assert (
        np.isnan(after.loc["digits", "a"]) and after.loc["digits", "b"] == score.loc["digits", "b"]
    )
    assert verdict.failures(fake)[["selector", "failure", "table"]].to_numpy().tolist() == [
        ["a", "time", "wine"]
    ]


@pytest.mark.usefixtures("few_draws")
def test_an_easy_split_a_failure_and_noise_are_no_advantage() -> None:
    fake = fake_rows({RANDOM: 0.0, REFERENCE: 4.0, "a": 6.0, "b": 6.0, ALL: 5.0}, 0.0)
    fake = fake.assign(found=fake["selector"].map({RANDOM: 0.1, "a": 0.5, "b": 0.5}))
    fake[rows.SCORES_OF_ALL] = fake[rows.SCORES[:3]].where(fake["selector"] == ALL).to_numpy()
    fake.loc[fake["split"] == 1, [*rows.SCORES, *rows.SCORES_OF_ALL]] += 30.0
    names = list(dict.fromkeys(fake["table"]))
    hard = fake["selector"].eq("a") & fake["split"].eq(0)
    failed = fake["selector"].eq("b") & fake["table"].isin(names[: len(names) // 2])
    fake.loc[failed, ["failure", "found", *rows.SCORES]] = ["error", *[np.nan] * 13]
    noise = fake[fake["table"] == "wine"].assign(table="noise 100", failure="error")
    fake = pd.concat([fake[~hard], noise], ignore_index=True)
    table, _ = verdict.summary(fake)
    scores, shares = scored(fake), failed.sum() / 2 / len(names)
    assert conclusions.beside(scores).loc["a", "mean"] == pytest.approx(2.0)
    assert not conclusions.below_random(scores)["a"]
    cells = page.by_table(fake, ["a", "b", REFERENCE])
    np.testing.assert_allclose(cells.loc["a"] - cells.loc[REFERENCE], 2.0)
    np.testing.assert_allclose(cells.loc[ALL] - cells.loc[REFERENCE], 1.0)
    assert table.loc[["a", "b"], "beats all"].tolist() == pytest.approx([1.0, 1.0 - shares])
    assert table.loc["b", "found"] == pytest.approx(0.5 - 0.4 * shares)
    assert (table.loc["b", "failed"], table.loc["a", "failed"]) == (len(names) // 2, 0)
    found = conclusions.found_by_table(fake, ["a", "b"])
    assert found.loc["b", names[0]] == pytest.approx(10.0) and "noise 100" not in found


@pytest.mark.usefixtures("few_draws")
def test_a_skipped_selection_takes_as_long_as_its_limit() -> None:
    fake = fake_rows({RANDOM: 0.0, "a": 5.0, "b": 5.0}, 0.0)
    most = fake["table"].isin(list(TABLES)[:30])
    fake.loc[most & (fake["selector"] == "a"), ["failure", "cpu_seconds"]] = ["time", np.nan]
    fake.loc[most & (fake["selector"] == "b"), ["failure", "memory", "limit"]] = [
        "memory", np.nan, 900.0
    ]  # fmt: skip
    table, _ = verdict.summary(fake)
    assert table.loc["a", ["seconds", "memory"]].tolist() == [60.0, 100.0]
    assert table.loc["b", ["seconds", "memory"]].tolist() == [6.0, 900.0]


@settings(max_examples=10, deadline=None)
@given(st.permutations(list(range(5))), st.integers(0, 100))
def test_ratings_do_not_depend_on_the_order_of_selectors(order: list[int], seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(6, 2, 5))
    names = [RANDOM, "a", "b", "c", "d"]
    kept = list(TABLES)[:6]
    first = rate(Scores(values, kept, names), 1).elo
    again = rate(Scores(values[:, :, order], kept, [names[place] for place in order]), 1).elo
    pd.testing.assert_series_equal(first.sort_index(), again.sort_index(), atol=0.5)


def test_submissions_are_functions_estimators_or_methods(tmp_path: Path) -> None:
    data = generated.shifted(200, 12, 3, 1.5)
    good = set(data.informative)
    several = [
        SelectKBest,
        RFE(SVC(kernel="linear")),
        SelectFromModel(LogisticRegression()),
        LogisticRegression(),
        lambda X, y, k: f_test(X, y, k, 0)[:k],
    ]
    for what in several:
        answer = as_selector(what)(data.X, data.y, 3, 0)
        order = answer[0] if isinstance(answer, tuple) else answer
        assert set(order[:2]) < good, what
    assert as_selector(SelectFromModel(LogisticRegression()))(data.X, data.y, 5, 0)[1] == 3
    refuses(lambda: as_selector(SVC())(data.X, data.y, 3, 0), "says nothing about columns")
    refuses(lambda: as_selector("F test"), "the selector is a str")
    file = tmp_path / "mine.py"
    file.write_text("def select(X, y, k):\n    return [2, 1, 0]\n")
    assert load(f"{file}:select")(data.X, data.y, 3, 0) == [2, 1, 0]
    refuses(lambda: load(f"{file}:selct"), "has no selct; it has select")
    refuses(lambda: load("nowhere.py:select"), "no such file")


#: A submission that Python has to find again: by name, and by its folder.
SEVERAL_FILES = """
from __future__ import annotations
import dataclasses, pickle
import numpy as np
from scores.of_columns import sign

@dataclasses.dataclass
class Options:
    sign: int = sign

def score(X):
    return Options().sign * X.sum(axis=0)

def select(X, y, k):
    return np.argsort(pickle.loads(pickle.dumps(score))(X))
"""


@pytest.mark.parametrize("name", ["mine_of_several", "bisect"])
def test_a_submission_may_have_classes_processes_and_files_beside_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    for module in ("scores", "scores.of_columns", "scores.signs"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    (tmp_path / "scores").mkdir()
    mine = tmp_path / f"{name}.py"
    mine.write_text(SEVERAL_FILES)
    (tmp_path / "scores" / "of_columns.py").write_text("from .signs import sign\n")
    (tmp_path / "scores" / "signs.py").write_text("sign = -1\n")
    X = np.array([[1.0, 3.0, 2.0]])
    assert list(load(f"{mine}:select")(X, np.zeros(1), 3, 0)) == [1, 2, 0]
    assert sys.modules["bisect"] is bisect
    before = checksum(f"{mine}:select")
    (tmp_path / "unrelated.py").write_text("sign = 2\n")
    assert checksum(f"{mine}:select") == before
    (tmp_path / "scores" / "signs.py").write_text("sign = 1\n")
    assert checksum(f"{mine}:select") != before


def test_a_registered_function_builds_the_method_and_estimators_have_parameters() -> None:
    data = generated.shifted(100, 8, 2, 2.0)
    order = as_selector(fsjax.methods.fisher_score)(data.X, data.y, 2, 0)
    assert set(order[:2]) == set(data.informative)
    refuses(lambda: as_selector(SimpleNamespace(fit=None)), "has fit, but not get_params")


def test_what_is_missing_comes_split_by_split_and_what_was_stopped_is_not_tried_on_more() -> None:
    stopped = {"table": "wine", "selector": "a", "split": 0, "failure": "memory", "limit": 9.0}
    known = pd.DataFrame([stopped])
    pairs = [(name, split) for split in (0, 1) for name in ("wine", "digits")]
    batches = list(runner.missing(known, pairs, ["a", "b"]))
    assert batches[0] == [Job("wine", "b", 0)] and batches[1][0].table == "digits"
    assert [batch[0].split for batch in batches] == [0, 0, 1, 1]
    shapes = {"wine": (100, 13), "digits": (900, 64), "diabetes": (300, 10)}
    reason = "was stopped on wine, which is no larger"
    failure = {"failure": "memory", "limit": 9.0, "reason": reason}
    assert runner.stopped_before(Job("digits", "a", 0), known, shapes) == failure
    assert not runner.stopped_before(Job("diabetes", "a", 0), known, shapes)
    assert not runner.stopped_before(Job("digits", "b", 0), known, shapes)


def test_rows_do_not_depend_on_when_they_ran() -> None:
    none, names = rows.read(Path("none")), ["mine.py:select", "RFE", "F test"]
    lines = [
        {"table": table, "selector": name, "split": split}
        for table in ("wine", "mice")
        for name in names
        for split in (1, 0)
    ]
    first = rows.add(rows.add(none, lines[:5]), lines[5:])
    last = rows.add(rows.add(none, lines[7:]), lines[:7][::-1])
    pd.testing.assert_frame_equal(first.reset_index(drop=True), last.reset_index(drop=True))


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({}, 0),
        ({"limit": 30.0}, 0),  # of a run that did not fail
        ({"source": "of an earlier file"}, 1),
        ({"source": None}, 1),
        ({"failure": "error", "source": "of an earlier file"}, 1),
        ({"failure": "time", "limit": 60.0}, 0),
        ({"failure": "time", "limit": 30.0}, 1),
        ({"failure": "memory", "limit": 4000.0}, 1),
        ({"selector": "F test", "source": None, "failure": "time"}, 0),
    ],
)
def test_rows_of_an_edited_file_and_of_smaller_limits_are_run_again(
    change: dict[str, Any], left: int, tmp_path: Path
) -> None:
    mine = f"{tmp_path}/mine.py:select"
    (tmp_path / "mine.py").write_text("select = None\n")
    line = {"selector": mine, "source": checksum(mine), "failure": "", **change}
    path, none = tmp_path / "rows.parquet", rows.read(tmp_path / "none")
    rows.write(rows.add(none, [{"table": "wine", "split": 0, **line}]), path)
    some = ([("wine", 0)], [line["selector"]], 0.0, ENOUGH)
    known, note = runner.run_missing(path, none, *some)
    assert len(known) == 1 - left
    assert note.startswith("time is up: 1 of 1 selections are left;") is bool(left)
    assert rows.rivals(known, mine).equals(known) and rows.rivals(known, "other.py:one").empty == (
        bool(left) or line["selector"] == mine
    )


@pytest.mark.usefixtures("few_draws")
def test_a_selector_without_rows_has_no_place() -> None:
    mine = "mine.py:select"
    rated = page.report(fake_rows({RANDOM: 0.0, "a": 8.0}, 0.0), mine)
    assert rated.endswith(
        "mine.py:select has no place: of its 0 rows on these tables none is rated"
    )


@pytest.mark.usefixtures("few_draws")
def test_a_new_selector_is_rated_on_the_splits_that_it_and_rivals_have() -> None:
    fake = fake_rows({RANDOM: 0.0, "a": 0.5, "b": -0.5, ALL: 0.0}, 3.0)
    mine = "mine.py:select"
    failed = fake[(fake["selector"] == "a") & (fake["split"] == 0)].assign(
        selector=mine, failure="error", **dict.fromkeys(rows.SCORES, np.nan)
    )
    words = page.report(rows.add(fake, failed.to_dict("records")), mine)
    assert f"{mine}: place " in words and "of 4, Elo 1000 (" in words
    # On some tables none but the new one and controls have run.
    alone = fake["selector"].isin(["a", "b"]) & fake["table"].isin(["wine", "digits"])
    few = fake[~alone]
    better = few[(few["selector"] == RANDOM)].assign(selector=mine)
    both = rows.add(few, better.to_dict("records"))
    pairs = rows.pairs_with_rivals(both)
    assert ("mice", 1) in pairs and not {("wine", 0), ("digits", 1)} & pairs
    assert {*rows.to_rate(both, mine)["table"]} == {*fake["table"]} - {"wine", "digits"}
    only_noise = fake.assign(table="noise 100").drop_duplicates(rows.KEY)
    assert page.report(only_noise).startswith("there are no two selectors with rows")


@pytest.mark.usefixtures("few_draws")
def test_the_pages_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "_HALVES", 3)
    fake = fake_rows({RANDOM: 0.0, "a <b>": 8.0, REFERENCE: 4.0, ALL: 5.0}, 1.0)
    fake.loc[fake["selector"] == ALL, ["linear@all", "svm@all", "trees@all"]] = 75.0
    page.publish(fake, tmp_path)
    docs = tmp_path / "docs"
    summary = (docs / "tables" / "arena.md").read_text().splitlines()
    assert summary[2].startswith("| a <b> |") and len(summary) == 5
    shown = (docs / "assets" / "arena.html").read_text()
    assert "a &lt;b&gt; on wine: split 0: " in shown and "a <b>" not in shown
    assert "75.0" in (docs / "tables" / "arena_by_table.md").read_text().splitlines()[-1]
    assert (docs / "pictures" / "arena_front.png").stat().st_size > 10_000


class Scorer(BaseEstimator):
    """Has an attribute with given values, after fit."""

    def __init__(self, name: str = "scores_", values: tuple = ()) -> None:
        self.name, self.values = name, values

    def fit(self, X: np.ndarray, y: np.ndarray) -> Scorer:
        setattr(self, self.name, np.array(self.values))
        return self


class Tied(Scorer):
    """Selects two columns, whose ranks are equal, and holds a model of them."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Scorer:
        self.ranking_, self.estimator_ = [1, 2, 1], Scorer("coef_", (0.1, -5.0)).fit(X, y)
        return self

    def get_support(self, indices: bool = False) -> np.ndarray:
        return np.array([0, 2] if indices else [True, False, True])


@pytest.mark.parametrize(
    ("estimator", "order"),
    [
        (Scorer("scores_", (-3.0, -1.0, -2.0)), [1, 2, 0]),
        (Scorer("coef_", (-3.0, -1.0, 2.0)), [0, 2, 1]),
        (Tied(), [2, 0, 1]),
    ],
)
def test_scores_of_estimators_are_read_as_they_are_meant(estimator: Any, order: list[int]) -> None:
    assert list(as_selector(estimator)(np.zeros((4, 3)), np.arange(4), 2, 0)) == order


def test_numbers_of_columns_are_set_where_they_are_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    data, used = generated.shifted(200, 12, 3, 1.5), []
    fit = ExtraTreesClassifier.fit
    watched = lambda self, X, y: used.append(self.max_features) or fit(self, X, y)  # noqa: E731
    monkeypatch.setattr(ExtraTreesClassifier, "fit", watched)
    as_selector(ExtraTreesClassifier(5, max_features=2))(data.X, data.y, 6, 0)
    assert used == [2]
    svm = SVC(kernel="linear")
    whole = np.argsort(RFE(svm, n_features_to_select=1).fit(data.X, data.y).ranking_)
    np.testing.assert_array_equal(as_selector(RFE(svm))(data.X, data.y, 6, 0), whole)


#: Looks for the rows that judge, everywhere in its process.
CHEAT = """
import gc, sys
import numpy as np

def select(X, y, k):
    gc.collect()
    arrays = [each for each in gc.get_objects() if isinstance(each, np.ndarray)]
    frames, frame = [], sys._getframe()
    while frame:
        frames += [value for value in frame.f_locals.values() if isinstance(value, np.ndarray)]
        frame = frame.f_back
    longest = max(len(each) for each in [*arrays, *frames] if each.ndim == 2)
    raise RuntimeError(f"at most {longest} rows")
"""


@pytest.mark.slow
def test_a_selector_of_a_file_gets_its_place_and_sees_no_test_row(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\nfrom sklearn.feature_selection import f_classif\n\n"
        "def select(X, y, k):\n    return np.argsort(-f_classif(X, y)[0])\n"
    )
    (tmp_path / "cheat.py").write_text(CHEAT)
    some = ("--tables=wine", "--splits=1", f"--workdir={tmp_path}")
    rivals = launch_here(
        "arena/__main__", *some, f"--selectors={RANDOM}", "--selectors=F test", "--anew",
        "--cluster=local:1",
    )  # fmt: skip
    assert rivals.returncode == 0, rivals.stderr
    done = launch_here("arena/__main__", *some, f"--selector={tmp_path}/mine.py:select")
    assert "mine.py:select: place" in done.stdout and "no interval" in done.stdout
    assert "Certainly better than none; certainly worse than none;" in done.stdout
    mine = rows.read(tmp_path / "rows.parquet").set_index("selector")
    assert mine.loc[f"{tmp_path}/mine.py:select", "linear@5"] == mine.loc["F test", "linear@5"]
    row = runs.run(Job("wine", f"{tmp_path}/cheat.py:select", 0), ENOUGH)
    assert row["failure"] == "error" and f"at most {mine['rows'].iloc[0]} rows" in row["reason"]
    missing = launch_here("arena/__main__", *some, f"--selector={tmp_path}/mine.py:other")
    assert (
        missing.returncode == 2 and "has no other; it has np, f_classif, select" in missing.stderr
    )
