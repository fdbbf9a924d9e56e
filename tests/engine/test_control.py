"""Trainings that end early or start from an earlier result, and exported networks.

Covers ``fsjax.engine.control``, ``fsjax.engine.export``.
"""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from bad_calls import refuses
from engine_helpers import linear_method
from jax import export as jax_export
from marks import slow_ids

import fsjax
from fsjax.errors import ConfigError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6)).astype(np.float32)
Y = (X[:, 0] + X[:, 3] > 0).astype(int)
GIVEN = {"num_features": 2, "num_epochs": 12, "batch_size": 32, "split": "stratified"}


def network(**options) -> fsjax.FitResult:
    method = fsjax.methods.neural_network(hidden=(8,), learning_rate=0.01)
    return fsjax.fit(method, (X, Y), **{**GIVEN, **options})


@pytest.mark.slow
def test_a_callback_sees_every_epoch_and_changes_nothing():
    seen = []
    told = network(seeds=(0, 1), callback=seen.append)
    alone = network(seeds=(0, 1))
    assert [one.epoch for one in seen] == list(range(1, 13))
    assert seen[0].seeds == (0, 1) and seen[0].num_epochs == 12 and seen[-1].seconds > 0
    losses = np.stack([one.metrics["valid/loss"] for one in seen], axis=1)
    np.testing.assert_array_equal(losses, alone.history["valid/loss"])
    np.testing.assert_array_equal(told.scores, alone.scores)


def test_a_callback_ends_training():
    told = network(callback=lambda progress: progress.epoch == 5)
    assert told.history["train/loss"].shape == (1, 5)
    whole = network().history["train/loss"]
    np.testing.assert_array_equal(told.history["train/loss"], whole[:, :5])


@pytest.mark.slow
def test_time_ends_training():
    ended = network(num_epochs=100_000, max_time=1e-3)
    assert 1 <= ended.history["train/loss"].shape[1] < 1000
    # A search stops too, and keeps the nearest training.
    method = fsjax.methods.stg(hidden=(8,))
    found = fsjax.fit(method, (X, Y), **{**GIVEN, "num_epochs": 100_000}, max_time=1e-3)
    assert found.cost["trainings"] == 1 and found.selected.shape == (1, 2)


@pytest.mark.slow
def test_a_seed_without_progress_ends_alone():
    # Random labels: the validation loss rises soon.
    y = np.random.default_rng(1).integers(0, 2, len(X))
    method = fsjax.methods.neural_network(hidden=(32,), learning_rate=0.02)
    given = {**GIVEN, "num_epochs": 60, "early_stopping": 4}
    both = fsjax.fit(method, (X, y), seeds=(0, 1), **given)
    losses = both.history["valid/loss"]
    for row, seed in enumerate((0, 1)):
        trained = int(np.sum(~np.isnan(losses[row])))
        best = int(np.nanargmin(losses[row]))
        assert trained == best + 1 + 4 < 60
        alone = fsjax.fit(method, (X, y), seeds=(seed,), **given)
        assert alone.history["valid/loss"].shape[1] == trained
        np.testing.assert_allclose(alone.scores[0], both.scores[row], rtol=1e-4)


@pytest.mark.slow
def test_training_goes_on_from_a_result():
    first = network(num_epochs=6, seeds=(0, 1))
    # The first new epoch starts where the kept one ended.
    second = network(num_epochs=1, seeds=(0, 1), start=first)
    anew = network(num_epochs=1, seeds=(0, 1))
    assert (second.history["train/loss"] < anew.history["train/loss"] - 0.02).all()
    with pytest.raises(ConfigError, match="2 seeds, but this run has 1"):
        network(start=first)
    with pytest.raises(ConfigError, match="num_columns=6, but this run has 5"):
        fsjax.fit(first.method, (X[:, :5], Y), seeds=(0, 1), start=first, **GIVEN)
    with pytest.raises(ConfigError, match="with other settings"):
        wide = fsjax.methods.neural_network(hidden=(9,))
        fsjax.fit(wide, (X, Y), seeds=(0, 1), start=first, **GIVEN)


@pytest.mark.parametrize("fresh", [{"seen": 1.0}, {}, ()])
def test_what_the_end_of_a_training_adds_is_left_behind(fresh):
    plain = linear_method()
    method = plain._replace(
        init=lambda *given: plain.init(*given).replace(extra=jax.tree.map(np.float32, fresh)),
        finish=lambda state, *_: state.replace(extra={**dict(state.extra), "late": state.params}),
    )
    given = {"num_epochs": 1, "batch_size": 90}
    first = fsjax.fit(method, (X, Y), **given)
    second = fsjax.fit(method, (X, Y), **given, start=first)
    assert second.history["train/loss"][0, 0] < first.history["train/loss"][0, 0]
    assert set(second.states.extra) == {*fresh, "late"}


def test_scores_that_are_not_trained_are_those_of_the_new_rows():
    given = {"num_features": 2, "num_epochs": 1, "best_by": "last"}
    first, anew = (fsjax.fit(fsjax.methods.rfs(), (X, y), **given) for y in (Y, X[:, 1] > 0))
    again = fsjax.fit(fsjax.methods.rfs(), (X, X[:, 1] > 0), **given, start=first)
    np.testing.assert_array_equal(again.scores, anew.scores)


INTERRUPTED = """
import os, signal, sys, warnings
import numpy as np
import fsjax
signal.signal(signal.SIGINT, signal.default_int_handler)  # which jobs in the background ignore
def callback(progress):
    if progress.epoch == 4:
        os.kill(os.getpid(), signal.SIGINT)
X = np.random.default_rng(0).normal(size=(60, 4)); y = (X[:, 0] > 0).astype(int)
for keep in (True, False):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = fsjax.fit(fsjax.methods.neural_network(hidden=(4,)), (X, y), num_features=1,
                          num_epochs=50, callback=callback, keep_partial=keep)
    print(found.history["train/loss"].shape[1], [str(one.message)[:24] for one in told])
"""


@pytest.mark.slow
def test_ctrl_c_leaves_what_was_learnt():
    before = signal.getsignal(signal.SIGINT)
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    # With keep_partial, one line; without, nothing but the interrupt.
    assert done.stdout.strip() == "4 ['training was interrupted']", done.stderr
    assert "KeyboardInterrupt" in done.stderr
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_a_checkpoint(number, tmp_path):
    def stop(*_):
        raise KeyboardInterrupt

    def send(progress):
        if progress.epoch == 4:
            signal.raise_signal(number)

    before = signal.signal(number, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            network(callback=send, checkpoint_dir=tmp_path)
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, before)
    assert [path.name for path in tmp_path.iterdir()] == ["epoch_000004.npz"]
    resumed = network(checkpoint_dir=tmp_path)
    assert resumed.cost["trained_epochs"] == 8
    np.testing.assert_array_equal(resumed.scores, network().scores)


def test_metrics_go_to_loggers():
    told = []
    writer = SimpleNamespace(add_scalar=lambda name, value, step: told.append((name, value, step)))
    found = network(callback=fsjax.log_to(writer, "run/"))
    assert ("run/valid/loss", float(found.history["valid/loss"][0, 1]), 2) in told
    logged = []
    tracker = SimpleNamespace(log_metrics=lambda values, step: logged.append((step, values)))
    network(callback=fsjax.log_to(tracker))
    assert [step for step, _ in logged] == [*range(1, 13)] and "train/loss" in logged[0][1]
    with pytest.raises(ConfigError, match="none of add_scalar, log_metrics and log"):
        fsjax.log_to(3)


@slow_ids("minmax")
@slow_ids("standard")
@pytest.mark.parametrize("scaling", ["standard", "minmax", "scalar"])
def test_an_exported_network_predicts_alike(scaling, tmp_path):
    found = network(seeds=(0, 1), scaling=scaling, num_epochs=2)
    data = fsjax.export(found, tmp_path / "network.bin", seed=1)
    assert (tmp_path / "network.bin").read_bytes() == data
    program = jax_export.deserialize(bytearray(data))
    assert set(program.platforms) == {"cpu", "cuda", "tpu"}
    for rows in (1, 37):
        outputs = program.call(jax.numpy.asarray(X[:rows]))
        np.testing.assert_allclose(outputs, found.predict(X[:rows])[1], rtol=1e-4, atol=1e-5)
    with pytest.raises(ConfigError, match="seed=7 is not a seed of this result"):
        fsjax.export(found, seed=7)
    for platforms in ("cpu", ("gpu",), ()):
        with pytest.raises(ConfigError, match="give a tuple of some of cpu, cuda, rocm, tpu"):
            fsjax.export(found, platforms=platforms)
    chosen = fsjax.fit(fsjax.methods.fisher_score(), (X, Y), num_features=2)
    with pytest.raises(ConfigError, match="does not predict"):
        fsjax.export(chosen)


def test_a_network_in_bfloat16_is_exported_with_its_rounding():
    with jax.default_matmul_precision("bfloat16"):
        found = network(num_epochs=1)
        predicted, data = found.predict(X)[0], fsjax.export(found, platforms=("cpu",))
    outputs = np.asarray(jax_export.deserialize(bytearray(data)).call(jax.numpy.asarray(X)))
    np.testing.assert_allclose(outputs, predicted, rtol=1e-5, atol=1e-6)
    assert np.abs(found.predict(X)[0] - predicted).max() > 1e-4


def test_patience_needs_validation_rows():
    refuses(lambda: network(early_stopping=3, valid_fraction=0.0), "there are no validation rows")
