"""Settings shared by all tests: two CPU devices, a compilation cache, checked PRNG keys."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

import fsjax
from fsjax.engine import programs
from fsjax.estimators import ESTIMATORS
from fsjax.registry import METHODS
from fsjax.tasks import BUILDERS, TABLE

# Two devices, so that the sharded seed axis is tested wherever the tests run.
fsjax.use_cpu_devices(2)
# Processes that tests start find the programs in the same folder.
os.environ["FSJAX_CACHE"] = str(Path(__file__).parents[1] / ".pytest_cache")
fsjax.use_compilation_cache()
# A key that is used twice is an error, also inside compiled code.
jax.config.update("jax_debug_key_reuse", True)


def pytest_collection_finish() -> None:
    """What was imported stays: the collector of garbage need not look at it each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def key() -> jax.Array:
    """A PRNG key."""
    return jax.random.key(7)


@pytest.fixture(autouse=True, scope="module")
def _forget_what_was_registered() -> Iterator[None]:
    """Methods and tasks that a module of tests registers are unknown to the next one."""
    registries = METHODS, ESTIMATORS, BUILDERS, TABLE
    before = [dict(known) for known in registries]
    yield
    for known, own in zip(registries, before, strict=True):
        known.clear()
        known.update(own)


@pytest.fixture(autouse=True, scope="module")
def _free_programs() -> Iterator[None]:
    """Frees the compiled programs of a module: Linux allows a process 65,530 mapped regions, of
    which each takes several, and LLVM ends the process when there are no more."""
    yield
    programs.free()
    jax.clear_caches()
    gc.collect()
