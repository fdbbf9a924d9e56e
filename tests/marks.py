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


def mark_slow_ids(items: Iterable[pytest.Item]) -> None:
    """Marks those tests of a function ``slow`` whose parameters :func:`slow_ids` names.

    A pattern that names no parameters is an error: what it was for has another name, or is gone.
    """
    items = list(items)
    ids = {item: item.name.partition("[")[2].removesuffix("]") for item in items}
    for pattern in {
        p for item in items for mark in item.iter_markers("slow_ids") for p in mark.args
    }:
        named = [item for item, id_ in ids.items() if fnmatchcase(id_, pattern)]
        if not named:
            raise pytest.Collector.CollectError(
                f"slow_ids: {pattern!r} is none of {[*ids.values()]}"
            )
        for item in named:
            item.add_marker("slow")
