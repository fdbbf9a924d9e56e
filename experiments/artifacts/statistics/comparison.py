"""Compares methods that ran on the same data: training delay, and significance over seeds."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np
from scipy.stats import ks_2samp

from experiments.artifacts.text_tables import FIRST_METRICS, aligned, finite

#: Methods are compared by the first of these metrics that all of them have. Left out are the first
#: metric, of retrained networks, and the last one, of the selection itself.
MAIN_METRICS: Final = FIRST_METRICS[1:-1]

#: The level of the test (CTRE, 4.2.1).
ALPHA: Final = 0.05


def main_metric(results: Iterable[Mapping[str, Any]]) -> str | None:
    """The first of :data:`MAIN_METRICS` that all results have, or ``None``.

    Args:
      results: values of :func:`experiments.artifacts.result_dict`.
    """
    measured = [result["metrics"] for result in results]
    return next((name for name in MAIN_METRICS if all(name in m for m in measured)), None)


def training_delay(accuracy: np.ndarray, best: float, threshold: float = 0.9) -> np.ndarray:
    """Share of the epochs until ``threshold * best`` is reached (CTRE, appendix A, eq. 3).

    Args:
      accuracy: ``(S, E)``: test accuracy after each of the E epochs; NaN where it was not measured.
      best: the best accuracy of all compared methods, in the unit of ``accuracy``, at least 0.
      threshold: above 0, at most 1; 0.9 in the paper.

    Returns:
      ``(S,)`` in percent, above 0 and at most 100; NaN for seeds that never reach it.
    """
    reached = np.asarray(accuracy) >= threshold * best
    percent = 100.0 * (reached.argmax(axis=1) + 1) / reached.shape[1]
    return np.where(reached.any(axis=1), percent, np.nan)


def delay_table(accuracies: Mapping[str, np.ndarray], threshold: float = 0.9) -> str:
    """Formats the training delay (CTRE, Table 6) of each method.

    Args:
      accuracies: by method, ``(S, E)`` test accuracy in percent after each epoch; NaN if it was
        not measured. S and E may differ between methods.
      threshold: share of the best accuracy that is to be reached, above 0, at most 1. The best is
        the largest mean over seeds at any epoch of any method.

    Returns:
      Aligned text without a final line break: mean and population standard deviation over the
      seeds that reach the threshold, and their number. Empty for fewer than two methods with a
      value.
    """
    curves = {name: np.asarray(values).mean(axis=0) for name, values in accuracies.items()}
    # The mean is NaN at epochs that a seed lacks.
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
    return f"training delay: share of the epochs until {goal}\n{aligned(lines)}"


def ks_pvalue(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> float:
    """p of the two-sample Kolmogorov-Smirnov test of a metric over seeds (CTRE, 4.2.1).

    The null hypothesis is that both samples come from one distribution; it is rejected if p < 0.05.
    The number of seeds bounds p from below (:func:`smallest_pvalue`): 0.0079 for 5 against 5 and
    0.1 for 3 against 3, so that 3 seeds can never be significant.

    Args:
      a, b: finite values, one for each seed, at least one; their numbers may differ.
    """
    with warnings.catch_warnings():
        # If rounding lifts an exact p of 1 above 1 (5 against 5, statistic 0.2), SciPy warns and
        # takes the asymptotic p, which is also 1 then.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation", RuntimeWarning)
        return float(ks_2samp(a, b).pvalue)


def smallest_pvalue(n: int, m: int) -> float:
    """The smallest p that n against m seeds can give, that of samples without overlap."""
    return 2 / math.comb(n + m, n)


def significance_table(samples: Mapping[str, Sequence[float | None]], metric: str) -> str:
    """Formats p-values of the Kolmogorov-Smirnov test between all pairs of methods (CTRE, 4.2.1).

    Args:
      samples: by method, one value of the metric for each seed; ``None`` if it is not finite.

    Returns:
      Aligned text without a final line break; columns are labelled with the numbers of the rows.
      Methods with fewer than two finite values are left out; empty if fewer than two remain.
    """
    usable = {name: finite(values) for name, values in samples.items()}
    usable = {name: values for name, values in usable.items() if values.size >= 2}
    if len(usable) < 2:
        return ""
    columns = list(usable.values())[:-1]
    lines = [("method", "seeds", *(str(number + 1) for number in range(len(columns))))]
    for row, (name, values) in enumerate(usable.items()):
        p_values = [ks_pvalue(other, values) for other in columns[:row]]
        cells = [f"{p:.4f}{'*' if p < ALPHA else ' '}" for p in p_values]
        lines.append((f"{row + 1} {name}", str(values.size), *cells, *[""] * (len(columns) - row)))
    about = f"p of the Kolmogorov-Smirnov test of {metric} over seeds (* below {ALPHA})"
    text = f"{about}\n{aligned(lines)}"
    pairs = combinations([values.size for values in usable.values()], 2)
    least = min(smallest_pvalue(*pair) for pair in pairs)
    if least >= ALPHA:
        text += f"\nso few seeds cannot give p below {least:.2g}: run at least 4 of each method"
    return text
