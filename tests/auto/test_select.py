"""``fsjax.select`` and ``AutoSelector``: what they say of tables whose truth is known."""

import json
import warnings
from types import SimpleNamespace

import chex
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

import fsjax
from fsjax.auto import answer, compete, discoveries, library, stability
from fsjax.auto.rankers import martingale_residuals
from fsjax.auto.rankers.parts import Part
from fsjax.errors import ConfigError, DataError
from fsjax.estimators import AutoSelector

QUICK = ("univariate", "l1")

#: For tests of anything but the choice of the judge: boosted trees take most of a selection.
LINEAR = {"methods": QUICK, "judge": "linear"}


def table(rows: int = 240, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Two of ten columns matter; one of them is a category."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 8)), columns=[f"noise {i}" for i in range(8)])
    frame.insert(3, "weight", rng.normal(size=rows))
    frame.insert(6, "kind", rng.choice(["a", "b", "c"], rows))
    y = np.where(frame["weight"] + 1.5 * (frame["kind"] == "b") > 0.5, "yes", "no")
    return frame, y


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> fsjax.auto.Selection:
    frame, y = table()
    folder = tmp_path_factory.mktemp("selection")
    selection = fsjax.select(frame, y, **LINEAR, budget=None, workdir=folder)
    selection.facts["folder"] = str(folder)
    return selection


def test_it_finds_the_columns_that_matter(reference):
    assert set(reference.columns) == {"weight", "kind"}
    assert reference.num_features == 2 and reference.better_than_chance and reference.finished
    assert reference.task == "classification" and reference.metric == "accuracy"
    assert reference.score > 90 > reference.score_chance > 40
    assert reference.score <= reference.score_at_choice + 2
    assert reference.statements[0].startswith("2 of 10 columns are enough")
    low, high = reference.score_interval
    assert low < reference.score < high
    assert reference.p_value <= reference.level == 0.01 and reference.judge
    chosen = reference.table[reference.table["selected"] == 1]
    assert set(chosen["column"]) == {"weight", "kind"}
    assert (chosen["frequency"] == 1).all()
    assert (chosen["false_discovery_rate"] <= 0.1).all()
    assert reference.table["false_discovery_rate"].iloc[2:].min() > 0.3
    assert sorted(reference.table["column"]) == sorted(table()[0].columns)


def test_shuffled_labels_are_no_finding():
    frame, y = table()
    y = np.random.default_rng(3).permutation(y)
    result = fsjax.select(frame, y, methods=QUICK, budget=None)
    assert not result.better_than_chance and result.columns == () and result.num_features == 0
    assert result.statements[0].startswith(
        "Nothing was found that predicts the target better than chance: p = "
    )
    assert "level 0.01" in result.statements[0] and not result.undecided
    assert (result.table["selected"] == 0).all()


def test_what_it_leaves(reference, tmp_path):
    from pathlib import Path

    folder = Path(reference.facts["folder"])
    result = json.loads((folder / "selection.json").read_text())
    assert result["method"] == reference.method and result["columns"] == list(reference.columns)
    assert result["better_than_chance"] is True and result["num_features"] == 2
    assert {"score", "score_all_columns", "metric", "seconds"} <= set(result)
    columns = pd.read_csv(folder / "columns.csv", keep_default_na=False)
    assert list(columns.columns)[:6] == [
        "column", "selected", "frequency", "score", "false_discovery_rate", "group",
    ]  # fmt: skip
    page = (folder / "report.html").read_text()
    assert "2 of 10 columns are enough" in page and page.count("<svg") == 8
    assert "http" not in page.replace("http://www.w3.org", "")
    assert "weight" in str(reference) and "kind" in str(reference)


def test_the_same_seed_gives_the_same_selection(reference):
    frame, y = table()
    again = fsjax.select(frame, y, **LINEAR, budget=None)
    pd.testing.assert_frame_equal(again.table, reference.table)
    pd.testing.assert_frame_equal(again.curves, reference.curves)
    assert again.score == reference.score


def test_it_goes_on_where_it_was_stopped(tmp_path, reference, monkeypatch):
    frame, y = table()
    real, calls = compete.Contest._fold, []

    def interrupted(self, name, *args):
        calls.append(name)
        if len(calls) == 28:  # in the second round
            raise KeyboardInterrupt
        return real(self, name, *args)

    monkeypatch.setattr(compete.Contest, "_fold", interrupted)
    half = fsjax.select(frame, y, **LINEAR, budget=None, workdir=tmp_path)
    assert half.stopped and not half.finished
    assert set(half.columns) == {"weight", "kind"}
    assert "stopped before it was complete" in half.statements[-1]
    assert (tmp_path / "report.html").exists()
    done = len(calls)
    whole = fsjax.select(frame, y, **LINEAR, budget=None, workdir=tmp_path)
    assert len(calls) - done == 4 * 10 - 27
    pd.testing.assert_frame_equal(whole.table, reference.table)
    pd.testing.assert_frame_equal(whole.curves, reference.curves)
    with pytest.raises(ConfigError, match="another selection .*seed was 0, is"):
        fsjax.select(frame, y, **LINEAR, budget=None, workdir=tmp_path, seed=1)


@pytest.mark.parametrize(("where", "done"), [("false_discovery_rates", 0), ("halves", 4)])
def test_what_is_found_survives_an_interruption_near_the_end(where, done, reference, monkeypatch):
    frame, y = table()
    real, calls = getattr(stability, where), []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == done + 1:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(stability, where, interrupted)
    half = fsjax.select(frame, y, **LINEAR, budget="1h")
    assert half.stopped and not half.finished and set(half.columns) == {"weight", "kind"}
    assert half.score == reference.score and half.seconds > 0
    assert half.facts["halves"] == 2 * done
    assert "stopped before it was complete" in half.statements[-1]


def test_selection_happens_within_the_training_rows(monkeypatch):
    seen = []
    real = compete.rank

    def watched(problem, name, part, *args):
        seen.append(len(part.y))
        return real(problem, name, part, *args)

    monkeypatch.setattr(compete, "rank", watched)
    monkeypatch.setattr(stability, "rank", real)
    frame, y = table(100)
    fsjax.select(frame, y, **LINEAR, budget=None)
    assert set(seen) <= {79, 80, 81}


def test_noise_columns_selected_outside_the_folds_would_look_good():
    # 40 rows and 2,000 columns of noise: leaking selection reaches 90 %, honest selection half.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2000)), np.resize([0, 1], 40)
    result = fsjax.select(X, y, methods=("univariate",), budget=None, judge="linear")
    assert not result.better_than_chance and result.score < 70


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


def test_a_method_of_the_library_competes_and_wins_where_it_should():
    # Neither column of an exclusive or says anything alone, or in a sum.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 6))
    y = (X[:, 1] > 0) ^ (X[:, 4] > 0)
    result = fsjax.select(X, y, methods=("univariate", "l1", "deep_lasso"), budget=None)
    assert result.method == "deep_lasso" and set(result.columns) == {"x1", "x4"}
    assert result.better_than_chance
    against = result.comparisons.set_index("against")
    assert against.loc["2 columns selected by the Lasso path", "verdict"] == "better"


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
        return X, (np.column_stack([X[:, 1], X[:, 5]]) > 0).astype(int)
    event = rng.random(rows) < 0.7
    return X, np.column_stack([rng.exponential(np.exp(-1.2 * signal)) + 1e-3, event])


@pytest.mark.parametrize(
    ("task", "metric", "least", "chance_level"),
    [
        ("survival", "concordance_index", 0.75, 0.5),
        pytest.param("counts", "d2", 0.6, 0.0, marks=pytest.mark.slow),
        pytest.param("multilabel", "label_accuracy", 90, 50, marks=pytest.mark.slow),
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


@pytest.mark.parametrize("task", ["survival", "counts"])
def test_networks_compete_for_other_targets(task):
    X, y = planted(task, 120)
    part = Part(X, y.astype(float))
    (ranking,) = library.rank_folds("deep_lasso", [part], task, np.arange(9), (2,), 0)
    assert set(ranking.order[2]) == {1, 5}


def test_martingale_residuals_are_those_of_the_definition():
    y = np.array([[2.0, 1], [1.0, 0], [3.0, 1], [2.0, 0], [5.0, 1]])
    hazard = {1: 0.0, 2: 1 / 4, 3: 1 / 4 + 1 / 2, 5: 1 / 4 + 1 / 2 + 1}
    expected = [event - hazard[time] for time, event in y]
    np.testing.assert_allclose(martingale_residuals(y), expected)
    assert abs(martingale_residuals(y).sum()) < 1e-12


def test_time_that_is_too_short_for_any_score_leaves_a_ranking(tmp_path):
    frame, y = table()
    result = fsjax.select(frame, y, budget=1e-6, workdir=tmp_path)
    assert result.undecided and not result.better_than_chance and result.columns == ()
    assert result.statements[0].startswith("Undecided: no fold of the cross-validation was scored")
    assert set(result.table["column"].iloc[:2]) == {"weight", "kind"}
    assert json.loads((tmp_path / "selection.json").read_text())["score"] is None
    assert (tmp_path / "report.html").exists()


def test_a_short_time_gives_a_short_answer(monkeypatch):
    # Time is up after the second fold of what is needed: two folds are compared.
    frame, y = table()
    real = compete.Contest._fold

    def slow(self, name, fold):
        piece = real(self, name, fold)
        if name == "univariate" and fold == (0, 1):
            self.clock.stop()
        return piece

    monkeypatch.setattr(compete.Contest, "_fold", slow)
    result = fsjax.select(frame, y, budget="1h")
    assert set(result.curves["method"]) == {"all", "random", "univariate"}
    assert (result.curves["folds"] == 2).all() and result.stopped
    assert (
        "l1" in " ".join(result.statements)
        and "nothing is said about them" in result.statements[-2]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(240)}, "the target has only one value"),
        ({"y": np.zeros(5)}, "y has 5 values for 240 rows"),
        ({"task": "clasification"}, "did you mean 'classification'"),
        ({"metric": "r2"}, "metric='r2' of classification"),
        ({"fdr": 2}, "fdr=2; choose a number between 0 and 1"),
        ({"methods": ("l2",)}, "methods='l2': allowed: 'random', 'univariate', 'l1'"),
        ({"budget": "soon"}, "choose a time such as"),
        ({"seed": -1}, "seed=-1"),
        ({"keep": ["wight"]}, "keep='wight': did you mean 'weight'"),
        ({"keep": ["weight"], "drop": ["weight"]}, "'weight' is in keep and in drop"),
        ({"costs": {"weight": 0}}, "costs.'weight'.=0; choose a number above 0"),
        ({"judge": "tree"}, "judge='tree': did you mean 'trees'"),
        ({"row_groups": np.zeros(240), "ordered": True}, "not both"),
        ({"task": "regression"}, "not numbers; give numbers, or task=.classification"),
        ({"task": "survival"}, "not numbers"),
        ({"task": "counts", "y": np.linspace(-1, 1, 240)}, "count"),
        ({"X": np.zeros(3)}, "X has shape"),
        ({"X": np.ones((240, 3))}, "no column is left"),
        ({"X": np.c_[np.ones(240), np.random.default_rng(0).random(240)]}, "one column, 'x1'"),
    ],
)
def test_bad_calls_are_refused_before_anything_runs(change, message, monkeypatch):
    monkeypatch.setattr(compete.Contest, "_fold", lambda *_: pytest.fail("it ran"))
    frame, y = table()
    with pytest.raises((ConfigError, DataError), match=message):
        fsjax.select(**{"X": frame, "y": y, **change})


def test_the_estimator_in_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 9))
    y = np.where(X[:, 2] + X[:, 5] > 0, "up", "down")
    selector = AutoSelector(methods=QUICK, budget=None)
    model = make_pipeline(selector, SVC()).fit(X[:150], y[:150])
    np.testing.assert_array_equal(selector.get_support(indices=True), [2, 5])
    assert model.score(X[150:], y[150:]) > 0.9
    assert set(np.flatnonzero(selector.ranking_ <= 2)) == {2, 5}
    assert selector.n_features_ == 2 and selector.selection_.better_than_chance
    chex.assert_shape(selector.transform(X), (200, 2))
    assert selector.plot().axes


def test_parameters_of_the_estimator_reach_the_selection(monkeypatch):
    calls = []
    selection = SimpleNamespace(
        table=pd.DataFrame({"column": ["x2", "x0"], "score": [2.0, 1.0]}),
        columns=("x2",),
        statements=(),
    )
    monkeypatch.setattr(
        "fsjax.estimators.auto.select", lambda X, y, **options: calls.append(options) or selection
    )
    options = {"budget": 60, "task": "regression", "metric": "r2", "judge": "linear", "fdr": 0.2}
    options["methods"] = QUICK
    selector = AutoSelector(random_state=5, verbose=True, **options)
    groups = np.arange(8) // 2
    selector.fit(np.eye(8)[:, :3], np.arange(8.0), row_groups=groups)
    assert calls == [{**options, "seed": 5, "progress": True, "row_groups": groups}]
    assert selector.support_.tolist() == [False, False, True]
    assert selector.ranking_.tolist() == [2, 3, 1]
    np.testing.assert_array_equal(selector.scores_, [1.0, np.nan, 2.0])


def test_the_estimator_keeps_all_columns_of_noise():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 6)), rng.integers(0, 2, 80)
    with pytest.warns(UserWarning, match="no column is selected, so all are kept: Nothing"):
        selector = AutoSelector(methods=QUICK, budget=None).fit(X, y)
    assert selector.support_.all() and selector.n_features_ == 6


@pytest.mark.slow
def test_it_is_an_estimator_of_scikit_learn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check_estimator(AutoSelector(methods=("l1",), budget=None))


def test_no_false_discovery_rate_is_told_where_no_decoys_ran(monkeypatch):
    monkeypatch.setattr(answer, "beside_decoys", lambda contest, *_: answer.no_decoys(10, "l1"))
    frame, y = table()
    result = fsjax.select(frame, y, **LINEAR, budget=None, fdr=0.2)
    assert "are not known" in result.statements[0] and result.columns == ()
    assert result.table["false_discovery_rate"].isna().all()


def test_decoys_of_a_quick_statistic_answer_where_a_dear_one_has_no_time(monkeypatch):
    # What is asked for runs before networks do, and counts where their own decoys find no time.
    real = answer.beside_decoys

    def without_time(contest, statistic, *args):
        return answer.no_decoys(10, statistic) if statistic != "l1" else real(contest, "l1", *args)

    monkeypatch.setattr(answer, "decoy_statistic", lambda *_: "network")
    monkeypatch.setattr(answer, "beside_decoys", without_time)
    frame, y = table()
    result = fsjax.select(frame, y, **LINEAR, budget=None, fdr=0.2)
    assert result.facts["decoy_statistic"] == "l1" and {"weight", "kind"} <= set(result.columns)


def test_columns_to_keep_are_selected_though_no_rate_is_known(monkeypatch):
    monkeypatch.setattr(answer, "beside_decoys", lambda contest, *_: answer.no_decoys(10, "l1"))
    frame, y = table()
    result = fsjax.select(frame, y, **LINEAR, budget=None, fdr=0.2, keep=["noise 3"])
    assert result.columns == ("noise 3",)
    assert "only the columns named in keep are selected" in result.statements[0]


def test_columns_to_keep_and_to_drop():
    frame, y = table()
    result = fsjax.select(frame, y, **LINEAR, budget=None, keep=["noise 3"], drop=["kind"])
    assert result.columns[0] == "noise 3" and "weight" in result.columns
    assert "kind" not in set(result.table["column"])
    assert result.facts["kept"] == ["noise 3"]


def test_cheap_columns_are_preferred_where_they_tell_the_same():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
    y = X["a"] + 0.3 * rng.normal(size=300)
    X["b"] = X["a"] + 0.05 * rng.normal(size=300)
    plain = fsjax.select(X, y, **LINEAR, budget=None)
    dear = fsjax.select(X, y, **LINEAR, budget=None, costs={plain.columns[0]: 100})
    assert set(plain.columns) | set(dear.columns) <= {"a", "b"}
    assert dear.columns[0] != plain.columns[0]


def test_a_leak_is_named_and_the_result_without_it_stands_beside_it():
    frame, y = table()
    frame["billed"] = np.where(y == "yes", 2.0, -2.0) + np.random.default_rng(5).random(240)
    result = fsjax.select(frame, y, **LINEAR, budget=None)
    assert result.columns == ("billed",) and any(note.kind == "leak" for note in result.notes)
    without = result.without_leaks
    assert set(without.columns) == {"weight", "kind"} and without.score < 100
    assert result.to_dict()["without_leaks"]["columns"] == list(without.columns)


def test_rare_classes_are_set_aside_and_named():
    frame, y = table()
    y = y.astype(object)
    y[[3, 77]] = "maybe"
    result = fsjax.select(frame, y, methods=QUICK, budget=None)
    assert result.facts["rows"] == 238 and result.facts["classes"] == ["no", "yes"]
    assert any("'maybe' (2 of 240 rows)" in note.text for note in result.notes)
    assert set(result.columns) == {"weight", "kind"}


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


def test_the_judge_is_told_and_may_be_chosen():
    from sklearn.neighbors import KNeighborsClassifier

    frame, y = table()
    result = fsjax.select(
        frame, y, methods=QUICK, budget=None, judge=KNeighborsClassifier(), metric="f1_macro"
    )
    assert result.judge == "KNeighborsClassifier()" and result.metric == "f1_macro"
    assert set(result.columns) == {"weight", "kind"} and 0.9 < result.score <= 1


def test_the_decoys_and_the_halves_differ_from_draw_to_draw(monkeypatch):
    drawn = []
    real, standardise = stability.rank, discoveries.standardise

    def watched(problem, name, part, *args):
        drawn.append((part.X.shape, part.X.tobytes()))
        return real(problem, name, part, *args)

    def standardised(X):
        drawn.append((X.shape, X.tobytes()))
        return standardise(X)

    monkeypatch.setattr(stability, "rank", watched)
    monkeypatch.setattr(discoveries, "standardise", standardised)
    frame, y = table()
    fsjax.select(frame, y, **LINEAR, budget=None)
    assert len(set(drawn)) == len(drawn) > 20


def test_an_answer_ranks_all_rows_and_spares_methods_within_an_error(monkeypatch):
    """Methods are compared on 150 of the 240 rows."""
    monkeypatch.setattr("fsjax.auto.plan.ROWS", (150,))
    rows, statistics = [], []
    rank, statistic = stability.rank, answer.decoy_statistic

    def watched_rank(problem, name, part, *args):
        rows.append(len(part.y))
        return rank(problem, name, part, *args)

    def watched_statistic(means, least, dense):
        statistics.append((max(means.values()), least))
        return statistic(means, least, dense)

    monkeypatch.setattr(stability, "rank", watched_rank)
    monkeypatch.setattr(answer, "decoy_statistic", watched_statistic)
    result = fsjax.select(*table(), methods=("univariate",), budget=None, judge="linear")
    assert result.facts["rows_compared"] == 150 and rows[0] == 240
    ((best, least),) = statistics
    assert best == result.facts["best_score"]
    assert least == pytest.approx(best - result.facts["standard_error"]) and least < best


def test_the_consensus_of_simple_methods_can_be_chosen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 20))
    y = (X[:, 4] + X[:, 9] > 0).astype(int)
    methods = ("forward", "rfe", "consensus")
    result = fsjax.select(X, y, methods=methods, budget=None, judge="linear")
    assert result.method == "consensus" and set(result.columns) == {"x4", "x9"}
    assert result.facts["halves"] > 0 and result.facts["decoy_sets"] > 0


def test_missing_numbers_are_imputed_by_default_and_listed():
    frame, y = table()
    frame.loc[::7, "weight"] = np.nan
    selection = fsjax.select(frame, y, **LINEAR, budget=1e-6)
    listed = "imputed: 'weight' has 35 of 240 values missing, replaced by the training rows' median"
    assert listed in str(selection)
    with pytest.raises(DataError, match="35 values are missing in 1 of 10 columns: 'weight'"):
        fsjax.select(frame, y, **LINEAR, impute=None)
