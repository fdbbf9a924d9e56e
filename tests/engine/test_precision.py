"""Runs with JAX in double precision, or on a platform that is not available."""

from __future__ import annotations

import os
import subprocess
import sys

import chex
import jax
import numpy as np
import pytest

import fsjax
from fsjax.registry import METHODS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quick_selection", "stg"])
def test_double_precision_of_the_user_changes_nothing(name: str, data, tmp_path) -> None:
    method = METHODS[name](**METHODS[name].registration.small)

    def run(folder):
        options = {"num_epochs": 2, "batch_size": 16, "seeds": (0, 3), "checkpoint_dir": folder}
        number = None if method.about.num_features else 3
        result = fsjax.fit(method, data, num_features=number, **options)
        predicted = None if method.predict is None else result.predict(data[0])
        return result, predicted

    single, of_single = run(tmp_path / "single")
    with jax.enable_x64(True):
        double, of_double = run(tmp_path / "double")
        again, _ = run(tmp_path / "single")
        result_path = tmp_path / "saved"
        fsjax.save(double, result_path)
        loaded = fsjax.load(result_path)
    chex.assert_trees_all_equal(double.states, single.states)
    chex.assert_trees_all_equal(again.states, single.states)
    chex.assert_trees_all_equal(loaded.states, single.states)
    np.testing.assert_array_equal(double.selected, single.selected)
    if of_single is not None:
        np.testing.assert_array_equal(of_double, of_single)
    assert not any(leaf.dtype.itemsize > 4 for leaf in jax.tree.leaves(double.states))


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cuda", pytest.param("nonsense", marks=pytest.mark.long)])
def test_a_platform_that_is_not_there_is_told(platform: str) -> None:
    program = (
        "import numpy as np, fsjax\n"
        "x = np.random.default_rng(0).normal(size=(30, 4))\n"
        "try: fsjax.fit(fsjax.methods.fisher_score(), (x, np.arange(30) % 2), num_features=2)\n"
        "except fsjax.ConfigError as error: print(error)\n"
    )
    environment = {**os.environ, "JAX_PLATFORMS": platform}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=99
    )
    assert f"JAX cannot start with JAX_PLATFORMS='{platform}'" in done.stdout, done.stderr
