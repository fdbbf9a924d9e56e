"""Time that may be spent, what work costs on this machine, and a line that tells how it goes."""

from __future__ import annotations

import math
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable

import numpy as np

from fsjax.errors import ConfigError, is_number

_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")

#: The answer is written in seconds that are left for it: those in which the program started, which
#: tell how busy the machine is, and some more; at most a share of the budget.
_WRITING, _WRITING_SHARE = 3.0, 0.25


def seconds(budget: str | float | None) -> float:
    """A budget in seconds: a number, or text such as ``90s``, ``5min``, ``1.5h``; None is endless.

    Raises:
      ConfigError: unless it is a time above 0.
    """
    if budget is None:
        return float("inf")
    total = None
    if is_number(budget):
        total = float(budget)
    elif isinstance(budget, str) and (match := _TEXT.fullmatch(budget.lower())):
        number, unit = match.groups()
        if (unit or "s") in _UNITS:
            total = float(number) * _UNITS[unit or "s"]
    if total is None or not total > 0:
        raise ConfigError(f"budget={budget!r}; choose a time such as 90s, 5min or 1h")
    return total


class Clock:
    """Counts down a budget, and shows what is going on.

    Args:
      total: seconds of the budget.
      show: whether to write progress to standard error.
      elapsed: seconds that were spent before, such as on starting Python.
    """

    def __init__(self, total: float, show: bool = False, elapsed: float = 0.0) -> None:
        self.total = total
        self._reserve = min(_WRITING + elapsed, _WRITING_SHARE * total)
        self._start = time.monotonic() - elapsed
        self._show = show
        self._terminal = show and sys.stderr.isatty()
        self._shown = -10.0
        self.stopped = False

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    @property
    def usable(self) -> float:
        """Seconds of the budget, but for those in which the answer is written."""
        return self.total - self._reserve

    def left(self, share: float = 1.0) -> float:
        """Seconds until a share of the usable budget is spent; none at all once it is stopped."""
        return -math.inf if self.stopped else share * self.usable - self.spent

    def part(self, share: float) -> Clock:
        """A clock that ends when a share of this one's budget is spent."""
        clock = Clock(share * self.total, self._show)
        clock._start, clock._reserve = self._start, 0.0
        clock.stopped = self.stopped
        return clock

    def stop(self) -> None:
        """Ends the time that there is, not the count of what was spent."""
        self.stopped = True

    def tell(self, text: str) -> None:
        """Shows what is being done: one line that is overwritten, or a line every ten seconds."""
        if not self._show:
            return
        left = self.total - self.spent
        rest = f", {_clock(left)} left" if math.isfinite(left) else ""
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{text}{rest}"[:120])
            sys.stderr.flush()
        elif self.spent - self._shown >= 10.0:
            self._shown = self.spent
            print(f"{text}{rest}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class Pace:
    """How much longer work takes on this machine, now, than its table of costs says.

    Costs are those of an idle machine; a busy one is noticed by what was measured last, of the same
    kind of work where it ran before, otherwise of all kinds.
    """

    def __init__(self) -> None:
        self._ratios: dict[str, list[float]] = defaultdict(list)

    def record(self, kind: str, expected: float, measured: float) -> None:
        """Notes what a piece of work of some kind took."""
        if expected > 0:
            self._ratios[kind].append(max(measured, 1e-3) / expected)

    def of(self, kind: str) -> float:
        """By how much to multiply the expected seconds of a kind of work."""
        if self._ratios[kind]:
            # A single piece that had to wait says little.
            return float(np.median(self._ratios[kind][-3:]))
        seen = [ratios[-1] for ratios in self._ratios.values() if ratios]
        return float(np.clip(np.median(seen), 0.5, 20.0)) if seen else 1.0


def timed(work: Callable[[], dict]) -> dict:
    """The result of some work with its ``seconds``."""
    start = time.monotonic()
    result = work()
    return {**result, "seconds": time.monotonic() - start}


def rounded(need: float) -> str:
    """Seconds as text in a unit that suits them, such as ``40 s``, ``12 min``, ``3 hours``."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "min")):
        if need >= 2 * size:
            return f"{need / size:.0f} {unit}"
    return f"{max(need, 1):.0f} s"


def _clock(left: float) -> str:
    whole = max(0, round(left))
    return f"{whole // 60}:{whole % 60:02d}"
