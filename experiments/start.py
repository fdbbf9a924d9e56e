"""How ``python -m experiments.NAME`` begins, before anything that takes long is imported."""

import importlib
import os
import signal


def end_at_once() -> None:
    """Lets signals end the process with one line, while there is nothing to lose yet."""

    def end(number: int, _: object) -> None:
        os.write(1, b"\rinterrupted before it began\n")
        os._exit(128 + number)

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)


def start(module: str) -> None:
    """Imports a module of :mod:`experiments`, which takes seconds, and calls its ``start``."""
    end_at_once()
    importlib.import_module(f"experiments.{module}").start()
