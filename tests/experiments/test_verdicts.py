"""``experiments.papers.verdicts`` and ``page``: when a cell holds, and how the page shows it."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from experiments.papers import page, results, verdicts
from experiments.papers.cells import Cell, cells_of
from experiments.papers.reference import COLUMNS
from experiments.papers.results import KEY


def madelon_cell() -> Cell:
    """WAST's accuracy on Madelon, 83.27 +- 0.63."""
    (cell,) = (
        cell
        for cell in cells_of("wast")
        if cell.key == ("wast", "2", "madelon", "wast", "K=20", "svm_accuracy")
    )
    return cell


def our_table(cell: Cell, values: list[float], reasons: list[dict]) -> pd.DataFrame:
    made = {"seeds": values, "epochs": 10, "cpu_seconds": 6.0, "commit": "abcdef0123"}
    empty = pd.DataFrame(columns=results.COLUMNS)
    return results.merged(empty, [results.row_of(cell, values, made)], reasons)


def reference_table(cell: Cell, mean: float, std: float) -> pd.DataFrame:
    facts = {"mean": mean, "std": std, "seeds": 3, "code": "authors", "version": "1"}
    row = dict(zip(KEY, cell.key, strict=True)) | facts | {"command": "c", "cpu_seconds": 1.0}
    return pd.DataFrame([row], columns=COLUMNS)


def verdict_of(
    values: list[float], other: tuple[float, float] | None, reasons: list[dict] | None = None
) -> verdicts.Verdict:
    cell = madelon_cell()
    table = our_table(cell, values, reasons or [])
    reference = pd.DataFrame(columns=COLUMNS) if other is None else reference_table(cell, *other)
    (verdict,) = verdicts.verdicts_of([cell], table, reference, reasons or []).values()
    return verdict


@pytest.mark.parametrize(
    ("values", "other", "paper", "reference", "state"),
    [
        ([83.0, 83.0], None, True, None, "agrees"),
        ([83.0, 83.0], (83.5, 0.0), True, True, "both"),
        ([83.0, 83.0], (60.0, 0.0), True, False, "agrees"),
        ([60.0, 60.0], (61.5, 0.0), False, True, "reference"),
        ([60.0, 60.0], (61.6, 0.0), False, False, "differs"),
        # Two standard deviations, of the one that varies more.
        ([60.0, 60.0], (62.0, 1.0), False, True, "reference"),
        ([59.0, 61.0], (62.0, 0.0), False, True, "reference"),
        ([59.0, 61.0], (62.1, 0.5), False, False, "differs"),
        ([60.0, 60.0], None, False, None, "differs"),
    ],
)
def test_a_cell_holds_by_the_paper_or_by_the_reference(
    values: list[float],
    other: tuple[float, float] | None,
    paper: bool,
    reference: bool | None,
    state: str,
) -> None:
    verdict = verdict_of(values, other)
    assert verdict.agrees_with_paper is paper
    assert verdict.agrees_with_reference is reference
    assert verdict.holds is bool(paper or reference)
    assert not verdict.explained
    assert page._state(verdict) == state


def test_equal_scores_never_hold_and_are_explained() -> None:
    reasons = [{"method": "wast", "degenerate": True, "text": "all equal"}]
    verdict = verdict_of([83.0, 83.0], (83.0, 0.0), reasons)
    assert verdict.degenerate and not verdict.holds and verdict.explained
    assert page._state(verdict) == "degenerate"
    other = [{"method": "cae", "degenerate": True, "text": "all equal"}]
    assert verdict_of([83.0, 83.0], None, other).holds


def test_a_reason_explains_what_does_not_hold() -> None:
    reasons = [{"method": "wast", "text": "other rows"}]
    assert verdict_of([60.0, 60.0], None, reasons).explained
    assert not verdict_of([83.0, 83.0], None, reasons).explained


def test_counts_of_a_paper() -> None:
    cells = cells_of("wast")
    cell = madelon_cell()
    for value, other, expected in (
        (83.0, (60.0, 0.0), {"by paper": 1, "by reference": 0, "by either": 1, "unexplained": 0}),
        (60.0, (60.0, 0.0), {"by paper": 0, "by reference": 1, "by either": 1, "unexplained": 0}),
        (60.0, (70.0, 0.0), {"by paper": 0, "by reference": 0, "by either": 0, "unexplained": 1}),
    ):
        judged = verdicts.verdicts_of(
            cells, our_table(cell, [value] * 2, []), reference_table(cell, *other), []
        )
        (counts,) = verdicts.coverage(cells, judged, ["madelon"]).to_dict("records")
        assert counts["run"] == 1 and counts["degenerate"] == 0 and counts["explained"] == 0
        assert {name: counts[name] for name in expected} == expected
        at_hand = [c for c in cells if c.row.dataset == "madelon" and not math.isnan(c.row.mean)]
        assert counts["data"] == len(at_hand)


def test_the_page_shows_all_three_values() -> None:
    cells, cell = cells_of("wast"), madelon_cell()
    judged = verdicts.verdicts_of(
        cells, our_table(cell, [60.0] * 2, []), reference_table(cell, 61.0, 0.0), []
    )
    text = page.make_page(cells, judged, verdicts.coverage(cells, judged, ["madelon"]))
    (line,) = (line for line in text.split("\n") if "83.27<br><i>61.00</i><br><b>60.00</b>" in line)
    assert "<td class='reference' title='ours: 2 seeds, 10 epochs" in line
    assert "reference: authors 1, 3 seeds" in line
    assert "none run" in text
    (line,) = (line for line in text.split("\n") if line.startswith("| wast |"))
    assert line.endswith("| 100 % |")
    assert text.count(":::{dropdown} Table ") == 7
