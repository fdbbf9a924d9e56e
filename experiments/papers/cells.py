"""The cells of the papers' tables, and the runs that give them."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from configs import papers
from experiments.artifacts.published import Row, read_table
from fsjax.errors import ConfigError, nearest
from fsjax.methods import get_method
from fsjax.tables.datasets.catalog import ENTRIES

#: Papers by the names of their files, with the method whose cells a user's own method also gets.
PAPERS = {"wast": "wast", "ctre": "ctre_sim", "ip_cae": "ip_cae"}

#: Options of a row that are not arguments of the method.
REMARKS = ("th", "task")

#: Metrics that are counts of a network, and those that are costs, which seeds change.
COUNTS = ("params", "train_flops", "connections", "density_pct")
COSTS = (*COUNTS, "training_delay_pct", "speedup")

#: Cells of code that this project does not have: CTRE's second implementation, on SciPy's sparse
#: matrices, with weights, optimiser and schedule of its own.
OTHER_CODE = {("ctre", "8")}

#: The K of WAST's costs (Table 3).
WAST_K = 50

#: The K of IP-CAE's Table 6; its error is that of Table 1 times D / K.
TABLE_6 = 50


class Run(NamedTuple):
    """One training with some seeds, which gives one or more cells.

    Attributes:
      paper: name of the protocol in ``configs/papers.py``.
      method: name of the method, or ``module:function``.
      dataset: name of the data set in this library.
      task: the task of the training.
      num_features: K, for methods that fix it; ``None`` for those whose one training gives all K.
      num_epochs: epochs, if the table differs from the protocol, else ``None``.
      options: arguments of the method that differ from the protocol.
    """

    paper: str
    method: str
    dataset: str
    task: str
    num_features: int | None
    num_epochs: int | None
    options: tuple[tuple[str, Any], ...]

    @property
    def variant(self) -> str:
        """The variant of ``configs/papers.py``."""
        return f"{self.paper},{self.method},{self.dataset},{self.task}"

    @property
    def label(self) -> str:
        """The name of its folder."""
        options = (f"{name}={value}" for name, value in self.options)
        numbers = (
            f"{name}{value}"
            for name, value in (("k", self.num_features), ("e", self.num_epochs))
            if value is not None
        )
        text = "-".join(map(str, (*self[:4], *numbers, *options)))
        return re.sub(r"[^\w.=-]", "_", text)


class Cell(NamedTuple):
    """One number of a table.

    Attributes:
      paper: name of the paper, one of :data:`PAPERS`.
      table: number of the table in the paper.
      row: the published values; the mean is NaN for a user's own method.
    """

    paper: str
    table: str
    row: Row

    @property
    def setting(self) -> str:
        """Everything except data set, method and metric, as ``K=50;epochs=10;hidden=...``."""
        known = {"task": self.row.task, "K": self.row.num_features, "epochs": self.row.num_epochs}
        parts = {**{name: value for name, value in known.items() if value}, **self.row.options}
        if self.paper == "wast":
            parts.pop("task", None)
        return ";".join(f"{name}={value}".replace(" ", "") for name, value in parts.items())

    @property
    def key(self) -> tuple[str, ...]:
        """The values that identify the cell."""
        row = self.row
        return (self.paper, self.table, row.dataset, row.method, self.setting, row.metric)


def cells_of(paper: str, more: Sequence[str] = ()) -> list[Cell]:
    """The cells of all tables of a paper but those of :data:`OTHER_CODE`, in its order.

    Args:
      paper: one of :data:`PAPERS`.
      more: methods that no paper has; each gets the cells of the paper's own method, without a
        published value.
    """
    cells = []
    for row in read_table(paper):
        _, _, table = row.source.rpartition("Table ")
        if (paper, table) in OTHER_CODE:
            continue
        cells.append(Cell(paper, table, row))
        plain = not set(row.options) - {"hidden", "epsilon"}
        if row.method == PAPERS[paper] and plain and row.metric not in COUNTS:
            for method in more:
                other = row._replace(method=method, mean=math.nan, std=None, n_repeats=None)
                cells.append(Cell(paper, table, other))
    # A row that a table repeats gives one cell.
    return list({cell.key: cell for cell in cells}.values())


def run_of(cell: Cell) -> Run:
    """The run that gives a cell."""
    row = cell.row
    task = row.task or row.options.get("task", "classification")
    own_k = cell.paper == "wast" and _fixes_number(row.method)
    k = (row.num_features or WAST_K) if own_k else None
    run = Run(cell.paper, row.method, row.dataset, task, k, None, ())
    # Options that equal the protocol's do not make another run.
    usual = _protocol(run.variant)
    options = {
        name: value
        for name, value in row.options.items()
        if name not in REMARKS and usual.method.get(name, value) != value
    }
    epochs = None if row.num_epochs == usual.train.num_epochs else row.num_epochs
    return run._replace(num_epochs=epochs, options=tuple(sorted(options.items())))


def number_of(cell: Cell) -> tuple[object, ...]:
    """What the cell is a number of; equal for cells that repeat one run's number."""
    row = cell.row
    return run_of(cell), row.metric, row.num_features, row.options.get("th")


@functools.cache
def _protocol(variant: str) -> ConfigDict:
    return papers.get_config(variant)


@functools.cache
def trains(method: str) -> bool:
    """Whether the method trains; one that does not scores the columns once for all seeds."""
    build = get_method(method)
    return build(**build.registration.small).loss is not None


def _fixes_number(method: str) -> bool:
    """Whether the method trains once per K; most rank the columns, as LassoNet's path does."""
    parameter = get_method(method).registration.parameters.get("num_features")
    return parameter is not None and parameter.default is not None and method != "lassonet"


def value_of(cell: Cell, result: Mapping[str, Any]) -> list[float] | None:
    """The values of a cell, one per seed, from a run's ``result.json``; ``None`` if it lacks them.

    Cells that compare several runs, such as training delays, are in
    :mod:`experiments.papers.curves`.
    """
    row, metrics, cost = cell.row, result["metrics"], result["cost"]
    if row.metric == "reconstruction_error":
        width = ENTRIES[row.dataset].shape[1]
        return [value * width / TABLE_6 for value in metrics["reconstruction_frobenius"]]
    if row.metric in ("params", "connections", "train_flops"):
        name = "params" if row.metric == "connections" else row.metric
        return None if cost.get(name) is None else [cost[name]]
    if row.metric == "density_pct":
        entry = ENTRIES[row.dataset]
        widths = (entry.shape[1], *row.options["hidden"], entry.num_classes)
        dense = sum(value * other for value, other in itertools.pairwise(widths))
        return [100.0 * cost["params"] / dense]
    name = row.metric
    if name == "svm_accuracy" and row.num_features not in (None, result["num_features"]):
        name = f"{name}_k{row.num_features}"
    return metrics.get(name)


def chosen(
    papers: Sequence[str],
    tables: Sequence[str] = (),
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
) -> list[Cell]:
    """The cells with the given papers, tables, data sets and methods.

    Args:
      papers, tables, datasets, methods: names; an empty sequence selects all. A method that no
        table has, such as the user's own, gets cells without a published value.

    Raises:
      ConfigError: for an unknown name; the message names the nearest known one.
    """
    _check("paper", papers, PAPERS)
    papers = papers or tuple(PAPERS)
    published = [cell for paper in papers for cell in cells_of(paper)]
    _check("table", tables, (cell.table for cell in published))
    _check("data set", datasets, (cell.row.dataset for cell in published))
    published_methods = {cell.row.method for cell in published}
    own_methods = tuple(name for name in methods if name not in published_methods)
    for name in own_methods:
        get_method(name)
    return [
        cell
        for paper in papers
        for cell in cells_of(paper, own_methods)
        if (not tables or cell.table in tables)
        and (not datasets or cell.row.dataset in datasets)
        and (not methods or cell.row.method in methods)
    ]


def _check(what: str, names: Sequence[str], known: Iterable[str]) -> None:
    known = dict.fromkeys(known)
    for name in names:
        if name not in known:
            raise ConfigError(f"unknown {what} {name!r}: {nearest(name, known)}")
