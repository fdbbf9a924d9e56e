"""A real, small training run: pixels of handwritten digits."""

from __future__ import annotations

import numpy as np
import pytest

import fsjax
from fsjax.data import load


@pytest.mark.slow
def test_ip_cae_beats_cae_and_a_random_selection_on_digits() -> None:
    data = load("digits")
    options = dict(seeds=(0, 1, 2), num_epochs=60, batch_size=32)
    builders = (fsjax.methods.ip_cae, fsjax.methods.cae, fsjax.methods.random_selection)
    ip_cae, cae, control = (fsjax.fit(build(10), data, **options) for build in builders)
    accuracy = [np.mean(r.metrics["embedded_accuracy"]) for r in (ip_cae, cae, control)]
    assert accuracy[0] > 88
    assert accuracy[0] > accuracy[1] + 2
    assert accuracy[0] > accuracy[2] + 8
    assert ip_cae.metrics["unique_percentage"].mean() >= 98
    # Most of the choice is common to the seeds.
    assert np.sort(ip_cae.selection_frequency)[-10:].mean() > 0.5
