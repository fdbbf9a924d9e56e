"""``fit`` and ``fit_sizes``: train one method with many seeds; a thin layer over ``fsjax.plan``."""

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
      method: a method of ``fsjax.methods``, or your own.
      data: a data set, or ``(X, y)`` with X ``(N, D)`` and y ``(N,)`` or ``None``.
      **options: those of :func:`fsjax.plan`, such as ``seeds``, ``num_features`` and
        ``num_epochs``.

    Returns:
      The result at the best epoch, or at the last one if there are no validation rows.

    Raises:
      DataError: for data that cannot be used.
      ConfigError: for invalid settings.
      NonFiniteLossError: if the training loss becomes NaN or infinite.
    """
    return plan(method, data, **options).fit()[0]


def fit_sizes(
    method: Method, data: Data, sizes: Sequence[int], **options: Any
) -> dict[int, FitResult]:
    """Selects several numbers of columns with as few trainings as possible.

    A method that ranks the columns is trained once. A method that searches for the regularization
    strength that leaves exactly K gates open (BinMask, STG) reuses every training for each K.

    Args:
      method: a method as for :func:`fit`; if possible, build it without ``num_features``.
      data: as for :func:`fit`.
      sizes: numbers of columns, each at least 1.
      **options: those of :func:`fsjax.plan` except ``num_features``.

    Returns:
      The result for each number, in the given order.

    Raises:
      ConfigError, DataError, NonFiniteLossError: as :func:`fit`.
    """
    if "num_features" in options:
        raise ConfigError(
            f"sizes={tuple(sizes)} already gives the numbers of columns; leave num_features out"
        )
    check_names("fit_sizes has no", options, inspect.signature(plan).parameters)
    results = plan(method, data, num_features=list(sizes), **options).fit()
    return dict(zip(sizes, results, strict=True))
