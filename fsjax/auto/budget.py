"""Time that may be spent, and a line that tells how much of it is left."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable

from fsjax.errors import ConfigError, is_number

_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")


def seconds(budget: str | float | None) -> float:
    """A budget in seconds: a number, or text such as ``90s``, ``5min``, ``1.5h``; None is endless.

    Raises:
      ConfigError: for what is no time above 0.
    """
    if budget is None:
        return float("inf")
    found = None
    if is_number(budget):
        found = float(budget)
    elif isinstance(budget, str) and (match := _TEXT.fullmatch(budget.lower())):
        number, unit = match.groups()
        if (unit or "s") in _UNITS:
            found = float(number) * _UNITS[unit or "s"]
    if found is None or not found > 0:
        raise ConfigError(f"budget={budget!r}; choose a time such as 90s, 5min or 1h")
    return found


class Clock:
    """Counts down a budget, and shows what is going on.

    Args:
      total: seconds that there are.
      show: whether to write progress to standard error.
    """

    def __init__(self, total: float, show: bool = False) -> None:
        self.total = total
        self._start = time.monotonic()
        self._show = show
        self._terminal = show and sys.stderr.isatty()
        self._told = -10.0
        self.stopped = False

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def left(self, share: float = 1.0) -> float:
        """Seconds until a share of the budget is spent; none at all once it is stopped."""
        return -math.inf if self.stopped else share * self.total - self.spent

    def stop(self) -> None:
        """Ends the time that there is, not the count of what was spent."""
        self.stopped = True

    def tell(self, text: str) -> None:
        """Shows what is being done: one line that is overwritten, or a line every ten seconds."""
        if not self._show:
            return
        left = self.left()
        rest = f", {_clock(left)} left" if math.isfinite(left) else ""
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{text}{rest}"[:120])
            sys.stderr.flush()
        elif self.spent - self._told >= 10.0:
            self._told = self.spent
            print(f"{text}{rest}", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def timed(work: Callable[[], dict]) -> dict:
    """The result of some work with its ``seconds``."""
    start = time.monotonic()
    found = work()
    return {**found, "seconds": time.monotonic() - start}


def rounded(need: float) -> str:
    """Seconds as text in a unit that suits them, such as ``40 s``, ``12 min``, ``3 hours``."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "min")):
        if need >= 2 * size:
            return f"{need / size:.0f} {unit}"
    return f"{max(need, 1):.0f} s"


def _clock(left: float) -> str:
    whole = max(0, round(left))
    return f"{whole // 60}:{whole % 60:02d}"
