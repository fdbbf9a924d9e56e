"""Runs one experiment: ``python -m experiments.run --config=configs/ip_cae.py --workdir=runs/a``.

After the colon of ``--config=configs/ip_cae.py:coil20,reconstruction`` come a data set, a task
and ``quick``, in any order. Any field can be overridden: ``--config.num_features=25``,
``--config.seeds=1,2,3``, ``--config.data.name=table.csv --config.data.target=label``.
"""

from pathlib import Path

import ml_collections

from experiments import artifacts
from experiments.launch import cli
from experiments.launch.experiment import run_experiment


def main(config: ml_collections.ConfigDict, workdir: Path, progress: bool) -> None:
    """Entry point, with the values of the flags."""
    print(artifacts.summary_table([run_experiment(config, workdir, progress=progress)]))


if __name__ == "__main__":
    cli.run_config(main, "runs/coil20", "configs/ip_cae.py:coil20")
