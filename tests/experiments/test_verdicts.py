"""``experiments.papers.equivalence``, ``verdicts`` and ``page``: when a cell agrees."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments.papers import page, results, verdicts
from experiments.papers.cells import Cell, cells_of
from experiments.papers.equivalence import Side, compare, margin, truncated
from experiments.papers.reference import COLUMNS
from experiments.papers.results import KEY


def side(values: Sequence[float]) -> Side:
    return Side(float(np.mean(values)), float(np.std(values)), len(values))


def test_the_interval_is_the_wider_of_welchs_and_students() -> None:
    other = [80.5, 80.0, 79.0, 82.0, 81.0]
    for ours, equal in (([80.0, 81.0, 83.9], False), ([80.0, 81.0], True)):
        result = stats.ttest_ind(ours, other, equal_var=equal).confidence_interval(0.9)
        narrower = stats.ttest_ind(ours, other, equal_var=not equal).confidence_interval(0.9)
        assert narrower.high < result.high
        assert compare(side(ours), side(other), 1.5)[1:3] == pytest.approx(tuple(result))


@pytest.mark.parametrize(("ours", "other"), [(2, 3), (2, 15), (3, 5), (5, 3)])
@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_the_interval_misses_the_true_difference_in_a_tenth(
    ours: int, other: int, spread: float
) -> None:
    generator = np.random.default_rng(0)
    sides = [
        (side(generator.normal(0, spread, ours)), side(generator.normal(0, 1, other)))
        for _ in range(1000)
    ]
    results_of = [compare(*pair, 1.5) for pair in sides]
    assert np.mean([not result.low <= 0 <= result.high for result in results_of]) < 0.13


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize("std", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("difference", [-4.0, -1.0, 0.0, 1.4, 9.0])
def test_a_verdict_is_where_the_interval_lies(difference: float, std: float, seeds: int) -> None:
    result = compare(Side(80 + difference, std, seeds), Side(80.0, std, 5), 1.5)
    assert result.low <= difference + 1e-9 and difference - 1e-9 <= result.high
    inside = result.low >= -1.5 and result.high <= 1.5
    outside = result.low > 1.5 or result.high < -1.5
    assert (result.verdict == "agrees") == inside
    assert (result.verdict == "differs") == outside


def test_no_spread_makes_a_cell_agree() -> None:
    for std in (0.5, 2.0, 28.0):
        far = compare(Side(85.0, std, 3), Side(80.0, std, 3), 1.5)
        assert far.verdict != "agrees"
    assert compare(Side(80.0, 28.0, 2), Side(80.0, 28.0, 15), 1.5).verdict == "undecided"


def test_more_seeds_never_make_the_interval_wider() -> None:
    for ours in (2, 3, 5, 10, 50):
        widths = [
            compare(Side(80.0, 1.0, n), Side(80.0, 1.0, 15), 1.5).high for n in (ours, ours + 1)
        ]
        assert widths[1] <= widths[0]


def test_two_seeds_alone_may_show_a_difference_but_no_agreement() -> None:
    published = Side(80.0, 0.0, 0)
    assert compare(Side(80.0, 0.1, 2), published, 1.5).verdict == "undecided"
    assert compare(Side(80.0, 0.1, 3), published, 1.5).verdict == "agrees"
    assert compare(Side(60.0, 0.1, 2), published, 1.5).verdict == "differs"
    # Two equal seeds, or one, tell nothing.
    for seeds in (1, 2):
        assert compare(Side(60.0, 0.0, seeds), published, 1.5).verdict == "undecided"


def test_two_exact_values_are_compared_as_they_are() -> None:
    for difference, verdict in ((1.5, "agrees"), (1.6, "differs")):
        result = compare(Side(80.0 + difference, 0.0, 0), Side(80.0, 0.0, 0), 1.5)
        assert (result.verdict, result.low) == (verdict, pytest.approx(difference))


def test_operations_are_truncated_to_the_printed_number() -> None:
    printed, name = 1e10, "train_flops"
    above = truncated(name, printed)
    for value, verdict in ((0.94e10, "differs"), (0.96e10, "agrees"), (1.99e10, "agrees"),
                           (2e10, "differs")):  # fmt: skip
        sides = Side(value, 0.0, 0), Side(printed, 0.0, 0)
        assert compare(*sides, margin(name, printed), above).verdict == verdict
    assert truncated(name, 9e9) == 1e9 and truncated("params", 9e9) == 0.0


def test_no_margin_of_an_accuracy_is_above_three_points() -> None:
    metrics = {cell.row.metric for paper in ("wast", "ctre", "ip_cae") for cell in cells_of(paper)}
    for metric in metrics:
        if metric.endswith(("accuracy", "training_delay_pct")):
            assert 0 < margin(metric, 50.0) <= 3.0
        else:
            assert 0 < margin(metric, 1e12) <= 0.05 * 1e12


def madelon_cell() -> Cell:
    """WAST's accuracy on Madelon, 83.27 +- 0.63."""
    (cell,) = (
        cell
        for cell in cells_of("wast")
        if cell.key == ("wast", "2", "madelon", "wast", "K=20", "svm_accuracy")
    )
    return cell


def our_table(cell: Cell, values: list[float]) -> pd.DataFrame:
    made = {"seeds": values, "epochs": 10, "cpu_seconds": 6.0, "commit": "abcdef0123"}
    empty = pd.DataFrame(columns=results.COLUMNS)
    return results.merged(empty, [results.row_of(cell, values, made)])


def reference_table(cell: Cell, mean: float, std: float) -> pd.DataFrame:
    facts = {"mean": mean, "std": std, "seeds": 3, "code": "authors", "version": "1"}
    row = dict(zip(KEY, cell.key, strict=True)) | facts | {"command": "c", "cpu_seconds": 1.0}
    return pd.DataFrame([row], columns=COLUMNS)


def verdict_of(
    values: list[float], other: tuple[float, float] | None, reasons: list[dict] | None = None
) -> verdicts.Verdict:
    cell = madelon_cell()
    reference = pd.DataFrame(columns=COLUMNS) if other is None else reference_table(cell, *other)
    table = our_table(cell, values)
    (verdict,) = verdicts.verdicts_of([cell], table, reference, reasons or []).values()
    return verdict


@pytest.mark.parametrize(
    ("values", "other", "verdict", "state"),
    [
        ([83.0] * 3, None, "agrees", "agrees"),
        ([83.0] * 3, (83.5, 0.1), "agrees", "both"),
        ([83.0] * 3, (60.0, 0.1), "agrees", "agrees"),
        ([60.0] * 3, (60.5, 0.1), "agrees", "reference"),
        ([60.0] * 3, (70.0, 0.1), "differs", "differs"),
        ([60.0] * 3, (61.0, 3.0), "differs", "differs"),
        ([60.0] * 3, None, "differs", "differs"),
        ([80.0, 83.0, 86.0], None, "undecided", "undecided"),
        ([80.0, 83.0, 86.0], (83.0, 0.1), "undecided", "undecided"),
    ],
)
def test_a_cell_agrees_by_the_paper_or_by_the_reference(
    values: list[float], other: tuple[float, float] | None, verdict: str, state: str
) -> None:
    result = verdict_of(values, other)
    assert result.verdict == verdict
    assert (result.by_reference is None) == (other is None)
    assert page._state(result) == state


def test_equal_scores_never_agree() -> None:
    reasons = [{"method": "wast", "degenerate": True, "text": "all equal", "kind": "unknown"}]
    verdict = verdict_of([83.0] * 3, (83.0, 0.0), reasons)
    assert verdict.degenerate and verdict.verdict == "undecided"
    assert page._state(verdict) == "degenerate"
    assert verdict_of([60.0] * 3, None, reasons).verdict == "differs"


def test_counts_of_a_paper_have_a_repeated_cell_once() -> None:
    cells, cell = cells_of("wast"), madelon_cell()
    again = next(c for c in cells if c.table == "7" and c.key[2:] == cell.key[2:])
    both = [cell, again]
    table = pd.concat([our_table(c, [60.0] * 3) for c in both], ignore_index=True)
    for other, word in ((60.0, "agrees"), (70.0, "differs")):
        judged = verdicts.verdicts_of(cells, table, reference_table(cell, other, 0.1), [])
        (counts,) = verdicts.coverage(cells, judged, ["madelon"]).to_dict("records")
        assert (counts["run"], counts["distinct"], counts[word]) == (2, 1, 1)
        at_hand = [c for c in cells if c.row.dataset == "madelon" and not math.isnan(c.row.mean)]
        assert counts["data"] == len(at_hand)


def test_the_page_shows_all_three_values() -> None:
    cells, cell = cells_of("wast"), madelon_cell()
    judged = verdicts.verdicts_of(
        cells, our_table(cell, [60.0] * 3), reference_table(cell, 60.5, 0.1), []
    )
    text = page.make_page(cells, judged)
    assert "Of 1 accuracies and errors that were run, 1 agree with the paper" in text
    (line,) = (line for line in text.split("\n") if "83.27<br><i>60.50</i><br><b>60.00</b>" in line)
    assert "<td class='reference' title='ours: 3 seeds, 10 epochs" in line
    assert re.search(
        r"paper: differs, difference -2[34].* to -2[23].*; reference: authors 1, 3", line
    )
    assert "none run" in text
    assert text.count(":::{dropdown} Table ") == 7
