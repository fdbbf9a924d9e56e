"""The launcher of one experiment."""

from pathlib import Path

from ml_collections import ConfigDict

from experiments import artifacts
from experiments.launch import cli
from experiments.launch.experiment import run_experiment


def main(config: ConfigDict, workdir: Path, progress: bool) -> None:
    """Runs the experiment and prints its table."""
    print(artifacts.summary_table([run_experiment(config, workdir, progress=progress)]))


def start() -> None:
    """Entry point."""
    cli.run_config(main, config="configs/ip_cae.py:coil20", workdir="runs/coil20")
