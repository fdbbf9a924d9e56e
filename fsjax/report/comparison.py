"""Plain text: how methods that ran on the same data differ in speed and beyond their seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np

from fsjax.evaluation.delay import training_delay
from fsjax.evaluation.significance import ALPHA, ks_matrix, smallest_pvalue
from fsjax.report.tables import align_right, finite

#: What methods are compared by: the first of these that all of them have.
MAIN_METRICS: Final = ("svm_accuracy", "embedded_accuracy", "reconstruction_frobenius", "mse")


def main_metric(results: Iterable[Mapping[str, Any]]) -> str | None:
    """The first of :data:`MAIN_METRICS` that all results have, or ``None``.

    Args:
      results: values of :func:`fsjax.report.result_dict`.
    """
    measured = [result["metrics"] for result in results]
    return next((name for name in MAIN_METRICS if all(name in m for m in measured)), None)


def delay_table(accuracies: Mapping[str, np.ndarray], threshold: float = 0.9) -> str:
    """Training delay (CTRE, Table 6) of each method.

    Args:
      accuracies: by method, ``(S, E)`` test accuracy in percent after each epoch; NaN where it was
        not measured. S and E may differ between methods.
      threshold: share of the best accuracy that is to be reached, above 0, at most 1. The best is
        the largest mean over seeds at any epoch of any method.

    Returns:
      Aligned text without a final line break: mean and population standard deviation over the
      seeds that get there, whose number stands behind it. Empty for fewer than two methods with a
      value.
    """
    curves = {name: np.asarray(values).mean(axis=0) for name, values in accuracies.items()}
    # An epoch that some seed lacks has no mean.
    peaks = {name: curve[np.isfinite(curve)].max(initial=-1) for name, curve in curves.items()}
    names = [name for name, peak in peaks.items() if peak >= 0]
    if len(names) < 2:
        return ""
    best = max(peaks[name] for name in names)
    lines = [("method", "delay, %", "reached by")]
    for name in names:
        delays = training_delay(accuracies[name], best, threshold)
        reached = finite(delays)
        text = f"{reached.mean():.2f} +- {reached.std():.2f}" if reached.size else "-"
        lines.append((name, text, f"{reached.size} of {delays.size}"))
    goal = f"{threshold * best:.2f} % test accuracy, {threshold:g} of the best mean"
    return f"training delay: share of the epochs until {goal}\n{align_right(lines)}"


def significance_table(samples: Mapping[str, Sequence[float | None]], metric: str) -> str:
    """p-values of the Kolmogorov-Smirnov test between every pair of methods (CTRE, 4.2.1).

    Args:
      samples: by method, one value of the metric for each seed; ``None`` where it is not finite.
      metric: its name.

    Returns:
      Aligned text without a final line break; the columns carry the numbers of the rows. Methods
      with fewer than two finite values are left out; empty where fewer than two remain.
    """
    usable = {name: finite(values) for name, values in samples.items()}
    usable = {name: values for name, values in usable.items() if values.size >= 2}
    if len(usable) < 2:
        return ""
    names, tests = list(usable), ks_matrix(usable)
    lines = [("method", "seeds", *(str(number) for number in range(1, len(names))))]
    for row, name in enumerate(names):
        found = [tests[other, name] for other in names[:row]]
        cells = [f"{test.pvalue:.4f}{'*' if test.significant else ' '}" for test in found]
        blank = [""] * (len(names) - 1 - row)
        lines.append((f"{row + 1} {name}", str(usable[name].size), *cells, *blank))
    text = (
        f"p of the Kolmogorov-Smirnov test of {metric} over seeds (* below {ALPHA})\n"
        f"{align_right(lines)}"
    )
    sizes = [values.size for values in usable.values()]
    least = min(smallest_pvalue(n, m) for n, m in combinations(sizes, 2))
    if least >= ALPHA:
        text += f"\nso few seeds cannot give p below {least:.2g}: run at least 4 of each method"
    return text
