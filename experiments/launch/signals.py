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
    for signal_number in SIGNALS:
        signal.signal(signal_number, lambda again, _: os._exit(128 + again))
    raise Interrupted(number)


def finish_at_once() -> None:
    """Lets signals end the process as it would end by itself, as its work is done."""
    for number in SIGNALS:
        signal.signal(number, _finish)


def _finish(number: int, frame: FrameType | None) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within it the first signal raises :class:`Interrupted`, and a second one ends at once."""
    before = {number: signal.signal(number, _interrupt) for number in SIGNALS}
    hook = sys.unraisablehook

    def swallowed(of: Any) -> None:
        if not isinstance(of.exc_value, Interrupted):
            hook(of)
            return
        # Python drops what is raised in a callback of its collector or in a finaliser, of which
        # JAX has some: the signal comes again when they are over.
        for number in SIGNALS:
            signal.signal(number, _interrupt)
        again = threading.Timer(_AGAIN, os.kill, (os.getpid(), of.exc_value.args[0]))
        again.daemon = True
        again.start()

    sys.unraisablehook = swallowed
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            if signal.getsignal(number) is not _finish:
                signal.signal(number, handler)
