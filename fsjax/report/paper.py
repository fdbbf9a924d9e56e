"""Published numbers, in our names: what a run should be compared with.

A paper joins with one CSV in ``paper_results`` (columns ``paper, table, dataset, method, setting,
metric, mean, std, n_repeats``, names and numbers as printed) and one entry in :data:`PAPERS`; names
that are new go into :data:`DATASETS` and :data:`METHODS`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Paper(NamedTuple):
    """How the tables of one paper are read.

    Attributes:
      metrics: our metric name for each metric of the CSV; rows with another one are not used.
      num_epochs: of the runs behind its tables, where not said otherwise.
      retrain_metrics: the same for the methods in ``retrained``, where it differs.
      retrained: our names of the methods whose network was trained again on the selected columns.
    """

    metrics: Mapping[str, str]
    num_epochs: int | None = None
    retrain_metrics: Mapping[str, str] = {}
    retrained: frozenset[str] = frozenset()


#: By the name in the column ``paper``. The error of IP-CAE's Table 6 is on another scale than that
#: of its Table 1 and has no name here.
PAPERS: dict[str, Paper] = {
    "IP-CAE": Paper(
        metrics={
            "accuracy_pct": "embedded_accuracy",
            "reconstruction_frobenius": "reconstruction_frobenius",
        },
        num_epochs=200,
        retrain_metrics={"accuracy_pct": "retrain_accuracy"},
        retrained=frozenset({"stg", "lassonet"}),
    ),
}

#: Our name of each data set in the papers.
DATASETS: dict[str, str] = {
    "MNIST": "mnist",
    "FashionMNIST": "fashion_mnist",
    "Isolet": "isolet",
    "COIL-20": "coil20",
    "HAR": "har",
    "MiceProtein": "mice_protein",
}

#: Our name of each method in the papers.
METHODS: dict[str, str] = {
    "CAE": "cae",
    "GJSD": "gjsd",
    "IP-CAE": "ip_cae",
    "STG": "stg",
    "LassoNet": "lassonet",
}


class Row(NamedTuple):
    """One published number in our names.

    Attributes:
      method, dataset, task: our names.
      num_features: K.
      num_epochs: where it is not the paper's usual number; ``None`` otherwise.
      metric: our name.
      mean: as printed; accuracies in percent.
      std: standard deviation over the repeats, where it is printed.
      n_repeats: runs behind the mean, where it is told.
      source: paper and table.
    """

    method: str
    dataset: str
    task: str
    num_features: int
    num_epochs: int | None
    metric: str
    mean: float
    std: float | None
    n_repeats: int | None
    source: str


def published(
    method: str, dataset: str, task: str, num_features: int, num_epochs: int | None = None
) -> dict[str, dict[str, Any]]:
    """What the papers report for one experiment.

    Args:
      method: our name, such as ``ip_cae``.
      dataset: our name, such as ``coil20``.
      task: ``classification`` or ``reconstruction``.
      num_features: K.
      num_epochs: prefers a row for this number of epochs, where a paper varies it; otherwise, and
        where there is none, the row at the paper's usual number.

    Returns:
      By metric name: ``mean``, ``std`` (``None`` where it is not printed), ``n_repeats`` (or
      ``None``) and ``source``, such as ``IP-CAE, Table 2``. Accuracies are in percent. Empty
      where no paper has the experiment.
    """
    wanted = (method, dataset, task, num_features)
    rows = [row for row in published_rows() if row[:4] == wanted]
    # The first entry of a metric counts, so what comes first is preferred.
    usual = [row for row in rows if row.num_epochs is None]
    special = [row for row in rows if num_epochs is not None and row.num_epochs == num_epochs]
    found: dict[str, dict[str, Any]] = {}
    for row in special + usual:
        entry = {name: getattr(row, name) for name in ("mean", "std", "n_repeats", "source")}
        found.setdefault(row.metric, entry)
    return found


@cache
def published_rows() -> tuple[Row, ...]:
    """Every row of every file in ``paper_results`` that has names here, in file order."""
    folder = files("fsjax.report") / "paper_results"
    tables = sorted((f for f in folder.iterdir() if f.name.endswith(".csv")), key=lambda f: f.name)
    records = [
        record
        for table in tables
        for record in csv.DictReader(io.StringIO(table.read_text(encoding="utf-8")))
    ]
    return tuple(row for record in records if (row := parse_row(record)) is not None)


def parse_row(record: Mapping[str, str]) -> Row | None:
    """Reads one CSV record.

    Args:
      record: the columns by name; ``setting`` is ``key=value`` joined by ``;``.

    Returns:
      The row, or ``None`` where a name has no counterpart here, K or the task is not told, or no
      number is printed.
    """
    paper = PAPERS.get(record["paper"])
    method, dataset = METHODS.get(record["method"]), DATASETS.get(record["dataset"])
    setting = dict(part.split("=", 1) for part in record["setting"].split(";") if part)
    known = paper and method and dataset and record["mean"] and {"task", "K"} <= setting.keys()
    if not known:
        return None
    metrics = paper.metrics
    if method in paper.retrained:
        metrics = {**metrics, **paper.retrain_metrics}
    if record["metric"] not in metrics:
        return None
    num_epochs = int(setting["epochs"]) if "epochs" in setting else None
    return Row(
        method=method,
        dataset=dataset,
        task=setting["task"],
        num_features=int(setting["K"]),
        num_epochs=None if num_epochs == paper.num_epochs else num_epochs,
        metric=metrics[record["metric"]],
        mean=float(record["mean"]),
        std=float(record["std"]) if record["std"] else None,
        n_repeats=int(record["n_repeats"]) if record["n_repeats"] else None,
        source=f"{record['paper']}, Table {record['table']}",
    )
