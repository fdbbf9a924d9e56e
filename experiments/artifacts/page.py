"""``report.html``: a self-contained page about a folder that a launcher wrote.

It loads no other files and needs no scripts, follows the reader's light or dark scheme, and fits
narrow screens.
"""

from __future__ import annotations

import base64
import html
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.artifacts.files import read_json, read_table
from experiments.artifacts.html import facts_table, inline_svg, page_of, rows_table
from experiments.artifacts.statistics.trials import mean_interval
from experiments.artifacts.text_tables import finite, format_value
from fsjax.errors import ConfigError
from fsjax.storage.atomic_files import write_text

#: Captions of pictures by the names of their files, in the order of the page; others come last.
CAPTIONS = {
    "sweep": "Settings of the sweep, mean over the seeds",
    "accuracy": "Accuracy by the number of columns",
    "curves": "Training, epoch by epoch",
    "selection": "Selected columns",
    "path": "Path: number of remaining columns by regularization strength",
    "stability": "Agreement of the seeds",
    "sparsity": "Accuracy by sparsity",
    "regularization": "AUC by regularization strength",
}

#: Tables of the launchers that write no ``result.json``.
_WITHOUT_RESULT = ("accuracy.csv", "regularization.csv")

#: The largest number of rows of a CSV file that a page shows.
MAX_ROWS = 200


def write_report(workdir: str | Path) -> Path:
    """Writes ``report.html`` into the folder of a finished run, or into a folder of such folders.

    Args:
      workdir: a folder that a launcher wrote, with ``config.json``, ``result.json``, pictures and
        tables; or a folder whose subfolders hold such runs, each of which gets a page, too.

    Returns:
      The path of the page.

    Raises:
      ConfigError: if there is no finished run in the folder or below it, or a file is damaged.
    """
    workdir = Path(workdir)
    path = workdir / "report.html"
    if (workdir / "config.json").exists() and _finished(workdir):
        write_text(path, page_of(f"{workdir.name}", _run(workdir)))
        return path
    folders = (config.parent for config in workdir.glob("*/config.json"))
    below = sorted(folder for folder in folders if _finished(folder))
    if not below:
        reason = "holds no finished run, nor do its subfolders; name the --workdir of a launcher"
        if (workdir / "config.json").exists():
            reason = "holds an unfinished run; give its command again, and it continues"
        raise ConfigError(f"{workdir} {reason}")
    for folder in below:
        write_report(folder)
    sections = itertools.chain(_index(below), _pictures(workdir))
    write_text(path, page_of(f"{workdir.name}: {len(below)} runs", sections))
    return path


def _finished(workdir: Path) -> bool:
    return any((workdir / name).exists() for name in ("result.json", *_WITHOUT_RESULT))


def _result(workdir: Path) -> dict[str, Any]:
    """The content of ``result.json``; empty for a launcher that writes none."""
    path = workdir / "result.json"
    return read_json(path) if path.exists() else {}


def _run(workdir: Path) -> Iterable[str]:
    """Yields the sections about one run."""
    config, result = read_json(workdir / "config.json"), _result(workdir)
    facts = {name: config.pop(name, None) for name in ("versions", "device", "git_revision")}
    command = config.pop("command", None)
    yield facts_table(_what(config, result, facts))
    if "metrics" in result:
        yield "<h2>Results</h2>" + metrics_table([result])
    elif "results" in result:
        yield "<h2>Results</h2>" + metrics_table(result["results"], result.get("settings", ()))
    for csv in sorted(workdir.glob("*.csv")):
        if csv.stem != "metrics":
            yield f"<h2>{html.escape(csv.name)}</h2>" + _frame(read_table(csv))
    yield from _pictures(workdir)
    if "selected" in result:
        yield "<h2>Selected columns</h2>" + _selected(result)
    if any((result.get("cost") or {}).values()):
        yield "<h2>Cost</h2>" + facts_table(
            {name.replace("_", " "): _short(value) for name, value in result["cost"].items()}
        )
    text = html.escape(json.dumps(config, indent=2, ensure_ascii=False))
    yield f"<h2>Configuration</h2><details><summary>all fields</summary><pre>{text}</pre></details>"
    if command:
        yield f"<h2>How to run it again</h2><pre>{html.escape(command)}</pre>"


def _what(
    config: Mapping[str, Any], result: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, str]:
    data, method = config.get("data") or {}, config.get("method") or {}
    device, versions = facts["device"] or {}, facts["versions"] or {}

    def swept(name: str, value: Any) -> Any:
        """The values of a field in a sweep over it, otherwise its one value."""
        values = [setting[name] for setting in result.get("settings", ()) if name in setting]
        return ", ".join(dict.fromkeys(map(str, values))) or result.get(name, value)

    entries = {
        "method": result.get("method", method.get("name")),
        "data set": result.get("dataset", data.get("name")),
        "task": config.get("task"),
        "columns selected": swept("num_features", config.get("num_features")),
        "seeds": ", ".join(map(str, config.get("seeds") or ())),
        "rows of the SVM and retrain protocols": result.get("judged_on"),
        "epochs": swept("num_epochs", (config.get("train") or {}).get("num_epochs")),
        "device": " ".join(str(device[k]) for k in ("count", "kind") if k in device),
        "versions": ", ".join(f"{k} {v}" for k, v in versions.items() if v),
        "commit": facts["git_revision"],
    }
    return {name: str(value) for name, value in entries.items() if value not in (None, "")}


def metrics_table(
    results: Sequence[Mapping[str, Any]], settings: Sequence[Mapping[str, Any]] = ()
) -> str:
    """HTML table of the mean, its interval, the deviation and the published value of each metric.

    Args:
      results: values of :func:`experiments.artifacts.result_dict`.
      settings: the fields in which they differ; by default their method.
    """
    settings = settings or [{"method": result["method"]} for result in results]
    names = list(dict.fromkeys(name for setting in settings for name in setting))
    head = (*names, "metric", "mean", "95 % interval", "std", "seeds", "published", "source")
    rows = []
    for setting, result in zip(settings, results, strict=True):
        paper = result.get("paper") or {}
        for metric, values in result["metrics"].items():
            theirs = paper.get(metric) or {}
            rows.append(
                (
                    *(str(setting.get(name, "")) for name in names),
                    metric.replace("_", " "),
                    *_interval(metric, finite(values)),
                    _published(metric, theirs),
                    theirs.get("source", ""),
                )
            )
    # Empty columns, such as published values in most tables, are left out.
    shown = [index for index in range(len(head)) if any(row[index] for row in rows)]
    return rows_table([head[i] for i in shown], [[row[i] for i in shown] for row in rows])


def _interval(metric: str, values: np.ndarray) -> tuple[str, str, str, str]:
    """Mean, Student's interval of the mean, standard deviation and number of the seeds."""
    if not len(values):
        return "–", "–", "–", "0"
    (mean, half), spread = mean_interval(values), float(values.std())
    interval = "–"
    if len(values) > 1:
        ends = (format_value(metric, mean + sign * half, scale=mean) for sign in (-1, 1))
        interval = " to ".join(ends)
    texts = (format_value(metric, mean), interval, format_value(metric, spread, scale=mean))
    return (*texts, str(len(values)))


def _published(metric: str, theirs: Mapping[str, Any]) -> str:
    if not theirs:
        return ""
    text = format_value(metric, theirs["mean"])
    if theirs.get("std") is None:
        return text
    return f"{text} ± {format_value(metric, theirs['std'], scale=theirs['mean'])}"


def _selected(result: Mapping[str, Any]) -> str:
    """The columns that most seeds selected, with the number of seeds, and the stability."""
    number = len(result["selected"])
    counts: dict[int, int] = {}
    for columns_of_seed in result["selected"]:
        for column in columns_of_seed:
            counts[column] = counts.get(column, 0) + 1
    most = sorted(counts.items(), key=lambda item: -item[1])[: result["num_features"]]
    stability = (result.get("stability") or {}).get("stability")
    note = "" if stability is None else f"<p>Stability (Nogueira) {stability:.3f}.</p>"
    columns = ", ".join(
        str(column) if number == 1 else f"{column} ({times}/{number})" for column, times in most
    )
    return (
        f"{note}<p>Column indices"
        f"{'' if number == 1 else ' (number of seeds that selected them)'}: {columns}</p>"
    )


def _pictures(workdir: Path) -> Iterable[str]:
    paths = {path.stem: path for suffix in ("png", "svg") for path in workdir.glob(f"*.{suffix}")}
    names = [*(name for name in CAPTIONS if name in paths), *sorted(set(paths) - set(CAPTIONS))]
    for name in names:
        path = paths[name]
        caption = html.escape(CAPTIONS.get(name, name.replace("_", " ")))
        if path.suffix == ".svg":
            picture = inline_svg(path.read_text(encoding="utf-8"), name, caption)
        else:
            data = base64.b64encode(path.read_bytes()).decode()
            picture = f"<img alt='{caption}' src='data:image/png;base64,{data}'>"
        yield f"<figure><figcaption>{caption}</figcaption>{picture}</figure>"


def _index(folders: Sequence[Path]) -> Iterable[str]:
    """Yields the sections about a folder of runs."""
    results, labels = [], []
    for folder in folders:
        link = f"<a href='{html.escape(folder.name)}/report.html'>{html.escape(folder.name)}</a>"
        result = _result(folder)
        if "metrics" in result:
            results.append(result)
            labels.append({"run": folder.name, "data set": result["dataset"]})
        yield f"<p>{link}</p>"
    if results:
        yield "<h2>Results</h2>" + metrics_table(results, labels)


def _frame(table: pd.DataFrame) -> str:
    shown = [
        [_short(value) for value in row] for row in table.head(MAX_ROWS).itertuples(index=False)
    ]
    more = f"<p>{len(table) - MAX_ROWS} more rows in the file.</p>" if len(table) > MAX_ROWS else ""
    return rows_table(list(table.columns), shown) + more


def _short(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.5g}"
    return str(value)
