"""``fit``: one method, many seeds, one compiled program; thin over :func:`fsjax.plan`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from fsjax.engine.plan import plan
from fsjax.engine.planning import Data
from fsjax.engine.result import FitResult
from fsjax.errors import ConfigError, check_names
from fsjax.method import Method
from fsjax.signatures import takes_arguments_of


@takes_arguments_of(plan)
def fit(method: Method, data: Data, **options: Any) -> FitResult:
    """Trains a method once for each seed and evaluates it on the test rows.

    Args:
      method: what to train, from ``fsjax.methods``.
      data: a data set, or ``(X, y)`` with X ``(N, D)`` and y ``(N,)`` or ``None``.
      **options: those of :func:`fsjax.plan`, such as ``seeds``, ``num_features`` and
        ``num_epochs``.

    Returns:
      The result, at the best epoch (the last one where the split has no validation rows).

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for settings that do not fit.
      NonFiniteLossError: if the training loss leaves the finite numbers.
    """
    return plan(method, data, **options).fit()[0]


def fit_sizes(
    method: Method, data: Data, sizes: Sequence[int], **options: Any
) -> dict[int, FitResult]:
    """:func:`fit` for several numbers of columns that share what they can.

    A method that ranks the columns is trained once. One that searches for the strength that keeps
    exactly K (BinMask, STG) uses every training for each K.

    Args:
      method: what to train, made without a number of features of its own where it can be.
      data: as for :func:`fit`.
      sizes: numbers of columns, each at least 1.
      **options: those of :func:`fsjax.plan`, but ``num_features``.

    Returns:
      The result for each number, in the order given.

    Raises:
      ConfigError, DataError, NonFiniteLossError: as :func:`fit`.
    """
    if "num_features" in options:
        raise ConfigError(f"sizes={tuple(sizes)} are the numbers of columns; give no num_features")
    check_names("fit_sizes has no", options, inspect.signature(plan).parameters)
    results = plan(method, data, num_features=list(sizes), **options).fit()
    return dict(zip(sizes, results, strict=True))
