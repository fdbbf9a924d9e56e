"""Reads the costs of columns from a text table with the columns ``column`` and ``cost``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fsjax.errors import ConfigError, DataError
from fsjax.readers.text import USUAL_SEPARATOR, open_text
from fsjax.tables.checks import holds_numbers

#: Columns of the file.
HEADER = ["column", "cost"]


def read_costs(path: str | Path) -> dict[str, float]:
    """The cost of each column that a file names.

    Raises:
      ConfigError: if the file cannot be read, has other columns, names a column twice, or has a
        cost that is not a number above 0.
    """
    path = Path(path).expanduser()
    try:
        with path.open("rb") as file:
            table = open_text(file, USUAL_SEPARATOR.get(path.suffix.lower(), ","))
            frame = table.frame(file)
    except OSError as error:
        raise ConfigError(f"costs: {path} cannot be read: {error.strerror}") from None
    except DataError as error:
        raise ConfigError(f"costs: {path}: {error}") from None
    if list(frame.columns) != HEADER:
        raise ConfigError(
            f"costs: {path} has the columns {list(frame.columns)}; give two, called column and cost"
        )
    names = frame["column"].astype(str)
    if names.duplicated().any():
        raise ConfigError(f"costs: {path} names {names[names.duplicated()].iloc[0]!r} twice")
    costs = frame["cost"].to_numpy(np.float64) if holds_numbers(frame["cost"]) else None
    if costs is None or not (np.isfinite(costs) & (costs > 0)).all():
        raise ConfigError(f"costs: {path} has a cost that is not a number above 0; correct it")
    return dict(zip(names.tolist(), costs.tolist(), strict=True))
