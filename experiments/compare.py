"""Runs several configs and prints one table.

``python -m experiments.compare --configs=configs/ip_cae.py,configs/cae.py --workdir=runs/compare``

Every config may carry its variant, as for ``experiments.run``; ``--set=train.num_epochs=50``
(repeatable) overrides a field in all of them. Below the table, configs that share data set and
task are compared: training delay, where test accuracy was recorded in each epoch, and p-values.
With ``--cluster=local:2``, or the address of a Dask scheduler, each config is a cell on a worker.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import flags
from ml_collections import ConfigDict

import fsjax
from experiments import artifacts
from experiments.artifacts.statistics.comparison import delay_table, main_metric, significance_table
from experiments.cluster import Cell, connected, define_flag, gathered
from experiments.launch import cli
from experiments.launch.experiment import recorded_accuracy, run_experiment
from fsjax.engine.compilation import cache_by_default
from fsjax.storage.atomic_files import write_text

_CONFIGS = flags.DEFINE_list("configs", [], "Config files, each with its variant after a colon.")
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder; each config runs in a subfolder.")
_SET = flags.DEFINE_multi_string("set", [], "field=value, for all configs.")
_CLUSTER = define_flag()
_PROGRESS = flags.DEFINE_bool("progress", True, "Show progress bars and notes.")


def join_variants(parts: Sequence[str]) -> list[str]:
    """Puts ``a.py:x,y`` together again, which the comma of the flag has cut."""
    return re.split(r",(?=[^,]*\.py)", ",".join(parts)) if parts else []


def label_of(name: str) -> str:
    """The name of a run's folder: ``wast-madelon-quick`` for ``configs/wast.py:madelon,quick``."""
    path, _, variant = name.partition(":")
    return "-".join([Path(path).stem, *filter(None, re.split("[,:]", variant))])


def comparisons(results: Mapping[str, Mapping[str, Any]], workdir: Path) -> str:
    """Text on each group of results that share data set and task; empty where none do.

    The results are those of ``result.json``, by the run's folder in ``workdir``.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for label, result in results.items():
        groups.setdefault((result["dataset"], result["task"]), []).append(label)
    text = ""
    for (dataset, task), labels in groups.items():
        histories = {label: recorded_accuracy(workdir / label) for label in labels}
        tables = [delay_table({k: v for k, v in histories.items() if v is not None})]
        metric = main_metric(results[label] for label in labels)
        if metric is not None:
            samples = {label: results[label]["metrics"][metric] for label in labels}
            tables.append(significance_table(samples, metric))
        text += "".join(f"\n\n{dataset}, {task}: {table}" for table in tables if table)
    return text


def on_cluster(
    address: str, configs: Mapping[str, ConfigDict], workdir: Path
) -> dict[str, dict[str, Any]]:
    """The results of all configs, each trained on a worker, by their labels."""
    function = functools.partial(run_experiment, progress=False)
    labels, folder = list(configs), workdir.absolute()
    cells = [Cell(label, function, (config, folder / label)) for label, config in configs.items()]
    with connected(address) as cluster:
        results = {labels[place]: result for place, result in gathered(cluster, cells)}
    return {label: results[label] for label in labels}


def main() -> None:
    """Entry point."""
    cli.require(_CONFIGS.value, "configs", "--configs=configs/ip_cae.py,configs/cae.py")
    workdir = Path(cli.require(_WORKDIR.value, "workdir", "--workdir=runs/compare"))
    cache_by_default()
    fsjax.use_cpu_devices()
    configs = {}
    for name in join_variants(_CONFIGS.value):
        config = configs[label_of(name)] = cli.load_config(name)
        for assignment in _SET.value:
            cli.override(config, assignment)
    if _CLUSTER.value is not None:
        results = on_cluster(_CLUSTER.value, configs, workdir)
    else:
        results = {
            label: run_experiment(config, workdir / label, progress=_PROGRESS.value)
            for label, config in configs.items()
        }
    text = artifacts.summary_table(list(results.values())) + comparisons(results, workdir)
    write_text(workdir / "table.txt", text + "\n")
    print(f"{text}\n\nall of it on one page: {artifacts.write_report(workdir)}")


if __name__ == "__main__":
    cli.run(main)
