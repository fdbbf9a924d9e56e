"""Marks of parametrised tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def some_slow(names: Iterable[str], slow: Collection[str]) -> list[Any]:
    """Parameters, of which some are marked ``slow``."""
    return [pytest.param(n, marks=pytest.mark.slow) if n in slow else n for n in names]
