"""Which methods of the library compete on a table, in which order, and their expected seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from fsjax.auto.library import MOST_COLUMNS, fits_task
from fsjax.auto.network_training import BATCH_ROWS, MOST_ROWS, training_of
from fsjax.methods import METHODS

#: Methods, most promising first; docs/selecting.md has the measurements behind the orders.
_WIDE = ("binmask", "ip_cae", "entryprune", "lassonet", "icap", "l1_l21", "stg", "deep_lasso")
_NARROW = ("icap", "l1_l21", "lassonet", "binmask", "deep_lasso", "entryprune", "ip_cae", "stg")


def contenders(rows: int, columns: int, task: str, sparse: bool) -> tuple[str, ...]:
    """Names of the methods that compete on a table, the most promising first.

    Args:
      rows, columns: of the table.
      task: the task; methods that do not support it are left out.
      sparse: whether the table is sparse; no method is left out for it, as networks train on the
        columns that screening keeps, made dense.
    """
    names = _WIDE if columns > rows else _NARROW
    return tuple(name for name in names if fits_task(name, task))


class Cost(NamedTuple):
    """CPU seconds of a method, measured on one core of a server CPU of 2023 (AVX-512).

    Attributes:
      program: to compile and load the programs of the first training.
      kept_program: to load them from the compilation cache.
      step: per optimiser step, without matrix products.
      cell: per step and cell (row of the batch times column).
      column: per step and column.
      steps: usual number of steps, if the training ends by itself.
    """

    program: float
    kept_program: float
    step: float
    cell: float
    column: float = 0.0
    steps: int | None = None


#: Filters take one step, over all cells.
COSTS: Mapping[str, Cost] = MappingProxyType(
    {
        "icap": Cost(0.2, 0.2, 1e-3, 8e-7, column=2.5e-4, steps=1),
        "l1_l21": Cost(0.2, 0.15, 4e-3, 1.5e-7, steps=1),
        "binmask": Cost(1.4, 0.5, 1.8e-4, 3e-9),
        "ip_cae": Cost(1.7, 0.6, 1.1e-4, 1.5e-9, column=1.6e-6),
        "entryprune": Cost(2.5, 0.6, 1.4e-4, 8e-9),
        "lassonet": Cost(2.5, 0.6, 3e-5, 3e-9, steps=1000),
        "deep_lasso": Cost(1.8, 0.6, 3.4e-4, 2e-8),
        "stg": Cost(1.3, 0.5, 1.6e-4, 4e-9),
    }
)

#: For methods that were not measured: the highest costs and the most steps of those that were.
_MANY_STEPS = 3000
_UNKNOWN = Cost(4.0, 1.5, 1e-3, 2.1e-8, steps=_MANY_STEPS)


def expected_seconds(
    name: str,
    rows: int,
    columns: int,
    folds: int = 5,
    effort: float = 1.0,
    kept: bool = False,
) -> float:
    """Expected CPU seconds of :func:`fsjax.auto.library.rank_folds`.

    Args:
      name: of a method; one that was not measured counts as slow.
      rows: training rows of a fold.
      columns: number of columns of the table.
      folds: number of folds that train.
      effort: share of the optimiser steps.
      kept: whether the programs are in the compilation cache, or already in this process.

    Returns:
      Seconds on the machine of :data:`COSTS`; multiply by the pace of another one.
    """
    cost = COSTS.get(name, _UNKNOWN)
    facts = METHODS[name].registration if name in METHODS else None
    training = None if facts is None else training_of(facts, rows, columns)
    seen_columns, seen_rows = min(columns, MOST_COLUMNS), min(rows, MOST_ROWS)
    steps = cost.steps or (_MANY_STEPS if training is None else training.steps)
    if training is not None:
        seen_rows = min(rows, training.most_rows)
        if not training.whole and seen_rows > BATCH_ROWS:
            seen_rows = BATCH_ROWS
    steps = 1 if steps == 1 else math.ceil(steps * effort)
    step = cost.step + cost.cell * seen_rows * seen_columns + cost.column * seen_columns
    return (cost.kept_program if kept else cost.program) + folds * steps * step
