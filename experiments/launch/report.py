"""The launcher that writes the page of a folder."""

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
        raise ConfigError(f"there is no folder {folder}")
    print(write_report(folder))


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("workdir", None, "Folder of a run, or of several.")


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags, workdir="runs/demo")
