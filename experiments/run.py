"""Runs one experiment: ``python -m experiments.run --config=configs/ip_cae.py --workdir=runs/a``.

After the colon of ``--config=configs/ip_cae.py:coil20,reconstruction`` come a data set, a task
and ``quick``, in any order. Any field can be overridden: ``--config.num_features=25``,
``--config.seeds=1,2,3``, ``--config.data.name=table.csv --config.data.target=label``.
"""

from __future__ import annotations

from absl import flags
from ml_collections import config_flags

import fsjax
from experiments import cli
from experiments.launch import run_experiment
from fsjax import report

_CONFIG = config_flags.DEFINE_config_file("config", help_string="Config file, with its variant.")
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder for the artifacts of this run.")
_PROGRESS = flags.DEFINE_bool("progress", True, "Show the progress bar and notes.")


def main() -> None:
    """Entry point."""
    cli.require(_CONFIG.value, "config", "--config=configs/ip_cae.py:coil20")
    cli.require(_WORKDIR.value, "workdir", "--workdir=runs/coil20")
    fsjax.use_compilation_cache()
    fsjax.use_cpu_devices()
    result = run_experiment(_CONFIG.value, _WORKDIR.value, progress=_PROGRESS.value)
    print(report.summary_table([result]))


if __name__ == "__main__":
    cli.run(main)
