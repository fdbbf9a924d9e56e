"""``fsjax.select`` on tables whose truth is known: what it finds, and what it leaves."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from auto_helpers import LINEAR, QUICK, table

import fsjax
from fsjax.auto.certainty import decoy_competition, false_discovery, findings, stability
from fsjax.auto.contest import cross_validation, row_rankings
from fsjax.errors import ConfigError


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("selection")


@pytest.fixture(scope="module")
def reference(folder) -> fsjax.auto.Selection:
    frame, y = table()
    return fsjax.select(frame, y, **LINEAR, budget=None, workdir=folder)


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
    assert reference.table["false_discovery_rate"].iloc[2:].min() > 0.2
    assert sorted(reference.table["column"]) == sorted(table()[0].columns)


def test_shuffled_labels_are_no_finding():
    frame, y = table()
    y = np.random.default_rng(3).permutation(y)
    result = fsjax.select(frame, y, methods=QUICK, budget=None)
    assert not result.better_than_chance and result.columns == [] and result.num_features == 0
    assert result.statements[0].startswith(
        "Nothing was found that predicts the target better than chance: p = "
    )
    assert "level 0.01" in result.statements[0] and not result.undecided
    assert (result.table["selected"] == 0).all()


def test_what_it_leaves(reference, folder):
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


@pytest.mark.slow
def test_the_same_seed_gives_the_same_selection(reference):
    frame, y = table()
    again = fsjax.select(frame, y, **LINEAR, budget=None)
    pd.testing.assert_frame_equal(again.table, reference.table)
    pd.testing.assert_frame_equal(again.curves, reference.curves)
    assert again.score == reference.score


@pytest.mark.slow
def test_it_goes_on_where_it_was_stopped(tmp_path, reference, monkeypatch):
    frame, y = table()
    real, calls = cross_validation.Contest._fold, []

    def interrupted(self, name, *args):
        calls.append(name)
        if len(calls) == 28:  # in the second round
            raise KeyboardInterrupt
        return real(self, name, *args)

    monkeypatch.setattr(cross_validation.Contest, "_fold", interrupted)
    half = fsjax.select(frame, y, **LINEAR, budget=None, workdir=tmp_path)
    assert half.stopped and not half.finished
    assert set(half.columns) == {"weight", "kind"}
    (note,) = [note for note in half.notes if note.kind == "stopped"]
    assert note.level == "warning" and "stopped before it was complete" in str(half)
    assert (tmp_path / "report.html").exists()
    done = len(calls)
    whole = fsjax.select(frame, y, **LINEAR, budget=None, workdir=tmp_path)
    assert len(calls) - done == 4 * 10 - 27
    pd.testing.assert_frame_equal(whole.table, reference.table)
    pd.testing.assert_frame_equal(whole.curves, reference.curves)
    with pytest.raises(ConfigError, match="another selection .*seed was 0, is"):
        fsjax.select(frame, y, **LINEAR, budget=None, workdir=tmp_path, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "where", "done"),
    [(decoy_competition, "false_discovery_rates", 0), (stability, "halves", 4)],
)
def test_what_is_found_survives_an_interruption_near_the_end(
    module, where, done, reference, monkeypatch
):
    frame, y = table()
    real, calls = getattr(module, where), []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == done + 1:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(module, where, interrupted)
    half = fsjax.select(frame, y, **LINEAR, budget="1h")
    assert half.stopped and not half.finished and set(half.columns) == {"weight", "kind"}
    assert half.score == reference.score and half.seconds > 0
    assert half.facts.halves == 2 * done
    (note,) = [note for note in half.notes if note.kind == "stopped"]
    assert note.level == "warning" and "stopped before it was complete" in str(half)


@pytest.mark.slow
def test_selection_happens_within_the_training_rows(monkeypatch):
    seen = []
    real = cross_validation.rank

    def watched(problem, name, part, *args):
        seen.append(len(part.y))
        return real(problem, name, part, *args)

    monkeypatch.setattr(cross_validation, "rank", watched)
    monkeypatch.setattr(row_rankings, "rank", real)
    frame, y = table(100)
    fsjax.select(frame, y, **LINEAR, budget=None)
    assert set(seen) <= {79, 80, 81}


@pytest.mark.slow
def test_noise_columns_selected_outside_the_folds_would_look_good():
    # 40 rows and 2,000 columns of noise: leaking selection reaches 90 %, honest selection half.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2000)), np.resize([0, 1], 40)
    result = fsjax.select(X, y, methods=("univariate",), budget=None, judge="linear")
    assert not result.better_than_chance and result.score < 70


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_answer_is_the_one_without_leaks_and_the_other_stands_beside_it():
    frame, y = table()
    frame["billed"] = np.where(y == "yes", 2.0, -2.0) + np.random.default_rng(5).random(240)
    result = fsjax.select(frame, y, **LINEAR, budget=None)
    assert set(result.columns) == {"weight", "kind"} and result.score < 100
    assert [note.column for note in result.notes if note.kind == "leak"] == ["billed"]
    assert result.statements[1].startswith("'billed' gives the target away and is left out as a")
    assert "with it the accuracy is 100.0 %" in result.statements[1]
    assert result.with_leaks.columns == ["billed"]
    assert result.to_dict()["with_leaks"]["columns"] == ["billed"]


@pytest.mark.slow
def test_where_only_a_leak_predicts_it_is_the_answer_and_named():
    frame = table()[0].drop(columns=["weight", "kind"])
    y = frame["noise 3"] > 0
    result = fsjax.select(frame, y, **LINEAR, budget=None)
    assert result.columns == ["noise 3"] and result.with_leaks is None
    assert [note.column for note in result.notes if note.kind == "leak"] == ["noise 3"]
    assert "without it nothing was found" in result.statements[1]


@pytest.mark.slow
def test_rare_classes_are_set_aside_and_named():
    frame, y = table()
    y = y.astype(object)
    y[[3, 77]] = "maybe"
    result = fsjax.select(frame, y, methods=QUICK, budget=None)
    assert result.facts.rows == 238 and result.facts.classes == ["no", "yes"]
    assert any("'maybe' (2 of 240 rows)" in note.text for note in result.notes)
    assert set(result.columns) == {"weight", "kind"}


@pytest.mark.slow
def test_the_decoys_and_the_halves_differ_from_draw_to_draw(monkeypatch):
    drawn = []
    real, standardise = row_rankings.rank, false_discovery.standardise

    def watched(problem, name, part, *args):
        drawn.append((part.X.shape, part.X.tobytes()))
        return real(problem, name, part, *args)

    def standardised(X, **others):
        drawn.append((X.shape, X.tobytes()))
        return standardise(X, **others)

    monkeypatch.setattr(row_rankings, "rank", watched)
    monkeypatch.setattr(false_discovery, "standardise", standardised)
    frame, y = table()
    fsjax.select(frame, y, **LINEAR, budget=None)
    assert len(set(drawn)) == len(drawn) > 20


@pytest.mark.slow
def test_an_answer_ranks_all_rows_and_spares_methods_within_an_error(monkeypatch):
    """Methods are compared on 150 of the 240 rows."""
    monkeypatch.setattr("fsjax.auto.contest.fit_to_budget.ROWS", (150,))
    rows, statistics = [], []
    rank, statistic = row_rankings.rank, findings.decoy_statistic

    def watched_rank(problem, name, part, *args):
        rows.append(len(part.y))
        return rank(problem, name, part, *args)

    def watched_statistic(means, least, *others):
        statistics.append((max(means.values()), least))
        return statistic(means, least, *others)

    monkeypatch.setattr(row_rankings, "rank", watched_rank)
    monkeypatch.setattr(findings, "decoy_statistic", watched_statistic)
    result = fsjax.select(*table(), methods=("univariate",), budget=None, judge="linear")
    assert result.facts.rows_compared == 150 and rows[0] == 240
    ((best, least),) = statistics
    assert best == result.facts.best_score
    assert least == pytest.approx(best - result.facts.standard_error) and least < best


@pytest.mark.slow
def test_the_consensus_of_simple_methods_can_be_chosen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 20))
    y = (X[:, 4] + X[:, 9] > 0).astype(int)
    methods = ("forward", "rfe", "consensus")
    result = fsjax.select(X, y, methods=methods, budget=None, judge="linear")
    assert result.method == "consensus" and set(result.columns) == {"x4", "x9"}
    assert result.facts.halves > 0 and result.facts.decoy_sets > 0
