"""The judge: it suits the table, it may be the user's own, and it is chosen on inner folds."""

import numpy as np
import pytest
from bad_calls import bad_calls, refuses
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from fsjax.auto.contest.judge import (
    Judge,
    Judged,
    choose_judge,
    fitted,
    judged,
    judges_of,
    requested_judge,
)
from fsjax.auto.contest.rankers.parts import Part
from fsjax.auto.contest.scoring import METRICS, choose_metric, metric_named
from fsjax.evaluation import CoxRegression, concordance_index
from fsjax.tasks.output_metrics import d2_poisson


def halves(X: np.ndarray, y: np.ndarray) -> tuple[Part, Part, np.ndarray]:
    middle = len(y) // 2
    return Part(X[:middle], y[:middle]), Part(X[middle:], y[middle:]), np.arange(X.shape[1])


@pytest.mark.parametrize(
    ("shape", "best"), [("line", "linear"), ("ring", "rbf"), ("steps", "trees")]
)
def test_the_judge_that_fits_is_chosen(shape, best):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, {"line": 8, "ring": 6, "steps": 3}[shape]))
    y = X.sum(axis=1) + 0.5 * rng.normal(size=500)
    if shape == "ring":
        y = np.square(X).sum(axis=1)
    if shape == "steps":
        y = np.floor(4 * X[:, 0]) % 2 + 0.05 * rng.normal(size=500)
    judge, tried = choose_judge(
        judges_of("regression"), "regression", METRICS["r2"], [halves(X, y)], lambda *_: True
    )
    assert judge.name == best
    assert {trial.name for trial in tried} == {"linear", "rbf", "trees"}


def test_a_judge_that_takes_too_long_is_not_chosen():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 3))
    y = np.floor(4 * X[:, 0]) % 2
    judge, tried = choose_judge(
        judges_of("regression"), "regression", METRICS["r2"], [halves(X, y)],
        lambda judge, seconds: judge.name != "trees",
    )  # fmt: skip
    assert judge.name != "trees" and np.isnan(tried[-1].score)


def test_wide_tables_are_judged_as_they_are():
    # Coordinates in the space of the rows change nothing for a model with an L2 penalty.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 300))
    y = (X[:, :20].sum(axis=1) > 0).astype(int)
    train, test, columns = halves(X, y)
    ours = judged(judges_of("classification")[0], METRICS["accuracy"], "classification", train,
                  test, columns)  # fmt: skip
    plain = LogisticRegression(tol=1e-8, max_iter=1000).fit(train.X, train.y)
    assert ours.score == pytest.approx(100 * plain.score(test.X, test.y), abs=2.6)


def test_a_judge_and_a_metric_of_ones_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0.8).astype(int)
    train, test, columns = halves(X, y)
    forest = RandomForestClassifier(20, random_state=0)
    metric = choose_metric("balanced_accuracy", "classification", y)
    ours = judged(
        requested_judge(forest, "classification"), metric, "classification", train, test, columns
    )
    predictions = forest.fit(train.X, train.y).predict(test.X)
    assert ours.score == pytest.approx(balanced_accuracy_score(test.y, predictions))
    assert metric.chance(train.y, test.y) == 0.5
    assert metric_named("balanced_accuracy", "classification").show(0.51234) == "0.512"
    assert requested_judge("linear", "counts").words == "Poisson regression"
    assert requested_judge(None, "counts") is None


RARE = np.array([0] * 30 + [1] * 2)


@bad_calls(
    (lambda: requested_judge("liner", "regression"), "judge='liner': did you mean 'linear'"),
    (lambda: requested_judge(LogisticRegression(), "regression"), "judge=LogisticRegression"),
    (lambda: requested_judge(LinearRegression(), "classification"), "choose a classifier"),
    (lambda: requested_judge(LogisticRegression, "classification"), "an estimator"),
    (lambda: requested_judge(3, "classification"), "judge=3; choose one of"),
    (lambda: requested_judge(LinearRegression(), "survival"), "choose judge='linear'"),
    (lambda: choose_metric("acuracy", "classification", RARE), "metric='acuracy'", "did you mean"),
    (lambda: choose_metric("auc", "classification", np.arange(3)), "needs two classes"),
    (lambda: choose_metric("accuracy", "regression", RARE), "metric='accuracy' of regression"),
)
def test_bad_calls(bad):
    refuses(*bad)


class Recorder(BaseEstimator):
    """Keeps what it learns from."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Recorder":
        self.X_, self.y_ = X, y
        return self


def test_some_rows_of_many_are_learned_with_their_targets():
    part = Part(np.arange(50.0)[:, None], np.arange(50.0))
    judge = Judge("recorder", "a recorder", lambda train: Recorder(), most_rows=10)
    model, _ = fitted(judge, "regression", part, part, np.array([0]))
    assert len(model.y_) == 10
    np.testing.assert_array_equal(model.X_[:, 0], model.y_)


def test_chance_levels_come_from_the_training_rows():
    train, test = np.array([1.0, 3.0]), np.array([2.0, 5.0])
    assert METRICS["r2"].chance(train, test) == pytest.approx(-1.0)
    assert METRICS["d2"].chance(train, test) == pytest.approx(d2_poisson(test, np.full(2, 2.0)))
    assert METRICS["d2"].chance(train, test) < 0
    labels = np.array([[1, 1], [1, 0], [0, 0]])
    assert METRICS["label_accuracy"].chance(labels, np.array([[0, 0], [0, 1]])) == 25.0


def test_metrics():
    assert choose_metric(None, "classification", RARE).name == "auc"
    # Most classifiers of such a table predict one class for nearly all rows.
    assert choose_metric(None, "classification", np.array([0] * 84 + [1] * 16)).name == "auc"
    assert choose_metric(None, "classification", np.resize([0, 1], 32)).name == "accuracy"
    assert METRICS["accuracy"].chance(np.array([0, 0, 1]), np.array([0, 1, 1, 1])) == 25.0
    error = metric_named("neg_mean_absolute_percentage_error", "regression")
    assert not error.in_percent and error.bounds == (-np.inf, 0.0)
    assert metric_named("roc_auc", "classification").bounds == (0.0, 1.0)
    assert metric_named("adjusted_rand_score", "classification").bounds == (-np.inf, 1.0)
    # Mutual information is in nats.
    assert metric_named("mutual_info_score", "classification").bounds == (-np.inf, np.inf)
    # The labels of several outputs have scorers, too.
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(80, 3)), (rng.normal(size=(80, 2)) > 0).astype(int)
    model = judges_of("multilabel")[0].build(Part(X, labels)).fit(X, labels)
    for name in ("f1_macro", "roc_auc"):
        assert 0.0 < choose_metric(name, "multilabel", labels).score(model, X, labels) <= 1.0
    three = np.resize([0, 1, 2], 30)
    refuses(lambda: choose_metric("roc_auc", "classification", three), "does not suit this target")
    refuses(
        lambda: choose_metric("neg_mean_squared_log_error", "regression", -1.0 * three),
        "does not suit this target",
    )
    # One of few numbers may carry most of the variance by chance.
    far = np.r_[np.zeros(28), 1.0]
    assert choose_metric(None, "regression", far).name == "r2"
    assert choose_metric(None, "regression", np.r_[far, 0.0]).name == "rank_r2"


def test_more_columns_than_rows_in_a_cox_regression():
    # A ridge does not see the rotation that leaves as many columns as rows.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 90))
    y = np.column_stack([rng.exponential(np.exp(-1.2 * X[:, 1])) + 1e-3, rng.random(60) < 0.7])
    train, test = Part(X[:40], y[:40]), Part(X[40:], y[40:])
    risk = CoxRegression(1.0).fit(train.X, train.y).predict(test.X)
    ours = judged(judges_of("survival")[0], METRICS["concordance_index"], "survival", train, test,
                  np.arange(90))  # fmt: skip
    assert ours.score == pytest.approx(concordance_index(test.y[:, 0], test.y[:, 1], risk))


def test_the_last_bit_of_a_score_chooses_no_slower_judge(monkeypatch):
    scores = {"fast": 0.7, "slow": 0.7 + 2e-16}
    assert scores["fast"] < scores["slow"]
    monkeypatch.setattr(
        "fsjax.auto.contest.judge.judged", lambda judge, *_: Judged(scores[judge.name], None)
    )
    candidates = [Judge(name, name, lambda train: None) for name in scores]
    part = Part(np.zeros((2, 1)), np.zeros(2))
    split = (part, part, np.arange(1))
    judge, _ = choose_judge(candidates, "regression", METRICS["r2"], [split], lambda *_: True)
    assert judge.name == "fast"
