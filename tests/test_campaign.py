"""The table of the tools chaos and fuzz is printed however they end."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator

import pytest

from tools.campaign import campaign, stretched


def tries(numbers: Iterable[int], seed: int) -> Iterator[tuple[int, tuple[str, str]]]:
    for number in numbers:
        if number == 7:
            raise KeyboardInterrupt
        yield number, ("bad" if number == seed else "good", f"told {number}")


@pytest.mark.parametrize(
    ("first", "seed", "minutes", "status", "counts", "short"),
    [
        (0, 99, 1.0, 0, "3     3    0", None),
        (0, 1, 1.0, 1, "3     2    1", None),
        (5, 99, 1.0, 130, "2     2    0", "stopped before all tries of: one, two"),
        (5, 5, 1.0, 1, "2     1    1", "stopped before all tries of: one, two"),
        (0, 99, -1.0, 0, "0     0    0", "the time was up (--minutes) before all tries of: one"),
    ],
)
def test_a_table_in_every_case(
    first: int,
    seed: int,
    minutes: float,
    status: int,
    counts: str,
    short: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = Namespace(first=first, seed=seed, minutes=minutes, tries=None, only=None, show=False)
    kinds = {"one": (tries, 3), "two": (tries, 3)}
    assert campaign(kinds, given, ("good", "bad"), ("bad",)) == status
    printed = capsys.readouterr().out
    assert f"one      {counts}" in printed
    assert (short or "tries") in printed and (short is not None) == ("before all" in printed)
    assert (f"one {seed}: bad: told {seed}" in printed) == (status == 1)


@pytest.mark.parametrize(("load", "seconds"), [(0.1, 10.0), (4.0, 10.0), (12.0, 30.0)])
def test_limits_are_longer_on_a_busy_machine(
    load: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert stretched(10.0) == seconds
