"""What is known of a selection: the data that reports, pictures and files are made of."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from fsjax.auto.answer.facts import Facts
from fsjax.auto.contest.progress_file import json_number
from fsjax.auto.reading.notes import Note

#: Effects that are written to ``columns.csv``.
EFFECTS = (
    "p_value", "q_value", "part", "direction", "auc", "difference", "correlation", "slope",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class SelectionRecord:
    """The fields of :class:`fsjax.auto.Selection`, which documents them."""

    method: str
    num_features: int
    columns: list[Hashable]
    better_than_chance: bool
    score: float
    score_at_choice: float
    score_all_columns: float
    score_chance: float
    metric: str
    task: str
    fdr: float | None
    p_value: float
    seconds: float
    finished: bool
    stopped: bool
    table: pd.DataFrame
    curves: pd.DataFrame
    statements: tuple[str, ...]
    notes: tuple[Note, ...]
    facts: Facts
    undecided: bool = False
    level: float = math.nan
    score_interval: tuple[float, float] | None = None
    judge: str = ""
    comparisons: pd.DataFrame | None = None
    confusion: pd.DataFrame | None = None
    effects: pd.DataFrame | None = None
    decoy_scores: tuple[np.ndarray, np.ndarray] | None = None
    likeness: pd.DataFrame | None = None
    with_leaks: Self | None = None
    source: str | None = None
    target: str | None = None
    costs: Mapping[Hashable, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The content of ``selection.json``; values that are not finite become ``None``."""
        names = (
            "source target method num_features better_than_chance undecided score "
            "score_interval score_at_choice score_all_columns score_chance metric judge task fdr "
            "p_value level seconds finished stopped"
        ).split()
        values = {name: _json(getattr(self, name)) for name in names}
        costs = None
        if self.costs is not None:
            costs = {str(label): _json(cost) for label, cost in self.costs.items()}
        return {
            **values,
            "columns": [_json_label(label) for label in self.columns],
            "statements": list(self.statements),
            "notes": [{**note._asdict(), "level": note.level} for note in self.notes],
            "comparisons": None if self.comparisons is None else _records(self.comparisons),
            "confusion": None if self.confusion is None else _confusion(self.confusion),
            "costs": costs,
            "with_leaks": None if self.with_leaks is None else self.with_leaks.to_dict(),
            **{name: _json(value) for name, value in vars(self.facts).items()},
            "kept": [_json_label(label) for label in self.facts.kept],
        }


def _json(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return json_number(float(value))
    if isinstance(value, np.generic):
        return value.item()
    return [_json(item) for item in value] if isinstance(value, tuple) else value


def _json_label(label: Hashable) -> Any:
    """A label as a JSON value: numbers as such, tuples as lists, others as text."""
    if isinstance(label, tuple):
        return [_json_label(part) for part in label]
    value = _json(label)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as JSON values."""
    return [{str(k): _json(v) for k, v in row.items()} for row in frame.to_dict("records")]


def _confusion(counts: pd.DataFrame) -> dict[str, Any]:
    """Classes, and counts as a list for each true class."""
    return {
        "classes": [str(label) for label in counts.index],
        "counts": [[_json(value) for value in row] for row in counts.to_numpy()],
    }
