"""Rows that validate, the epoch that is kept, and noise on the rows of training."""

from __future__ import annotations

import chex
import jax
import numpy as np
import pytest
from engine_helpers import STATIC, prepared_by

import fsjax
from fsjax.errors import ConfigError


@pytest.mark.parametrize("best_by", ["loss", "accuracy", "last"])
def test_the_kept_epoch_and_the_recorded_test_metrics(data, best_by: str) -> None:
    x, y = data
    options = dict(num_features=3, num_epochs=30, batch_size=16, seed_axis="map")
    result = fsjax.fit(STATIC, data, seeds=(0, 1), best_by=best_by, record_test=True, **options)
    history, seeds = result.history, np.arange(2)
    expected = {
        "loss": history["valid/loss"].argmin(axis=1) + 1,
        # The first of equally good epochs.
        "accuracy": history["valid/accuracy"].argmax(axis=1) + 1,
        "last": np.array([30, 30]),
    }[best_by]
    chex.assert_trees_all_equal(result.best_epoch, expected.astype(np.int32))
    assert best_by == "last" or (expected < 30).any()

    rows = result.splits[0].valid
    found = 100 * (result.predict(x[rows]).argmax(-1) == y[rows]).mean(axis=1)
    kept = history["valid/accuracy"][seeds, expected - 1]
    chex.assert_trees_all_close(found, kept.astype(float), rtol=1e-5)
    chex.assert_shape((history["test/loss"], history["test/accuracy"]), (2, 30))
    recorded = history["test/accuracy"][seeds, expected - 1].astype(float)
    chex.assert_trees_all_close(recorded, result.metrics["embedded_accuracy"], rtol=1e-5)

    # Only where it may not be the last is there a copy of the network.
    best = result.states.best
    copied = len(jax.tree.leaves((best.params, best.masks, best.extra)))
    assert copied == (0 if best_by == "last" else 8)
    # Its connections stay.
    assert not history["train/topology_change"].any()
    active = 2 * (11 + 8) + min(2 * (8 + 3), 24)
    np.testing.assert_allclose(history["train/sparsity"], 1 - active / (88 + 24), rtol=1e-5)
    assert result.cost["params"] == active


def test_test_rows_are_recorded_on_demand_only(data) -> None:
    result = fsjax.fit(STATIC, data, num_features=3, num_epochs=2, batch_size=16)
    assert not any(name.startswith("test") for name in result.history)


@pytest.mark.parametrize("protocol", ["stratified", "random", "wast"])
def test_share_of_validation_rows(data, protocol: str) -> None:
    splits = {}
    for share in (0.0, 0.1, 0.5):
        prepared = prepared_by(data, protocol, valid_fraction=share)
        splits[share] = prepared.splits[0]
        train, valid, test = (len(part) for part in splits[share])
        assert (train + valid, test) == (72, 18)
        assert valid == round(72 * share)
        assert len(prepared.arrays.x_valid) == valid and len(prepared.arrays.x_train) == train
    chex.assert_trees_all_equal(*(split.test for split in splits.values()))


def test_without_validation_rows_the_last_epoch_is_kept(data) -> None:
    for best_by in ("loss", "accuracy"):
        result = fsjax.fit(
            STATIC,
            data,
            num_features=3,
            num_epochs=3,
            batch_size=16,
            valid_fraction=0.0,
            best_by=best_by,
        )
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
    noise = noisy.arrays.x_train - clean.arrays.x_train
    assert noise.dtype == np.float32
    assert noise.std() == pytest.approx(0.5, rel=0.1) and abs(noise.mean()) < 0.1
    chex.assert_trees_all_equal(again.arrays, noisy.arrays)
    same = ("y_train", "weight", "x_valid", "y_valid")
    for name in same:
        chex.assert_trees_all_equal(getattr(noisy.arrays, name), getattr(clean.arrays, name))
    chex.assert_trees_all_equal(noisy.x_test, clean.x_test)
    chex.assert_trees_all_equal(noisy.scalers[0]._asdict(), clean.scalers[0]._asdict())
    first, second = other.arrays.x_train
    assert not np.array_equal(np.sort(first, axis=None), np.sort(second, axis=None))

    options = dict(num_features=3, num_epochs=2, batch_size=16)
    losses = [
        fsjax.fit(STATIC, data, noise_std=std, **options).history["train/loss"]
        for std in (0.0, 2.0, 2.0)
    ]
    assert not np.allclose(losses[0], losses[1])
    chex.assert_trees_all_equal(losses[1], losses[2])


def test_noise_does_not_hide_constant_columns(data) -> None:
    x = data[0].copy()
    x[:, 4] = 1.0
    mask = prepared_by((x, data[1]), noise_std=1.0).feature_mask
    assert mask.sum() == 10 and not mask[0, 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(best_by="lost"), "best_by='lost': did you mean 'loss'"),
        (dict(best_by="accuracy", task="reconstruction"), "needs classes, but the task is recons"),
        (dict(valid_fraction=1.0), "valid_fraction=1.0; choose a share"),
        (dict(valid_fraction=-0.1), "valid_fraction=-0.1"),
        (dict(noise_std=-1.0), "noise_std=-1.0; choose 0 for no noise"),
        (dict(noise_std=float("inf")), "noise_std=inf"),
        (dict(noise_std=float("nan")), "noise_std=nan"),
        (dict(num_features=None), "static_sparse selects any number; give"),
    ],
)
def test_bad_settings_of_validation_and_noise_are_named(data, changes: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        fsjax.fit(STATIC, data, **{"num_features": 3, "num_epochs": 2, **changes})
