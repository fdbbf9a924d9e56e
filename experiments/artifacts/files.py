"""Writes the files of a run: metrics, result, scores and configuration."""

import contextlib
import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.artifacts import environment
from experiments.artifacts.published import published
from fsjax.engine.result import FitResult
from fsjax.engine.stability import stability_metrics
from fsjax.errors import ConfigError
from fsjax.storage.atomic_files import atomic_open, write_text
from fsjax.tables.readers.file_type import first_line


def write_metrics_csv(result: FitResult, path: str | Path) -> None:
    """Writes every recorded value in long form: ``seed,epoch,split,metric,value``.

    The history comes first, seed by seed, with epochs from 1; then the test metrics of each seed,
    with the split ``test`` and the seed's best epoch. Values that are not finite are written as
    ``nan`` or ``inf``. The file is usually ``metrics.csv``; OSError if it cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("seed", "epoch", "split", "metric", "value"))
    for row, seed in enumerate(result.seeds):
        for name, values in result.history.items():
            split, metric = name.split("/", 1)
            for epoch, value in enumerate(values[row], start=1):
                # str of NumPy's scalar: the shortest text that reads back to the same number.
                writer.writerow((seed, epoch, split, metric, str(value)))
    for row, seed in enumerate(result.seeds):
        for metric, values in result.metrics.items():
            writer.writerow((seed, int(result.best_epoch[row]), "test", metric, str(values[row])))
    write_text(path, text.getvalue())


def result_dict(
    result: FitResult, split: str | None = None, noise_std: float = 0.0
) -> dict[str, Any]:
    """The outcome of a run for S seeds in plain Python values for JSON.

    Args:
      result: the outcome.
      split: the protocol of its split; published numbers for other rows are left out.
      noise_std: noise that was added to its columns; above 0 there are no published numbers.

    Returns:
      ``method``, ``dataset``, ``task``, ``num_features`` (K), ``seeds`` (S), ``selected`` (S lists
      of K columns, in order of importance), ``metrics`` (by name, S values each; accuracies in
      percent), ``best_epoch`` (S, from 1), ``constant_columns`` (S), ``stability`` (from
      :func:`fsjax.engine.stability.stability_metrics`), ``cost`` and ``paper`` (from
      :func:`experiments.artifacts.published`); ``judged_on``, a number of rows, if the SVM and
      retrain protocols used a sample. Numbers that are not finite are ``None``.
    """
    num_epochs = max((values.shape[1] for values in result.history.values()), default=None)
    method, settings = result.method.name, dict(result.method.about.settings)
    experiment = {name: getattr(result, name) for name in ("dataset", "task", "num_features")}
    outcome = ("seeds", "selected", "metrics", "best_epoch", "constant_columns")
    paper: Mapping[str, Any] = {}
    # The tables of the papers are on data without added noise.
    if not noise_std:
        paper = published(
            method, **experiment, num_epochs=num_epochs, settings=settings, split=split
        )
    sampled = {} if result.judged_on is None else {"judged_on": result.judged_on}
    return plain(
        {
            "method": method,
            **experiment,
            **{name: getattr(result, name) for name in outcome},
            **sampled,
            "stability": stability_metrics(result),
            "cost": result.cost,
            "paper": paper,
        }
    )


def write_result_json(
    result: FitResult, path: str | Path, split: str | None = None, noise_std: float = 0.0
) -> None:
    """Writes :func:`result_dict`, usually to ``result.json``; OSError if it cannot be written."""
    write_json(result_dict(result, split, noise_std), path)


def write_scores(result: FitResult, path: str | Path) -> None:
    """Writes the importance of every column, usually to ``scores.npz``.

    The archive has ``scores`` (S, D), larger is better, and ``selection_frequency`` (D,), the
    share of the seeds, in [0, 1], that selected each column. OSError if it cannot be written.
    """
    with atomic_open(path) as file:
        np.savez(file, scores=result.scores, selection_frequency=result.selection_frequency)


def write_config_json(
    config: Mapping[str, Any],
    path: str | Path,
    command: str | None = None,
    earlier: Mapping[str, Any] | None = None,
) -> None:
    """Writes the configuration of a run and its environment, usually to ``config.json``.

    Besides the configuration's fields (those that JSON lacks as text) the file has ``versions``,
    ``device`` (``platform``, ``kind``, ``count``), ``git_revision`` and the ``command`` (or null).
    For a resumed run, with the content of its ``earlier`` file, they are those of its start; the
    environments in which it was resumed are listed under ``continued``. OSError if the file cannot
    be written.
    """
    facts = {
        "versions": environment.versions(),
        "device": environment.device(),
        "git_revision": environment.git_revision(),
        "command": command,
    }
    first, continued = facts, []
    if earlier is not None:
        first = {name: earlier.get(name) for name in facts}
        continued = list(earlier.get("continued", ()))
        if (continued or [first])[-1] != facts:
            continued.append(facts)
    write_json({**config, **first, **({"continued": continued} if continued else {})}, path)


def write_json(value: Any, path: str | Path) -> None:
    """Writes a value as JSON after :func:`plain`; OSError if it cannot be written."""
    text = json.dumps(plain(value), indent=2, allow_nan=False, ensure_ascii=False)
    write_text(path, f"{text}\n")


def read_json(path: Path) -> dict[str, Any]:
    """Reads an object that :func:`write_json` wrote; ConfigError for any other content."""
    with _damage_of(path):
        value = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(value, dict):
            raise ValueError("it is no object")
    return value


def read_table(path: Path) -> pd.DataFrame:
    """Reads a CSV file of a launcher; ConfigError if it is damaged."""
    with _damage_of(path):
        return pd.read_csv(path)


@contextlib.contextmanager
def _damage_of(path: Path) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        reason = f"{path} is damaged ({first_line(error)})"
        raise ConfigError(f"{reason}; remove it, and the same command writes it again") from None


def plain(value: Any) -> Any:
    """Converts nested mappings, sequences, arrays and scalars to values that JSON has.

    Numbers that are not finite become ``None``; other objects become their text.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy and JAX arrays and scalars
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
