"""Makes Ctrl-C and SIGTERM end a launcher in an orderly way at any moment."""

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

#: Seconds until a signal is sent again whose exception Python discarded.
_RESEND_DELAY = 0.02


class Interrupted(KeyboardInterrupt):
    """Raised by a signal, whose number is the only argument."""


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """Raises :class:`Interrupted` at the first signal; a second one ends the process at once."""
    for signal_number in SIGNALS:
        signal.signal(signal_number, lambda again, _: os._exit(128 + again))
    raise Interrupted(number)


def finish_at_once() -> None:
    """Makes signals end the process with status 0 from now on, as its work is done."""
    for number in SIGNALS:
        signal.signal(number, _finish)


def _finish(number: int, frame: FrameType | None) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


@contextmanager
def interruptible() -> Iterator[None]:
    """Within the block the first signal raises :class:`Interrupted`; a second one ends at once."""
    handlers = {number: signal.signal(number, _interrupt) for number in SIGNALS}
    hook = sys.unraisablehook

    def resend(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, Interrupted):
            hook(unraisable)
            return
        # Python discards exceptions that are raised in callbacks of its garbage collector and in
        # finalizers, of which JAX has some: the signal is sent again when they are over.
        for number in SIGNALS:
            signal.signal(number, _interrupt)
        signal_number = unraisable.exc_value.args[0]
        timer = threading.Timer(_RESEND_DELAY, os.kill, (os.getpid(), signal_number))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = resend
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in handlers.items():
            if signal.getsignal(number) is not _finish:
                signal.signal(number, handler)
