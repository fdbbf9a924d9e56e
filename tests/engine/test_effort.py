"""The compiler options, which depend on the settings of the whole run and on nothing else."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from engine_helpers import STATIC, killed_after_a_checkpoint

import fsjax
from fsjax.engine import programs as effort
from fsjax.engine import train


def test_long_runs_fill_the_registers() -> None:
    compiled = jax.jit(jnp.sin).lower(1.0).compile(dict(effort.options_for(math.inf)))
    assert compiled(1.0) == jnp.sin(1.0)
    assert effort.options_for(math.inf) == {"xla_cpu_prefer_vector_width": 512}


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The work for which each training is compiled."""
    found: list[float] = []

    def noted(*args: Any) -> float:
        found.append(effort.training_work(*args))
        return found[-1]

    monkeypatch.setattr(train, "training_work", noted)
    return found


@pytest.mark.slow
def test_work_grows_with_all_that_is_visited(data, works: list[float]) -> None:
    def work(**options: Any) -> float:
        fsjax.fit(STATIC, data, **dict(num_features=3, num_epochs=2, batch_size=16) | options)
        return works[-1]

    least = work()
    assert work(num_epochs=4) == 2 * least
    assert work(batch_size=8) > least
    assert work(min_steps_per_epoch=20) > least
    x, y = (np.concatenate([part] * 3) for part in data)
    fsjax.fit(STATIC, (x, y), num_features=3, num_epochs=2, batch_size=16)
    assert works[-1] > least


@pytest.mark.slow
def test_seeds_beside_each_other_and_a_continued_run_count_alike(
    data, works: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = dict(num_features=3, num_epochs=4, batch_size=16, checkpoint_every=1)
    whole = fsjax.fit(STATIC, data, seeds=(0, 1), **options)
    fsjax.fit(STATIC, data, seeds=(1,), **options)
    with killed_after_a_checkpoint(monkeypatch):
        fsjax.fit(STATIC, data, seeds=(0, 1), checkpoint_dir=tmp_path, **options)
    again = fsjax.fit(STATIC, data, seeds=(0, 1), checkpoint_dir=tmp_path, **options)
    assert len(works) == 4 and len(set(works)) == 1
    chex.assert_trees_all_equal(again.states, whole.states)
