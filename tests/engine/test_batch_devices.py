"""One run on several devices: the rows of a batch are split, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from marks import some_long

import fsjax
from fsjax.engine import programs
from fsjax.errors import ConfigError

#: Batches of 16 of 72 training rows: five steps per epoch; the last batch is padded.
OPTIONS = dict(num_epochs=20, batch_size=16, seeds=(3,), num_features=4)

METHODS = {
    # With noise in each row, and weight decay.
    "ip_cae": fsjax.methods.ip_cae(4, hidden=(8,), embedding_dim=6),
    # With batch statistics and dropout.
    "neural_network": fsjax.methods.neural_network(hidden=(8,), batch_norm=True, dropout=0.2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", some_long(METHODS, ["neural_network"]))
def test_a_batch_on_two_devices_is_the_batch_on_one(name, data) -> None:
    programs.free()
    one = fsjax.fit(METHODS[name], data, **OPTIONS)
    assert not adds_up_over_devices()
    two = fsjax.fit(METHODS[name], data, batch_devices=2, **OPTIONS)
    assert adds_up_over_devices()
    assert one.history["train/loss"].shape == (1, 20)  # 100 steps
    for metric, values in one.history.items():
        np.testing.assert_allclose(two.history[metric], values, atol=1e-5, err_msg=metric)
    np.testing.assert_array_equal(two.selected, one.selected)


def adds_up_over_devices() -> bool:
    """Whether devices exchange gradients in a program of the cache."""
    return any("all-reduce" in one.as_text() for one in programs._kept.values())


@pytest.mark.long
def test_a_loss_that_couples_rows_sees_all_of_them() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 6)).astype(np.float32)
    time = rng.exponential(np.exp(x[:, 1]))
    y = np.stack([time, rng.random(80) < 0.7], axis=1)
    method = fsjax.methods.neural_network(hidden=(4,))
    options = dict(task="survival", num_features=2, num_epochs=10, split="random")
    one = fsjax.fit(method, (x, y), **options)
    two = fsjax.fit(method, (x, y), batch_devices=2, **options)
    np.testing.assert_allclose(two.history["train/loss"], one.history["train/loss"], atol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(batch_devices=3), "batch_devices=3 does not divide the 2"),
        (dict(batch_devices=2, batch_size=15), "divide batches of 15 rows"),
        (dict(batch_devices=0), "batch_devices=0; choose a whole number"),
        (dict(batch_devices=2, seed_axis="map"), "seed_axis='map' uses one device"),
    ],
)
def test_layouts_that_do_not_fit_are_refused(changes, message, data) -> None:
    with pytest.raises(ConfigError, match=message):
        fsjax.plan(METHODS["ip_cae"], data, **OPTIONS | changes)
