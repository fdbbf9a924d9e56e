"""Marks of parametrised tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def some_slow(values: Iterable[Any], slow: Collection[Any]) -> list[Any]:
    """Parameters, of which some are marked ``slow``."""
    return [pytest.param(v, marks=pytest.mark.slow) if v in slow else v for v in values]
