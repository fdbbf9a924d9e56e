"""Ranks of methods over tables, and their figure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments.artifacts.statistics.ranks import cliques, critical_difference, rank
from fsjax.errors import DataError

#: Demsar (JMLR 2006), Table 6: AUC of four variants of C4.5 on 14 tables.
DEMSAR = """.763 .768 .771 .798
.599 .591 .590 .569
.954 .971 .968 .967
.628 .661 .654 .657
.882 .888 .886 .898
.936 .931 .916 .931
.661 .668 .609 .685
.583 .583 .563 .625
.775 .838 .866 .875
1.000 1.000 1.000 1.000
.940 .962 .965 .962
.619 .666 .614 .669
.972 .981 .9751 .975
.957 .978 .946 .970"""


def demsar() -> pd.DataFrame:
    rows = [[float(number) for number in line.split()] for line in DEMSAR.splitlines()]
    return pd.DataFrame(rows, columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"])


def test_ranks_are_those_of_the_paper() -> None:
    ranks = rank(demsar(), alpha=0.10)
    expected = {"C4.5": 3.143, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}
    assert ranks.tables == 14
    assert {name: round(value, 3) for name, value in ranks.mean.items()} == expected
    assert list(ranks.mean.index)[0] == "C4.5+m+cf"
    # Section 3.2.2: 2.291 and 2.569 are the critical values of four at 0.10 and 0.05.
    assert ranks.critical_difference == pytest.approx(2.291 * np.sqrt(20 / 84), abs=1e-3)
    assert critical_difference(4, 14) == pytest.approx(2.569 * np.sqrt(20 / 84), abs=1e-3)
    # 9.28 without a correction for ties (3.2.2), a p-value of 0.026; SciPy corrects for them.
    assert 0.015 < ranks.p_value < 0.026


def test_bars_join_what_does_not_differ() -> None:
    mean = pd.Series([1.0, 1.5, 3.0, 3.4, 9.0], index=list("abcde"))
    assert cliques(mean, 1.9) == [(0, 1), (1, 3)]
    assert cliques(mean, 0.1) == []
    assert cliques(mean, 10.0) == [(0, 4)]


def test_gaps_are_refused() -> None:
    scores = demsar()
    scores.iloc[3, 1] = np.nan
    with pytest.raises(DataError, match="1 of them missing"):
        rank(scores)
    with pytest.raises(DataError, match="at least 3 methods"):
        rank(demsar().iloc[:, :2])
