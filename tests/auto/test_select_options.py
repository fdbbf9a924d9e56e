"""Options of ``fsjax.select``: task, time, fdr, costs, judge, groups, columns to keep or drop.

Covers ``fsjax.auto.contest.request``, ``fsjax.auto.read_request``.
"""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from auto_helpers import LINEAR, QUICK, table
from bad_calls import bad_calls, refuses
from marks import slow_ids
from scipy import stats

import fsjax
from fsjax.auto import pipeline
from fsjax.auto.certainty import findings, stability
from fsjax.auto.contest import cross_validation, network_rankings
from fsjax.auto.contest.rankers import martingale_residuals
from fsjax.auto.contest.rankers.parts import Part
from fsjax.auto.read_request import Settings, read_request
from fsjax.errors import DataError


@pytest.mark.slow
def test_the_false_discovery_rate_decides_how_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 60))
    y = X[:, :6] @ np.ones(6) + rng.normal(size=300)
    result = fsjax.select(X, y, fdr=0.1, **LINEAR, budget=None)
    true = {f"x{i}" for i in range(6)}
    assert true <= set(result.columns) and len(result.columns) <= 8
    assert result.table.loc[result.table["selected"] == 1, "false_discovery_rate"].max() <= 0.1
    assert "estimated false discovery rate of at most 0.1" in result.statements[0]
    assert result.task == "regression" and result.metric == "r2" and result.fdr == 0.1


@pytest.mark.slow
def test_several_numbers_and_groups_of_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 7))
    y = np.column_stack([X[:, 0], X[:, 1] - X[:, 2]]) + 0.2 * rng.normal(size=(150, 2))
    result = fsjax.select(X, y, methods=QUICK, budget=None, row_groups=np.repeat(np.arange(30), 5))
    assert set(result.columns) == {"x0", "x1", "x2"}


def planted(task: str, rows: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Of nine columns the second and the sixth matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 9))
    signal = X[:, 1] - X[:, 5]
    if task == "counts":
        return X, rng.poisson(np.exp(1 + 0.6 * signal))
    if task == "multilabel":
        return X, (X[:, [1, 5]] + 0.1 * rng.normal(size=(rows, 2)) > 0).astype(int)
    event = rng.random(rows) < 0.7
    return X, np.column_stack([rng.exponential(np.exp(-1.2 * signal)) + 1e-3, event])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "metric", "least", "chance_level"),
    [
        ("survival", "concordance_index", 0.75, 0.5),
        pytest.param("counts", "d2", 0.6, 0.0, marks=pytest.mark.long),
        pytest.param("multilabel", "label_accuracy", 90, 50, marks=pytest.mark.long),
    ],
)
def test_other_targets(task, metric, least, chance_level):
    X, y = planted(task)
    result = fsjax.select(X, y, task=None if task == "multilabel" else task, methods=QUICK,
                        budget=None)  # fmt: skip
    assert (result.task, result.metric) == (task, metric)
    assert set(result.columns) == {"x1", "x5"} and result.better_than_chance
    assert result.score > least and abs(result.score_chance - chance_level) < 10
    assert result.table["false_discovery_rate"].iloc[:2].max() <= 0.1
    mixed = fsjax.select(X, np.random.default_rng(1).permutation(y), task=task, methods=QUICK,
                         budget=None)  # fmt: skip
    assert not mixed.better_than_chance


@slow_ids("counts")
@slow_ids("survival")
@pytest.mark.parametrize("task", ["survival", "counts"])
def test_networks_compete_for_other_targets(task):
    X, y = planted(task, 120)
    part = Part(X, y.astype(float))
    (ranking,) = network_rankings.rank_folds("deep_lasso", [part], task, np.arange(9), (2,), 0)
    assert set(ranking.order[2]) == {1, 5}


def test_martingale_residuals_are_those_of_the_definition():
    y = np.array([[2.0, 1], [1.0, 0], [3.0, 1], [2.0, 0], [5.0, 1]])
    hazard = {1: 0.0, 2: 1 / 4, 3: 1 / 4 + 1 / 2, 5: 1 / 4 + 1 / 2 + 1}
    expected = [event - hazard[time] for time, event in y]
    np.testing.assert_allclose(martingale_residuals(y), expected)
    assert abs(martingale_residuals(y).sum()) < 1e-12


def test_time_that_is_too_short_for_any_score_leaves_a_ranking_and_pages(tmp_path):
    frame, y = table()
    fsjax.select(frame, frame["weight"] ** 2, budget=1e-6, workdir=tmp_path / "numbers")
    assert (tmp_path / "numbers" / "report.html").exists()
    result = fsjax.select(frame, y, budget=1e-6, workdir=tmp_path)
    assert result.undecided and not result.better_than_chance and result.columns == []
    assert result.statements[0].startswith("Undecided: no fold of the cross-validation was scored")
    assert set(result.table["column"].iloc[:2]) == {"weight", "kind"}
    assert json.loads((tmp_path / "selection.json").read_text())["score"] is None
    assert (tmp_path / "report.html").exists()


def test_a_short_time_gives_a_short_answer(monkeypatch):
    # Time is up after the second fold of what is needed: two folds are compared.
    frame, y = table()
    real = cross_validation.Contest._fold

    def slow(self, name, fold):
        piece = real(self, name, fold)
        if name == "univariate" and fold == (0, 1):
            self.clock.stop()
        return piece

    monkeypatch.setattr(cross_validation.Contest, "_fold", slow)
    result = fsjax.select(frame, y, budget="1h")
    assert set(result.curves["method"]) == {"all", "random", "univariate"}
    assert (result.curves["folds"] == 2).all() and result.stopped
    (note,) = [note for note in result.notes if note.kind == "time"]
    assert "Lasso path" in note.text and "nothing is said about them" in note.text


#: Time and event with events in words.
DIED = pd.DataFrame({"weeks": np.arange(1.0, 241.0), "state": ["dead", "alive"] * 120})


@bad_calls(
    ({"y": np.zeros(240)}, "the target has only one value", "choose another column"),
    ({"y": np.zeros(5)}, "y has 5 values for 240 rows"),
    ({"y": None}, "y is 'None'; give one target for each row"),
    ({"y": DIED.set_axis(["a", "a"], axis=1), "task": "survival"}, "columns ['a', 'a']; give each"),
    ({"impute": "foo"}, "'mean', 'median'; or none (in Python None)"),
    ({"task": "clasification"}, "did you mean 'classification'"),
    ({"metric": "r2"}, "metric='r2' of classification"),
    ({"fdr": 2}, "fdr=2; choose a number between 0 and 1"),
    ({"methods": ("l2",)}, "methods='l2': allowed: 'random', 'univariate', 'l1'"),
    ({"budget": "soon"}, "choose a time such as"),
    ({"seed": -1}, "seed=-1"),
    ({"keep": ["wight"]}, "keep='wight': did you mean 'weight'"),
    ({"keep": ["weight"], "drop": ["weight"]}, "'weight' is in keep and in drop"),
    ({"costs": {"weight": 0}}, "costs", "'weight'", "=0; choose a number above 0"),
    ({"judge": "tree"}, "judge='tree': did you mean 'trees'"),
    ({"row_groups": np.zeros(240), "ordered": True}, "not both"),
    ({"task": "regression"}, "not numbers", "task='classification"),
    ({"task": "survival"}, "not numbers"),
    ({"task": "survival", "y": DIED}, "column 'state' holds 'dead'; write 1 for an event"),
    ({"task": "survival", "y": DIED.to_numpy(str)}, "column 1 holds 'dead'; write 1"),
    ({"task": "counts", "y": np.linspace(-1, 1, 240)}, "count"),
    ({"X": np.zeros(3)}, "X has shape"),
    ({"X": np.zeros((0, 3))}, "table of (rows, columns) with some rows"),
    ({"X": np.ones((240, 3))}, "no column is left"),
    ({"X": np.c_[np.ones(240), np.random.default_rng(0).random(240)]}, "one column, 'x1'"),
)
def test_bad_calls(bad, monkeypatch):
    monkeypatch.setattr(cross_validation.Contest, "_fold", lambda *_: pytest.fail("it ran"))
    frame, y = table()
    refuses(lambda: fsjax.select(**{"X": frame, "y": y, **bad[0]}), *bad[1:])


@pytest.mark.slow
def test_decoys_of_a_quick_statistic_answer_where_a_dear_one_has_no_time(monkeypatch):
    # What is asked for runs before networks do, and counts where their own decoys find no time.
    real = findings.compete_with_decoys

    def without_time(contest, statistic, *args):
        return (
            findings.no_decoys(10, statistic) if statistic != "l1" else real(contest, "l1", *args)
        )

    monkeypatch.setattr(findings, "decoy_statistic", lambda *_: "network")
    monkeypatch.setattr(findings, "compete_with_decoys", without_time)
    frame, y = table()
    result = fsjax.select(frame, y, **LINEAR, budget=None, fdr=0.2)
    assert result.facts.decoy_statistic == "l1" and {"weight", "kind"} <= set(result.columns)


@pytest.mark.slow
def test_columns_to_keep_are_selected_though_no_rate_is_known(monkeypatch):
    nothing = findings.no_decoys(10, "l1")
    monkeypatch.setattr(findings, "compete_with_decoys", lambda *_: nothing)
    monkeypatch.setattr(pipeline, "compete_with_decoys", lambda *_: nothing)
    frame, y = table()
    result = fsjax.select(frame, y, **LINEAR, budget=None, fdr=0.2, keep=["noise 3"])
    assert result.columns == ["noise 3"]
    assert "only the columns named in keep are selected" in result.statements[0]


def test_numbers_of_the_rows_are_offered_if_asked_for_and_a_boolean_is_the_event():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "id": range(0, 280, 7), "b": range(40, 0, -1)})
    lived = np.array([[False, 1.0], [True, 2.0]] * 20, object)
    settings = Settings(
        "survival", None, "median", ["univariate"], ["id"], (), None, None, False, 0, None
    )
    problem, _, notes = read_request(frame, lived, settings)
    assert problem.design.units == ("a", "id") and problem.keep == (1,)
    assert [note.column for note in notes if note.kind == "identifier"] == ["b"]
    np.testing.assert_array_equal(problem.y[:2], [[1.0, 0.0], [2.0, 1.0]])
    # Columns that are dropped may have costs.
    dropped = settings._replace(keep=[], drop=["x1"], costs={"x0": 2.0, "x1": 3.0})
    for X in (rng.normal(size=(40, 3)), sp.random_array((40, 3), density=0.5, rng=1)):
        assert read_request(X, lived, dropped)[0].costs.tolist() == [2.0, 1.0]


@pytest.mark.slow
def test_columns_to_keep_and_to_drop():
    frame, y = table()
    result = fsjax.select(frame, y, **LINEAR, budget=None, keep=["noise 3"], drop=["kind"])
    assert result.columns[0] == "noise 3" and "weight" in result.columns
    assert "kind" not in set(result.table["column"])
    assert result.facts.kept == ["noise 3"]
    # They are selected in any case, so that nothing is said about how often.
    assert np.isnan(result.table.set_index("column").loc["noise 3", "frequency"])
    assert "and 1 named in keep" in result.statements[0]
    rng = np.random.default_rng(1)
    nothing = fsjax.select(frame, rng.normal(size=240), **LINEAR, budget=None, keep=["weight"])
    assert nothing.columns == ["weight"] and not nothing.better_than_chance
    assert "Only the columns named in keep are selected" in nothing.statements[0]


@pytest.mark.slow
def test_effects_have_the_unit_of_a_target_whose_ranks_are_predicted_and_names_of_outputs():
    rng = np.random.default_rng(15)
    X = pd.DataFrame(rng.normal(size=(150, 3)), columns=list("abc"))
    y = 1000 * np.exp(1.6 * X["a"] + 1.2 * rng.normal(size=150))
    result = fsjax.select(X, y, **LINEAR, budget=None)
    slope = np.mean(stats.zscore(X["a"]) * (y - y.mean()))
    assert result.metric == "rank_r2" and result.table["slope"][0] == pytest.approx(slope)
    assert result.effects["curve"][0].predictions.min() > 0
    scores = X[["a", "b"]] + 0.1 * rng.normal(size=(150, 2)) - [0.0, 1.2]
    both = (scores > 0).astype(int).set_axis(["smoker", "ill"], axis=1)
    result = fsjax.select(X, both, **LINEAR, budget=None)
    assert set(result.table["direction"]) >= {"smoker rises", "ill rises"}
    assert any("with 'ill'" in note.text for note in result.notes)


@pytest.mark.slow
def test_cheap_columns_are_preferred_where_they_tell_the_same():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
    y = X["a"] + 0.3 * rng.normal(size=300)
    X["b"] = X["a"] + 0.05 * rng.normal(size=300)
    plain = fsjax.select(X, y, **LINEAR, budget=None)
    dear = fsjax.select(X, y, **LINEAR, budget=None, costs={plain.columns[0]: 100})
    assert set(plain.columns) | set(dear.columns) <= {"a", "b"}
    assert dear.columns[0] != plain.columns[0]


@pytest.mark.slow
def test_noise_by_patient_is_nothing_and_halves_keep_patients_whole(monkeypatch):
    rng = np.random.default_rng(2)
    patients = np.repeat(np.arange(25), 4)
    X = rng.normal(size=(25, 10))[patients] + 0.05 * rng.normal(size=(100, 10))
    y = rng.integers(0, 2, 25)[patients]
    result = fsjax.select(X, y, methods=QUICK, budget=None, row_groups=patients)
    assert not result.better_than_chance
    cut = []
    real = stability.halves

    def watched(*args):
        sides = real(*args)
        cut.append(bool(set(patients[sides[0]]) & set(patients[sides[1]])))
        return sides

    monkeypatch.setattr(stability, "halves", watched)
    signal = X + 3 * y[:, None] * (np.arange(10) == 4)
    reference = fsjax.select(signal, y, methods=QUICK, budget=None, row_groups=patients)
    assert reference.better_than_chance and cut and not any(cut)


def test_missing_numbers_are_imputed_by_default_and_listed():
    frame, y = table()
    frame.loc[::7, "weight"] = np.nan
    selection = fsjax.select(frame, y, **LINEAR, budget=1e-6)
    listed = "imputed: 'weight' has 35 of 240 values missing, replaced by the training rows' median"
    assert listed in str(selection)
    with pytest.raises(DataError, match="35 values are missing in 1 of 10 columns: 'weight'"):
        fsjax.select(frame, y, **LINEAR, impute=None)
