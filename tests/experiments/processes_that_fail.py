"""Functions for processes of their own, each of which imports this module anew."""

from __future__ import annotations

import time

import numpy as np


def busy() -> None:
    while True:
        pass


def waits() -> None:
    time.sleep(60)


def greedy() -> None:
    held = []
    while True:
        held.append(np.ones(2**21))
        time.sleep(0.01)


def fails() -> None:
    raise ValueError("\nthe table\nhas no meaning")


def leaves() -> None:
    raise SystemExit(0)
