"""What :func:`fsjax.select` found, and how it is written down."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fsjax.atomic import write_text
from fsjax.auto.columns import LEFT_OUT, LOOK_AT, Note

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Columns of the printed table.
_SHOWN = 20


@dataclass(frozen=True, eq=False)
class Selection:
    """Which columns, how many, and how sure.

    Attributes:
      method: the selector that was chosen; ``all`` where no selection is as good as all columns.
      num_features: how many columns were selected; 0 where nothing is better than chance.
      columns: their names, the most important first.
      better_than_chance: whether the target can be predicted at all.
      score: cross-validated score of the whole procedure: chosen without the fold that judges.
      score_at_choice: cross-validated score of the chosen method and number; as the best of many
        it is a little too good.
      score_all_columns: the same of all columns.
      score_chance: what predicting without any column gives.
      metric: ``accuracy`` or ``label_accuracy`` in percent, ``auc``, ``r2``, ``d2`` or
        ``concordance_index``.
      task: what the target was taken for.
      fdr: the false discovery rate that the selection keeps below, or ``None``.
      p_value: of permuted labels.
      seconds: that it took.
      finished: whether everything ran that was asked for.
      stopped: whether Ctrl-C ended it.
      table: a row for each column of the user's table, as in ``columns.csv``.
      curves: a row for each method and number of columns: ``mean``, ``error``, ``folds``.
      statements: what it means, in sentences.
      notes: what was done with columns, and found in them.
      facts: what else the report tells (rows, columns, folds, decoys, ...).
    """

    method: str
    num_features: int
    columns: tuple[str, ...]
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
    facts: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The content of ``selection.json``; numbers that are not finite are ``None``."""
        names = (
            "method num_features columns better_than_chance score score_at_choice "
            "score_all_columns score_chance metric task fdr p_value seconds finished stopped"
        ).split()
        found = {name: _json(getattr(self, name)) for name in names}
        return {
            **found,
            "statements": list(self.statements),
            "notes": [note._asdict() for note in self.notes],
            **{name: _json(value) for name, value in self.facts.items()},
        }

    def plot(self) -> Figure:
        """The score against the number of columns, for every method, with standard errors."""
        from fsjax.auto.pictures import plot_curves

        return plot_curves(self)

    def save(self, folder: str | Path, command: str | None = None) -> Path:
        """Writes ``selection.json``, ``columns.csv``, ``curves.csv`` and ``report.html``.

        Args:
          folder: where to; made if it is not there.
          command: what made the selection, for the report.

        Returns:
          The path of the report.
        """
        from fsjax.auto.report import page

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        write_text(folder / "selection.json", text + "\n")
        write_text(folder / "columns.csv", self.table.to_csv(index=False))
        write_text(folder / "curves.csv", self.curves.to_csv(index=False))
        write_text(folder / "report.html", page(self, command))
        return folder / "report.html"

    def __str__(self) -> str:
        lines = [*self.statements, ""]
        chosen = self.table[self.table["selected"] == 1]
        if len(chosen):
            shown = chosen.head(_SHOWN).copy()
            shown = shown.drop(columns=["selected", "group"]).dropna(axis=1, how="all")
            shown["alike"] = [", ".join(text.split(", ")[:2]) for text in shown["alike"]]
            lines.append(shown.to_string(index=False, float_format="{:.3g}".format))
            if len(chosen) > _SHOWN:
                lines.append(f"... and {len(chosen) - _SHOWN} more in columns.csv")
            lines.append("")
        left = [note for note in self.notes if note.kind in LEFT_OUT]
        lines += [f"left out: {note.column!r} {note.text}" for note in left[:10]]
        if len(left) > 10:
            lines.append(f"... and {len(left) - 10} more left out")
        warned = [note for note in self.notes if note.kind in LOOK_AT]
        lines += [f"look at: {note.column!r} {note.text}" for note in warned[:5]]
        if len(warned) > 5:
            lines.append(f"... and {len(warned) - 5} more such notes")
        return "\n".join(lines).rstrip()


def _json(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value
