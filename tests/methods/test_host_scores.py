"""Scores that NumPy code computes in the middle of a compiled program."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

#: Sums of columns for two seeds at a time; nothing waits for a program before the next one begins.
ON_ONE_CORE = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax
import jax.numpy as jnp
from fsjax.method import TrainingRows
from fsjax.methods.shared.fixed_columns import on_host

def sums(x, shift):
    data = TrainingRows(x + shift, jnp.zeros(140, int), jnp.ones(140))
    return on_host(lambda x, y, weight: x.sum(axis=0), data)

of_seeds = jax.jit(jax.vmap(sums, (None, 0)))
other_work = jax.jit(lambda x: jnp.sort(x, axis=0)[0])
x = jnp.ones((140, 10_000))
waiting = [(other_work(x), of_seeds(x, jnp.arange(2) + number)) for number in range(8)]
print([results[:, 0].tolist() for _, results in waiting])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_a_large_table_on_one_core() -> None:
    process = subprocess.run(
        [sys.executable, "-c", ON_ONE_CORE], capture_output=True, text=True, timeout=60
    )
    expected = [[140.0 * (1 + number), 140.0 * (2 + number)] for number in range(8)]
    assert process.stdout.strip() == str(expected), process.stderr
