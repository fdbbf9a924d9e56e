"""Tables in plain text, among them that of results next to the papers' numbers."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

#: The metrics that a table shows first, in this order.
FIRST_METRICS = (
    "retrain_accuracy",
    "svm_accuracy",
    "embedded_accuracy",
    "retrain_reconstruction_frobenius",
    "reconstruction_frobenius",
    "mse",
    "subset_accuracy",
    "poisson_deviance",
    "concordance_index",
    "unique_percentage",
)

ABOUT = ("method", "dataset", "K", "task", "metric")
HEADER = (*ABOUT, "ours", "seeds", "paper", "difference", "source")

#: Indices of the columns that hold words, which are left-aligned.
WORDS = frozenset({0, 1, 3, 4, 9})

#: Numbers of a paper that have a line only if the run has measured them as well.
ONLY_BESIDE_OURS = re.compile(r"params|train_flops|svm_accuracy_k\d+")

#: Names of metrics in percent, also those for another K than the run's.
PERCENT = re.compile(r".*(accuracy(_k\d+)?|percentage)")


def summary_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Formats results next to the papers' numbers, a line for each metric of each result.

    Args:
      rows: values of :func:`experiments.artifacts.result_dict`.

    Returns:
      Aligned text without a final line break. ``ours`` is the mean and the population standard
      deviation over the seeds with a finite value, whose number is under ``seeds``; percentages
      have two decimals. The metrics of :data:`FIRST_METRICS` come first; metrics that only the
      paper has come last, if a run could have measured them. A metric that was measured on a sample
      of rows says so.
    """
    lines = [HEADER, *(cells for row in rows for cells in _lines(row))]
    if not any(cells[-1] for cells in lines[1:]):
        lines = [cells[:-1] for cells in lines]
    return aligned(lines, WORDS)


def finite(values: Iterable[float | None]) -> np.ndarray:
    """The finite numbers among values, where ``None`` stands for a number that is not finite."""
    array = np.array(list(values), np.float64)  # None becomes NaN
    return array[np.isfinite(array)]


def format_value(metric: str, value: float, scale: float | None = None) -> str:
    """Formats a number: percentages with two decimals, others with four.

    If ``scale``, by default the value itself, is small or large, the number has three significant
    digits in scientific notation.
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


def aligned(lines: Sequence[Sequence[str]], left: Container[int] = (0,)) -> str:
    """Aligns rows of cells in columns, with a rule below the header, which is the first row.

    Columns whose index is in ``left`` are left-aligned, the others right-aligned. There is no final
    line break.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = ["<" if place in left else ">" for place in range(len(widths))]
    rows = (lines[0], ["-" * width for width in widths], *lines[1:])
    return "\n".join(
        "  ".join(map("{:{}{}}".format, cells, sides, widths)).rstrip() for cells in rows
    )
