"""Sentences on single columns: their number agrees, and no number beside them refutes them."""

from types import SimpleNamespace

import numpy as np
import pytest

from fsjax.auto.answer.statements import (
    _alternatives,
    _certainty,
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
from fsjax.auto.reading.notes import Note


def findings(number, frequency, rates, halves=50, sets=5, method="l1", known=None):
    return Findings(
        choice=Choice(method, number, 90.0, method, number, 90.0, 1.0),
        ranking=Ranking({}, np.zeros(0)),
        verdict=Verdict(True, False, Chance(999, 0), 0.0),
        score=(90.0, 85.0, 95.0),
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
    ("result", "sentence"),
    [
        (findings(1, [1.0], [0.5], halves=10, sets=2),
         "The selected column is selected again on 100 % of 10 halves of the rows."),
        (findings(1, [1.0], [0.1], sets=10),
         "The selected column is selected again on 100 % of 50 halves of the rows, and has an "
         "estimated false discovery rate of 0.1."),
        # The table has no such rate, either.
        (findings(1, [1.0], [0.2], sets=10, known=[np.nan]),
         "The selected column is selected again on 100 % of 50 halves of the rows."),
        (findings(1, [0.3], [0.5], sets=2),
         "The selected column is selected again on 30 % of 50 halves of the rows. Another column "
         "may carry the same information."),
        (findings(1, [np.nan], [0.5], halves=0, sets=1),
         "How sure the column is is not known: there was no time for enough halves of the rows or "
         "sets of decoys."),
        (findings(2, [1.0, 0.5], [0.25, 0.25], sets=2),
         "Of the 2 selected columns, 1 is selected again on at least 80 % of 50 halves of the "
         "rows."),
        (findings(3, [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
         "Of the 3 selected columns, all are selected again on at least 80 % of 50 halves of the "
         "rows, and none has an estimated false discovery rate of at most 0.2."),
        (findings(3, [0.1, 0.1, 0.9], [0.1, 0.9, 0.9]),
         "Of the 3 selected columns, 1 is selected again on at least 80 % of 50 halves of the "
         "rows, and 1 has an estimated false discovery rate of at most 0.2. Together they predict, "
         "but which of them matter is not settled: other columns may carry the same information."),
        (findings(3, [0.1, 0.1, 0.1], [0.1, 0.1, 0.1], halves=0),
         "Of the 3 selected columns, all have an estimated false discovery rate of at most 0.2."),
    ],
)  # fmt: skip
def test_certainty(result, sentence):
    assert _certainty(result, result.choice) == [sentence]


def test_all_columns_have_no_certainty():
    result = findings(3, [1.0] * 3, [0.1] * 3, method=ALL)
    assert _certainty(result, result.choice) == []


@pytest.mark.parametrize(
    ("rates", "sets", "beginning"),
    [
        ([0.1], 1, "1 of 9 columns is selected with an estimated false discovery rate of at most "
                   "0.2 (1 set of decoys). 1 of 9 columns is enough"),
        ([0.1, 0.1], 5, "2 of 9 columns are selected with an estimated false discovery rate of at "
                        "most 0.2 (5 sets of decoys). 2 of 9"),
        ([0.1, 0.9], 5, "1 of 9 columns is selected with an estimated false discovery rate of at "
                        "most 0.2 (5 sets of decoys). 1 column is selected as named in keep. 2 of"),
        ([0.9, 0.9], 2, "No column has an estimated false discovery rate of at most 0.2 (2 sets of "
                        "decoys). Such a rate can be estimated for at least 3 columns only. "
                        "2 columns are selected as named in keep."),
        ([0.9], 0, "False discovery rates are not known, as no set of decoys was finished in time; "
                   "only the columns named in keep are selected."),
    ],
)  # fmt: skip
def test_discoveries(rates, sets, beginning):
    result = findings(len(rates), [1.0] * len(rates), rates, sets=sets)
    assert _selected(result, result.choice, 9, 0.2, None).startswith(beginning)


def test_alternatives():
    choice = findings(1, [1.0], [0.1]).choice
    (random, others) = _alternatives({"random": 1, "univariate": 1, "l1": 1}, choice, 40)
    assert random.startswith("1 column drawn at random comes as close")
    assert others.endswith("univariate filter 1.") or "1." in others
    (random,) = _alternatives({"random": 3, "l1": 1}, choice, 40)
    assert random.startswith("3 columns drawn at random come as close")


def test_leaks_and_equal_rows():
    assert leaks_left_out(["a"], "100.0 %", "accuracy") == (
        "'a' gives the target away and is left out as a likely leak; with it the accuracy is "
        "100.0 %."
    )
    assert leaks_left_out(["a", "b"], None, "AUC") == (
        "'a', 'b' give the target away and are left out as likely leaks."
    )
    notes = [Note("(rows)", "equal rows", "there are"), Note("a", "leak", "is")]
    assert on_equal_rows(notes) == ["There are."]
