"""The time budget, the pace of this machine, and the progress line."""

from __future__ import annotations

import math
import re
import sys
import time
from collections import defaultdict

import numpy as np

from fsjax import ConfigError
from fsjax.errors import is_number

_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")

#: CPU seconds reserved for writing the answer, at most this share of the budget.
_WRITING, _WRITING_SHARE = 2.0, 0.25


def seconds(budget: str | float | None) -> float:
    """A budget in seconds, from a number or text such as ``90s``, ``5min``, ``1.5h``; None is inf.

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
    """Counts down a budget, and shows progress.

    Args:
      total: seconds of the budget.
      show: whether to write progress to standard error.
      elapsed: seconds that were spent before, for example on starting Python.
    """

    def __init__(self, total: float, show: bool = False, elapsed: float = 0.0) -> None:
        self.total = total
        self._writing = _WRITING
        self._start = time.monotonic() - elapsed
        # CPU seconds before those that elapsed belong to something else.
        self._cpu_start = max(time.process_time() - elapsed, 0.0)
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
        """Seconds of the budget without those reserved for writing the answer.

        Writing takes the longer, the busier the machine is.
        """
        cpu_seconds = time.process_time() - self._cpu_start
        busy = self.spent / cpu_seconds if cpu_seconds > 0 else 1.0
        reserve = self._writing * max(busy, 1.0)
        return self.total - min(reserve, _WRITING_SHARE * self.total)

    def left(self, share: float = 1.0) -> float:
        """Seconds until a share of the usable budget is spent; -inf once the clock is stopped."""
        return -math.inf if self.stopped else share * self.usable - self.spent

    def part(self, share: float) -> Clock:
        """A clock whose budget is a share of this one's, counted from the same start."""
        clock = Clock(share * self.total, self._show)
        clock._start, clock._cpu_start, clock._writing = self._start, self._cpu_start, 0.0
        clock.stopped = self.stopped
        return clock

    def rest(self) -> Clock:
        """A clock whose budget is the time that is left, so that shares are shares of it."""
        clock = Clock(max(self.total - self.spent, 0.0), self._show)
        clock.stopped = self.stopped
        return clock

    def stop(self) -> None:
        """Leaves no time for further work; spent seconds are still counted."""
        self.stopped = True

    def tell(self, text: str) -> None:
        """Shows what is running: one line that is overwritten, or a new line every ten seconds."""
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
        """Removes the progress line."""
        if self._terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class Pace:
    """Ratio of measured to expected seconds of work, on this machine as busy as it is now.

    Expected seconds are those of an idle machine. The ratio is that of the last pieces of the same
    kind of work, or of all kinds if that kind has not run yet.
    """

    def __init__(self) -> None:
        self._ratios: dict[str, list[float]] = defaultdict(list)

    def record(self, kind: str, expected: float, measured: float) -> None:
        """Records the seconds of a piece of work."""
        if expected > 0:
            self._ratios[kind].append(max(measured, 1e-3) / expected)

    def of(self, kind: str) -> float:
        """Factor for the expected seconds of a kind of work."""
        if self._ratios[kind]:
            # The median: a single piece may have had to wait for the processor.
            return float(np.median(self._ratios[kind][-3:]))
        seen = [ratios[-1] for ratios in self._ratios.values() if ratios]
        return float(np.clip(np.median(seen), 0.5, 20.0)) if seen else 1.0


def rounded(need: float) -> str:
    """Seconds as text in a suitable unit: ``40 s``, ``12 min``, ``3 hours``."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "min")):
        if need >= 2 * size:
            return f"{need / size:.0f} {unit}"
    return f"{max(need, 1):.0f} s"


def _clock(left: float) -> str:
    minutes, rest = divmod(max(0, round(left)), 60)
    return f"{minutes}:{rest:02d}"
