"""Plain text: results next to the papers' numbers, and the selected columns in a line."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from fsjax.report.style import count, shorten

#: The metrics that come first, in this order.
FIRST_METRICS = (
    "retrain_accuracy",
    "svm_accuracy",
    "embedded_accuracy",
    "reconstruction_frobenius",
    "mse",
    "subset_accuracy",
    "poisson_deviance",
    "concordance_index",
    "unique_percentage",
)

ABOUT = ("method", "dataset", "K", "task", "metric")
HEADER = (*ABOUT, "ours", "seeds", "paper", "difference", "source")

#: Places of the columns of words, set flush left.
WORDS = frozenset({0, 1, 3, 4, 9})

#: What a paper may tell beside the metrics; no line where a run has not measured the same.
ONLY_BESIDE_OURS = re.compile(r"params|train_flops|svm_accuracy_k\d+")

#: Names of metrics in percent; those for a K other than the run's end in it.
PERCENT = re.compile(r".*(accuracy(_k\d+)?|percentage)")

#: Names that one line spells out.
MAX_NAMES = 12


def summary_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Results next to the papers' numbers, one line for each metric of each result.

    Args:
      rows: values of :func:`experiments.artifacts.result_dict`.

    Returns:
      Aligned text without a final line break. ``ours`` is the mean and the population standard
      deviation over the seeds with a finite value, whose number stands behind it; accuracies and
      other percentages have two decimals. The metrics of :data:`FIRST_METRICS` come first; metrics
      that only the paper has come last, where a run could have measured them. Those that were
      measured on a sample of the rows of a table on disk say so.
    """
    lines = [HEADER, *(cells for row in rows for cells in _lines(row))]
    if not any(cells[-1] for cells in lines[1:]):
        lines = [cells[:-1] for cells in lines]
    return aligned(lines, WORDS)


def short_selection_note(
    result: Mapping[str, Any], feature_names: Sequence[str] | None = None
) -> str:
    """One line that names the columns on which the seeds agree, at most 12 of them.

    The columns that all seeds selected; where there is none, those that more than half of them
    selected; for a single seed its selection, in order of importance.

    Args:
      result: a value of :func:`experiments.artifacts.result_dict`.
      feature_names: D names; by default ``x0``, ``x1``, ...
    """
    selected = result["selected"]
    number = len(selected)
    if number == 1:
        return f"seed {result['seeds'][0]} selected {_names(selected[0], feature_names)}"
    # Counted from the first seed on, so equal counts keep its order of importance.
    counts = Counter(chain.from_iterable(selected))
    for who, least in (("all", number), ("more than half of the", number // 2 + 1)):
        agreed = [column for column, times in counts.most_common() if times >= least]
        if agreed:
            return f"{who} {number} seeds selected {_names(agreed, feature_names)}"
    return (
        f"no column was selected by more than half of the {number} seeds "
        f"({len(counts)} different ones in total)"
    )


def finite(values: Iterable[float | None]) -> np.ndarray:
    """The finite numbers among values in which ``None`` stands for one that is not."""
    array = np.array(list(values), np.float64)  # None becomes NaN
    return array[np.isfinite(array)]


def format_value(metric: str, value: float, scale: float | None = None) -> str:
    """A number as the table shows it: with two decimals where the metric is a percentage.

    Otherwise with four, or three digits in scientific notation where the scale, by default the
    value itself, is small or large.
    """
    if PERCENT.fullmatch(metric):
        return f"{value:.2f}"
    size = abs(value if scale is None else scale)
    return f"{value:.4f}" if size == 0 or 0.1 <= size < 1e4 else f"{value:.2e}"


def _lines(row: Mapping[str, Any]) -> list[tuple[str, ...]]:
    metrics, paper = row["metrics"], row.get("paper") or {}
    first = [name for name in FIRST_METRICS if name in metrics]
    only_theirs = [name for name in paper if not ONLY_BESIDE_OURS.fullmatch(name)]
    names = dict.fromkeys([*first, *metrics, *only_theirs])
    about = (row["method"], row["dataset"], str(row["num_features"]), row["task"])
    sample = f" of {row['judged_on']:,} rows" if row.get("judged_on") else ""

    num_seeds = len(row["seeds"])

    def label(name: str) -> str:
        return name + sample if name.startswith(("svm_", "retrain_")) else name

    return [
        (*about, label(name), *_compare(name, metrics.get(name), paper.get(name), num_seeds))
        for name in names
    ]


def _compare(
    name: str,
    values: Sequence[float | None] | None,
    paper: Mapping[str, Any] | None,
    num_seeds: int,
) -> tuple[str, ...]:
    """The cells ``ours``, ``seeds``, ``paper``, ``difference`` and ``source``."""
    ours = finite(values or ())
    mean, seeds, published, difference, source = "-", "-", "-", "-", ""
    if values is not None:
        seeds = str(num_seeds) if len(ours) == num_seeds else f"{len(ours)} of {num_seeds}"
    if ours.size:
        mean = _mean_and_std(name, ours.mean(), ours.std())
    if paper:
        published, source = _mean_and_std(name, paper["mean"], paper["std"]), paper["source"]
    if ours.size and paper:
        gap = format_value(name, ours.mean() - paper["mean"], scale=paper["mean"])
        difference = gap if gap.startswith("-") else f"+{gap}"
    return mean, seeds, published, difference, source


def _mean_and_std(name: str, mean: float, std: float | None) -> str:
    text = format_value(name, mean)
    return text if std is None else f"{text} +- {format_value(name, std, scale=mean)}"


def _names(columns: Sequence[int], feature_names: Sequence[str] | None) -> str:
    """``3 columns: x1, x5, x7``, shortened where there are many."""
    names = [f"x{c}" if feature_names is None else shorten(feature_names[c]) for c in columns]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"{count(len(names), 'column')}: {', '.join(names[:MAX_NAMES])}{more}"


def aligned(lines: Sequence[Sequence[str]], left: Container[int] = (0,)) -> str:
    """Rows of equally many cells, the header first, in columns; a rule stands below the header.

    The columns at the places ``left`` are set flush left, the others flush right. There is no
    final line break.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = ["<" if place in left else ">" for place in range(len(widths))]
    rows = (lines[0], ["-" * width for width in widths], *lines[1:])
    return "\n".join(
        "  ".join(map("{:{}{}}".format, cells, sides, widths)).rstrip() for cells in rows
    )
