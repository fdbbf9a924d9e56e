"""The launcher that writes ``report.html`` into a folder of results."""

from __future__ import annotations

from pathlib import Path

from absl import flags

from experiments.artifacts.page import write_report
from experiments.launch import cli
from fsjax.errors import ConfigError


def main() -> None:
    """Writes the page and prints its path."""
    folder = Path(flags.FLAGS.workdir)
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; name the --workdir of a launcher")
    print(write_report(folder))


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("workdir", None, "Folder of a run, or a folder whose subfolders hold runs.")


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags, workdir="runs/demo")
