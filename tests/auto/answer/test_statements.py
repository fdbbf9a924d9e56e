"""Sentences on single columns: their number agrees, and no number beside them refutes them."""

from types import SimpleNamespace

import numpy as np
import pytest

from fsjax.auto.answer.statements import (
    _certainty,
    _scores,
    _selected,
    leaks_left_out,
    on_equal_rows,
)
from fsjax.auto.certainty.findings import Findings
from fsjax.auto.certainty.permutation_test import Chance, Verdict
from fsjax.auto.certainty.stability import Frequencies
from fsjax.auto.contest.method_names import ALL
from fsjax.auto.contest.rankers import Ranking
from fsjax.auto.contest.rule import Choice
from fsjax.auto.contest.scoring import METRICS
from fsjax.auto.reading.notes import Note


def findings(number, frequency, rates, halves=50, sets=5, method="l1", known=None):
    return Findings(
        choice=Choice(method, number, 90.0, method, number, 90.0, 1.0),
        ranking=Ranking({}, np.zeros(0)),
        verdict=Verdict(True, False, Chance(999, 0), 0.0),
        score=(90.0, 85.0, 95.0),
        of_choice=90.0,
        all_columns=90.0,
        no_columns=50.0,
        decoys=SimpleNamespace(
            rates=np.asarray(rates, float),
            known_rates=np.asarray(rates if known is None else known, float),
            sets=sets,
        ),
        stability=Frequencies(np.asarray(frequency, float), halves),
        chosen=np.arange(number),
    )


@pytest.mark.parametrize(
    ("result", "said", "unsaid"),
    [
        (
            findings(1, [1.0], [0.5], halves=10, sets=2),
            "column is selected again on 100 % of 10",
            "rate",
        ),
        (
            findings(1, [1.0], [0.1], sets=10),
            "column is selected again on 100 %|rate of 0.1",
            "are",
        ),
        # The table has no such rate, either.
        (findings(1, [1.0], [0.2], sets=10, known=[np.nan]), "100 % of 50 halves", "rate"),
        (findings(1, [0.3], [0.5], sets=2), "30 % of 50|may carry the same information", "rate"),
        (findings(1, [np.nan], [0.5], halves=0, sets=1), "not known|no time", "%"),
        (
            findings(2, [1.0, 0.5], [0.25, 0.25], sets=2),
            "2 selected columns, 1 is selected",
            "rate",
        ),
        (findings(3, [1.0] * 3, [1.0] * 3), "3 selected columns, all are|none has an", "same"),
        (findings(3, [0.1, 0.1, 0.9], [0.1, 0.9, 0.9]), "1 is selected|1 has|not settled", "all"),
        (
            findings(3, [0.1] * 3, [0.1] * 3, halves=0),
            "all have an estimated|at most 0.2",
            "halves",
        ),
        (findings(3, [1.0] * 3, [0.1] * 3, method=ALL), "", "column"),
    ],
)
def test_certainty(result, said, unsaid):
    text = " ".join(_certainty(result, result.choice, ()))
    assert all(part in text for part in said.split("|")) and unsaid not in text


def test_the_round_of_the_scores_is_named_where_comparisons_have_more():
    result, metric = findings(1, [1.0], [0.1]), METRICS["accuracy"]
    assert "selection included, in the first of 4 rounds of folds: 90" in _scores(result, metric, 4)
    assert "selection included: 90" in _scores(result, metric, 1)


@pytest.mark.parametrize(
    ("rates", "sets", "parts"),
    [
        ([0.1], 1, ["1 of 9 columns is selected", "at most 0.2 (1 set of decoys)"]),
        ([0.1, 0.1], 5, ["2 of 9 columns are selected", "(5 sets of decoys)"]),
        ([0.1, 0.9], 5, ["1 of 9 columns is selected", "1 column is selected as named in keep"]),
        ([0.9, 0.9], 2, ["No column has", "for at least 3 columns only", "named in keep"]),
        ([0.9], 0, ["not known", "no set of decoys", "only the columns named in keep"]),
    ],
)
def test_discoveries(rates, sets, parts):
    result = findings(len(rates), [1.0] * len(rates), rates, sets=sets)
    nine = SimpleNamespace(
        design=SimpleNamespace(num_units=9), keep=(), ordered=False, row_groups=None
    )
    text = _selected(result, result.choice, nine, 0.2)
    assert all(part in text for part in parts), text


def test_leaks_and_equal_rows():
    text = leaks_left_out(["a"], "100.0 %", "accuracy")
    assert text.startswith("'a' gives the target away") and text.endswith("accuracy is 100.0 %.")
    assert leaks_left_out(["a", "b"], None, "AUC").startswith("'a', 'b' give the target away")
    notes = [Note("(rows)", "equal rows", "there are"), Note("a", "leak", "is")]
    assert on_equal_rows(notes) == ["There are."]
