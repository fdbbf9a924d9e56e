"""Which methods of the library compete on a table, in which order, and what they should cost."""

from __future__ import annotations

from fsjax.auto.library import fits_task

#: Most promising first. The figures behind the orders are in docs/select.md.
_WIDE = ("binmask", "ip_cae", "entryprune", "lassonet", "icap", "l1_l21", "stg", "deep_lasso")
_NARROW = ("icap", "l1_l21", "binmask", "lassonet", "entryprune", "ip_cae", "deep_lasso", "stg")


def contenders(rows: int, columns: int, task: str, sparse: bool) -> tuple[str, ...]:
    """Names of the methods that compete on a table, the most promising first.

    Args:
      rows, columns: of the table.
      task: the task; methods that it does not suit are left out.
      sparse: whether the table is sparse. Networks train on the columns that screening keeps, made
        dense, so that this leaves none out.
    """
    names = _WIDE if columns > rows else _NARROW
    return tuple(name for name in names if fits_task(name, task))
