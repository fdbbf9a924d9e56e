"""Training, validation and padding rows, and noise on the training rows.

Covers ``fsjax.engine.prepare``.
"""

from __future__ import annotations

import importlib

import chex
import numpy as np
import pytest
from engine_helpers import STATIC, prepared_by, real
from hypothesis import given
from hypothesis import strategies as st
from marks import slow_ids, some_long

import fsjax
from fsjax.data import Dataset, Split, fit_scaler
from fsjax.tables.scaled import filled_length, filled_rows
from fsjax.tables.splits import PaperSettings


@given(st.integers(0, 100_000))
def test_few_rows_fill_up_and_neighbours_share_a_length(count: int) -> None:
    length = filled_length(count)
    assert count <= length <= max(count + 7, count + count // 16)
    assert filled_length(length) == length


def test_folds_have_one_length() -> None:
    for rows in (89, 403, 10_007):
        lengths = {filled_length(rows * 4 // 5 + more) for more in (0, 1)}
        assert len(lengths) == 1
    np.testing.assert_array_equal(
        filled_rows(np.ones((3, 2))), np.eye(8, 3).sum(1)[:, None] * [1, 1]
    )


@pytest.mark.slow
def test_test_rows_are_recorded_on_demand_only(data) -> None:
    result = fsjax.fit(STATIC, data, num_features=3, num_epochs=2, batch_size=16)
    assert not any(name.startswith("test") for name in result.history)
    assert len(prepared_by(data).arrays.test.x) == 0


@pytest.mark.parametrize("protocol", ["stratified", "random", "wast"])
def test_share_of_validation_rows(data, protocol: str) -> None:
    splits = {}
    for share in (0.0, 0.1, 0.5):
        prepared = prepared_by(data, protocol, valid_fraction=share)
        splits[share] = prepared.splits[0]
        train, valid, test = (len(part) for part in splits[share])
        assert (train + valid, test) == (72, 18)
        assert valid == round(72 * share)
        for part, count in ((prepared.arrays.train, train), (prepared.arrays.valid, valid)):
            assert part.weight.sum() == count and (part.weight[:count] == 1).all()
            assert len(part.x) == len(part.y) == filled_length(count)
            assert not part.x[count:].any()
        assert prepared.num_rows == train
    chex.assert_trees_all_equal(*(split.test for split in splits.values()))


def test_without_validation_rows_the_last_epoch_is_kept(data) -> None:
    options = dict(num_features=3, num_epochs=3, batch_size=16, valid_fraction=0.0)
    for best_by in ("loss", "accuracy"):
        result = fsjax.fit(STATIC, data, best_by=best_by, **options)
        assert result.best_epoch.tolist() == [3]
        assert result.states.spec.best_by == "last"
        assert len(result.splits[0].valid) == 0
        assert not any(name.startswith("valid") for name in result.history)


def test_noise_is_added_to_the_training_rows_once(data) -> None:
    clean, noisy, again, other = (
        prepared_by(data, noise_std=std, split_per_seed=per_seed, seeds=seeds)
        for std, per_seed, seeds in (
            (0.0, False, (0,)),
            (0.5, False, (0,)),
            (0.5, False, (5,)),
            (0.5, True, (5, 6)),
        )
    )
    train, plain = noisy.arrays.train, clean.arrays.train
    noise = real(train.x, train.weight) - real(plain.x, plain.weight)
    assert noise.dtype == np.float32
    assert noise.std() == pytest.approx(0.5, rel=0.1) and abs(noise.mean()) < 0.1
    # Padding rows stay 0.
    assert not train.x[train.weight == 0].any()
    chex.assert_trees_all_equal(again.arrays, noisy.arrays)
    chex.assert_trees_all_equal((train.y, train.weight), (plain.y, plain.weight))
    chex.assert_trees_all_equal(noisy.arrays.valid, clean.arrays.valid)
    chex.assert_trees_all_equal(noisy.x_test, clean.x_test)
    chex.assert_trees_all_equal(noisy.scalers[0]._asdict(), clean.scalers[0]._asdict())
    first, second = other.arrays.train.x
    assert not np.array_equal(np.sort(first, axis=None), np.sort(second, axis=None))

    options = dict(num_features=3, num_epochs=2, batch_size=16)
    losses = [
        fsjax.fit(STATIC, data, noise_std=std, **options).history["train/loss"]
        for std in (0.0, 2.0, 2.0)
    ]
    assert not np.allclose(losses[0], losses[1])
    chex.assert_trees_all_equal(losses[1], losses[2])


def test_seeds_that_share_their_rows_have_noise_of_their_own(data) -> None:
    x, y = data
    test_rows = (np.arange(90) >= 70).astype(np.uint8)
    dataset = Dataset("table", x, y.astype(np.int32), official_split=test_rows)
    prepared = prepared_by(
        dataset, "official", valid_fraction=0.0, split_per_seed=True, seeds=(5, 6), noise_std=1.0
    )
    chex.assert_trees_all_equal(*prepared.splits)
    first, second = prepared.arrays.train.x
    assert not np.isclose(first[:70], second[:70]).any()


def test_scalers_are_fitted_on_the_training_rows_of_each_seed(data) -> None:
    prepared = prepared_by(data, scaling="standard", split_per_seed=True, seeds=(0, 1))
    for split, scaler in zip(prepared.splits, prepared.scalers, strict=True):
        expected = fit_scaler("standard", data[0][split.train])
        chex.assert_trees_all_equal(scaler._asdict(), expected._asdict())


@pytest.mark.parametrize(
    ("scaling", "rows"), [(("standard", "train"), 50), (("minmax", "train+valid"), 70)]
)
def test_validation_rows_scale_only_where_the_paper_did_so(scaling, rows, data) -> None:
    x, y = data
    paper = PaperSettings(scaling=scaling)
    dataset = Dataset("table", x, y.astype(np.int32), paper=paper)
    prepared = prepared_by(dataset, Split(*np.split(np.arange(90), [50, 70])))
    expected = fit_scaler(scaling[0], x[:rows])
    chex.assert_trees_all_equal(prepared.scalers[0]._asdict(), expected._asdict())


def test_columns_that_vary_only_in_other_rows_are_constant(data) -> None:
    x = data[0].copy()
    x[:70, 4] = 1.0
    x[:50, 6] = 2.0
    prepared = prepared_by((x, data[1]), Split(*np.split(np.arange(90), [50, 70])))
    assert np.flatnonzero(~prepared.feature_mask[0]).tolist() == [4, 6]


def test_weights_are_those_of_the_rows_and_test_rows_have_none(data) -> None:
    weight = np.linspace(0.5, 2.0, 90, dtype=np.float32)
    plain, weighted = (
        prepared_by(data, record_test=True, sample_weight=weights) for weights in (None, weight)
    )
    chex.assert_trees_all_equal(weighted.arrays.test, plain.arrays.test)
    for part, rows in zip(weighted.arrays[:2], weighted.splits[0][:2], strict=True):
        np.testing.assert_array_equal(part.weight[: len(rows)], weight[rows])


def test_seeds_that_see_some_columns_keep_what_is_known_of_them(data) -> None:
    x = data[0].copy()
    x[:, 4] = 1.0
    columns = np.array([[7, 4, 2], [0, 1, 4]])
    whole, some = (
        prepared_by((x, data[1]), columns=seen, seeds=(0, 1)) for seen in (None, columns)
    )
    assert some.feature_mask.tolist() == [[True, False, True], [True, True, False]]
    for row, seen in enumerate(columns):
        np.testing.assert_array_equal(some.arrays.train.x[row], whole.arrays.train.x[:, seen])
        np.testing.assert_array_equal(some.x_test[row], whole.x_test[row][:, seen])


#: Methods that use rows in different ways: batches, noise, statistics, whole tables.
METHODS = {
    "ip_cae": (fsjax.methods.ip_cae(3, hidden=(4,), embedding_dim=4, noise="row"), {}),
    "batch_norm": (
        fsjax.methods.neural_network(hidden=(4,), batch_norm=True, learning_rate=0.01),
        {"min_steps_per_epoch": 7},
    ),
    "ctre_sim": (fsjax.methods.ctre_sim(hidden=(6,), epsilon=1.5, similarity_fraction=0.5), {}),
    "rigl": (fsjax.methods.rigl(hidden=(6,), epsilon=1.5), {"shuffle": False}),
    "wast": (fsjax.methods.wast(hidden=(6,), density=0.4), {}),
    "whole table": (fsjax.methods.stg(3, hidden=(4,), search=False), {"batch_size": None}),
    "fisher_score": (fsjax.methods.fisher_score(3), {}),
    "without the last batch": (fsjax.methods.dense(hidden=(4,)), {"drop_last": True}),
}


@slow_ids("batch_norm", "ctre_sim", "ip_cae", "whole table", "without the last batch")
@pytest.mark.parametrize("name", some_long(METHODS, ["rigl", "wast"]))
def test_rows_that_fill_up_change_nothing(name: str, data, monkeypatch) -> None:
    method, changes = METHODS[name]
    rows = np.arange(90)
    # 61 rows are padded to 64, 13 to 16, and 16 are not padded.
    split = Split(rows[:61], rows[61:74], rows[74:])
    options = dict(num_features=3, seeds=(0, 1), num_epochs=3, batch_size=16, split=split)
    options["scaling"] = "standard"
    filled = fsjax.fit(method, data, **options | changes)
    for name in ("tables.scaled", "engine.check_run"):
        module = importlib.import_module(f"fsjax.{name}")
        monkeypatch.setattr(module, "filled_length", lambda count: count)
    plain = fsjax.fit(method, data, **options | changes)
    assert (filled.states.spec.num_rows, plain.states.spec.num_rows) == (64, 61)
    # Sums over more zeros are rounded in another order: 1e-4 after a dozen steps.
    near = dict(rtol=1e-4, atol=1e-5)
    chex.assert_trees_all_close(filled.states.params, plain.states.params, **near)
    chex.assert_trees_all_equal(filled.states.masks, plain.states.masks)
    chex.assert_trees_all_close(filled.scores, plain.scores, **near)
    chex.assert_trees_all_close(dict(filled.history), dict(plain.history), **near)
    chex.assert_trees_all_close(dict(filled.metrics), dict(plain.metrics), **near)
    np.testing.assert_array_equal(filled.selected, plain.selected)
    assert filled.cost["train_flops"] == plain.cost["train_flops"]
