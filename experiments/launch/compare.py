"""The launcher that runs several configs and compares their results."""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from absl import flags
from ml_collections import ConfigDict

import fsjax
from experiments import artifacts
from experiments.artifacts.statistics.comparison import delay_table, main_metric, significance_table
from experiments.cluster import Cell, connected, define_flag, gathered
from experiments.launch import cli
from experiments.launch.checksums import path_of_table
from experiments.launch.config import load_config, override
from experiments.launch.experiment import run_experiment
from experiments.launch.run_folder import recorded_accuracy
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import ConfigError
from fsjax.storage.atomic_files import write_text
from fsjax.tables.datasets.catalog import named_protocol

#: Fields of ``config.data`` that set the test rows. Runs that differ in one are not compared.
TEST_ROWS: Final = ("name", "options", "split", "split_per_seed", "target", "impute", "noise_std")

#: Other fields of ``config.data`` that may explain a difference.
TREATMENT: Final = ("scaling", "valid_fraction")


def join_variants(parts: Sequence[str]) -> list[str]:
    """Joins the parts of ``a.py:x,y``, which the list flag has split at commas."""
    return re.split(r",(?=[^,]*\.py)", ",".join(parts)) if parts else []


def label_of(name: str) -> str:
    """The name of a config's folder: ``wast-madelon-quick`` for ``wast.py:madelon,quick``."""
    path, _, variant = name.partition(":")
    return "-".join([Path(path).stem, *filter(None, re.split("[,:]", variant))])


def labelled(names: Sequence[str]) -> dict[str, str]:
    """Configs by :func:`label_of`; ConfigError if two have the same."""
    labels: dict[str, str] = {}
    for name in names:
        if (label := label_of(name)) in labels:
            raise ConfigError(
                f"--configs has {labels[label]} and {name}, whose results would both be in the "
                f"folder {label}; name each config once, by files of different names"
            )
        labels[label] = name
    return labels


def data_of(config: ConfigDict) -> dict[str, Any]:
    """The fields of :data:`TEST_ROWS` and :data:`TREATMENT` of a configuration."""
    data = config.data.to_dict()
    fields = {name: data.get(name) for name in (*TEST_ROWS, *TREATMENT)}
    if path := path_of_table(data):
        # Results have only the last part of a table's path.
        fields["name"] = str(path.resolve())
    return fields | {"split": named_protocol(data["name"], data.get("split", "paper"))}


def differing(
    names: Sequence[str], labels: Sequence[str], data: Mapping[str, Mapping[str, Any]]
) -> str:
    """The fields among ``names`` in which runs differ, as text; empty if there are none."""
    values = {name: {label: data[label][name] for label in labels} for name in names}
    return ", ".join(
        f"data.{name} ({', '.join(f'{label}: {value!r}' for label, value in each.items())})"
        for name, each in values.items()
        if len(set(map(repr, each.values()))) > 1
    )


def comparisons(
    results: Mapping[str, Mapping[str, Any]], workdir: Path, data: Mapping[str, Mapping[str, Any]]
) -> str:
    """Compares the results of each group with the same data set, task and test rows.

    Reconstruction errors are in units of the scaled columns, so there the scaling counts too.

    Args:
      results: contents of ``result.json``, by the name of the run's folder.
      workdir: the folder that holds the folders of the runs.
      data: :func:`data_of` their configurations, by the same names.

    Returns:
      Text to print after the results, which also says which fields of ``config.data`` differ;
      empty if there is nothing to compare.
    """
    runs: dict[tuple[str, str], list[str]] = {}
    groups: dict[tuple[str, str, str], list[str]] = {}
    for label, result in results.items():
        experiment = (result["dataset"], result["task"])
        compared = [data[label][name] for name in _compared_by(result["task"])]
        runs.setdefault(experiment, []).append(label)
        groups.setdefault((*experiment, repr(compared)), []).append(label)
    text = ""
    for (dataset, task), labels in runs.items():
        fields = _compared_by(task)
        if separate := differing(fields, labels, data):
            text += f"\n\n{dataset}, {task}: not all are compared, as the runs differ in {separate}"
        if other := differing([name for name in TREATMENT if name not in fields], labels, data):
            text += f"\n\n{dataset}, {task}: the runs also differ in {other}"
    for (dataset, task, _), labels in groups.items():
        histories = {label: recorded_accuracy(workdir / label) for label in labels}
        recorded = {label: curve for label, curve in histories.items() if curve is not None}
        tables = [delay_table(recorded)]
        metric = main_metric(results[label] for label in labels)
        if metric is not None:
            samples = {label: results[label]["metrics"][metric] for label in labels}
            tables.append(significance_table(samples, metric))
        text += "".join(f"\n\n{dataset}, {task}: {table}" for table in tables if table)
    return text


def _compared_by(task: str) -> tuple[str, ...]:
    return (*TEST_ROWS, "scaling") if task == "reconstruction" else TEST_ROWS


def on_cluster(
    address: str, configs: Mapping[str, ConfigDict], workdir: Path
) -> dict[str, dict[str, Any]]:
    """Trains each config on a worker; returns the results by label."""
    function = functools.partial(run_experiment, progress=False)
    labels, folder = list(configs), workdir.absolute()
    cells = [Cell(label, function, (config, folder / label)) for label, config in configs.items()]
    with connected(address) as cluster:
        results = {labels[index]: result for index, result in gathered(cluster, cells)}
    return {label: results[label] for label in labels}


def main() -> None:
    """Runs all configs, and prints and writes their table."""
    values = flags.FLAGS
    workdir = Path(values.workdir)
    cache_by_default()
    fsjax.use_cpu_devices()
    configs = {}
    for label, name in labelled(join_variants(values.configs)).items():
        config = configs[label] = load_config(name)
        for assignment in values.set:
            override(config, assignment)
    if values.cluster is not None:
        results = on_cluster(values.cluster, configs, workdir)
    else:
        results = {
            label: run_experiment(config, workdir / label, progress=values.progress)
            for label, config in configs.items()
        }
    text = artifacts.summary_table(list(results.values())) + comparisons(
        results, workdir, {label: data_of(config) for label, config in configs.items()}
    )
    write_text(workdir / "table.txt", text + "\n")
    print(f"{text}\n\nall of it on one page: {artifacts.write_report(workdir)}")


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_list(
        "configs", [], "Config files, FILE.py or FILE.py:VARIANT, separated by commas."
    )
    flags.DEFINE_string("workdir", None, "Folder for the results; each config has a subfolder.")
    flags.DEFINE_multi_string("set", [], "FIELD=VALUE: overrides the field in all configs")
    flags.DEFINE_bool("progress", True, "Show progress bars and notes.")
    define_flag()


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags, configs="configs/ip_cae.py,configs/cae.py", workdir="runs/compare")
