"""Marks of parametrised tests."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import Any

import pytest


def some_long(values: Iterable[Any], slow: Collection[Any]) -> list[Any]:
    """Parameters, of which some are marked ``long``."""
    return [pytest.param(v, marks=pytest.mark.long) if v in slow else v for v in values]


def slow_ids(*patterns: str) -> pytest.MarkDecorator:
    """Marks the parameters of a test ``slow`` whose id matches a pattern, for example ``*-10``."""
    return pytest.mark.slow_ids(*patterns)


def mark_slow_ids(item: pytest.Item) -> None:
    """Marks a collected test ``slow`` if :func:`slow_ids` names its parameters."""
    id_ = item.name.partition("[")[2].removesuffix("]")
    patterns = [pattern for mark in item.iter_markers("slow_ids") for pattern in mark.args]
    if any(fnmatchcase(id_, pattern) for pattern in patterns):
        item.add_marker("slow")
