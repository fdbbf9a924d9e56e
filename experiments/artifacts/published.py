"""Published numbers: what a run should be compared with.

They are in ``paper_results``, a CSV for each paper, in our names and units, each number as printed.
A row with a ``task`` is what a run may be compared with: where ``num_features`` or ``num_epochs``
is empty it holds for runs with any number of them, and ``options`` are those in which the method
differs from :data:`MAIN_RESULTS`. Rows without a task belong to no run: numbers of the text,
methods that are not here or were trained otherwise, and an error on another scale (IP-CAE, Table
6). A paper joins with a file, and with an entry in :data:`MAIN_RESULTS` where its tables vary
options.
"""

import ast
import csv
import io
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fsjax.errors import ConfigError

FOLDER = Path(__file__).with_name("paper_results")

#: The metric that a run has for further K beside its own, as ``svm_accuracy_k25``.
METRIC_OF_OTHER_K = "svm_accuracy"

#: Columns of whole numbers that may be empty.
COUNTS = ("num_features", "num_epochs", "n_repeats")


class Besides(NamedTuple):
    """Stands for every value of an option but these."""

    values: tuple[Any, ...]


#: Our options that the papers' tables vary, at the values of their main results.
MAIN_RESULTS: dict[str, dict[str, Any]] = {
    "wast": {
        # Chosen for each data set, never one of the ends, which are ablations.
        "sensitivity_weight": Besides((0.0, 1.0)),
        "accumulate": True,
        # By importance over all weights (eq. 4) or each sign by itself (the authors' code).
        "drop": Besides(("magnitude",)),
        "update": "step",
    },
    "ctre_seq": {"similarity": "cosine", "order": "similar_first"},
    "ctre_sim": {
        "drop": "magnitude",
        "grow": "similar_or_random",
        "similarity": "cosine",
        "similarity_fraction": 1.0,
    },
}


class Row(NamedTuple):
    """One published number, with our names and units."""

    source: str  # paper and table
    method: str
    dataset: str
    task: str  # empty where the number belongs to no run
    num_features: int | None  # K; None where the number holds for every K
    num_epochs: int | None  # None: the paper's usual number, which stands for any other one
    options: Mapping[str, Any]  # values that options of the method must have
    metric: str
    mean: float  # accuracies in percent
    std: float | None  # over the repeats, where it is printed
    n_repeats: int | None  # runs behind the mean, where it is told


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
    main = MAIN_RESULTS.get(method, {})
    fields = {**main, **settings}
    entries: dict[str, dict[str, Any]] = {}

    def preference(row: Row) -> tuple[int, bool]:
        other_k = 0 if row.num_features in (None, num_features) else row.num_features
        return other_k, row.num_epochs != num_epochs

    # The first entry of a metric counts, so what comes first is preferred; ties are in file order.
    for row in sorted(published_rows(method, dataset, task), key=preference):
        conditions = {**main, **row.options}
        if num_epochs is not None and row.num_epochs not in (None, num_epochs):
            continue
        if not (fields.keys() >= conditions.keys()):
            continue
        if not all(agrees(value, fields[name]) for name, value in conditions.items()):
            continue
        entry = {field: getattr(row, field) for field in ("mean", "std", "n_repeats", "source")}
        if row.num_features in (None, num_features):
            entries.setdefault(row.metric, entry)
        elif row.metric == METRIC_OF_OTHER_K:
            entries.setdefault(f"{row.metric}_k{row.num_features}", entry)
    return entries


def published_value(table: str, dataset: str, method: str, metric: str, **setting: str) -> float:
    """A number in the text of a paper, as printed, that belongs to no single run.

    Args:
      table: a file of ``paper_results`` without its suffix, such as ``binmask``.
      dataset: our name, or ``all`` for a mean over those of the paper.
      method: our name, such as ``stg``.
      metric: as in the file, with its unit, such as ``mask_converged_pct``.
      **setting: parts of the row's options, such as ``network="VGG19"``, where there are several.

    Raises:
      ConfigError: if there is no such number, or more than one.
    """
    rows = [
        row.mean
        for row in read_table(table)
        if row.source.endswith(", text")
        and (row.dataset, row.method, row.metric) == (dataset, method, metric)
        and setting.items() <= row.options.items()
    ]
    if len(rows) != 1:
        number = ", ".join([table, dataset, method, metric, *map("=".join, setting.items())])
        advice = "narrow them by their setting" if rows else f"see paper_results/{table}.csv"
        raise ConfigError(f"the text has {len(rows)} numbers for {number}; {advice}")
    return rows[0]


def published_rows(*experiment: str) -> list[Row]:
    """The rows of all papers that begin with these: method, data set, task; in file order."""
    tables = sorted(file.name.removesuffix(".csv") for file in FOLDER.iterdir())
    rows = (row for table in tables for row in read_table(table) if row.task)
    return [row for row in rows if row[1 : 1 + len(experiment)] == experiment]


def agrees(expected: Any, value: Any) -> bool:
    """Whether an option of a run is the published value, or :class:`Besides`; lists are tuples."""
    value = tuple(value) if isinstance(value, list) else value
    return value not in expected.values if isinstance(expected, Besides) else value == expected


@cache
def read_table(table: str) -> tuple[Row, ...]:
    """The rows of one file of ``paper_results``, or none where there is no such file."""
    file = FOLDER / f"{table}.csv"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return tuple(parse_row(record) for record in csv.DictReader(io.StringIO(text)))


def parse_row(record: Mapping[str, str]) -> Row:
    """A record with the fields of :class:`Row`; options are ``key=value`` joined by ``;``."""
    options = (part.split("=", 1) for part in record["options"].split(";") if part)
    num_features, num_epochs, n_repeats = (
        int(record[name]) if record[name] else None for name in COUNTS
    )
    return Row(
        source=record["source"],
        method=record["method"],
        dataset=record["dataset"],
        task=record["task"],
        num_features=num_features,
        num_epochs=num_epochs,
        options={name: _value(text) for name, text in options},
        metric=record["metric"],
        mean=float(record["mean"]),
        std=float(record["std"]) if record["std"] else None,
        n_repeats=n_repeats,
    )


def _value(text: str) -> Any:
    """A number, a truth value or a tuple; any other text as it is."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
