"""Runs that resume from their checkpoints, and runs that must not."""

from __future__ import annotations

import errno
import functools
import os
import re
import warnings
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from engine_helpers import killed_after_a_checkpoint, linear_method

import fsjax
from fsjax.engine.fingerprint import fingerprint
from fsjax.errors import ConfigError, DataError
from fsjax.method import Method
from fsjax.storage.checkpoints import Checkpoints
from fsjax.storage.identity import Identity

METHOD = fsjax.methods.ip_cae(5, hidden=(8,), embedding_dim=6)


@pytest.mark.slow
def test_checkpoints_of_another_run_are_refused(data, tmp_path) -> None:
    options = dict(num_epochs=2, batch_size=16, checkpoint_dir=tmp_path)
    fsjax.fit(METHOD, data, seeds=(0,), **options)
    with pytest.raises(ConfigError, match="checkpoints of another run .*seeds"):
        fsjax.fit(METHOD, data, seeds=(1,), **options)
    other = fsjax.methods.ip_cae(5, hidden=(8,), embedding_dim=6, learning_rate=0.1)
    with pytest.raises(ConfigError, match="method.learning_rate was '0.001', is '0.1'"):
        fsjax.fit(other, data, seeds=(0,), **options)
    with pytest.raises(ConfigError, match="data_crc32"):
        fsjax.fit(METHOD, (data[0] ** 3, data[1]), seeds=(0,), **options)
    # The finished run is read again without training.
    again = fsjax.fit(METHOD, data, seeds=(0,), **options)
    assert again.cost["trained_epochs"] == 0


def doubled(outputs: jax.Array, y: jax.Array, weight: jax.Array) -> jax.Array:
    return 2.0 * fsjax.tasks.loss("classification", outputs, y, weight)


def adam(spec: Any) -> optax.GradientTransformation:
    return optax.adam(0.1)


def local(*rows: jax.Array) -> jax.Array:
    return doubled(*rows)


local.__module__ = "__main__"  # as in a notebook

DENSE = functools.partial(fsjax.methods.dense, hidden=(4,))
UNSAVED: dict[str, tuple[Method, dict[str, Any], str]] = {
    "a lambda": (DENSE(), {"loss": lambda *rows: doubled(*rows)}, r"loss=.*\.<lambda>"),
    "a partial": (DENSE(), {"loss": functools.partial(doubled)}, "loss=.*doubled"),
    "a notebook": (DENSE(), {"loss": local}, "loss=__main__.local"),
    "optax": (DENSE(optimizer=optax.adam(0.1)), {}, "optimizer=optax"),
    "a schedule": (DENSE(learning_rate=optax.linear_schedule(0.1, 0, 9)), {}, "learning_rate=op"),
    "by hand": (linear_method(), {}, "the method linear"),
    "changed": (DENSE()._replace(keep="last"), {}, "the method dense"),
}


@pytest.mark.parametrize("what", UNSAVED)
def test_what_has_no_name_in_another_process_is_not_saved(what: str, data, tmp_path) -> None:
    method, options, part = UNSAVED[what]
    with pytest.warns(UserWarning, match=f"starts anew, because another .* {part}.* by name; def"):
        planned = fsjax.plan(method, data, num_epochs=1, checkpoint_dir=tmp_path, **options)
    assert planned.checkpoint_dir is None


def test_a_fingerprint_is_the_same_in_any_process() -> None:
    text = fingerprint(DENSE(optimizer=adam))
    assert (
        text.startswith("fsjax.methods.sparse:dense (")
        and f"('optimizer', '{__name__}.adam')" in text
    )
    assert "0x" not in text + fingerprint(linear_method())
    assert fingerprint(DENSE(l2=0.1)) != fingerprint(DENSE(l2=0.2))


@pytest.mark.slow
def test_functions_of_a_module_resume_by_their_name(data, tmp_path) -> None:
    options = dict(num_features=3, num_epochs=2, batch_size=16, checkpoint_dir=tmp_path)
    first = fsjax.fit(DENSE(optimizer=adam), data, loss=doubled, **options)
    again = fsjax.fit(DENSE(optimizer=adam), data, loss=doubled, **options)
    assert again.cost["trained_epochs"] == 0
    chex.assert_trees_all_equal(again.states, first.states)
    with pytest.raises(ConfigError, match="another run .*loss was '.*doubled', is None"):
        fsjax.fit(DENSE(optimizer=adam), data, **options)
    with pytest.raises(ConfigError, match="another run .*method.optimizer was .*adam.*, is"):
        fsjax.fit(DENSE(), data, loss=doubled, **options)


@pytest.mark.slow
def test_a_run_continues_on_another_seed_axis(data, tmp_path, monkeypatch) -> None:
    # Three seeds are padded to four on two devices; the checkpoint must not contain the padding.
    options = dict(seeds=(1, 2, 3), num_epochs=4, batch_size=16, checkpoint_every=2)
    whole = fsjax.fit(METHOD, data, seed_axis="map", **options)
    with killed_after_a_checkpoint(monkeypatch):
        fsjax.fit(METHOD, data, seed_axis="shard", checkpoint_dir=tmp_path, **options)
    with pytest.warns(UserWarning, match="versions or devices .seed_axis was 'shard'"):
        resumed = fsjax.fit(METHOD, data, seed_axis="map", checkpoint_dir=tmp_path, **options)
    assert resumed.cost["trained_epochs"] == 2
    chex.assert_trees_all_close(resumed.scores, whole.scores, rtol=1e-3, atol=1e-4)


STATE = {"a": np.arange(4.0, dtype=np.float32), "empty": np.zeros((0, 3))}
RUN = Identity({"seeds": (1, 2)})


def saved(folder: Path, *epochs: int) -> Checkpoints:
    """Saves checkpoints whose states are :data:`STATE` times the epoch."""
    checkpoints = Checkpoints(folder, RUN)
    for epoch in epochs:
        states = STATE | {"a": STATE["a"] * epoch}
        checkpoints.save(epoch, states, {"loss": np.ones((1, epoch))})
    return checkpoints


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def restored(checkpoints: Checkpoints) -> tuple[Any, list[str]]:
    """The restored values, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = checkpoints.restore(STATE, ["loss"])
    return found, [str(one.message) for one in caught]


def test_the_newest_of_two_counts(tmp_path) -> None:
    folder = tmp_path / "run"
    assert Checkpoints(folder, RUN).restore(STATE, []) is None
    saved(folder, 2, 4, 6, 8)
    assert names_in(folder) == ["epoch_000006.npz", "epoch_000008.npz"]
    (folder / ".epoch_000010.npz.0123456789ab.tmp").touch()  # Not renamed, so it is incomplete.
    epoch, found, history = Checkpoints(folder, RUN).restore(STATE, ["loss"])
    assert epoch == 8 and history["loss"].shape == (1, 8)
    np.testing.assert_array_equal(found["a"], 8 * STATE["a"])
    with pytest.raises(ConfigError, match="another run .code was None, is 'x'"):
        Checkpoints(folder, Identity(RUN.settings, code={"code": "x"})).restore(STATE, ["loss"])
    with pytest.raises(ConfigError, match="'states/b' is missing.*; remove"):
        Checkpoints(folder, RUN).restore(STATE | {"b": STATE["a"]}, ["loss"])


@pytest.mark.parametrize("what", ["emptied", "renamed", "cut", "of two"])
def test_damage_leads_to_an_older_one_or_to_the_beginning(what, tmp_path) -> None:
    checkpoints = saved(tmp_path, 2, 4)
    newest, older = (tmp_path / f"epoch_00000{epoch}.npz" for epoch in (4, 2))
    if what == "emptied":
        newest.write_bytes(b"")
    elif what == "renamed":
        newest.rename(tmp_path / "epoch_000009.npz")
    elif what == "cut":
        newest.write_bytes(newest.read_bytes()[:-40])
    else:
        for path in (newest, older):
            path.write_bytes(path.read_bytes()[:-40])
    found, told = restored(checkpoints)
    assert re.search(r"epoch_00000[49].npz is damaged .*; continuing from an older one$", told[0])
    if what == "of two":
        assert found is None and told[1].endswith("continuing from the beginning")
        return
    assert found[0] == 2
    np.testing.assert_array_equal(found[1]["a"], 2 * STATE["a"])
    # The next save deletes the damaged one.
    saved(tmp_path, 3)
    assert names_in(tmp_path) == ["epoch_000002.npz", "epoch_000003.npz"]


def test_checkpoints_of_other_versions_are_refused(tmp_path, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("fsjax.storage.npz.VERSION", 9)
        saved(tmp_path, 2, 4)
    with pytest.raises(DataError, match="epoch_000004.npz has version 9 .*: use that fsjax"):
        saved(tmp_path).restore(STATE, ["loss"])


def test_types_without_a_name_in_files_come_back(tmp_path) -> None:
    states = {"half": jnp.arange(3, dtype=jnp.bfloat16), "key": jax.random.key(3)}
    Checkpoints(tmp_path, RUN).save(1, states, {})
    _, found, _ = Checkpoints(tmp_path, RUN).restore(states, [])
    chex.assert_trees_all_equal(found, states, strict=True)


def test_what_a_killed_save_left_goes_with_the_next(tmp_path) -> None:
    (tmp_path / ".epoch_000003.npz.0123456789ab.tmp").touch()
    saved(tmp_path, 4)
    assert names_in(tmp_path) == ["epoch_000004.npz"]


def test_a_full_disk_is_told_with_the_name_of_the_checkpoint(tmp_path, monkeypatch) -> None:
    checkpoints = saved(tmp_path, 2)

    def full(*_: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("numpy.lib.format.write_array", full)
        with pytest.raises(OSError, match="No space left on device: .*epoch_000004.npz"):
            checkpoints.save(4, STATE, {})
    assert names_in(tmp_path) == ["epoch_000002.npz"]
    assert checkpoints.restore(STATE, ["loss"])[0] == 2
