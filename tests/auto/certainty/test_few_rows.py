"""How exactly scores can be known from so many rows, and what is said where these are few."""

from types import SimpleNamespace

import numpy as np
import pytest
from auto_helpers import LINEAR
from marks import slow_ids
from scipy import stats
from sklearn.metrics import roc_auc_score

import fsjax
from fsjax.auto.certainty.few_rows import RowCounts, bounds_of, counts_of, few_rows, widened
from fsjax.auto.contest.scoring import METRICS

AUC, ACCURACY, R2 = METRICS["auc"], METRICS["accuracy"], METRICS["r2"]
RARE = RowCounts(1274, 8, "of class 'yes'", "row")


def test_eight_events_do_not_show_an_auc_of_99():
    low, high = bounds_of(0.99, AUC, RARE)
    assert low < 0.889 and high > 0.995
    assert widened((0.99, 0.969, 1.0), AUC, RARE) == (0.99, low, 1.0)
    text = few_rows(0.99, AUC, RARE, better=True)
    assert text.startswith("only 8 of the 1,274 rows are of class 'yes', too few to say how well")
    assert "± 0.10 at best" in text and "about 70 such rows would be needed for ± 0.05" in text
    assert few_rows(0.99, AUC, RARE._replace(fewest=1), True).startswith(
        "only 1 of the 1,274 rows is"
    )
    assert few_rows(0.9, AUC, RowCounts(1274, 200, "of class 'yes'", "row"), True) is None


@slow_ids("1.5")
@pytest.mark.parametrize("separation", [0.5, 1.5, 2.5])
def test_the_interval_of_an_auc_covers_it(separation):
    rng = np.random.default_rng(0)
    truth = stats.norm.cdf(separation / np.sqrt(2))
    y = np.resize([0, 0, 0, 0, 1], 100)
    covered = []
    for _ in range(200):
        score = roc_auc_score(y, rng.normal(size=100) + separation * y)
        low, high = bounds_of(score, AUC, RowCounts(100, 20, "with", "row"))
        covered.append(low <= truth <= high)
    assert 0.92 <= np.mean(covered) <= 1.0


def test_the_interval_of_an_accuracy_is_that_of_wilson():
    low, high = bounds_of(90.0, ACCURACY, RowCounts(60, 30, "of class a", "row"))
    exact = stats.binomtest(54, 60).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((100 * exact.low, 100 * exact.high))
    assert widened((90.0, 60.0, 99.0), ACCURACY, RowCounts(60, 30, "", "row")) == (90.0, 60.0, 99.0)
    unknown = (90.0, -np.inf, np.inf)
    assert widened(unknown, ACCURACY, RARE) == unknown


def test_the_interval_of_r2_covers_it():
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(200):
        x, noise = rng.normal(size=(2, 40))
        low, high = bounds_of(
            np.corrcoef(x, x + noise)[0, 1] ** 2, R2, RowCounts(40, 40, "", "row")
        )
        covered.append(low <= 0.5 <= high)
    assert np.mean(covered) >= 0.92
    assert bounds_of(0.5, METRICS["rank_r2"], RowCounts(40, 40, "", "row")) is not None
    low, high = bounds_of(-0.2, R2, RowCounts(40, 40, "", "row"))
    assert low == -0.2 < high


def problem(y, task, row_groups=None):
    return SimpleNamespace(y=np.asarray(y), task=task, row_groups=row_groups)


def test_what_is_counted():
    y = np.array([0, 0, 0, 1, 2, 2])
    assert counts_of(problem(y, "classification"), ("a", "b", "c")) == RowCounts(
        6, 1, "of class 'b'", "row"
    )
    groups = np.array([0, 0, 0, 1, 2, 2])
    assert counts_of(problem(y, "classification", groups), ("a", "b", "c"))[:1] == (3,)
    # Several targets in a group: its rows tell more than one row.
    assert counts_of(problem(y, "classification", groups // 2)).unit == "row"
    survival = np.array([[3.0, 1], [2, 0], [4, 0], [1, 1]])
    assert counts_of(problem(survival, "survival")) == RowCounts(4, 2, "with an event", "row")
    labels = np.array([[1, 0], [0, 1], [1, 1], [0, 1]])
    assert counts_of(problem(labels, "multilabel")) == RowCounts(4, 1, "without label 1", "row")
    assert counts_of(problem([1.5, 2.0, 7.0], "regression")) == RowCounts(3, 3, "", "row")


@pytest.mark.parametrize(
    ("name", "score", "counts", "better", "parts"),
    [
        ("accuracy", 80.0, RowCounts(30, 15, "of class 1", "row"), False,
         ["only 30 rows", "more than a strong relation", "± 14 points"]),
        ("accuracy", 80.0, RowCounts(50, 25, "of class 1", "group"), True,
         ["only 50 groups", "about 270 groups would be needed for ± 5 points"]),
        ("accuracy", 95.0, RowCounts(500, 6, "of class 'x'", "row"), True,
         ["only 6 of the 500 rows are of class 'x'", "such rows would be needed to know"]),
        # The accuracy over all rows is known better than to 5 points; that of a class of 4 is not.
        ("accuracy", 33.0, RowCounts(500, 4, "of class '10'", "row"), True,
         ["too few to say how well these", "their share of correct predictions to ± 5"]),
        ("concordance_index", 0.7, RowCounts(300, 12, "with an event", "row"), True,
         ["only 12 of the 300 rows are with an event", "such rows"]),
        ("r2", 0.5, RowCounts(50, 50, "", "row"), True, ["only 50 rows", "± 0.05"]),
        ("label_accuracy", 90.0, RowCounts(400, 5, "with label 2", "row"), True, ["with label 2"]),
        ("r2", -0.1, RowCounts(20, 20, "", "row"), False, ["more than a strong relation"]),
        ("accuracy", 80.0, RowCounts(300, 100, "of class 1", "row"), True, []),
        ("concordance_index", 0.7, RowCounts(300, 150, "with an event", "row"), True, []),
        ("r2", 0.5, RowCounts(1000, 1000, "", "row"), True, []),
    ],
)  # fmt: skip
def test_few_rows_are_said(name, score, counts, better, parts):
    text = few_rows(score, METRICS[name], counts, better)
    assert (text is None) == (not parts)
    assert all(part in text for part in parts), text


@pytest.mark.slow
def test_a_selection_says_how_few_events_it_is_from():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = np.where(np.argsort(np.argsort(X[:, 1] + 0.3 * rng.normal(size=400))) >= 392, "yes", "no")
    result = fsjax.select(X, y, **LINEAR, budget=None)
    low, high = result.score_interval
    assert result.metric == "auc" and high - low > 0.08
    assert any("8 of the 400 rows are of class 'yes'" in text for text in result.statements)
    assert [note.kind for note in result.notes if note.kind == "few rows"]


def test_no_more_rows_are_asked_for_where_they_suffice():
    text = few_rows(1.0, AUC, RowCounts(1274, 19, "of class 'x'", "row"), True)
    assert text.endswith("the AUC is known to \u00b1 0.05 at best")
    text = few_rows(1.0, AUC, RowCounts(1274, 15, "of class 'x'", "row"), True)
    assert "0.06 at best; about 45 such rows would be needed for \u00b1 0.05" in text
