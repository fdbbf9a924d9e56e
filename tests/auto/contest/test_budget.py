"""Time: what a budget is, what a clock counts, and how slow a machine is noticed to be."""

import time

import pytest
from bad_calls import bad_calls, refuses

from fsjax.auto.contest.budget import Clock, Pace, rounded, seconds


@pytest.mark.parametrize(
    ("budget", "expected"), [("90s", 90), ("5min", 300), ("1.5h", 5400), (7, 7), ("12", 12)]
)
def test_budgets(budget, expected):
    assert seconds(budget) == expected


@bad_calls(
    *((budget, "choose a time such as") for budget in ("", "5 parsecs", 0, True, "0s", "min"))
)
def test_bad_budgets(bad):
    refuses(lambda: seconds(bad[0]), bad[1])


@pytest.fixture
def times(monkeypatch) -> dict[str, float]:
    """The clock on the wall, and that of the processor."""
    now = {"wall": 1000.0, "cpu": 100.0}
    monkeypatch.setattr(time, "monotonic", lambda: now["wall"])
    monkeypatch.setattr(time, "process_time", lambda: now["cpu"])
    return now


def test_seconds_before_the_call_count(times):
    times["cpu"] = 4.0
    clock = Clock(60.0, elapsed=4.0)
    assert clock.spent == 4.0
    times["wall"], times["cpu"] = 1010.0, 14.0
    assert clock.spent == 14.0 and clock.left() == pytest.approx(60.0 - 2.0 - 14.0)
    assert clock.left(0.5) == pytest.approx(0.5 * 58.0 - 14.0)
    part = clock.part(0.5)
    assert part.spent == 14.0 and part.left() == pytest.approx(30.0 - 14.0)
    clock.stop()
    assert clock.left() < 0 and clock.spent == 14.0
    rest = clock.rest()
    assert rest.stopped and rest.total == 46.0 and rest.spent == 0.0
    assert Clock(6.0).left() == pytest.approx(4.5)
    assert Clock(float("inf")).left() == float("inf")


@pytest.mark.parametrize(("cpu", "reserve"), [(10.0, 2.0), (25.0, 2.0), (5.0, 4.0), (0.1, 15.0)])
def test_a_busy_machine_writes_the_answer_slowly(cpu, reserve, times):
    clock = Clock(60.0)
    times["wall"] += 10.0
    times["cpu"] += cpu
    assert clock.usable == pytest.approx(60.0 - reserve)


def test_a_slow_machine_is_noticed_by_other_kinds_of_work_first():
    pace = Pace()
    assert pace.of("l1") == 1.0
    pace.record("univariate", 0.1, 0.5)
    assert pace.of("l1") == pytest.approx(5.0)
    pace.record("l1", 1.0, 2.0)
    assert pace.of("l1") == 2.0 and pace.of("univariate") == 5.0
    # One piece that had to wait says little.
    pace.record("l1", 1.0, 2.0)
    pace.record("l1", 1.0, 90.0)
    assert pace.of("l1") == 2.0


def test_time_in_a_unit_that_suits():
    texts = [rounded(need) for need in (-3, 40, 150, 9000, 1086674)]
    assert texts == ["1 s", "40 s", "2 min", "2 hours", "13 days"]
