"""Methods of the library inside ``fsjax select``: trainings, screening, scaling, contenders.

Covers ``fsjax.auto.contest.network_rankings``, ``fsjax.auto.contest.network_settings``,
``fsjax.auto.contest.contender_order``.
"""

import numpy as np
import pytest

from fsjax.auto.contest import network_rankings
from fsjax.auto.contest.folds import Fold, parts
from fsjax.auto.contest.network_rankings import screened_columns, stratified_rows
from fsjax.auto.contest.network_settings import contenders, network_seconds
from fsjax.auto.contest.rankers.parts import Part, standardise
from fsjax.auto.reading.columns import design_of_array
from fsjax.tables.dataset import Dataset


def planted_part(rows: int, columns: int, seed: int = 0) -> Part:
    """Rows whose class is the sign of column 1 plus column 4."""
    raw = np.random.default_rng(seed).normal(3.0, 2.0, (rows, columns))
    (X,) = standardise(raw)
    return Part(X, (X[:, 1] + X[:, 4] > 0).astype(int), raw)


@pytest.fixture
def trainings(monkeypatch) -> list[tuple[Dataset, dict]]:
    """Data and options of every call of ``fit``, which goes on as usual."""
    calls = []
    fit = network_rankings.fit

    def recorded(method: object, dataset: Dataset, **options: object) -> object:
        calls.append((dataset, options))
        return fit(method, dataset, **options)

    monkeypatch.setattr(network_rankings, "fit", recorded)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("name", ["binmask", "ip_cae", "lassonet"])
def test_one_training_serves_folds_of_unequal_length_and_all_sizes(name, trainings):
    folds = [planted_part(rows, 12, seed) for seed, rows in enumerate((71, 70, 71))]
    rankings = network_rankings.rank_folds(
        name, folds, "classification", np.arange(12), (2, 3, 5), 0
    )
    ((_, options),) = trainings
    assert len({len(split.train) for split in options["split"]}) == 1
    for ranking in rankings:
        assert set(ranking.order[3]) >= {1, 4}
        assert list(ranking.order[5][:2]) == list(ranking.order[2])


@pytest.mark.slow
def test_a_fold_by_itself_has_the_ranking_that_it_has_among_others():
    folds = [planted_part(70, 12, seed) for seed in range(2)]
    arguments = ("binmask", "classification", np.arange(12), (3,))
    name, *others = arguments
    together = network_rankings.rank_folds(name, folds, *others, seed=5)
    (alone,) = network_rankings.rank_folds(name, [folds[1]], *others, seed=6)
    np.testing.assert_array_equal(together[1].scores, alone.scores)


@pytest.mark.slow
def test_networks_find_columns_that_matter_only_together():
    folds = []
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(128, 10))
        folds.append(Part(X, ((X[:, 1] > 0) ^ (X[:, 4] > 0)).astype(int)))
    for name in ("deep_lasso", "ip_cae"):
        rankings = network_rankings.rank_folds(
            name, folds, "classification", np.arange(10), (2,), 0
        )
        assert sum(set(ranking.order[2]) == {1, 4} for ranking in rankings) >= 2


@pytest.mark.slow
def test_a_method_sees_its_registered_scaling_of_the_raw_values(trainings):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(40, 5)) * [1.0, 2.0, 3.0, 4.0, 50.0]
    y = (table[:, 1] > 0).astype(int)
    train, _ = parts(design_of_array(table, None, None), y, Fold(*np.split(np.arange(40), [30])))
    network_rankings.rank_folds("wast", [train], "classification", np.arange(5), (2,), 0)
    ((dataset, options),) = trainings
    expected = (table[:30] - table[:30].mean()) / table[:30].std()
    np.testing.assert_allclose(dataset.X, expected, rtol=1e-5, atol=1e-6)
    assert options["scaling"] == "none"


def test_screening_keeps_the_best_columns_and_ranks_the_others_behind(monkeypatch):
    monkeypatch.setattr(network_rankings, "MAX_COLUMNS", 8)
    part = planted_part(80, 20)
    kept, others = screened_columns(part, "classification", 0)
    assert {1, 4} <= set(kept) and len(kept) == 8 and len(others) == 12
    (ranking,) = network_rankings.rank_folds(
        "l1_l21", [part], "classification", np.arange(20), (2, 20), 0
    )
    assert set(ranking.order[2]) == {1, 4}
    assert set(ranking.order[20][:8]) == set(kept)
    np.testing.assert_array_equal(ranking.order[20][8:], others)
    assert ranking.scores[others].max() < ranking.scores[kept].min()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["binmask", "ip_cae"])
def test_units_of_several_columns_are_ranked_with_and_without_screening(name, monkeypatch):
    part, groups = planted_part(80, 12), np.repeat(np.arange(6), 2)
    for most in (12, 8):
        monkeypatch.setattr(network_rankings, "MAX_COLUMNS", most)
        (ranking,) = network_rankings.rank_folds(name, [part], "classification", groups, (2, 6), 0)
        assert set(ranking.order[2]) == {0, 2} and set(ranking.order[6]) == set(range(6))


def test_drawn_rows_keep_every_class_in_proportion():
    y = np.array([0] * 900 + [1] * 98 + [2] * 2)
    rows = stratified_rows(y, "classification", 100, 0)
    assert len(rows) == 100 == len(set(rows))
    np.testing.assert_allclose(np.bincount(y[rows]), [90, 9, 1], atol=1)
    np.testing.assert_array_equal(stratified_rows(y, "classification", 1000, 0), np.arange(1000))


def test_contenders_suit_the_shape_of_the_table():
    wide, narrow = (contenders(*shape, "classification") for shape in ((100, 5000), (178, 13)))
    # Filters come first, as they cost little; ICAP and L1_L21 know classes only.
    assert set(wide[:2]) == set(narrow[:2]) == {"icap", "l1_l21"} and set(wide) == set(narrow)
    assert not {"icap", "l1_l21"} & set(contenders(178, 13, "regression"))


def test_expected_seconds_grow_with_the_work():
    usual = network_seconds("binmask", 140, 1000)
    assert network_seconds("binmask", 140, 1000, folds=1) < usual
    assert network_seconds("binmask", 140, 1000, kept=True) < usual
    # Screening and the draw of rows bound the work.
    assert network_seconds("binmask", 140, 20_000) == usual
    largest = network_seconds("lassonet", 4_000, 1000)
    assert network_seconds("lassonet", 1_000_000, 1000) == largest
    assert network_seconds("a method of another package", 140, 1000) > usual
