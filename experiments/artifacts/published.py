"""Published numbers, with which runs are compared.

They are in ``paper_results``, a CSV file per paper, with our names and units and the numbers as
printed. A row with a ``task`` can be compared with a run: an empty ``num_features`` or
``num_epochs`` matches any number, and ``options`` are those in which the method differs from
:data:`MAIN_RESULTS`. Rows without a task match no run: numbers from the text, methods that fsjax
lacks or trains differently, and an error on another scale (IP-CAE, Table 6). To add a paper, add a
file, an entry in :data:`MAIN_RESULTS` if its tables vary options, and one in :data:`SPLITS` if it
does not use the registered split of a data set.
"""

import ast
import csv
import io
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from fsjax.errors import ConfigError
from fsjax.tables.datasets.catalog import named_protocol

FOLDER = Path(__file__).with_name("paper_results")

#: The metric that a run may have for other K than its own, as ``svm_accuracy_k25``.
METRIC_OF_OTHER_K = "svm_accuracy"

#: Columns that hold whole numbers or are empty.
COUNTS = ("num_features", "num_epochs", "n_repeats")

#: Protocols of the splits in the tables of papers; in others it is the registered one.
SPLITS: Final = {"WAST": "wast", "CTRE": "wast", "SAND": "official"}


class Besides(NamedTuple):
    """Matches every value of an option except these."""

    values: tuple[Any, ...]


#: Options that the papers' tables vary, with their values in the main results.
MAIN_RESULTS: dict[str, dict[str, Any]] = {
    "wast": {
        # Chosen per data set, but never 0 or 1, which are ablations.
        "sensitivity_weight": Besides((0.0, 1.0)),
        "accumulate": True,
        # By importance over all weights (eq. 4) or per sign (the authors' code).
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
    """A published number, with our names and units."""

    source: str  # paper and table
    method: str
    dataset: str
    task: str  # empty if the number matches no run
    num_features: int | None  # K; None if the number holds for every K
    num_epochs: int | None  # None: the paper's usual number, which matches any number
    options: Mapping[str, Any]  # required values of the method's options
    metric: str
    mean: float  # accuracies in percent
    std: float | None  # over the repeats, if printed
    n_repeats: int | None  # number of runs, if stated


def published(
    method: str,
    dataset: str,
    task: str,
    num_features: int,
    num_epochs: int | None = None,
    settings: Mapping[str, Any] = {},
    split: str | None = None,
) -> dict[str, dict[str, Any]]:
    """What the papers report for one experiment.

    Args:
      method: our name, such as ``ip_cae``.
      dataset: our name, such as ``coil20``.
      task: ``classification`` or ``reconstruction``.
      num_features: K; ignored for numbers that hold for every K (networks that do not select, and
        the size of WAST's).
      num_epochs: if a paper varies it, a row for this number of epochs is preferred to the row for
        the paper's usual number, which ``None`` stands for. ``train_flops`` is left out if the
        paper has none for this number of epochs.
      settings: options of the method, as ``dict(method.settings)``. An option that the papers
        vary must have the value of the published number. A missing one counts as the value of the
        papers' main results, except that ``hidden`` and ``epsilon`` must be given if a table
        depends on them. Other options are ignored.
      split: the protocol of the run's split, such as ``wast``; numbers that a paper measured on
        other rows are left out. ``None`` keeps them.

    Returns:
      By metric name: ``mean``, ``std`` (``None`` if not printed), ``n_repeats`` (or ``None``) and
      ``source``, such as ``IP-CAE, Table 2``. Accuracies are in percent, ``params`` in connections,
      ``train_flops`` in operations of a whole run. Names such as ``svm_accuracy_k25`` are for
      numbers of features other than ``num_features``. Empty if no paper has the experiment.
    """
    main = MAIN_RESULTS.get(method, {})
    fields = {**main, **settings}
    entries: dict[str, dict[str, Any]] = {}

    def preference(row: Row) -> tuple[int, bool]:
        other_k = 0 if row.num_features in (None, num_features) else row.num_features
        return other_k, row.num_epochs != num_epochs

    # The first entry of a metric counts: sorted by preference, ties in file order.
    for row in sorted(published_rows(method, dataset, task), key=preference):
        if split is not None and not _same_rows(dataset, split, row.source):
            continue
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


def _same_rows(dataset: str, split: str, source: str) -> bool:
    """Whether a protocol splits a data set as the paper of ``source`` did."""
    protocols = (split, SPLITS.get(source.split(",")[0], "paper"))
    return len({named_protocol(dataset, protocol) for protocol in protocols}) == 1


def published_value(table: str, dataset: str, method: str, metric: str, **setting: str) -> float:
    """A number from the text of a paper, as printed, that matches no single run.

    Args:
      table: a file of ``paper_results`` without its suffix, such as ``binmask``.
      dataset: our name, or ``all`` for a mean over the paper's data sets.
      method: our name, such as ``stg``.
      metric: as in the file, with its unit, such as ``mask_converged_pct``.
      **setting: options of the row, such as ``network="VGG19"``, if there are several rows.

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
    """The rows of all papers for a method, or also a data set and a task; in file order."""
    tables = sorted(file.name.removesuffix(".csv") for file in FOLDER.iterdir())
    rows = (row for table in tables for row in read_table(table) if row.task)
    return [row for row in rows if row[1 : 1 + len(experiment)] == experiment]


def agrees(expected: Any, value: Any) -> bool:
    """Whether an option of a run matches a published value; lists count as tuples."""
    value = tuple(value) if isinstance(value, list) else value
    return value not in expected.values if isinstance(expected, Besides) else value == expected


@cache
def read_table(table: str) -> tuple[Row, ...]:
    """Reads the rows of a file of ``paper_results``; there are none if it does not exist."""
    file = FOLDER / f"{table}.csv"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return tuple(parse_row(record) for record in csv.DictReader(io.StringIO(text)))


def parse_row(record: Mapping[str, str]) -> Row:
    """Converts a record of a CSV file; its options are ``key=value`` joined by ``;``."""
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
    """Parses a number, boolean or tuple; returns other text unchanged."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
