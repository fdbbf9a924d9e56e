"""Reference for the tests: a stable sort in NumPy, and the list of all rules."""

from __future__ import annotations

import inspect
from types import ModuleType

import numpy as np

from fsjax.sparsity.rules import Rule


def first_of_sort(
    values: np.ndarray, k: int, among: np.ndarray | None = None, descending: bool = False
) -> np.ndarray:
    """Marks the first k candidates of a stable sort; NaN counts as minus infinity."""
    flat = np.asarray(values).astype(np.float32).ravel()
    flat = np.where(np.isnan(flat), -np.inf, flat)
    allowed = np.arange(flat.size) if among is None else np.flatnonzero(among)
    order = allowed[np.argsort(-flat[allowed] if descending else flat[allowed], kind="stable")]
    marked = np.zeros(flat.size, bool)
    marked[order[:k]] = True
    return marked.reshape(np.shape(values))


def rules_of(module: ModuleType, second: str) -> dict[str, Rule]:
    """The rules of a module by name: those of (layer, second, key)."""
    return {
        name: rule
        for name, rule in vars(module).items()
        if isinstance(rule, Rule) and second in inspect.signature(rule).parameters
    }
