"""Paired comparisons: scores of rows add up to scores, and intervals hold what they should.

Covers ``fsjax.auto.contest.row_scores``.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from marks import slow_ids
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.svm import SVC

from fsjax.auto.certainty import comparisons
from fsjax.auto.certainty.comparisons import compare, comparison_table
from fsjax.auto.contest import cross_validation
from fsjax.auto.contest.budget import Clock
from fsjax.auto.contest.differences import BETTER, FoldGains, mean_difference, wider
from fsjax.auto.contest.judge import judges_of
from fsjax.auto.contest.problem import Problem, on_rows
from fsjax.auto.contest.progress_file import Ledger
from fsjax.auto.contest.rule import Choice, nested_scores
from fsjax.auto.contest.scoring import METRICS, metric_named
from fsjax.auto.reading.columns import design_of_array


def rows_of(task: str, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 4))
    line = X[:, 0] + rng.normal(size=120)
    y = {
        "accuracy": np.digitize(line, [-0.5, 0.5]),
        "auc": (line > 1).astype(int),
        "label_accuracy": (X[:, :2] + rng.normal(size=(120, 2)) > 0).astype(int),
        "r2": line,
        "d2": rng.poisson(np.exp(1 + X[:, 0])).astype(float),
        "concordance_index": np.stack([np.exp(-line).round(1), rng.integers(0, 2, 120)], axis=1),
    }
    return X, y[task]


class Risk:
    """Predicts the first column as the risk."""

    def predict(self, X):
        return X[:, 0].round(1)


MODELS = {
    "accuracy": LogisticRegression(),
    "auc": LogisticRegression(),
    "r2": Ridge(),
    "d2": PoissonRegressor(),
    "concordance_index": Risk(),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_mean_of_the_rows_is_the_score(name):
    X, y = rows_of(name)
    model = MODELS[name] if name == "concordance_index" else MODELS[name].fit(X[:60], y[:60])
    rows = METRICS[name].rows(model, X[60:], y[60:])
    assert rows.shape == (60,)
    assert rows.mean() == pytest.approx(METRICS[name].score(model, X[60:], y[60:]), abs=1e-9)


def test_areas_have_the_error_of_delong():
    # Against the spread of the area over many samples.
    model = SVC(kernel="linear")
    areas, errors = [], []
    X, y = rows_of("auc")
    model.fit(X, y)
    for seed in range(200):
        X, y = rows_of("auc", seed)
        rows = METRICS["auc"].rows(model, X, y)
        areas.append(rows.mean())
        errors.append(rows.std(ddof=1) / np.sqrt(len(rows)))
    assert np.mean(errors) == pytest.approx(np.std(areas), rel=0.2)


def test_concordance_has_the_error_of_its_rows():
    values, errors = [], []
    for seed in range(200):
        rows = METRICS["concordance_index"].rows(Risk(), *rows_of("concordance_index", seed))
        values.append(rows.mean())
        errors.append(rows.std(ddof=1) / np.sqrt(len(rows)))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.2)


def gains_of(rng, mean=0.0, training=0.0, groups=None):
    noise = rng.normal(size=100) if groups is None else rng.normal(size=20)[groups]
    folds = np.array_split(rng.permutation(100), 5)
    return [FoldGains(rows, mean + noise[rows] + training * rng.normal()) for rows in folds]


@pytest.mark.parametrize("training", [0.0, 0.5])
@pytest.mark.parametrize("grouped", [False, True])
def test_intervals_of_rows_hold_what_they_should(training, grouped):
    groups = np.arange(100) // 5 if grouped else None
    inside, widths = [], []
    for seed in range(200):
        gains = gains_of(np.random.default_rng(seed), 0.3, training, groups)
        result = mean_difference(gains, np.arange(100) if groups is None else groups, "rows")
        inside.append(result.low <= 0.3 <= result.high)
        widths.append(result.high - result.low)
    # Five folds estimate the variance between training sets roughly.
    assert (0.85 if training else 0.92) <= np.mean(inside) <= 0.99
    # Folds with groups on both sides: their means differ less than rows do.
    assert np.mean(widths) < (1.6 if grouped or training else 0.5)


def test_rounds_of_the_same_rows_are_no_further_rows():
    gains = gains_of(np.random.default_rng(0))
    once = mean_difference(gains, np.arange(100), "rows")
    twice = mean_difference([*gains, *gains], np.arange(100), "rows")
    assert twice.pairs == once.pairs == 100
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high), rel=0.05)
    assert wider(once, once._replace(low=-9.0)).low == -9.0


@pytest.mark.parametrize("rows, better", [(1, False), (2, False), (5, False), (12, True)])
def test_a_few_rows_show_nothing(rows, better):
    gains = np.where(np.arange(200) < rows, 100.0, 0.0)[np.random.default_rng(0).permutation(200)]
    folds = [FoldGains(part, gains[part]) for part in np.array_split(np.arange(200), 5)]
    result = mean_difference(folds, np.arange(200), "rows")
    assert (result.verdict(np.inf) == BETTER) == better


def contest_of(name: str, clock: Clock | None = None, **more) -> cross_validation.Contest:
    X, y = rows_of(name)
    X = np.hstack([X, np.random.default_rng(1).normal(size=(120, 8))])
    task = {"r2": "regression", "d2": "counts", "concordance_index": "survival",
            "label_accuracy": "multilabel"}.get(name, "classification")  # fmt: skip
    metric = metric_named(name, task)
    problem = Problem(
        design_of_array(X, None, None), y, task, metric, [], ("random", "univariate", "l1"), 0,
        sizes=(1, 2, 3, 5), judge=judges_of(task)[0], **more,
    )  # fmt: skip
    contest = cross_validation.Contest(
        on_rows(problem, np.arange(120)), Ledger(None), Clock(1e9) if clock is None else clock
    )
    contest.run_needed(1.0)
    contest.run_simple(1.0)
    return contest


@slow_ids("auc", "d2", "label_accuracy")
@pytest.mark.parametrize("name", [*MODELS, "label_accuracy"])
def test_a_selection_that_matters_is_better_than_random_columns(name):
    contest = contest_of(name)
    rows = compare(contest, contest.choice())
    assert [row.against.split()[0] for row in rows[:2]] == [
        "all",
        contest.choice().size.__str__(),
    ]
    assert "drawn at random" in rows[1].against and rows[1].verdict == BETTER
    assert {(row.difference.pairs, row.difference.unit) for row in rows} == {(120, "rows")}
    assert list(comparison_table(rows)["pairs"]) == ["120 rows"] * len(rows)


def test_a_round_that_was_not_finished_has_no_say():
    scores = {("all", 13): np.r_[[73.0] * 5, [75.0] * 5]}
    scores |= {(name, 2): np.r_[[90.0] * 5, [np.nan] * 5] for name in ("consensus", "univariate")}
    costs = None
    contest = SimpleNamespace(
        problem=SimpleNamespace(rounds=[0, 0], folds=5, metric=SimpleNamespace(margin=2.0)),
        records=SimpleNamespace(scores=lambda: scores, costs=lambda: costs),
    )
    chosen = comparisons.choices_by_fold(contest, Choice("consensus", 2, 90.0, "l1", 2, 90.0, 1.0))
    assert set(chosen) == {(0, fold) for fold in range(5)}
    assert {size for _, size in chosen.values()} == {2}
    # Two columns that cost more than all others are not chosen where these are not worse.
    scores["all", 13] += 17.0
    costs = {key: np.full(10, 9.0 / key[1]) for key in scores}
    choice = Choice("all", 13, 90.0, "all", 13, 90.0, 1.0)
    assert set(comparisons.choices_by_fold(contest, choice).values()) == {("all", 13)}


def test_dependent_rows_count_once():
    grouped = contest_of("r2", row_groups=np.arange(120) // 4)
    rows = compare(grouped, grouped.choice())
    assert {(row.difference.pairs, row.difference.unit) for row in rows} == {(30, "groups of rows")}
    series = contest_of("r2", ordered=True)
    assert {row.difference.unit for row in compare(series, series.choice())} == {"blocks of rows"}


def test_scorers_without_rows_compare_folds():
    contest = contest_of("r2")
    problem = contest.problem.replace(metric=contest.problem.metric._replace(rows=None))
    again = cross_validation.Contest(problem, Ledger(None), Clock(1e9))
    again.run_needed(1.0)
    again.run_simple(1.0)
    units = {row.difference.unit for row in compare(again, again.choice())}
    assert units == {"folds"}
    assert comparisons.paired_difference(again, again.choice(), "random") is None


def test_the_difference_over_folds_is_that_of_the_whole_procedure():
    scores = {("all", 9): np.full(5, 80.0), ("l1", 2): 80.0 + np.array([9.0, 0.0, 0.0, 0.0, 0.0])}
    scores["l1", 3] = 80.0 + np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    problem = SimpleNamespace(
        rounds=[range(5)], folds=5, share=0.25, metric=SimpleNamespace(margin=2.0),
        design=SimpleNamespace(num_units=9),
    )  # fmt: skip
    records = SimpleNamespace(scores=lambda: scores, costs=lambda: None)
    choice = Choice("l1", 2, 81.8, "l1", 2, 81.8, 1.0)
    contest = SimpleNamespace(problem=problem, records=records)
    gain = comparisons.fold_difference(contest, choice, "all").mean
    assert gain == pytest.approx(nested_scores(scores, 5, 2.0).mean() - 80.0) and gain < 1.0
