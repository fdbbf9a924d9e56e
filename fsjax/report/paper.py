"""Published numbers, in our names: what a run should be compared with.

The numbers are in ``paper_results``, what their names mean here in :mod:`fsjax.report.paper_names`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from fsjax.errors import ConfigError
from fsjax.report.paper_names import (
    DATASETS,
    PAPERS,
    PUBLISHED_OPTIONS,
    SETTING_OPTIONS,
    TEXT_METHODS,
    agrees,
)

#: Metrics that a run has for further K beside its own, as ``svm_accuracy_k25``.
METRICS_OF_OTHER_K = frozenset({"svm_accuracy"})


class Row(NamedTuple):
    """One published number in our names.

    Attributes:
      method, dataset, task: our names.
      num_features: K; ``None`` where the number holds for every K.
      num_epochs: of the runs.
      usual: whether that is the usual number of epochs of the paper for this method.
      any_length: whether the number stands for runs of another length where there is none.
      options: values that options of the method must have, by our names.
      metric: our name.
      mean: as printed, in our unit; accuracies in percent.
      std: standard deviation over the repeats, where it is printed.
      n_repeats: runs behind the mean, where it is told.
      source: paper and table.
    """

    method: str
    dataset: str
    task: str
    num_features: int | None
    num_epochs: int
    usual: bool
    any_length: bool
    options: Mapping[str, Any]
    metric: str
    mean: float
    std: float | None
    n_repeats: int | None
    source: str


def published(
    method: str,
    dataset: str,
    task: str,
    num_features: int,
    num_epochs: int | None = None,
    settings: Mapping[str, Any] = {},
) -> dict[str, dict[str, Any]]:
    """What the papers report for one experiment.

    Args:
      method: our name, such as ``ip_cae``.
      dataset: our name, such as ``coil20``.
      task: ``classification`` or ``reconstruction``.
      num_features: K; without meaning for numbers that hold for every K (networks that do not
        select, and the size of WAST's).
      num_epochs: prefers a row for this number of epochs, where a paper varies it; otherwise, and
        where there is none, the row at the paper's usual number. ``train_flops`` is left out where
        the paper has none for this number of epochs; ``None`` is the usual number.
      settings: options of the method, as ``dict(method.settings)``. An option that the papers
        vary must have the value behind the number; one that is missing counts as the value of the
        papers' main results, but ``hidden`` and ``epsilon``, where a table depends on them, must
        be given. Other options are not looked at.

    Returns:
      By metric name: ``mean``, ``std`` (``None`` where it is not printed), ``n_repeats`` (or
      ``None``) and ``source``, such as ``IP-CAE, Table 2``. Accuracies are in percent, ``params``
      in connections, ``train_flops`` in operations of a whole run. ``svm_accuracy_k25`` and the
      like are for numbers of features other than ``num_features``. Empty where no paper has the
      experiment.
    """
    given = {**PUBLISHED_OPTIONS.get(method, {}), **settings}

    def fits(row: Row) -> bool:
        right_length = row.num_epochs == num_epochs or (
            row.usual and (row.any_length or num_epochs is None)
        )
        return right_length and all(
            name in given and agrees(wanted, given[name]) for name, wanted in row.options.items()
        )

    def preference(row: Row) -> tuple[int, bool]:
        other_k = 0 if row.num_features in (None, num_features) else row.num_features
        return other_k, row.num_epochs != num_epochs

    rows = [row for row in published_rows() if row[:3] == (method, dataset, task) and fits(row)]
    found: dict[str, dict[str, Any]] = {}
    # The first entry of a metric counts, so what comes first is preferred; ties are in file order.
    for row in sorted(rows, key=preference):
        name = _metric_name(row, num_features)
        if name is not None:
            entry = {field: getattr(row, field) for field in ("mean", "std", "n_repeats", "source")}
            found.setdefault(name, entry)
    return found


def published_value(table: str, dataset: str, method: str, metric: str, **setting: str) -> float:
    """A number in the text of a paper that belongs to no single run, so not to :func:`published`.

    Args:
      table: a file of ``paper_results`` without its suffix, such as ``binmask``.
      dataset: our name, or ``all`` for a mean over those of the paper.
      method: our name, such as ``stg``.
      metric: as in the file, with its unit, such as ``mask_converged_pct``.
      **setting: parts of the row's setting, such as ``network="VGG19"``, where there are several.

    Returns:
      The number as printed.

    Raises:
      ConfigError: if there is no such number, or more than one.
    """
    found = [
        row["mean"]
        for row in _records(table)
        if row["table"] == "text"
        and DATASETS.get(row["dataset"], row["dataset"]) == dataset
        and TEXT_METHODS.get(row["method"]) == method
        and row["metric"] == metric
        and setting.items() <= _setting(row).items()
    ]
    if len(found) != 1:
        wanted = ", ".join([table, dataset, method, metric, *map("=".join, setting.items())])
        advice = "narrow them by their setting" if found else f"see paper_results/{table}.csv"
        raise ConfigError(f"the text has {len(found)} numbers for {wanted}; {advice}")
    return float(found[0])


@cache
def published_rows() -> tuple[Row, ...]:
    """Every row of every file in ``paper_results`` that has names here, in file order."""
    tables = sorted(f.name for f in _folder().iterdir() if f.name.endswith(".csv"))
    rows = (parse_row(row) for table in tables for row in _records(table.removesuffix(".csv")))
    return tuple(row for row in rows if row is not None)


def parse_row(record: Mapping[str, str]) -> Row | None:
    """Reads one CSV record.

    Args:
      record: the columns by name; ``setting`` is ``key=value`` joined by ``;``.

    Returns:
      The row, or ``None`` where a name has no counterpart here, the setting lacks what the paper's
      rows depend on, or no number is printed.
    """
    paper = PAPERS.get(record["paper"])
    dataset = DATASETS.get(record["dataset"])
    setting = _setting(record)
    if not (paper and dataset and record["mean"] and paper.needs <= setting.keys()):
        return None
    named = paper.methods.get(record["method"])
    metric = {**paper.metrics, **(named.metrics if named else {})}.get(record["metric"])
    task = setting.get("task", (named and named.task) or paper.task)
    if not (named and metric and task):
        return None
    usual_epochs = named.num_epochs or paper.num_epochs
    num_epochs = int(setting.get("epochs", usual_epochs))
    options = {key: read(setting[key]) for key, read in SETTING_OPTIONS.items() if key in setting}
    return Row(
        method=named.method,
        dataset=dataset,
        task=task,
        num_features=None if metric.any_k or "K" not in setting else int(setting["K"]),
        num_epochs=num_epochs,
        usual=num_epochs == usual_epochs,
        any_length=metric.any_length,
        options={**PUBLISHED_OPTIONS.get(named.method, {}), **named.options, **options},
        metric=metric.name,
        mean=float(record["mean"]) * metric.factor,
        std=float(record["std"]) * metric.factor if record["std"] else None,
        n_repeats=int(record["n_repeats"]) if record["n_repeats"] else None,
        source=f"{record['paper']}, Table {record['table']}",
    )


def _folder() -> Traversable:
    return files("fsjax.report") / "paper_results"


@cache
def _records(table: str) -> tuple[dict[str, str], ...]:
    """The records of one file, or none where there is no such file."""
    file = _folder() / f"{table}.csv"
    if not file.is_file():
        return ()
    return tuple(
        {**record, "dataset": dataset}
        for record in csv.DictReader(io.StringIO(file.read_text(encoding="utf-8")))
        for dataset in record["dataset"].split("+")  # a column for two data sets
    )


def _setting(record: Mapping[str, str]) -> dict[str, str]:
    return dict(part.split("=", 1) for part in record["setting"].split(";") if part)


def _metric_name(row: Row, num_features: int) -> str | None:
    """Under which name a run that selected ``num_features`` columns has a published number."""
    if row.num_features in (None, num_features):
        return row.metric
    return f"{row.metric}_k{row.num_features}" if row.metric in METRICS_OF_OTHER_K else None
