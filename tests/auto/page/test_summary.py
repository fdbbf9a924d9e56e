"""The first lines of a selection, the labels of its columns, and its notes.

Covers ``fsjax.auto.page.summary``, ``fsjax.auto.reading.notes``,
``fsjax.auto.contest.method_names``, ``fsjax.auto.answer.comparison_sentences``.
"""

import dataclasses
import datetime
import json
import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from auto_helpers import LINEAR
from test_report_page import selection, with_everything

import fsjax
from fsjax.auto.answer.comparison_sentences import Compared, comparison_sentences
from fsjax.auto.answer.statements import left_out
from fsjax.auto.answer.tables import curve_rows
from fsjax.auto.certainty.false_discovery import NETWORK
from fsjax.auto.contest.cross_validation import ALL
from fsjax.auto.contest.method_names import in_words, selected_by, title
from fsjax.auto.contest.rankers import SIMPLE
from fsjax.auto.contest.rule import CONSENSUS
from fsjax.auto.contest.scoring import metric_named
from fsjax.auto.page import summary
from fsjax.auto.page.pictures import plot_contest
from fsjax.auto.page.report import page
from fsjax.auto.reading.notes import LEVELS, Note, by_level
from fsjax.auto.selection import Selection
from fsjax.methods import METHODS
from fsjax.report.wording import shorten_all

DAY = datetime.date(2026, 11, 23)

NOTES = (
    Note("weight", "missing", "has 3 of 100 values missing"),
    Note("crp", "sentinel", "has -999 in 23 of 400 rows"),
    Note("id", "identifier", "counts the rows"),
    Note("billed", "leak", "separates the classes by itself: a likely leak"),
    Note("(methods)", "failed", "LassoNet failed: no memory"),
    Note("(file)", "file", "its numbers have decimal commas"),
)


def with_columns(labels: list, offered: int = 40) -> Selection:
    """A selection of columns with these labels."""
    plain = selection(len(labels), offered)
    return dataclasses.replace(plain, columns=labels)


def visible(page_text: str) -> str:
    return unescape(re.sub(r"<style>.*?</style>|<[^>]+>", "", page_text, flags=re.DOTALL))


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        (["age", "weight"], "Keep: age, weight"),
        ([3, 1], "Keep: 3, 1"),
        ([("a", 1), ("b", 2)], "Keep: ('a', 1), ('b', 2)"),
        (["a, b", "c"], "Keep: 'a, b', c"),
        ([], "Keep: nothing"),
        ([f"c{i}" for i in range(40)], "Keep: all 40 columns: c0, c1"),
        (["two\nlines", "c"], "Keep: two lines, c"),
    ],
)
def test_the_first_line_names_the_columns(labels, line):
    assert str(with_columns(labels)).splitlines()[0].startswith(line)


def test_many_names_and_long_names_are_counted():
    first = str(with_columns([f"c{i}" for i in range(31)])).splitlines()[0]
    assert first.endswith("c19 and 11 more in columns.csv") and "c20" not in first
    long = [
        f"a very long name of a column, number {i} of many, which is hard to read" for i in range(9)
    ]
    kept = summary.kept(with_columns(long))
    assert len(kept.names) == 600 // (len(long[0]) + 2) and kept.more > 0
    longer = summary.kept(with_columns(["x" * 500 + str(i) for i in range(9)]))
    assert len(longer.names) == 7 and max(map(len, longer.names)) <= 80


@pytest.mark.slow
def test_the_order_of_the_first_lines():
    result = with_everything(notes=NOTES)
    starts = [line.partition(":")[0] for line in str(result).splitlines()[:9]]
    assert starts == [
        "Keep", "30 columns are enough.", "How well", "How sure", "Cost", "Left out",
        *["check"] * 3,
    ]  # fmt: skip
    text = str(result)
    places = [
        text.index(part) for part in ("LassoNet failed", "'billed'", "'crp'", "left out: 'id'")
    ]
    assert places == sorted(places)
    html = visible(page(result, None, DAY))
    parts = ("How well", "How sure", "LassoNet failed", "'billed'", "'crp'", "Score by number")
    places = [html.index(part) for part in parts]
    assert places == sorted(places)


def test_nothing_and_undecided_say_so_in_the_same_place():
    for undecided, words in ((False, "not better than chance"), (True, "undecided whether")):
        result = dataclasses.replace(
            with_columns([]), better_than_chance=False, undecided=undecided,
            statements=("Nothing was found: p = 0.4.",), p_value=0.4,
        )  # fmt: skip
        first, reason, _, sure, *_ = str(result).splitlines()
        assert first == "Keep: nothing" and reason == "Nothing was found: p = 0.4."
        assert sure.startswith(f"How sure: {words}") and sure.endswith("p = 0.4")


@pytest.mark.parametrize(("low", "said"), [(60.0, True), (40.0, False)])
def test_an_interval_above_chance_and_a_verdict_of_chance_are_reconciled(low, said):
    plain = with_columns([])
    result = dataclasses.replace(
        plain, better_than_chance=False, score=80.0, score_interval=(low, 95.0), score_chance=50.0,
        facts=dataclasses.replace(plain.facts, folds_p_value=0.013),
    )  # fmt: skip
    assert ("lies above that, but with p = 0.013 over the folds" in str(result)) == said
    assert "lies above" not in str(dataclasses.replace(result, better_than_chance=True))


def test_what_was_not_measured_is_not_said():
    unknown = dataclasses.replace(
        selection(), score=np.nan, score_all_columns=np.nan, p_value=np.nan
    )
    assert (
        "How well" not in str(unknown) and "p =" not in str(unknown) and "nan" not in str(unknown)
    )


def test_representations_are_short():
    result = with_everything(notes=NOTES)
    assert repr(result) == str(result)
    html = result._repr_html_()
    assert "Keep: <strong>" in html and "<style" not in html and len(html) < 6000


def test_likely_leaks_that_are_left_out_are_named():
    leak = Note("billed", "leak", "separates the classes by itself: a likely leak")
    result = with_everything(notes=(leak,), with_leaks=selection(1, 201, score=99.5))
    line = "Left out: billed (a likely leak); with it accuracy 99.5 %"
    assert line in str(result).splitlines()[:6]
    assert "With the likely leaks, keep: =cmd|" in str(result)
    alone = with_everything(notes=(leak, leak._replace(column="paid")))
    assert "Left out: billed, paid (likely leaks)\n" in str(alone)
    taking_part = with_everything(notes=(leak._replace(column="column 2"),))
    assert "Left out" not in str(taking_part)


def test_no_score_is_beyond_what_is_possible():
    # The second method ran on the easier half of the folds.
    scores = {("a", 1): np.array([90.0, 100.0]), ("b", 1): np.array([np.nan, 100.0])}
    scores["c", 1] = np.array([80.0, 98.0])
    metric = metric_named("accuracy", "classification")
    means = curve_rows(scores, 2, metric).set_index("method")["mean"]
    assert means["a"] == 95.0 and means["b"] <= 100.0
    many = {**scores, ("b", 1): np.array([100.0, np.nan])}
    assert curve_rows(many, 2, metric)["mean"].max() == 100.0
    assert metric.show(100.2) == "100.0 %" and metric.number(100.2) == "100.2"


def test_small_p_values_are_not_zero():
    assert "p < 0.0001" in str(selection(p_value=0.0)) and "p = 0.003" in str(
        selection(p_value=3e-3)
    )


def test_shortened_names_stay_different():
    names = [f"laboratory measurement number {i} at admission (mmol/l)" for i in range(12)]
    short = shorten_all(names, 32)
    assert len(set(short)) == 12 and max(map(len, short)) <= 32
    assert "number 7 at" in short[7] and shorten_all(["a", 3, ("b", 1)]) == ["a", "3", "('b', 1)"]
    both = ["x" * 60 + end for end in "ab"] + [start + "x" * 60 for start in "cd"]
    assert len(set(shorten_all(both, 20))) == 4
    assert len(shorten_all(["x" * 60, "x" * 60], 20)[0]) == 17


def test_comparisons_are_two_sentences():
    rows = [("all 200 columns", "no difference shown"), ("30 columns drawn at random", "better")]
    rows += [(f"30 columns selected by {in_words(name)}", "better") for name in list(SIMPLE)[1:6]]
    rows += [
        (f"30 columns selected by {name}", says)
        for name, says in (("b", "as good"), ("a", "worse"))
    ]
    metric = metric_named("accuracy", "classification")
    compared = [Compared(against, 1.0, -1.0, 2.0, verdict) for against, verdict in rows]
    first, second = comparison_sentences(compared, metric)
    assert "whole procedure is not shown to differ from all 200 columns (+1.0" in first
    assert "is better than 30 columns drawn at random (" in first
    for part in (
        "Of 7 other methods",
        "better than 5 (",
        "2 more)",
        "worse than 1 (a)",
        "good as 1 (b)",
    ):
        assert part in second, part
    # Those whose interval is not known count, too.
    unknown = [row._replace(low=-np.inf, high=np.inf) for row in (compared[0], *compared[2:])]
    first, second = comparison_sentences(unknown, metric)
    assert "(+1.0, 95 % interval not known)" in first and "Of 7 other methods" in second
    assert "the other method" in comparison_sentences([compared[2]], metric)[0]


@pytest.mark.slow
def test_notes_are_in_one_place_by_level(tmp_path):
    assert [note.kind for note in by_level(NOTES)] == [
        "failed", "leak", "sentinel", "identifier", "file", "missing",
    ]  # fmt: skip
    text = page(with_everything(notes=NOTES), None, DAY)
    table = text[text.index("<h2 id='notes'>") :]
    levels = re.findall(r"class='level (\w+)'", table)
    assert levels == ["error", "warning", "warning", "remark", "remark", "remark"]
    assert "left out: " in table and "file: its numbers" in table
    with_everything(notes=NOTES).save(tmp_path, date=DAY)
    notes = json.loads((tmp_path / "selection.json").read_text())["notes"]
    assert [note["level"] for note in notes] == [note.level for note in NOTES]
    assert set(LEVELS.values()) == {"error", "warning", "remark"}


def test_methods_that_did_not_take_part_are_notes():
    notes = left_out({"icap": "failed: no memory", "stg": "was not tried: about 3 s were needed"})
    assert [note.level for note in notes] == ["error", "remark"]
    assert notes[0].sentence == "methods: interaction capping (ICAP) failed: no memory"
    assert "stochastic gates (STG)" in notes[1].text


def test_every_method_has_a_name_in_words():
    for name in (ALL, CONSENSUS, NETWORK, *SIMPLE, *METHODS):
        if METHODS.get(name) and not METHODS[name].__module__.startswith("fsjax.methods"):
            continue
        assert in_words(name) != name and not re.search(r"^[a-z]+_|^icap$", title(name)), name
    assert selected_by("l1") == "selected by the Lasso path" and title("l1") == "Lasso path"
    assert in_words("of_another_package") == "of_another_package"
    legend = plot_contest(selection()).legends[0]
    assert "Lasso path" in [text.get_text() for text in legend.get_texts()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "labels",
    [
        [10, 11, 12, 13, 14],
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1)]),
        pd.date_range("2026-01-01", periods=5),
        ["a", 1, ("b", 2), None, 2.5],
        list("abcde"),
    ],
)
def test_columns_are_the_labels_of_the_table(labels, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 5)), columns=labels)
    y = (frame.iloc[:, 1] + frame.iloc[:, 3] > 0).to_numpy()
    first, second = frame.columns[1], frame.columns[3]
    costs = {first: 2.0, second: 3.0}
    result = fsjax.select(frame, y, **LINEAR, budget=None, keep=[second], costs=costs)
    assert isinstance(result.columns, list) and set(result.columns) == {first, second}
    assert frame[result.columns].shape == (120, 2)
    table = result.table[result.table["selected"] == 1]
    assert table["column"].tolist() == result.columns
    assert "Cost: 5 for the selected columns" in str(result)
    result.save(tmp_path)
    content = json.loads((tmp_path / "selection.json").read_text())
    written = pd.read_csv(tmp_path / "columns.csv")
    assert list(written.columns) == list(result.table.columns) and "q_value" in written
    if isinstance(labels, list) and labels[0] == 10:
        assert sorted(content["columns"]) == [11, 13] and content["kept"] == [13]
        assert set(written["column"]) == set(labels)
    if isinstance(labels, pd.MultiIndex):
        assert sorted(content["columns"]) == [["a", 2], ["b", 2]]
