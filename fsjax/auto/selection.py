"""The result of :func:`fsjax.select`, and the files that it is written to."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from fsjax.auto.answer.selection_record import SelectionRecord
from fsjax.auto.answer.tables import entries
from fsjax.auto.page import summary
from fsjax.auto.page.column_table import FILE, WITH_LEAKS
from fsjax.auto.page.report import notebook_summary, page
from fsjax.auto.reading.notes import LEFT_OUT, Note
from fsjax.errors import printable
from fsjax.extras import require
from fsjax.report.wording import shorten, shorten_all
from fsjax.storage.atomic_files import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Text that begins with one of these is a formula to spreadsheets (OWASP, "CSV Injection").
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

#: Most selected columns that are printed in a table, and most characters of a name there.
_SHOWN, _NAME_LENGTH = 20, 40

#: Columns of the table that are printed.
_PRINTED = (
    "column", "direction", "q_value", "frequency", "score", "false_discovery_rate", "alike",
)  # fmt: skip

#: Remarks that are printed: their label, their kinds, and the most of them.
_REMARKS = (
    ("read", ("rare",), 5),
    ("left out", LEFT_OUT, 10),
    ("imputed", ("missing",), 5),
    ("note", ("rows", "time"), 5),
)


@dataclass(frozen=True, eq=False, repr=False)
class Selection(SelectionRecord):
    """The selected columns, how many they are, and how sure that is.

    Attributes:
      method: the selector that was chosen; ``all`` if no selection is as good as all columns.
      num_features: number of selected columns; 0 if nothing is better than chance.
      columns: their labels as in the user's table, the most important first, so that
        ``X[selection.columns]`` works; x0, x1, ... for tables without labels.
      better_than_chance: whether the target is predicted better than chance.
      score: cross-validated score of the whole procedure: method and number of columns are chosen
        without the fold that is scored.
      score_at_choice: cross-validated score of the chosen method and number; a little optimistic,
        as it is the best of many.
      score_all_columns: cross-validated score of all columns.
      score_chance: cross-validated score of predictions without any column.
      metric: ``accuracy`` or ``label_accuracy`` in percent, ``auc``, ``r2``, ``d2`` or
        ``concordance_index``, or the name of a scorer of scikit-learn.
      task: ``classification``, ``regression``, ``multilabel``, ``counts`` or ``survival``.
      fdr: the requested false discovery rate, or ``None``.
      p_value: of the test that decided whether the target is predicted better than chance.
      seconds: run time.
      finished: whether every method ran in the first round of folds. Further rounds, permutations,
        halves and decoys are as many as there was time for (``facts``).
      stopped: whether Ctrl-C ended the run.
      table: the content of ``columns.csv``: a row for each column that took part.
      curves: a row for each method and number of columns: ``mean``, ``error``, ``folds``.
      statements: the result in sentences.
      notes: how the table was read, what was noticed in it, and what is missing from the run.
      facts: further numbers of the report, :class:`fsjax.auto.answer.facts.Facts`.
      undecided: whether the permutation test shows neither a finding nor chance.
      level: significance level that ``p_value`` is compared with; NaN if there is none.
      score_interval: 95 % confidence interval of ``score``, in its unit.
      judge: the model that predicts best from the columns in cross-validation, in words; without
        ``judge=``, each fold has the one that predicts best within its training rows.
      comparisons: a row for each paired comparison of the whole procedure: ``what``, ``against``,
        ``difference`` of their scores, its 95 % interval ``low`` to ``high``, ``verdict`` in words,
        and over what it is paired (``pairs``).
      confusion: counts of out-of-fold predictions, a row for each true class and a column for each
        predicted class.
      effects: result of :func:`fsjax.auto.answer.effects.effects` for the columns.
      decoy_scores: importance of the columns beside M sets of decoys, and of these: ``(M, G)``.
      likeness: result of :func:`fsjax.auto.answer.effects.likeness` for the selected columns.
      with_leaks: the selection from all columns, if likely leaks were left out of this one.
      source: file name of the table, if known.
      target: name of the target, if known.
      costs: of the columns by label, if given.
    """

    def plot(self) -> Figure:
        """The score against the number of columns, for every method, with standard errors."""
        require("matplotlib", "plot")
        from fsjax.auto.page.pictures import plot_contest

        return plot_contest(self)

    def save(
        self, folder: str | Path, command: str | None = None, date: datetime.date | None = None
    ) -> Path:
        """Writes ``selection.json``, ``columns.csv``, ``curves.csv`` and ``report.html``.

        If likely leaks were left out, also ``columns-with-leaks.csv``. In the CSV files, text that
        a spreadsheet would take for a formula begins with ``'``; ``selection.json`` has all names
        as they are.

        Args:
          folder: created if it does not exist.
          command: the command that produced the selection, for the report.
          date: of the report, by default today.

        Returns:
          The path of the report.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        write_text(folder / "selection.json", text + "\n")
        write_text(folder / FILE, csv_of(self.table))
        if self.with_leaks is not None:
            write_text(folder / WITH_LEAKS, csv_of(self.with_leaks.table))
        write_text(folder / "curves.csv", csv_of(self.curves))
        write_text(folder / "report.html", page(self, command, date or datetime.date.today()))
        return folder / "report.html"

    def __str__(self) -> str:
        checks = summary.warnings_first(self)
        sentences = summary.unsaid_sentences(self)
        text = [
            summary.keep_line(self),
            *sentences[:1],
            *(f"{line.label}: {line.text}" for line in summary.lines(self)),
            *_at_most(summary.WARNED, "check", checks),
            "",
            *self._printed_columns(),
            *sentences[1:],
        ]
        if self.with_leaks is not None:
            text += ["", f"With the likely leaks, k{summary.keep_line(self.with_leaks)[1:]}"]
            text += summary.unsaid_sentences(self.with_leaks)[:1]
            text += [f"{line.label}: {line.text}" for line in summary.lines(self.with_leaks)]
        text.append("")
        for label, kinds, most in _REMARKS:
            text += _at_most(most, label, [note for note in self.notes if note.kind in kinds])
        return printable("\n".join(text).rstrip())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return notebook_summary(self)

    def _printed_columns(self) -> list[str]:
        selected = self.table[self.table["selected"] == 1]
        if not len(selected):
            return []
        shown = selected.head(_SHOWN).dropna(axis=1, how="all")
        shown = shown[[name for name in _PRINTED if name in shown]]
        shown["column"] = shorten_all(shown["column"], _NAME_LENGTH)
        shown["alike"] = [
            ", ".join(shorten(name, _NAME_LENGTH) for name in entries(text)[:2])
            for text in shown["alike"]
        ]
        lines = [shown.to_string(index=False, float_format="{:.3g}".format)]
        if len(selected) > _SHOWN:
            lines.append(f"... and {len(selected) - _SHOWN} more in columns.csv")
        return [*lines, ""]


def _at_most(most: int, label: str, notes: Sequence[Note]) -> list[str]:
    """A line for each of the first notes, and one that counts the others."""
    lines = [f"{label}: {note.sentence}" for note in notes[:most]]
    if len(notes) > most:
        lines.append(f"... and {len(notes) - most} more {label} in report.html")
    return lines


def csv_of(frame: pd.DataFrame) -> str:
    """A table as CSV without its index; text that looks like a formula gets a leading ``'``."""
    return frame.map(_as_text).to_csv(index=False)


def _as_text(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
