"""A small fixed part of ``make fuzz``, and the tool itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from marks import slow_ids

import fsjax
from tools.fuzz import calls, data_files, mistakes, outcomes, saved_files, worker
from tools.fuzz.damage import damaged


@slow_ids("attempt-numbers0", "damaged_attempt-numbers1")
@pytest.mark.parametrize(
    ("attempt", "numbers"),
    [
        (data_files.attempt, range(0, 65, 2)),
        (saved_files.damaged_attempt, range(0, 60, 3)),
        (calls.attempt, range(60)),
        (mistakes.attempt, range(0, 66, 3)),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_part_of_all_tries(attempt: Callable[[int, int], Any], numbers: range) -> None:
    found = [(number, *attempt(number, 1)) for number in numbers]
    assert not [one for one in found if one[1] in outcomes.FORBIDDEN]
    # Some are told, in any case.
    assert sum(one[1] == outcomes.CLEAR for one in found) > len(found) / 2


@pytest.mark.parametrize("name", calls.BAD_OPTIONS)
def test_each_bad_option_is_told_by_itself(name: str) -> None:
    method = fsjax.methods.stg(2, hidden=(3,))
    fsjax.plan(method, (calls.X, calls.Y), num_epochs=1)
    for value in calls.BAD_OPTIONS[name]:
        with pytest.raises(fsjax.errors.FsjaxError):
            fsjax.plan(method, (calls.X, calls.Y), **{"num_epochs": 1, name: value})


@pytest.mark.slow
def test_undamaged_files_are_right() -> None:
    for form in data_files.FORMS:
        found = data_files._judge(form, data_files._read(form, form.data))
        assert found == (outcomes.RIGHT, form.name)
    for saved in saved_files._saved():
        loaded = saved_files._load(saved, lambda path, saved=saved: path.write_bytes(saved.data))
        assert saved_files._judge(saved, loaded) == (outcomes.RIGHT, "")


def test_what_counts_as_wrong() -> None:
    def outcome(attempt: Callable[[], Any]) -> str:
        return outcomes.outcome_of(attempt, lambda found: (outcomes.RIGHT, ""))[0]

    def fails(error: Exception) -> Callable[[], Any]:
        def attempt() -> None:
            raise error

        return attempt

    assert outcome(lambda: 3) == outcomes.RIGHT
    assert outcome(fails(fsjax.errors.DataError("no"))) == outcomes.CLEAR
    assert outcome(fails(KeyError("no"))) == outcomes.FOREIGN
    assert outcome(fails(MemoryError())) == outcomes.MEMORY
    told = fsjax.errors.DataError("it cannot be read: Unable to allocate 15.0 GiB")
    assert outcome(fails(told)) == outcomes.MEMORY
    checked, free = data_files.FORMS[2], data_files.FORMS[5]
    assert (checked.checked, free.checked) == (True, False)
    other = data_files._read(checked, checked.data)
    other.X[0, 0] += 1
    assert data_files._judge(checked, other)[0] == outcomes.WRONG
    assert data_files._judge(free, other)[0] == outcomes.POSSIBLE
    other.X[0, 0] = np.nan
    assert data_files._judge(free, other)[0] == outcomes.WRONG


def test_tries_can_be_repeated() -> None:
    data = bytes(range(256))
    assert damaged(data, np.random.default_rng(3)) == damaged(data, np.random.default_rng(3))
    first, again = ([data_files.attempt(number, 0)[0] for number in range(9)] for _ in range(2))
    assert first == again


def _hostile(number: int, seed: int) -> outcomes.Outcome:
    """Ends the process, takes too long, or takes too much memory."""
    if number == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    while number == 2:
        pass
    if number == 3:
        np.ones(worker.GROWTH_LIMIT // 6)
    return outcomes.CLEAR, f"{number} of {seed}"


@pytest.mark.long
def test_processes_that_end_are_told_and_followed() -> None:
    found = dict(worker.outcomes(_hostile, iter(range(5)), 7))
    wanted = ["clear error", "crash", "over 10 s", "over memory", "clear error"]
    assert [found[number][0] for number in range(5)] == wanted


@pytest.mark.long
def test_the_start_of_a_process_does_not_count_as_a_try(monkeypatch: pytest.MonkeyPatch) -> None:
    # Imports take longer than a try may take by the clock.
    monkeypatch.setattr(worker, "SECONDS", 0.05)
    found = list(worker.outcomes(_hostile, iter([0, 4]), 7))
    assert found == [(number, (outcomes.CLEAR, f"{number} of 7")) for number in (0, 4)]
