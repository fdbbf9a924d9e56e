"""Launchers, run as ``python -m experiments.NAME``."""

import os
import signal
import sys


def end_at_once() -> None:
    """Lets signals end the process with one line, while nothing is at risk yet."""

    def end(number: int, _: object) -> None:
        os.write(1, b"\rinterrupted before it began\n")
        os._exit(128 + number)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)


# While Python finds the module of its -m, which imports for seconds.
if sys.argv[0] == "-m":
    end_at_once()
