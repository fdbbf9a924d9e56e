"""Selectors, judges and draws of the selection study, on small tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments.studies.selection import noise, sizes
from experiments.studies.selection.baselines import SELECTORS
from experiments.studies.selection.encoding import Encoded, encode
from experiments.studies.selection.fdr import false_share
from experiments.studies.selection.judges import chance, judge
from experiments.studies.selection.noise import permutation_test
from experiments.studies.selection.tables import Table, flags_of, load, split, take, write
from fsjax.errors import DataError


def mixed(task: str = "classification") -> Table:
    """An informative number and category among noise; a tenth of the values is missing."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((90, 6)), columns=list("abcdef"))
    X["kind"] = rng.choice(["p", "q", "r"], 90)
    signal = 2 * X["a"] + 3 * (X["kind"] == "q")
    y = (signal > 1.0).to_numpy().astype(str) if task == "classification" else signal.to_numpy()
    X = X.mask(rng.random(X.shape) < 0.1)
    return Table("mixed", task, X, y)


def encoded(task: str) -> Encoded:
    table = mixed(task)
    return encode(table, *split(table, 0))


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", [name for name in SELECTORS if name != "random"])
def test_every_selector_orders_all_columns_and_puts_those_that_matter_first(
    name: str, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.studies.selection.baselines._SHADOWS", 3)
    order = SELECTORS[name](encoded(task), 0)
    assert sorted(order) == list(range(7))
    assert set(order[:2]) == {0, 6}


def test_a_category_is_one_column_of_several_numbers() -> None:
    data = encoded("classification")
    # Three values and "missing".
    assert data.units.tolist() == [0, 1, 2, 3, 4, 5, 6, 6, 6, 6]
    assert data.num_columns == 7
    assert np.isfinite(data.X_test).all()
    assert np.abs(data.X.mean(axis=0)).max() < 1e-6


def test_judges_see_the_columns_that_they_are_given() -> None:
    data = encoded("classification")
    assert judge(data, np.array([0, 6]), "svm", "accuracy") > 80
    assert judge(data, np.array([0, 6]), "boosting", "auc") > 85
    assert judge(data, np.array([], int), "svm", "accuracy") == chance(data, "accuracy")
    assert judge(encoded("regression"), np.array([0, 6]), "linear", "r2") > 70


def test_groups_stay_on_one_side(tmp_path) -> None:
    table = mixed()._replace(groups=np.arange(90) // 3)
    train, test = split(table, 1)
    assert not np.intersect1d(table.groups[train], table.groups[test]).size
    part = take(table, train)
    path = write(part, tmp_path)
    assert {"--groups=group", "--impute=median"} <= set(flags_of(part, path))
    assert "--impute=median" not in flags_of(part._replace(X=part.X[["a"]].fillna(0)), path)
    assert pd.read_csv(path)["group"].tolist() == part.groups.tolist()


def test_a_table_that_is_not_there_is_named(tmp_path) -> None:
    with pytest.raises(DataError, match="no table sonar"):
        load("sonar", tmp_path)


def test_what_was_written_is_read_again(tmp_path) -> None:
    drawn = sizes.counts(0, 40, 12, 3)._replace(name="basehock")
    write(drawn, tmp_path)
    table = load("basehock", tmp_path)
    assert (table.X != drawn.X).nnz == 0
    assert table.y.tolist() == drawn.y.tolist()
    assert table.columns[-1] == "x11"


def test_permutation_test_tells_signal_from_noise() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 30)), np.arange(60) % 2
    assert permutation_test(X, y, seed=0, draws=199)[1] > 0.05
    X[:, :5] += 1.5 * y[:, None]
    score, p_value = permutation_test(X, y, seed=0, draws=199)
    assert score > 0.85
    assert p_value == 1 / 200


def test_shares() -> None:
    assert false_share(["x1", "x2", "x3", "x4"], ["x1", "x9"]) == 0.75
    assert false_share([], ["x1"]) == 0.0
    assert sizes.hits(["x0", "x2", "x10"], planted=3) == 2
    assert noise.share_interval(0, 20) == (0.0, pytest.approx(0.168, abs=1e-3))
    assert noise.share_interval(20, 20)[1] == 1.0
