"""Targets, weights and groups whose row labels are those of X in another order are refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from marks import slow_ids

import fsjax
from fsjax.errors import DataError
from fsjax.estimators import STG, AutoSelector
from fsjax.tables.user_arrays import check_row_order

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(40, 3)), columns=list("abc"), index=RNG.permutation(40))
Y = pd.Series(np.resize([0, 1], 40), index=X.index)
OTHER = Y.sort_index()
STG_SHORT = {"n_features_to_select": 1, "num_epochs": 1}
QUICK = {"methods": ("univariate",), "judge": "linear", "budget": None}


def _scores(table: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.abs(table.T @ y)


def _fitted() -> STG:
    return STG(**STG_SHORT).fit(X, Y)


ENTRANCES: dict[str, Callable[[], Any]] = {
    "select": lambda: fsjax.select(X, OTHER, **QUICK),
    "groups of select": lambda: fsjax.select(X, Y, row_groups=OTHER, **QUICK),
    "survival": lambda: fsjax.select(X, OTHER.to_frame("time").assign(e=1), task="survival"),
    "fit": lambda: fsjax.fit(fsjax.methods.stg(1), (X, OTHER)),
    "weights of fit": lambda: fsjax.fit(fsjax.methods.stg(1), (X, Y), sample_weight=OTHER + 1),
    "plan": lambda: fsjax.plan(fsjax.methods.stg(1), (X, OTHER)),
    "data set": lambda: fsjax.data.as_dataset(X, OTHER),
    "estimator": lambda: STG(**STG_SHORT).fit(X, OTHER),
    "weights": lambda: STG(**STG_SHORT).fit(X, Y, sample_weight=OTHER + 1),
    "validation": lambda: STG(**STG_SHORT, validation_data=(X, OTHER)).fit(X, Y),
    "score": lambda: _fitted().score(X, OTHER),
    "AutoSelector": lambda: AutoSelector(budget=None).fit(X, OTHER),
    "groups of AutoSelector": lambda: AutoSelector(budget=None).fit(X, Y, row_groups=OTHER),
    "false_discoveries": lambda: fsjax.false_discoveries(_scores, X, OTHER),
    "false_discoveries of a method": lambda: fsjax.false_discoveries("fisher_score", X, OTHER),
}


@slow_ids("score")
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_the_same_labels_in_another_order_are_refused(entrance: str) -> None:
    with pytest.raises(DataError, match=r"row labels of .* in another order .*\.loc\[.*to_numpy"):
        ENTRANCES[entrance]()


def test_what_the_message_advises_works() -> None:
    check_row_order(X, y=OTHER.loc[X.index])
    check_row_order(X, y=OTHER.to_numpy())


@pytest.mark.parametrize(
    ("labels", "refused"),
    [
        ("abc", "acb"),
        ("aab", "aba"),
        ([(0, "a"), (0, "b"), (1, "a")], [(0, "b"), (0, "a"), (1, "a")]),
        (pd.date_range("2020", periods=3), pd.date_range("2020", periods=3)[::-1]),
        ([0, "a", None], ["a", 0, None]),
        (range(3), [2, 0, 1]),
    ],
)
def test_labels_of_any_kind(labels: Any, refused: Any) -> None:
    def indexed(values: Any) -> pd.Series:
        if isinstance(values, list) and isinstance(values[0], tuple):
            values = pd.MultiIndex.from_tuples(values)
        return pd.Series(
            range(3), index=pd.Index(list(values) if isinstance(values, str) else values)
        )

    table = indexed(labels).to_frame()
    check_row_order(table, y=indexed(labels))
    with pytest.raises(DataError, match="in another order"):
        check_row_order(table, y=indexed(refused))


@pytest.mark.parametrize("index", [range(1, 4), list("xyz"), [7, 7, 7]])
def test_other_labels_are_paired_by_position(index: Any) -> None:
    # A reset index, rows one step later in a series, and labels of another kind.
    check_row_order(X.iloc[:3].reset_index(drop=True), y=pd.Series([1, 2, 3], index=index))
    check_row_order(X.iloc[:3], y=pd.Series([1, 2, 3], index=index), row_groups=None)
    check_row_order(X.to_numpy()[:3], y=pd.Series([1, 2, 3], index=index))
