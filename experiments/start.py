"""Starts ``python -m experiments.NAME``, before anything slow is imported."""

import importlib
import os
import signal


def end_at_once() -> None:
    """Makes signals end the process with one line, as long as no work could be lost."""

    def end(number: int, _: object) -> None:
        os.write(1, b"\rinterrupted at startup; nothing was written\n")
        os._exit(128 + number)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)


def start(module: str) -> None:
    """Imports a module of :mod:`experiments`, which takes seconds, and calls its ``start``."""
    end_at_once()
    importlib.import_module(f"experiments.{module}").start()
