"""Type aliases that the whole library shares."""

from __future__ import annotations

from typing import Any, TypeAlias

#: A tree of dicts, tuples and dataclasses with arrays as leaves.
PyTree: TypeAlias = Any
