"""Runs that go on from their checkpoints, and those that must not."""

from __future__ import annotations

import errno
import re
import shutil
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import chex
import numpy as np
import pytest
from engine_helpers import killed_after_a_checkpoint, linear_method

import fsjax
from fsjax.engine import checkpoint
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
    with pytest.warns(UserWarning, match="circumstances .seed_axis 'shard' there, 'map' here"):
        resumed = fsjax.fit(METHOD, data, seed_axis="map", checkpoint_dir=tmp_path, **options)
    assert resumed.cost["trained_epochs"] == 2
    chex.assert_trees_all_close(resumed.scores, whole.scores, rtol=1e-3, atol=1e-4)


STATE = {"a": np.arange(4.0, dtype=np.float32), "empty": np.zeros((0, 3))}


def saved(folder: Path, *epochs: int) -> Checkpoints:
    """Checkpoints whose states are as many times :data:`STATE` as there are epochs."""
    checkpoints = Checkpoints(folder, {"seeds": (1, 2)})
    for epoch in epochs:
        checkpoints.save(epoch, {"a": STATE["a"] * epoch}, {"loss": np.ones((1, epoch))})
    return checkpoints


def test_the_newest_of_two_counts(tmp_path) -> None:
    folder = tmp_path / "run"
    assert Checkpoints(folder, {"seeds": (1, 2)}).restore(STATE, []) is None
    saved(folder, 2, 4, 6, 8)
    names = ["epoch_000006", "epoch_000006.json", "epoch_000008", "epoch_000008.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    (folder / "epoch_000010.tmp").mkdir()  # Not renamed: it is not whole.
    epoch, found, history = Checkpoints(folder, {"seeds": [1, 2]}).restore(STATE, ["loss"])
    assert epoch == 8 and history["loss"].shape == (1, 8)
    np.testing.assert_array_equal(found["a"], 8 * STATE["a"])
    with pytest.raises(ConfigError, match="code None there, 'x' here"):
        Checkpoints(folder, {"seeds": (1, 2), "code": "x"}).restore(STATE, ["loss"])


def test_a_flipped_bit_in_any_file_is_noticed(tmp_path) -> None:
    folder = tmp_path / "run"
    checkpoints = saved(folder, 2, 4)
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if "000004" in str(path.relative_to(folder)) and path.is_file()
    ]
    assert len(files) > 3
    for path in files:
        whole = path.read_bytes()
        for place in np.linspace(0, len(whole) - 1, 5).astype(int) if whole else ():
            damaged = bytearray(whole)
            damaged[place] ^= 4
            path.write_bytes(damaged)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                epoch, found, _ = checkpoints.restore(STATE, ["loss"])
            assert epoch == 2 and "epoch_000004 is damaged" in str(caught[0].message)
            np.testing.assert_array_equal(found["a"], 2 * STATE["a"])
        path.write_bytes(whole)
    assert checkpoints.restore(STATE, ["loss"])[0] == 4


@pytest.mark.parametrize("what", ["emptied", "renamed", "no record", "cut", "of two"])
def test_damage_leads_to_an_older_one_or_to_the_beginning(what, tmp_path) -> None:
    folder = tmp_path / "run"
    checkpoints = saved(folder, 2, 4)
    newest, record = folder / "epoch_000004", folder / "epoch_000004.json"
    if what == "emptied":
        shutil.rmtree(newest)
        newest.mkdir()
    elif what == "renamed":
        for path in (newest, record):
            path.rename(path.with_name(path.name.replace("4", "9")))
    elif what == "no record":
        record.unlink()
    elif what == "cut":
        record.write_text(record.read_text()[:40])
    else:
        for path in (record, folder / "epoch_000002.json"):
            path.write_text(path.read_text().replace('"sha256": "', '"sha256": "0'))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = checkpoints.restore(STATE, ["loss"])
    told = [str(one.message) for one in caught]
    why = "has no epoch_000004.json: cut short" if what == "no record" else "is damaged"
    assert re.search(rf"epoch_00000[49] {why}.*; going on from an older one$", told[0])
    if what == "of two":
        assert found is None and told[1].endswith("going on from the beginning")
    else:
        assert found[0] == 2
        np.testing.assert_array_equal(found[1]["a"], 2 * STATE["a"])


def test_what_a_killed_save_left_goes_with_the_next(tmp_path) -> None:
    (tmp_path / "epoch_000003.orbax-checkpoint-tmp" / "d").mkdir(parents=True)
    saved(tmp_path, 4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["epoch_000004", "epoch_000004.json"]


def test_a_full_disk_is_told_with_the_name_of_the_checkpoint(tmp_path, monkeypatch) -> None:
    checkpoints = saved(tmp_path, 2)
    full = OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "epoch_000004"))

    def save(*args, **options) -> None:
        (tmp_path / "epoch_000004.orbax-checkpoint-tmp").mkdir()
        raise ValueError("RESOURCE_EXHAUSTED: write failed")

    with monkeypatch.context() as patch:
        patch.setattr("orbax.checkpoint.v1.save", save)
        with pytest.raises(OSError, match=re.escape(str(full))):
            checkpoints.save(4, STATE, {})
    assert checkpoints.restore(STATE, ["loss"])[0] == 2
    assert len([*tmp_path.iterdir()]) == 2
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
        with pytest.raises(OSError, match="No space left"):
            checkpoints.save(4, STATE, {})
    assert checkpoints.restore(STATE, ["loss"])[0] == 2


def test_what_threads_say_after_a_failed_save_is_left_out(monkeypatch) -> None:
    told = []
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with checkpoint._quiet():
        pass
    assert sys.unraisablehook == told.append
    with pytest.raises(OSError), checkpoint._quiet():
        raise OSError(28, "full")
    for error in (RuntimeError("Event loop is closed"), RuntimeError("another")):
        sys.unraisablehook(SimpleNamespace(exc_value=error))
    assert [str(of.exc_value) for of in told] == ["another"]
