"""Selectors of other packages, each optional: one that is not installed is skipped."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.arena import packages
from fsjax.auto.contest.rankers.parts import Part

#: The packages of the comparison; the arena has more.
_NAMES = ("Boruta", "mRMR", "LassoNet, its package", "STG, its package")


def _first(select: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """The first k columns of a selector of the arena."""

    def columns(X: np.ndarray, part: Part, k: int, task: str, seed: int) -> np.ndarray:
        answer = select(X, part.y, k, seed)
        return (answer[0] if isinstance(answer, tuple) else answer)[:k]

    return columns


#: The selectors whose packages are installed.
PACKAGES = {
    name: _first(packages.ALL[name][0])
    for name in _NAMES
    if all(importlib.util.find_spec(module) for module in packages.ALL[name][1])
}
