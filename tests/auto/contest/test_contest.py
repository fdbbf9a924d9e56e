"""Who competes, on which rows, in which order, and what is left out for lack of time.

Covers ``fsjax.auto.contest.judged_folds`` and ``fsjax.auto.contest.judge_choice``.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from auto_helpers import problem
from marks import slow_ids

import fsjax
from fsjax.auto import select_columns
from fsjax.auto.certainty import near_leaks
from fsjax.auto.certainty.decoy_competition import compete_with_decoys, quick_statistic
from fsjax.auto.contest import expected_time, network_rankings, ranked_units
from fsjax.auto.contest.budget import Clock
from fsjax.auto.contest.cross_validation import Contest
from fsjax.auto.contest.expected_time import ExpectedTime
from fsjax.auto.contest.fit_to_budget import fit_to_budget
from fsjax.auto.contest.fold_records import chance_level
from fsjax.auto.contest.judge import judges_of
from fsjax.auto.contest.judge_choice import trial_splits
from fsjax.auto.contest.network_settings import contenders
from fsjax.auto.contest.problem import (
    Problem,
    of_units,
    on_rows,
    representative_rows,
    sizes_of,
    with_kept,
)
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.rankers import SIMPLE, Ranking
from fsjax.auto.contest.rankers.parts import Part, standardise
from fsjax.auto.contest.scoring import METRICS
from fsjax.auto.reading.columns import Design, design_of_array


@pytest.mark.parametrize(
    ("units", "kept", "expected"),
    [
        (2, 0, (1,)),
        (10, 0, (1, 2, 3, 5, 8)),
        (200, 0, (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 192)),
        (2000, 0, (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 192, 307, 492, 786)),
        (10, 3, (3, 5, 8)),
    ],
)
def test_numbers_of_columns_go_on_to_half_of_them(units, kept, expected):
    assert sizes_of(units, kept) == expected


def test_columns_to_keep_come_first_and_costs_divide_importance():
    ranking = Ranking({2: np.array([4, 1])}, np.array([0.0, 3.0, 1.0, 2.0, 8.0]))
    example = problem(columns=5, keep=(2,))
    assert with_kept(ranking, example).order[2].tolist() == [2, 4]
    costly = problem(columns=5, costs=np.array([1.0, 1.0, 1.0, 1.0, 9.0]))
    assert with_kept(ranking, costly).order[2].tolist() == [1, 3]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_groups_and_the_order_of_time_reach_the_folds(task):
    groups = np.repeat(np.arange(24), 5)
    y = np.resize([0, 1], 120) if task == "classification" else np.linspace(0, 1, 120)
    example = on_rows(problem(task=task, y=y, row_groups=groups), np.arange(120))
    for fold in (fold for folds in example.rounds for fold in folds):
        assert not set(groups[fold.train]) & set(groups[fold.test])
    series = on_rows(problem(task=task, y=y, ordered=True), np.arange(120))
    for fold in series.rounds[0]:
        assert fold.train.max() < fold.test.min()


def test_rows_of_a_draw_keep_their_targets_and_groups():
    numbers = np.arange(1500)
    table = design_of_array(np.column_stack([np.sqrt(numbers), -np.log1p(numbers)]), None, None)
    groups = numbers // 3
    long = problem(1500, task="regression", y=1.0 * numbers, design=table, row_groups=groups)
    rows = representative_rows(long, 600)
    few = on_rows(long, rows)
    assert len(few.y) == 600
    np.testing.assert_array_equal(few.design.X, table.X[rows])
    np.testing.assert_array_equal(few.y, rows)
    np.testing.assert_array_equal(few.row_groups, groups[rows])


class Asked(Exception):
    """Ends a selection; its arguments are what came by."""


def test_rows_of_rare_classes_take_their_groups_and_weights_along(monkeypatch):
    def caught(problem: Problem, rows: np.ndarray) -> None:
        raise Asked(problem)

    monkeypatch.setattr(select_columns, "on_rows", caught)
    X, groups = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) // 5
    y, weights = np.r_[2, np.resize([0, 1], 59)], np.arange(1.0, 61.0)
    with pytest.raises(Asked) as asked:
        fsjax.select(X, y, row_groups=groups, sample_weight=weights)
    (common,) = asked.value.args
    np.testing.assert_array_equal(common.design.X, X[1:])
    np.testing.assert_array_equal(common.y, y[1:])
    np.testing.assert_array_equal(common.row_groups, groups[1:])
    np.testing.assert_allclose(common.weights, weights[1:] / weights[1:].mean())
    some = on_rows(common, np.arange(10, 50))
    np.testing.assert_array_equal(some.weights, common.weights[10:50])


def test_leaks_are_looked_for_on_rows_with_their_targets(monkeypatch):
    def caught(table: Design, y: np.ndarray, *others: object) -> None:
        raise Asked(table.X, y)

    monkeypatch.setattr(near_leaks, "leaks", caught)
    monkeypatch.setattr(near_leaks, "_LEAK_ROWS", 40)
    X = np.random.default_rng(0).normal(size=(90, 3))
    with pytest.raises(Asked) as asked:
        fsjax.select(X, X[:, 1])
    some, y = asked.value.args
    assert len(y) == 40
    np.testing.assert_array_equal(some[:, 1], y)


def test_columns_that_are_left_keep_their_costs_and_whether_they_are_kept():
    whole = problem(columns=5, costs=np.arange(1.0, 6.0), keep=(1, 4))
    some = of_units(whole, [0, 3, 4])
    assert some.design.units == ("x0", "x3", "x4") and some.keep == (2,)
    assert some.costs.tolist() == [1.0, 4.0, 5.0]
    np.testing.assert_array_equal(some.design.X, whole.design.X[:, [0, 3, 4]])


def test_a_judge_is_tried_on_columns_that_training_rows_chose(monkeypatch):
    rows, univariate = [], SIMPLE["univariate"]

    def watched(part: Part, *args: object) -> np.ndarray:
        rows.append(len(part.y))
        return univariate(part, *args)

    monkeypatch.setitem(SIMPLE, "univariate", watched)
    judge = judges_of("classification")[0]
    fit_to_budget(problem(columns=60), judge, Ledger(None), Clock(3600.0))
    assert rows == [96] * 5


def test_each_fold_has_a_seed_of_its_own_and_the_effort_of_the_method(monkeypatch):
    calls = []

    def watched(part: Part, task: str, seed: int, effort: float) -> np.ndarray:
        calls.append((len(part.y), task, seed, effort))
        return np.arange(part.X.shape[1], dtype=float)

    monkeypatch.setitem(SIMPLE, "random", watched)
    monkeypatch.setattr(ExpectedTime, "effort", lambda self, name: 0.3)
    contest = Contest(problem(columns=3, seed=7), Ledger(None), Clock(3600.0))
    contest.run_needed(1.0)
    contest.run_further_rounds(1.0)
    rounds = len(contest.problem.rounds)
    assert calls == [(96, "classification", 7 + fold, 0.3) for fold in range(5 * rounds)]
    assert rounds > 1


def test_the_chance_level_is_learnt_from_the_training_rows():
    metric = METRICS["accuracy"]._replace(chance=lambda train, test: len(train) - len(test))
    contest = Contest(problem(metric=metric), Ledger(None), Clock(3600.0))
    assert set(chance_level(contest.problem)) == {96 - 24}


def test_what_does_not_fit_is_left_out_and_costs_nothing(monkeypatch):

    def expected(self, name, folds=1):
        return 1e9 * (name == "lassonet")

    monkeypatch.setattr(ExpectedTime, "of_ranking", expected)
    contest = Contest(problem(), Ledger(None), Clock(3600.0))
    contest.run_needed(1.0)
    contest.run_simple(0.9)
    contest.run_networks(0.9)
    assert contest.left_out == {"lassonet": contest.left_out["lassonet"]}
    assert contest.left_out["lassonet"].startswith("was not tried: about")
    ran = {name for name, _ in contest.records.scores()}
    assert ran == {"all", "random", "univariate", "l1", "mrmr"}


def test_what_has_not_run_takes_the_expected_time(monkeypatch):
    monkeypatch.setattr(ExpectedTime, "of_ranking", lambda self, name, *_: 60.0 * (name == "l1"))
    contest = Contest(problem(300), Ledger(None), Clock(100.0))
    contest.run_needed(1.0)
    assert contest.expected.of_one("l1") == contest.expected.of_rankings("l1", 1) == 60.0
    # The decoys of a method for which there was no time are not free.
    assert compete_with_decoys(contest, "l1", 1.0, 1).sets == 0
    assert quick_statistic(contest, 1.0) == "l1"
    assert "decoys/statistic" not in contest.ledger


@pytest.fixture
def quick_networks(monkeypatch) -> list[str]:
    """Networks rank at once, and are named in the list."""
    names = []

    def ranked(name, parts, task, groups, sizes, seed):
        names.append(name)
        order = np.arange(int(groups.max()) + 1)
        return [Ranking({size: order[:size] for size in sizes}, -order) for _ in parts]

    monkeypatch.setattr(network_rankings, "rank_folds", ranked)
    return names


@pytest.mark.slow
def test_simple_methods_are_tried_again_before_the_third_network(monkeypatch, quick_networks):
    for name in ("l1", "mrmr"):

        def named(*arguments, name=name, rank=SIMPLE[name]):
            quick_networks.append(name)
            return rank(*arguments)

        monkeypatch.setitem(SIMPLE, name, named)
    networks = ("icap", "l1_l21", "binmask", "stg")
    example = problem(methods=("random", "univariate", "l1", "mrmr", *networks))
    contest = Contest(example, Ledger(None), Clock(3600.0))
    contest.run_needed(1.0)
    contest.run_simple(0.0)
    assert contest.late == ["l1", "mrmr"]
    contest.run_networks(0.9)
    order = list(dict.fromkeys(quick_networks))
    assert order == ["icap", "l1_l21", "l1", "mrmr", "binmask", "stg"] and not contest.left_out


def test_time_that_is_left_goes_to_the_cheapest_methods_that_were_left_out(
    monkeypatch, quick_networks
):
    def seconds(name, rows, columns, folds=5, kept=False):
        return {"binmask": 50.0, "stg": 10.0, "lassonet": 20.0}[name]

    monkeypatch.setattr(expected_time.network_settings, "network_seconds", seconds)
    example = problem(methods=("random", "univariate", "binmask", "lassonet", "stg"))
    contest = Contest(example, Ledger(None), Clock(3600.0))
    contest.run_needed(1.0)
    monkeypatch.setattr(expected_time.Pace, "of", lambda self, kind: 1.0)
    contest.run_networks(0.0)
    assert contest.late == ["binmask", "lassonet", "stg"] and not quick_networks
    assert contest.left_out["stg"].endswith(" s were needed, more than was left")
    left = contest.clock.left()
    assert contest.run_left_out(lambda name: 0.0) and quick_networks == ["stg"]
    # What a method would need afterwards is kept free.
    assert not contest.run_left_out(lambda name: left - 15.0)
    assert contest.run_left_out(lambda name: left - 45.0) and quick_networks == ["stg", "lassonet"]
    assert contest.late == ["binmask"]


def test_a_method_that_fails_is_not_tried_again_and_does_not_lose_the_others(monkeypatch):
    def failing(*args: object) -> None:
        raise ValueError("singular")

    monkeypatch.setitem(SIMPLE, "l1", failing)
    contest = Contest(problem(), Ledger(None), Clock(3600.0))
    contest.run_needed(1.0)
    contest.run_simple(0.9)
    monkeypatch.undo()
    contest.run_simple(0.9)
    assert contest.left_out == {"l1": "failed: singular"} and not contest.late
    assert "mrmr" in {name for name, _ in contest.records.scores()}


def test_the_judge_of_a_fold_does_not_know_its_test_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.resize([0, 1], 60)
    chosen = []
    for targets in (y, rng.permutation(y)):
        table = problem(y=y, design=design_of_array(X, None, None))
        sample = fit_to_budget(table, None, Ledger(None), Clock(3600.0))
        assert len(sample.judges) == 3
        fold = sample.rounds[0][0]
        # The judge stays, whatever the targets of the test rows are.
        sample.y[fold.test] = targets[fold.test]
        contest = Contest(sample, Ledger(None), Clock(3600.0))
        chosen.append(contest.judged.judge((0, 0)).name)
    assert chosen[0] == chosen[1]
    inner = on_rows(sample, fold.train)
    (split,) = trial_splits(inner, inner.rounds[0][:1])
    assert len(split[0].y) + len(split[1].y) == len(fold.train)


@pytest.mark.slow
def test_tall_tables_are_compared_on_as_many_rows_as_there_is_time_for():
    example = problem(30_000, 4)
    long = fit_to_budget(example, None, Ledger(None), Clock(3600.0))
    short = fit_to_budget(example, None, Ledger(None), Clock(2.0))
    assert len(short.y) <= len(long.y) == 10_000
    # The same plan is carried out when it is started again.
    ledger = Ledger(None)
    first = fit_to_budget(example, None, ledger, Clock(3600.0))
    again = fit_to_budget(example, None, ledger, Clock(0.1))
    assert len(again.y) == len(first.y) and again.judge == first.judge


def test_rows_are_drawn_in_proportion_by_groups_or_the_latest():
    y = np.repeat([0, 1], [29_000, 1_000])
    rows = representative_rows(problem(30_000, 3, y=y), 3000)
    assert len(rows) == 3000 and y[rows].sum() == 100
    for count in (1001, 1002, 1003):
        rows = representative_rows(problem(count, 3, y=np.arange(count) % 3), 1000)
        assert abs(len(rows) - 1000) <= 1 and np.ptp(np.bincount(rows % 3)) <= 1
    groups = np.repeat(np.arange(3000), 10)
    drawn = representative_rows(problem(30_000, 3, row_groups=groups), 3000)
    assert len(drawn) <= 3000 and (np.bincount(groups[drawn])[np.unique(groups[drawn])] == 10).all()
    assert representative_rows(problem(30_000, 3, ordered=True), 3000).min() == 27_000


def question() -> dict[str, Any]:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
    return {"X": X, "y": np.resize([0, 1], 60), "methods": ("l1",), "budget": 1e-6}


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished selection."""
    folder = tmp_path_factory.mktemp("answered")
    fsjax.select(**question(), workdir=folder)
    return folder


@pytest.mark.parametrize(
    "change",
    [
        {"X": pd.DataFrame(np.eye(60)[:, :4], columns=list("abcd"))},
        {"y": np.resize([1, 0], 60)},
        {"metric": "auc"},
        {"judge": "rbf"},
        {"impute": "mean"},
        {"row_groups": np.repeat(np.arange(12), 5)},
        {"ordered": True},
        {"keep": ["a"]},
        {"drop": ["c"]},
        {"costs": {"a": 2.0}},
        {"methods": ("l1", "forest")},
        {"seed": 1},
    ],
)
def test_other_questions_do_not_take_over_the_work_of_this_one(change, answered):
    with pytest.raises(fsjax.ConfigError, match="holds another selection"):
        fsjax.select(**question() | change, workdir=answered)


@pytest.mark.slow
def test_the_members_of_a_consensus_stay_when_more_methods_are_done():
    example = problem(methods=("random", "univariate", "forward", "rfe", "consensus"))
    ledger = Ledger(None)
    contest = Contest(example, ledger, Clock(3600.0))
    contest.run_needed(1.0)
    contest.run_simple(0.9)
    assert contest.records.members() == ("forward", "rfe")
    more = example.replace(methods=(*example.methods[:-1], "forest", "consensus"))
    again = Contest(more, ledger, Clock(3600.0))
    again.run_simple(0.9)
    assert "forest" in {name for name, _ in again.records.scores()}
    assert again.records.members() == ("forward", "rfe")


def test_costs_are_those_of_all_columns_of_a_selection():
    prices = np.linspace(1.0, 2.0, 700)
    example = problem(60, 700, costs=prices, sizes=(1, 600), methods=("random", "univariate"))
    contest = Contest(example, Ledger(None), Clock(3600.0))
    contest.run_needed(1.0)
    costs = contest.records.costs()
    assert costs["all", 700] == pytest.approx(np.full(len(costs["all", 700]), prices.sum()))
    # 600 columns cost at least what the 600 cheapest do, though fewer are remembered in order.
    assert np.nanmin(costs["univariate", 600]) >= prices[:600].sum()


def units_of_many_sizes() -> tuple[Part, np.ndarray]:
    """A part, and the unit of each column: 0 to 2 matter, with 1, 2 and 12 columns; others do not.

    Noise has 1, 2, 12, 1 and 12 columns. Two columns are a number and whether it is missing, twelve
    a category.
    """
    rng, rows = np.random.default_rng(0), 400

    def category() -> tuple[np.ndarray, np.ndarray]:
        level = np.resize(np.arange(12), rows)
        rng.shuffle(level)
        return np.eye(12)[level], np.resize([-1.0, 1.0], 12)[level]

    def with_missing() -> tuple[np.ndarray, np.ndarray]:
        missing = rng.random(rows) < 0.2
        number = np.where(missing, 0.0, rng.normal(size=rows))
        return np.column_stack([number, missing]), number

    number = rng.normal(size=rows)
    two, effect_of_two = with_missing()
    twelve, effect_of_twelve = category()
    noise = [rng.normal(size=(rows, 1)), with_missing()[0], category()[0]]
    noise += [rng.normal(size=(rows, 1)), category()[0]]
    y = (number + effect_of_two + effect_of_twelve + 0.2 * rng.normal(size=rows) > 0).astype(int)
    columns = [number[:, None], two, twelve, *noise]
    raw = np.hstack(columns)
    groups = np.repeat(np.arange(len(columns)), [part.shape[1] for part in columns])
    return Part(standardise(raw)[0], y, raw), groups


@slow_ids("binmask", "deep_lasso", "ip_cae", "lassonet", "sand", "shadow", "stg")
@pytest.mark.parametrize(
    "name", [name for name in (*SIMPLE, *contenders(400, 42, "classification")) if name != "random"]
)
def test_units_are_ranked_as_units_whatever_the_number_of_their_columns(name):
    part, groups = units_of_many_sizes()
    units = int(groups.max()) + 1
    example = problem(task="classification", y=part.y, design=design_of_array(part.raw, None, None))
    example = example.replace(
        design=dataclasses.replace(
            example.design, groups=groups, units=tuple(f"unit {unit}" for unit in range(units))
        )
    )
    if name in SIMPLE:
        ranking = ranked_units.rank(example, name, part, (units,), 0, 1.0)
    else:
        (ranking,) = ranked_units.rank_by_network(example, name, [part], (units,))
    place = np.argsort(ranking.order[units])
    # Noise of 12 columns comes after what matters and has fewer, a category that matters before
    # noise of one column.
    assert place[[0, 1]].max() < place[[4, 5, 7]].min() and place[2] < place[[3, 6]].min()


def test_random_columns_are_drawn_by_units():
    part, groups = units_of_many_sizes()
    design = dataclasses.replace(design_of_array(part.raw, None, None), groups=groups)
    units = tuple(f"unit {unit}" for unit in range(8))
    example = problem(y=part.y, design=dataclasses.replace(design, units=units))
    first = [
        ranked_units.rank(example, "random", part, (1,), s, 1.0).order[1][0] for s in range(800)
    ]
    assert np.bincount(first).min() > 60
