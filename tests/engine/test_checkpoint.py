"""Runs that go on from their checkpoints, and those that must not."""

from __future__ import annotations

import json

import chex
import numpy as np
import pytest
from engine_helpers import killed_after_a_checkpoint, linear_method

import fsjax
from fsjax.engine.checkpoint import Checkpoints
from fsjax.errors import ConfigError

METHOD = fsjax.methods.ip_cae(5, hidden=(8,), embedding_dim=6)


def test_checkpoints_of_another_run_are_refused(data, tmp_path) -> None:
    options = dict(num_epochs=2, batch_size=16, checkpoint_dir=tmp_path)
    fsjax.fit(METHOD, data, seeds=(0,), **options)
    with pytest.raises(ConfigError, match="checkpoints of another run .*seeds"):
        fsjax.fit(METHOD, data, seeds=(1,), **options)
    other = fsjax.methods.ip_cae(5, hidden=(8,), embedding_dim=6, learning_rate=0.1)
    with pytest.raises(ConfigError, match="learning_rate '0.001' there, '0.1' here"):
        fsjax.fit(other, data, seeds=(0,), **options)
    with pytest.raises(ConfigError, match="data_crc32"):
        fsjax.fit(METHOD, (data[0] ** 3, data[1]), seeds=(0,), **options)
    # The finished run is read again without training.
    again = fsjax.fit(METHOD, data, seeds=(0,), **options)
    assert again.cost["trained_epochs"] == 0


def test_a_method_made_by_hand_does_not_go_on_from_another_one(data, tmp_path) -> None:
    # Of the same name, without settings, and with states of the same shapes.
    options = dict(num_epochs=3, batch_size=16, checkpoint_dir=tmp_path)
    first = fsjax.fit(linear_method(1.0), data, **options)
    for other in (linear_method(2.0), linear_method(1.0, keep="accuracy")):
        with pytest.raises(ConfigError, match="checkpoints of another run .*code"):
            fsjax.fit(other, data, best_by="loss", **options)
    again = fsjax.fit(linear_method(1.0), data, **options)
    assert again.cost["trained_epochs"] == 0
    chex.assert_trees_all_equal(again.states, first.states)


def test_a_run_continues_on_another_seed_axis(data, tmp_path, monkeypatch) -> None:
    # Three seeds are four on two devices; the checkpoint must not know.
    options = dict(seeds=(1, 2, 3), num_epochs=4, batch_size=16, checkpoint_every=2)
    whole = fsjax.fit(METHOD, data, seed_axis="map", **options)
    with killed_after_a_checkpoint(monkeypatch):
        fsjax.fit(METHOD, data, seed_axis="shard", checkpoint_dir=tmp_path, **options)
    resumed = fsjax.fit(METHOD, data, seed_axis="map", checkpoint_dir=tmp_path, **options)
    assert resumed.cost["trained_epochs"] == 2
    chex.assert_trees_all_close(resumed.scores, whole.scores, rtol=1e-3, atol=1e-4)


def test_only_the_newest_whole_checkpoint_counts(tmp_path) -> None:
    folder = tmp_path / "run"
    checkpoints = Checkpoints(folder, {"seeds": (1, 2)})
    state = {"a": np.arange(4.0, dtype=np.float32)}
    assert checkpoints.restore(state, []) is None
    for epoch in (2, 4):
        checkpoints.save(epoch, {"a": state["a"] * epoch}, {"loss": np.ones((1, epoch))})
    assert sorted(path.name for path in folder.iterdir()) == ["epoch_000004", "identity.json"]
    (folder / "epoch_000006.tmp").mkdir()  # Not renamed: it is not whole.
    epoch, found, history = Checkpoints(folder, {"seeds": [1, 2]}).restore(state, ["loss"])
    assert epoch == 4 and history["loss"].shape == (1, 4)
    np.testing.assert_array_equal(found["a"], 4 * state["a"])
    (folder / "identity.json").write_text(json.dumps({"seeds": [1, 2], "code": "x"}))
    with pytest.raises(ConfigError, match="code 'x' there, None here"):
        checkpoints.restore(state, ["loss"])
