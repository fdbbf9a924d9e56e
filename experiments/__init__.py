"""Launchers, run as ``python -m experiments.NAME``."""

import os
import signal
import sys

# While Python finds the module of its -m, which imports for seconds: nothing is at risk yet.
if sys.argv[0] == "-m":

    def _end(number: int, _: object) -> None:
        os.write(1, b"\rinterrupted before it began\n")
        os._exit(128 + number)

    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)
