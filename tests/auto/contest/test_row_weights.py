"""Rows with weights: checks, rankings, models, scores, and whole selections.

Covers ``fsjax.auto.contest.row_weights`` and :func:`fsjax.auto.contest.problem.in_proportion`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from auto_helpers import LINEAR, table
from bad_calls import bad_calls, refuses
from marks import slow_ids
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fsjax
from fsjax.__main__ import main
from fsjax.auto import pipeline
from fsjax.auto.certainty import permutation_test, unit_tests
from fsjax.auto.certainty.false_discovery import decoy_model, simple_scores
from fsjax.auto.contest import folds
from fsjax.auto.contest.fold_records import chance_score
from fsjax.auto.contest.folds import Fold, parts
from fsjax.auto.contest.judge import fitted, judged, judges_of, requested_judge
from fsjax.auto.contest.network_rankings import rank_folds
from fsjax.auto.contest.problem import Problem, in_proportion
from fsjax.auto.contest.rankers import SIMPLE
from fsjax.auto.contest.rankers.parts import Part, standardise
from fsjax.auto.contest.row_weights import check_takes_weights, checked_weights, weighted_rows_of
from fsjax.auto.contest.scoring import METRICS, check_weighs_rows, metric_named
from fsjax.auto.contest.stacked_fits import scores_of_tables
from fsjax.auto.reading.column_operations import means_and_deviations
from fsjax.auto.reading.columns import design, design_of_array

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 5))
WEIGHTS = RNG.integers(1, 4, 90).astype(float)
COPIES = np.repeat(np.arange(90), WEIGHTS.astype(int))
#: By task: targets of which the first columns explain a part.
TARGETS: dict[str, Any] = {
    "classification": (X[:, 0] + 0.5 * X[:, 1] + RNG.normal(size=90) > 0).astype(int),
    "regression": X[:, 0] + 0.5 * X[:, 1] + RNG.normal(size=90),
}
#: Extremely randomised trees draw thresholds per fit, so copies change them.
EXACT = ("univariate", "l1", "mrmr", "forward")


def weighted(task: str, sparse: bool = False) -> tuple[Part, Part]:
    """The rows with weights, and the rows repeated as often."""
    columns = sp.csr_array(np.where(X > 0.3, X, 0.0)) if sparse else X
    whole = np.asarray(TARGETS[task])
    (few,) = standardise(columns, weights=WEIGHTS)
    (many,) = standardise(columns[COPIES])
    return Part(few, whole, weights=WEIGHTS), Part(many, whole[COPIES])


@pytest.mark.parametrize("sparse", [False, True])
def test_moments_are_those_of_repeated_rows(sparse: bool) -> None:
    columns = sp.csr_array(np.where(X > 0.3, X, 0.0)) if sparse else X
    for ours, theirs in zip(
        means_and_deviations(columns, 7 * WEIGHTS),
        means_and_deviations(columns[COPIES]),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("task", list(TARGETS))
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("sparse", [False, True])
def test_rankers_treat_weights_as_repetitions(name: str, task: str, sparse: bool) -> None:
    few, many = weighted(task, sparse)
    ours, theirs = (SIMPLE[name](part, task, 0, 1.0) for part in (few, many))
    plain = SIMPLE[name](Part(standardise(few.X)[0], few.y), task, 0, 1.0)
    if name in ("mrmr", "forward"):
        assert ours.argmax() == theirs.argmax()
    else:
        scale = (len(COPIES) - 2) / (len(X) - 2) if name == "univariate" else 1.0
        np.testing.assert_allclose(ours * scale, theirs, rtol=0.02, atol=2e-3)
        assert np.abs(ours - plain).max() > 1e-3


@pytest.mark.parametrize("name", ["forest", "shadow", "rfe", "forward", "mrmr"])
def test_every_ranker_prefers_the_column_that_the_weights_prefer(name: str) -> None:
    rows, target, weights = opposed(400, every=5)
    (scaled,) = standardise(rows, weights=weights)
    scores = SIMPLE[name](Part(scaled, target, weights=weights), "classification", 0, 0.5)
    assert scores[0] > scores[1]


@slow_ids("ip_cae")
@pytest.mark.parametrize("name", ["ip_cae", "l1_l21", "icap"])
def test_methods_of_the_library_prefer_the_column_that_the_weights_prefer(name: str) -> None:
    rows, target, weights = opposed(300)
    (scaled,) = standardise(rows, weights=weights)
    part = Part(scaled, target, rows, weights)
    (ranking,) = rank_folds(name, [part], "classification", np.arange(4), (1,), 0)
    assert ranking.order[1].tolist() == [0]


def test_columns_beside_decoys_prefer_the_column_that_the_weights_prefer() -> None:
    rows, target, weights = opposed(300)
    draw = decoy_model(rows, np.arange(4))
    for of_rows, best in ((None, 1), (weights, 0)):
        part = Part(standardise(rows, weights=of_rows)[0], target, weights=of_rows)
        scores, _ = simple_scores(part, draw, "classification", 4, "l1", 0)
        assert scores.argmax() == best
        method = fsjax.methods.l1_l21()
        scores = scores_of_tables(
            method, [part.X], target, "classification", sample_weight=of_rows, num_features=1
        )
        assert scores.argmax() == best


def opposed(rows: int, every: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Column 1 predicts most rows and column 0 the rows of large weight; two more are noise."""
    rng = np.random.default_rng(1)
    columns, target = rng.normal(size=(rows, 4)), rng.integers(2, size=rows)
    heavy = np.arange(rows) % every == 0
    columns[:, 0] += np.where(heavy, 3.0, 0.0) * (target - 0.5)
    columns[:, 1] += np.where(heavy, 0.0, 3.0) * (target - 0.5)
    weights = np.where(heavy, 20.0, 1.0)
    return columns, target, weights / weights.mean()


@pytest.mark.parametrize("model", [LinearRegression(), make_pipeline(LinearRegression())])
def test_scores_are_those_of_repeated_rows(model: Any) -> None:
    y, fold = np.asarray(TARGETS["regression"]), Fold(np.arange(60), np.arange(60, 90))
    judge = requested_judge(model, "regression")
    few = parts(design_of_array(X, None, None), y, fold, WEIGHTS)
    again = design_of_array(X[COPIES], None, None)
    many = parts(again, y[COPIES], Fold(*(np.flatnonzero(np.isin(COPIES, f)) for f in fold)))
    scores = [
        judged(judge, METRICS["r2"], "regression", *sides, np.arange(5)).score
        for sides in (few, many)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)
    np.testing.assert_allclose(WEIGHTS[:60] @ few[0].X, 0.0, atol=1e-9)


def test_every_metric_weighs_rows() -> None:
    y, weights = np.asarray(TARGETS["classification"]), WEIGHTS
    labels = np.stack([y, X[:, 1] > 0], axis=1).astype(int)
    counts, numbers = np.abs(np.round(3 * X[:, 0])), np.asarray(TARGETS["regression"])
    for name, task, target in (
        ("accuracy", "classification", y),
        ("auc", "classification", y),
        ("balanced_accuracy", "classification", y),
        ("label_accuracy", "multilabel", labels),
        ("r2", "regression", numbers),
        ("neg_mean_absolute_error", "regression", numbers),
        ("d2", "counts", counts),
    ):
        metric, many = metric_named(name, task), target[COPIES]
        train = Part(X, target, weights=weights)
        model, _ = fitted(judges_of(task)[0], task, train, train, np.arange(5))
        ours, theirs = metric.score(model, X, target, weights), metric.score(model, X[COPIES], many)
        assert ours == pytest.approx(theirs), name
        by_chance = metric.chance(target, target, weights, weights)
        assert by_chance == pytest.approx(metric.chance(many, many)), name
        assert metric.score(model, X, target) != pytest.approx(ours), name


@pytest.mark.parametrize("task", ["classification", "regression", "counts", "multilabel"])
def test_every_judge_takes_weights(task: str) -> None:
    y = np.abs(np.round(np.asarray(TARGETS["regression"]))) + (task == "counts")
    if task in ("classification", "multilabel"):
        y = np.asarray(TARGETS["classification"])
    y = np.stack([y, y[::-1]], axis=1) if task == "multilabel" else y
    others, heavy = np.random.default_rng(2).normal(size=(300, 5)), np.where(X[:, 0] > 0, 50.0, 1.0)
    for judge in judges_of(task)[: 1 if task == "multilabel" else None]:
        few, plain = (
            fitted(judge, task, Part(X, y, weights=weights), Part(X, y), np.arange(5))[0]
            for weights in (heavy, None)
        )
        assert (few.predict(others) != plain.predict(others)).any(), judge.name


def select(**options: Any) -> Any:
    """A selection of 60 rows, which never runs."""
    frame, y = table(60)
    return fsjax.select(frame, options.pop("y", y), **options)


NEIGHBOURS = KNeighborsClassifier()
TIMES = np.stack([np.arange(1.0, 61.0), np.arange(60) % 2], axis=1)
SHUFFLED = pd.Series(np.arange(60.0)).sample(frac=1.0, random_state=0)


@bad_calls(
    *(
        (lambda model=model: check_takes_weights(model), "does not take sample_weight")
        for model in (NEIGHBOURS, make_pipeline(NEIGHBOURS), GridSearchCV(NEIGHBOURS, {}))
    ),
    (
        lambda: select(judge=NEIGHBOURS, sample_weight=np.arange(60)),
        "KNeighborsClassifier does not take sample_weight",
    ),
    (lambda: check_weighs_rows(metric_named("neg_max_error", "regression")), "neg_max_error"),
    (lambda: select(y=TIMES, task="survival", sample_weight=np.arange(60)), "survival"),
    (lambda: select(sample_weight=np.ones(59)), "sample_weight"),
    (lambda: select(sample_weight=np.ones((60, 2))), "sample_weight"),
    (lambda: select(sample_weight=np.full(60, -1.0)), "egative"),
    (lambda: select(sample_weight=np.full(60, np.nan)), "NaN"),
    (lambda: select(sample_weight=np.full(60, np.inf)), "inf"),
    (lambda: select(sample_weight=np.zeros(60)), "non-zero"),
    (lambda: select(sample_weight=["heavy"] * 60), "sample_weight"),
    (lambda: select(sample_weight="balanced"), "sample_weight"),
    (lambda: select(sample_weight=SHUFFLED), "sample_weight"),
)
def test_bad_calls(bad: tuple) -> None:
    refuses(*bad)


def test_models_that_take_weights_pass() -> None:
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]})
    for model in (GaussianNB(), make_pipeline(StandardScaler(), LogisticRegression()), search):
        check_takes_weights(model)


def test_equal_weights_are_no_weights() -> None:
    assert checked_weights(None, 3) is None
    assert checked_weights([2, 2, 2], 3) is None
    rows = weighted_rows_of(X, TARGETS["regression"], None, np.where(X[:, 0] > 0, 3.0, 0.0))
    assert rows.weights is None and len(rows.X) == (X[:, 0] > 0).sum()
    assert "were left out" in rows.notes[0].text


@pytest.mark.slow
def test_selections_with_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal weights change nothing, and rows of weight 0 are as if they were not there."""
    frame, y = table(80)
    frame.loc[3, "weight"] = np.nan
    monkeypatch.setattr(permutation_test, "DRAWS", 99)

    def selection(rows: np.ndarray, weights: np.ndarray | None) -> fsjax.auto.Selection:
        options: dict[str, Any] = {**LINEAR, "budget": None, "row_groups": rows // 2}
        options["methods"] = ("univariate",)
        return fsjax.select(frame.iloc[rows], y[rows], sample_weight=weights, **options)

    every, weights = np.arange(80), np.arange(80) % 3.0
    plain, equal = selection(every, None), selection(every, np.full(80, 0.2))
    pd.testing.assert_frame_equal(plain.table, equal.table)
    assert plain.statements == equal.statements and plain.notes == equal.notes
    rows = np.flatnonzero(weights)
    left_out, absent = selection(every, weights), selection(rows, 5 * weights[rows])
    pd.testing.assert_frame_equal(left_out.table, absent.table)
    pd.testing.assert_frame_equal(left_out.curves, absent.curves)
    assert left_out.score == absent.score and left_out.p_value == absent.p_value
    kinds = [note.text for note in left_out.notes if note.kind == "weights"]
    assert "27 of 80" in kinds[0] and "count all rows alike" in kinds[1]


@pytest.mark.slow
def test_all_rows_that_are_ranked_and_judged_have_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the whole procedure, only effects and the permutation test see rows without weights."""
    unweighted, has_weights = [False], list[bool]()

    def recorded(*values: Any) -> Part:
        part = Part(*values)
        has_weights.append(part.weights is not None or unweighted[0])
        return part

    def allowed(*arguments: Any) -> Part:
        unweighted[0] = True
        part = folds.all_rows(*arguments)
        unweighted[0] = False
        return part

    def in_equal_rows(problem: Problem, *arguments: Any) -> permutation_test.Chance:
        assert problem.weights is None and len(np.unique(problem.row_groups)) < 150
        return permutation_test.chance_test(problem, *arguments)

    monkeypatch.setattr(pipeline, "chance_test", in_equal_rows)
    monkeypatch.setattr(folds, "Part", recorded)
    monkeypatch.setattr(unit_tests, "all_rows", allowed)
    monkeypatch.setattr(permutation_test, "all_rows", allowed)
    rows, target, weights = opposed(150)
    options: dict[str, Any] = {"methods": ("univariate",), "budget": None}
    fsjax.select(rows, target, judge="linear", sample_weight=weights, **options)
    assert len(has_weights) > 10 and all(has_weights)


def test_the_score_without_columns_counts_rows_by_weight() -> None:
    y = np.array([0, 0, 0, 1, 0, 1])
    weights = np.array([1.0, 1.0, 1.0, 9.0, 1.0, 3.0])
    table_of_rows = design_of_array(X[:6], None, None)
    problem = Problem(table_of_rows, y, "classification", METRICS["accuracy"], [], (), 0)
    fold = Fold(np.arange(4), np.arange(4, 6))
    assert chance_score(problem, fold) == 50.0
    assert chance_score(problem.replace(weights=weights), fold) == 75.0


@pytest.mark.parametrize(("rule", "fill"), [("mean", 2.5), ("median", 3.0)])
def test_imputation_counts_rows_by_weight(rule: str, fill: float) -> None:
    column = np.array([1.0, 2.0, 3.0, np.nan])
    frame = pd.DataFrame({"a": column, "b": [0.1, 0.2, 0.5, 0.4]})
    part = folds.all_rows(design(frame, rule), column, None, np.array([1.0, 1.0, 4.0, 1.0]))
    assert part.raw is not None and part.raw[3, 0] == fill


def test_the_permutation_test_sees_rows_in_proportion() -> None:
    y = np.arange(40.0)
    weights = np.where(y < 10, 3.0, 1.0)
    table_of_rows = design_of_array(X[:40], None, None)
    problem = Problem(table_of_rows, y, "regression", METRICS["r2"], [], (), 0, weights=weights)
    repeated = in_proportion(problem)
    assert repeated.weights is None and len(repeated.y) == 40
    counts = np.bincount(repeated.y.astype(int), minlength=40)
    assert set(counts[:10]) == {2} and counts[10:].sum() == 20 and counts[10:].max() == 1
    assert repeated.row_groups is not None and (repeated.row_groups == repeated.y).all()
    assert in_proportion(problem.replace(weights=None)).y is y


@pytest.mark.slow
def test_the_flag_names_the_column_of_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    frame, y = table(60)
    frame["class"], frame["times"] = y, np.arange(60) % 3
    frame.to_csv("table.csv", index=False)
    flags = ["--target=class", "--budget=20s", "--methods=univariate", "--judge=linear", "--quiet"]
    assert main(["select", "table.csv", "--weights=times", *flags]) == 0
    assert "times" not in (tmp_path / "table-selection" / "columns.csv").read_text()
    frame["times"] = "often"
    frame.to_csv("table.csv", index=False)
    assert main(["select", "table.csv", "--weights=times", *flags]) == 2
    assert "column 'times' holds no numbers" in capsys.readouterr().err
    assert main(["select", "table.csv", "--weights=time", *flags]) == 2
    assert "--weights=time: did you mean 'times'?" in capsys.readouterr().err
