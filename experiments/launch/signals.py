"""Ctrl-C and SIGTERM end a launcher in order, wherever they find it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)

#: Seconds after which a signal is sent again that Python swallowed.
_AGAIN = 0.02


class Interrupted(KeyboardInterrupt):
    """By a signal, whose number is the only argument."""


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """The first signal ends the run in order, a second one at once."""
    for one in SIGNALS:
        signal.signal(one, lambda again, _: os._exit(128 + again))
    raise Interrupted(number)


def finish_at_once() -> None:
    """Lets signals end the process as it would end by itself, as its work is done."""
    for one in SIGNALS:
        signal.signal(one, _finish)


def _finish(number: int, frame: FrameType | None) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within it the first signal raises :class:`Interrupted`, and a second one ends at once."""
    before, told = {one: signal.signal(one, _interrupt) for one in SIGNALS}, sys.unraisablehook

    def swallowed(of: Any) -> None:
        if not isinstance(of.exc_value, Interrupted):
            told(of)
            return
        # Python drops what is raised in a callback of its collector or in a finaliser, of which
        # JAX has some: the signal comes again when they are over.
        for one in SIGNALS:
            signal.signal(one, _interrupt)
        again = threading.Timer(_AGAIN, os.kill, (os.getpid(), of.exc_value.args[0]))
        again.daemon = True
        again.start()

    sys.unraisablehook = swallowed
    try:
        yield
    finally:
        sys.unraisablehook = told
        for one, handler in before.items():
            if signal.getsignal(one) is not _finish:
                signal.signal(one, handler)
