"""Turns a sparse table of numbers into units, one per column, without making it dense."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from fsjax.auto.reading.column_operations import float_rows, names_of
from fsjax.auto.reading.columns import (
    Design,
    check_distinct_names,
    check_impute,
    check_some_left,
    row_label,
)
from fsjax.auto.reading.notes import LEFT_OUT, Note
from fsjax.data import check_features, constant_columns


def sparse_design(X: Any, impute: str | None = None, keep: Collection[str] = ()) -> Design:
    """The usable columns of a sparse table.

    Columns that are constant, the same as an earlier one, or a number of each row are left out,
    with a note.

    Args:
      X: ``(N, columns)``, a SciPy matrix or array, whose columns are called x0, x1, ..., or a frame
        of sparse columns.
      impute: checked, but without effect: sparse tables may have no missing values.
      keep: names of columns that are offered also if their numbers identify the rows.

    Raises:
      ConfigError: for another ``impute``.
      DataError: for missing or infinite numbers, repeated names, or if no column is left.
    """
    check_impute(impute)
    table = float_rows(X)
    names = names_of(X)
    check_distinct_names(names)
    fill = "fill them before, as scikit-learn's SimpleImputer does, which keeps the table sparse"
    check_features(table, names, "X", fill)
    notes = _left_out(table, names, keep)
    kept = np.array([i for i, name in enumerate(names) if name not in notes], int)
    check_some_left(kept, list(notes.values()))
    units = tuple(names[i] for i in kept)
    return Design(
        X=table if len(kept) == len(names) else sp.csr_array(table[:, kept]),
        names=units,
        groups=np.arange(len(kept)),
        units=units,
        notes=tuple(notes.values()),
        impute=impute,
    )


def _left_out(X: sp.csr_array, names: Sequence[str], keep: Collection[str]) -> dict[str, Note]:
    """Notes on the columns that are left out, by name."""
    constant, columns = constant_columns(X), sp.csc_array(X)
    seen: dict[tuple[bytes, bytes], str] = {}
    notes: dict[str, Note] = {}
    for place, name in enumerate(names):
        part = slice(columns.indptr[place], columns.indptr[place + 1])
        rows, values = columns.indices[part], columns.data[part]
        if constant[place]:
            value = float(values[0]) if len(values) else 0.0
            notes[name] = Note(name, "constant", f"has one value only ({str(value)!r})")
            continue
        # Different numbers in all rows leave at most one zero.
        if len(values) >= X.shape[0] - 1:
            filled = columns[:, [place]].toarray().ravel()
            label = None if name in keep else row_label(name, filled)
            if label and label.kind in LEFT_OUT:
                notes[name] = label
                continue
        content = (rows.tobytes(), values.tobytes())
        if content in seen:
            notes[name] = Note(name, "duplicate", f"has the same values as {seen[content]!r}")
            continue
        seen[content] = name
    return notes
