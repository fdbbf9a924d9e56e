"""A pytest plug-in: how many CPU seconds each test takes, and a limit for those not marked slow.

Counted are this process, with its threads, and the processes that the test waits for. Fixtures that
several tests share are not counted, as it is chance which test is the first. On a machine that is
slower at that moment the limit is higher.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

#: CPU seconds of the work of :func:`_slowness` on two cores of a server of 2023, both at work.
_REFERENCE = 0.04

#: CPU seconds of shared fixtures since the start, and those of all else when a test begins.
_SHARED, _START = pytest.StashKey[float](), pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the flags."""
    group = parser.getgroup("CPU seconds")
    group.addoption(
        "--cpu-limit", type=float, metavar="SECONDS",
        help="fail tests that are not marked slow and take more CPU seconds",
    )  # fmt: skip
    group.addoption(
        "--cpu-seconds", type=Path, metavar="FOLDER",
        help="write a line 'seconds TAB test' for each test, into a file for each worker",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Starts to count."""
    config.stash[_SHARED] = 0.0


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef, request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Adds up what shared fixtures take."""
    before = _cpu_seconds()
    try:
        return (yield)
    finally:
        if fixturedef.scope != "function":
            request.config.stash[_SHARED] += _cpu_seconds() - before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Starts the clock of a test."""
    item.stash[_START] = _cpu_seconds() - item.config.stash[_SHARED]
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fails a test that took too long; a test that fails by itself says why."""
    try:
        result = yield
    finally:
        seconds = _cpu_seconds() - item.config.stash[_SHARED] - item.stash[_START]
        _write(item, seconds)
    limit = item.config.getoption("cpu_limit")
    marked = any(map(item.get_closest_marker, ("slow", "long")))
    if limit is not None and not marked and seconds > limit and seconds > limit * _slowness():
        pytest.fail(
            f"took {seconds:.1f} CPU seconds, and {limit:g} are allowed: make it faster, or mark "
            "it slow if another test guards the same",
            pytrace=False,
        )
    return result


def _write(item: pytest.Item, seconds: float) -> None:
    folder = item.config.getoption("cpu_seconds")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{os.getpid()}.tsv").open("a") as file:
            file.write(f"{seconds:.3f}\t{item.nodeid}\n")


def _slowness() -> float:
    """CPU seconds of some work here and now, as a multiple of those on the machine of the limit."""
    started = time.process_time()
    sum(number * number for number in range(1_000_000))
    return max((time.process_time() - started) / _REFERENCE, 1.0)


def _cpu_seconds() -> float:
    return sum(os.times()[:4])
