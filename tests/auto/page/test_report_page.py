"""The report of ``fsjax select``: verdict first, charts of both colour schemes, safe files.

Covers ``fsjax.auto.answer.answer``, ``fsjax.auto.answer.statements``, ``fsjax.auto.page.how``,
``fsjax.auto.page.rendering``.
"""

import dataclasses
import datetime
import json
import math
import re

import numpy as np
import pandas as pd
import pytest

from fsjax.auto.answer.effects import DependenceCurve
from fsjax.auto.answer.facts import Facts
from fsjax.auto.answer.selection_record import EFFECTS
from fsjax.auto.contest.scoring import METRICS, metric_named
from fsjax.auto.page.charts import themed_svg
from fsjax.auto.page.column_table import columns_of
from fsjax.auto.page.heatmaps import MAX_CLASSES, confusion_of, likeness_heatmap
from fsjax.auto.page.report import page
from fsjax.auto.reading.notes import Note
from fsjax.auto.selection import Selection, csv_of
from fsjax.report import style

DAY = datetime.date(2026, 11, 23)


def selection(selected: int = 30, columns: int = 200, **changes) -> Selection:
    """A selection of some of so many columns, two of them with unusual names."""
    names = ["=cmd|' /C calc'!A0", "<b>weight</b>", *(f"column {i}" for i in range(2, columns))]
    table = pd.DataFrame(
        {
            "column": names,
            "selected": (np.arange(columns) < selected).astype(int),
            "frequency": np.linspace(1, 0, columns),
            "score": np.linspace(5, 0, columns),
            "false_discovery_rate": 0.05,
            "group": names,
            "alike": ["a (x), b (0.91), c (0.90), d (0.85), e (0.81)", *[""] * (columns - 1)],
        }
    )
    curves = pd.DataFrame(
        [("all", columns, 90.0, 1.0, 5), ("l1", 1, 80.0, 2.0, 5), ("l1", selected, 91.0, 1.0, 5)],
        columns=["method", "num_features", "mean", "error", "folds"],
    )
    facts = Facts(
        rows=100, rows_compared=100, columns_offered=columns, columns_left_out=0, classes=None,
        row_groups=False, folds=5, rounds=2, judge_name="linear", judges_tried={},
        permutations=49, as_good=0, permutation_p_value=0.02, folds_p_value=0.0, halves=20,
        decoy_sets=5, decoy_statistic="l1", methods_left_out={}, best_method="l1",
        best_num_features=selected, best_score=91.0, standard_error=1.0,
    )  # fmt: skip
    values = {
        "method": "l1", "num_features": selected, "columns": names[:selected],
        "better_than_chance": True, "score": 90.5, "score_at_choice": 91.0,
        "score_all_columns": 90.0, "score_chance": 60.0, "metric": "accuracy",
        "task": "classification", "fdr": None, "p_value": 0.02, "seconds": 3.0, "finished": True,
        "stopped": False, "table": table, "curves": curves,
        "statements": (f"{selected} columns are enough.", "More is told."), "notes": (),
        "facts": facts,
    }  # fmt: skip
    return Selection(**{**values, **changes})


def with_everything(**changes) -> Selection:
    plain = selection()
    curve = DependenceCurve(np.array([1.0, 2.0, 3.0]), np.array([0.2, 0.3, 0.9]))
    effects = pd.DataFrame(
        {
            "column": plain.table["column"],
            "p_value": [0.0, 1e-9, *[0.5] * 198],
            "q_value": [0.0, 1e-7, *[0.9] * 198],
            "part": plain.table["column"],
            "direction": ["higher in -yes", "less often in no", *[None] * 198],
            "auc": [0.91, 0.8, *[np.nan] * 198],
            "difference": [1.5, 0.7, *[np.nan] * 198],
            "means": [{"-yes": 0.5, "no": -0.5}, {"-yes": 0.2, "no": -0.3}, *[None] * 198],
            "curve": [curve, *[None] * 199],
            "curve_of": ["share of -yes", *[None] * 199],
        }
    )
    table = plain.table.join(effects[[name for name in EFFECTS if name in effects]])
    likeness = pd.DataFrame([[1.0, 0.9], [0.9, 1.0]], index=["u", "v"], columns=["u", "v"])
    confusion = pd.DataFrame([[40, 10], [5, 45]], index=["no", "yes"], columns=["no", "yes"])
    comparisons = pd.DataFrame(
        [("l1 with 30 columns", "all columns", -0.4, -1.2, 0.5, "no difference shown", "90 rows")],
        columns=["what", "against", "difference", "low", "high", "verdict", "pairs"],
    )
    rng = np.random.default_rng(0)
    values = {
        "undecided": False, "level": 0.02, "score_interval": (88.0, 92.5), "judge": "linear model",
        "comparisons": comparisons, "confusion": confusion, "effects": effects, "table": table,
        "decoy_scores": (np.tile(np.linspace(5, 0, 200), (3, 1)), 0.5 * rng.random((3, 200))),
        "likeness": likeness,
        "source": "a & b.csv", "target": "outcome", "costs": {"column 2": 4.5},
    }  # fmt: skip
    return dataclasses.replace(plain, **{**values, **changes})


@pytest.fixture(scope="module")
def full() -> str:
    return page(with_everything(), "fsjax select 'a & b.csv'", DAY)


def text_of(page_text: str) -> str:
    return re.sub(r"<[^>]+>", " ", page_text)


def test_the_heading_names_table_target_and_date(full):
    assert "<h1>Which columns to keep: a &amp; b.csv</h1>" in full
    assert "Target outcome, classification, 2026-11-23" in full


def test_the_page_needs_nothing_else_and_charts_follow_the_colour_scheme(full):
    assert "http" not in full.replace("http://www.w3.org", "")
    charts = re.findall(r"<svg role.*?</svg>", full, flags=re.DOTALL)
    assert len(charts) == 3 * 2 + 1  # wide and narrow, and one curve
    for chart in charts:
        assert not re.search(r"#(fff|ffffff|000|000000)\b", chart, flags=re.IGNORECASE)
        assert chart.count("<text") or "polyline" in chart
    assert "var(--ink-000000)" in charts[0] and "--ink-000000: #e4e7eb" in full
    ids = re.findall(r'\bid="([^"]+)"', full)
    assert len(ids) == len(set(ids))
    assert "class='narrow'" in full and "class='wide'" in full


def test_the_same_figure_is_the_same_svg():
    figures = [style.new_figure(2.0, width=3.0) for _ in range(2)]
    for figure in figures:
        figure.subplots().plot([1, 2], color=style.BLUE)
    first, second = (themed_svg(figure, "name", "what") for figure in figures)
    assert first == second and "var(--ink-0072b2)" in first and style.BLUE.lower() not in first


def test_effects_and_evidence_of_columns(full):
    row = full[full.index("<tr data-name='=cmd") :]
    text = text_of(row[: row.index("</tr>")])
    for part in ("higher in -yes", "-yes +0.50", "no \N{MINUS SIGN}0.50", "0.910", "1.50",
                 "0.2 \N{RIGHTWARDS ARROW} 0.9", "share of -yes", "100 %", "&lt; 1e-300",
                 "and 1 more"):  # fmt: skip
        assert part in text, part
    assert "a (x), b (0.91)<br>c (0.90)" in row
    assert "a (x), b (0.91), c (0.90)\n" in str(with_everything())
    assert "<b>weight" not in full and "&lt;b&gt;weight" in full
    legend = text_of(full[full.index("what the numbers mean") : full.index("<h3>")])
    for words in ("Benjamini and Hochberg over all 200", "20 complementary halves", "knockoffs"):
        assert words in legend
    assert "drawn at random" not in legend
    result = with_everything()
    result.effects.attrs["rows"] = 50
    assert "on 50 rows drawn at random" in columns_of(result).legend["p-value"]
    effects = result.effects.assign(correlation=0.1, slope=0.2)
    of_survival = columns_of(dataclasses.replace(result, task="survival", effects=effects)).legend
    for head in ("rank correlation", "slope per SD", "p-value"):
        assert "martingale residuals" in of_survival[head]


def test_the_confusion_matrix_has_counts_and_shares():
    counts = pd.DataFrame([[40, 10], [5, 45]], index=["no", "yes"], columns=["no", "yes"])
    table = confusion_of(counts).shaded
    assert table is not None
    assert [row.name for row in table.rows] == ["true no", "true yes"]
    assert table.rows[0].cells[0] == ("40 (80 %)", "0.80")
    labels = [f"c{i}" for i in range(MAX_CLASSES + 1)]
    many = pd.DataFrame(10 * np.eye(len(labels)), index=labels, columns=labels)
    many.loc["c3", "c5"] = 30.0
    assert confusion_of(many).mistakes == [("c3", "c5", "30", "75 %")]


def test_correlated_columns_are_side_by_side():
    values = np.array([[1, 0.1, 0.9], [0.1, 1, 0.2], [0.9, 0.2, 0.9999]])
    table = likeness_heatmap(pd.DataFrame(values, index=list("abc"), columns=list("abc")))
    order = [row.name[-1] for row in table.rows]
    assert abs(order.index("a") - order.index("c")) == 1
    texts = {text for row in table.rows for text, _ in row.cells}
    assert ".90" in texts and "1" in texts and "1.00" not in texts


@pytest.mark.slow
def test_the_result_with_leaks_has_a_section(tmp_path):
    inner = selection(2, statements=("1 column is enough with it.",))
    result = with_everything(with_leaks=inner, notes=(Note("x", "leak", "is a leak"),))
    text = page(result, None, DAY)
    assert text.index("Look at these first") < text.index("<h2>With the likely leaks")
    assert "1 column is enough with it." in text
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    printed = str(result)
    assert "1 column is enough with it." in printed
    result.save(tmp_path, date=DAY)
    content = json.loads((tmp_path / "selection.json").read_text())
    assert content["with_leaks"]["num_features"] == 2
    assert "<a href='columns-with-leaks.csv'>" in text
    assert pd.read_csv(tmp_path / "columns-with-leaks.csv")["selected"].sum() == 2


@pytest.mark.slow
def test_the_files(tmp_path):
    path = with_everything().save(tmp_path, date=DAY)
    assert "2026-11-23" in path.read_text()
    content = json.loads((tmp_path / "selection.json").read_text())
    assert content["columns"][0] == "=cmd|' /C calc'!A0"
    expected = {"p_value": 0.02, "judge": "linear model", "undecided": False, "level": 0.02,
                "score_interval": [88.0, 92.5], "with_leaks": None, "source": "a & b.csv",
                "target": "outcome", "costs": {"column 2": 4.5}}  # fmt: skip
    assert {name: content[name] for name in expected} == expected
    assert content["confusion"] == {"classes": ["no", "yes"], "counts": [[40, 10], [5, 45]]}
    assert content["comparisons"][0]["low"] == -1.2
    columns = pd.read_csv(tmp_path / "columns.csv")
    assert columns["column"][0] == "'=cmd|' /C calc'!A0" and columns["p_value"][1] == 1e-9
    assert columns["direction"][0] == "higher in -yes" and "means" not in columns
    plain = selection(level=math.nan)
    plain.save(tmp_path, date=DAY)
    content = json.loads((tmp_path / "selection.json").read_text())
    assert content["level"] is None and content["score_interval"] is None


def test_formulas_in_csv_files_are_text():
    frame = pd.DataFrame({"text": ["=1", "+1", "-1", "@a", "\t=1", "a=1"], "number": [-1.5] * 6})
    lines = csv_of(frame).splitlines()
    assert lines[1:4] == ["'=1,-1.5", "'+1,-1.5", "'-1,-1.5"]
    assert lines[4] == "'@a,-1.5" and lines[5].startswith("'\t") and lines[6] == "a=1,-1.5"


def test_scores_of_other_metrics_are_shown():
    assert METRICS["accuracy"].show(91.26) == "91.3 %"
    shown = metric_named("neg_log_loss", "classification")
    assert shown.show(-0.5) == "\N{MINUS SIGN}0.500" and shown.short == "neg log loss"
    assert METRICS["auc"].number(-0.0001, sign=True) == "0.000"
    assert shown.show(math.nan) == "not known" and shown.show(0.0) == "0.000"
    # The unit of the target may be small.
    assert shown.number(-1.2345e-13) == "\N{MINUS SIGN}1.23e\N{MINUS SIGN}13"
    assert shown.number(0.01234, sign=True) == "+0.0123"


def test_nothing_selected():
    table = selection().table.assign(selected=0)
    result = dataclasses.replace(
        selection(), better_than_chance=False, num_features=0, columns=(), table=table
    )
    text = page(result, None, DAY)
    assert "No column is selected." in text and "100 most important columns" in text
    assert "class='verdict nothing'" in text and "How sure:</strong> not better" in text
