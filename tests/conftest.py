"""Settings shared by all tests: two CPU devices, a compilation cache, checked PRNG keys."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Final

import jax
import marks
import pytest

import fsjax
from fsjax.engine import program_files, programs
from fsjax.estimators import ESTIMATORS
from fsjax.registry import METHODS
from fsjax.tasks import BUILDERS, TABLE

pytest_plugins = ["cpu_seconds"]

# Two devices, so that the sharded seed axis is tested wherever the tests run.
fsjax.use_cpu_devices(2)
# Processes that tests start find the programs in the same folder.
os.environ["FSJAX_CACHE"] = str(Path(__file__).parents[1] / ".pytest_cache")
fsjax.use_compilation_cache()
# Tests replace parts of the library, of which files of programs know nothing.
program_files.enabled = False
# A key that is used twice is an error, also inside compiled code.
jax.config.update("jax_debug_key_reuse", True)

#: Tests of the launchers, the tools and the pages, and long ones that repeat what others run in
#: small. Coverage pauses in them, as measuring makes Python slower by half.
UNMEASURED: Final = (
    "engine/test_equality.py",
    "engine/test_lowering.py",
    "estimators/test_estimator_checks.py",
    "experiments",
    "methods/test_digits.py",
    "test_documentation.py",
    "test_fuzz_tool.py",
    "test_old_files.py",
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Runs a test, with coverage paused where the test is not to be measured."""
    place = item.path.relative_to(Path(__file__).parent)
    unmeasured = any(place.is_relative_to(other) for other in UNMEASURED)
    with paused_coverage() if unmeasured else contextlib.nullcontext():
        return (yield)


@contextlib.contextmanager
def paused_coverage() -> Iterator[None]:
    """Measures no coverage, here and in processes that start meanwhile."""
    module = sys.modules.get("coverage")
    paused = []
    # A worker of pytest-xdist has two: its own, and the one that measures it as a process.
    while module and (current := module.Coverage.current()):
        current.stop()
        paused.append(current)
    configuration = os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    try:
        yield
    finally:
        if configuration is not None:
            os.environ["COVERAGE_PROCESS_CONFIG"] = configuration
        for coverage in reversed(paused):
            coverage.start()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Pauses the garbage collector while the tests are imported, and takes what was imported, which
    stays, out of its search."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, Any, Any]:
    """Marks single parameters of tests."""
    functions = yield
    if isinstance(functions, list):
        marks.mark_slow_ids(functions)
    return functions


@pytest.fixture
def key() -> jax.Array:
    """A PRNG key."""
    return jax.random.key(7)


@contextlib.contextmanager
def _forgotten() -> Iterator[None]:
    """Forgets the methods and tasks that were registered meanwhile."""
    registries = METHODS, ESTIMATORS, BUILDERS, TABLE
    before = [dict(known) for known in registries]
    yield
    for known, own in zip(registries, before, strict=True):
        known.clear()
        known.update(own)


@pytest.fixture(autouse=True, scope="module")
def _forget_registered_by_module() -> Iterator[None]:
    """Methods and tasks that a module of tests registers are unknown to the next one."""
    with _forgotten():
        yield


@pytest.fixture
def forget_registered() -> Iterator[None]:
    """Methods and tasks that a test registers are unknown to the next one."""
    with _forgotten():
        yield


#: Mapped regions of the process above which compiled programs are freed.
MAX_REGIONS: Final = 20_000


@pytest.fixture(autouse=True, scope="module")
def _free_programs() -> Iterator[None]:
    """Frees compiled programs after a module if they occupy many mapped regions.

    Linux allows a process 65,530 of these; each program takes several, and LLVM ends the process
    when there are no more. Until then, later modules find programs of single operations compiled.
    What is left stays, so that the garbage collector need not search it again: a collection of the
    whole process takes a tenth of a second.
    """
    yield
    regions = Path("/proc/self/maps")
    if not regions.exists() or regions.read_bytes().count(b"\n") > MAX_REGIONS:
        gc.unfreeze()  # What was frozen after earlier modules would never be collected.
        jax.clear_caches()
    programs.free()
    gc.freeze()
