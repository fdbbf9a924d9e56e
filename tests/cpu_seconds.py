"""A pytest plug-in: how many CPU seconds each test takes, and a limit for those not marked slow.

Counted are this process, with its threads, and the processes that the test waits for. Fixtures that
several tests share are not counted, as it is chance which test is the first.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

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
    if limit is not None and seconds > limit and item.get_closest_marker("slow") is None:
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


def _cpu_seconds() -> float:
    return sum(os.times()[:4])
