"""A page for a folder of runs: ``python -m experiments.report --workdir=runs/demo``.

Writes ``report.html`` into the folder of a run of any launcher, or into a folder of such folders,
where it has one table of all of them and links to the page of each.
"""

from __future__ import annotations

from pathlib import Path

from absl import flags

from experiments.artifacts.page import write_report
from experiments.launch import cli
from fsjax.errors import ConfigError

_WORKDIR = flags.DEFINE_string("workdir", None, "Folder of a run, or of several.")


def main() -> None:
    """Entry point."""
    folder = Path(cli.require(_WORKDIR.value, "workdir", "--workdir=runs/demo"))
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}")
    print(write_report(folder))


if __name__ == "__main__":
    cli.run(main)
