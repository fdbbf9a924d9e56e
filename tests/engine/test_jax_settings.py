"""Settings of JAX that must not change the engine, and forked processes, in which JAX hangs.

Covers ``fsjax.engine.environment.jax_settings``.
"""

from __future__ import annotations

import subprocess
import sys

import jax
import numpy as np
import pytest

import fsjax
from fsjax.registry import METHODS

SETTINGS = {
    "disable_jit": lambda: jax.disable_jit(True),
    "numpy_rank_promotion": lambda: jax.numpy_rank_promotion("raise"),
    "numpy_dtype_promotion": lambda: jax.numpy_dtype_promotion("strict"),
    "transfer_guard": lambda: jax.transfer_guard("disallow"),
}


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_the_user_change_nothing(setting: str, data) -> None:
    def run(name: str) -> fsjax.FitResult:
        method = METHODS[name](**METHODS[name].registration.small)
        number = None if method.about.num_features else 3
        result = fsjax.fit(method, data, num_features=number, num_epochs=2, batch_size=16)
        if method.predict is not None:
            result.predict(data[0])
        return result

    for name in ("wast", "stg"):
        with SETTINGS[setting]():
            result = run(name)
        np.testing.assert_array_equal(result.scores, run(name).scores)


FORKED = """
import os, warnings
import numpy as np, fsjax
data = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 2
def fit(): return fsjax.fit(fsjax.methods.fisher_score(), data, num_features=2)
fit()
warnings.simplefilter("ignore")
if os.fork() == 0:
    try:
        fit()
    except fsjax.ConfigError as error:
        os.write(1, str(error).encode())
    os._exit(0)
os.wait()
"""


@pytest.mark.slow
def test_a_fit_in_a_forked_process_is_refused() -> None:
    command = [sys.executable, "-c", FORKED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.startswith("this process was forked after JAX had started")
    assert "get_context('spawn')" in done.stdout
