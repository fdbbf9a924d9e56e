"""The launcher of figures: computes their jobs until the time is up, and writes their rows."""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd
from absl import flags
from absl.flags import FLAGS

import fsjax
from experiments.artifacts.environment import git_revision
from experiments.launch import cli
from experiments.papers.figures import rows
from experiments.papers.figures.catalog import FIGURES
from experiments.papers.figures.entries import ENTRIES, Entry, chosen, read_entries
from experiments.papers.figures.outcome import outcome_of
from experiments.papers.reproduce import time_limit
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import ConfigError
from fsjax.storage.file_lock import exclusive


def listing(entries: tuple[Entry, ...], folder: Path) -> str:
    """The text of ``--list``: each figure and claim, and whether it has rows and holds."""
    lines = []
    for entry in entries:
        table = rows.read_rows(rows.path_of(folder, entry.key))
        state = "no run here"
        if entry.runs:
            state = outcome_of(entry, table).holds if len(table) else "to be run"
        lines.append({"figure": entry.key, "title": entry.title, "state": state})
    return pd.DataFrame(lines).to_string(index=False)


def compute(entry: Entry, workdir: Path, folder: Path) -> None:
    """Computes the jobs of a figure that the workdir lacks, and writes its rows if all are done."""
    job_folder = workdir / entry.key.replace("/", "_")
    jobs = FIGURES[entry.key]()
    commit = (git_revision() or "")[:7]
    for number, job in enumerate(jobs, start=1):
        path = job_folder / f"{job.name}.csv"
        if path.exists():
            continue
        print(f"{entry.key} [{number}/{len(jobs)}] {job.name}", flush=True)
        started = time.process_time()
        points = job.run()
        seconds = time.process_time() - started
        cost = rows.Point("", "", "", rows.COST, seconds)
        rows.write_rows(path, entry.key, [*points, cost], commit)
        print(f"  {seconds:.1f} s of CPU", flush=True)
    tables = [rows.read_rows(job_folder / f"{job.name}.csv") for job in jobs]
    table = pd.concat(tables, ignore_index=True)
    is_cost = table["metric"] == rows.COST
    total = table[is_cost].tail(1).assign(mean=round(table.loc[is_cost, "mean"].sum(), 1))
    rows.write_results(
        pd.concat([table[~is_cost], total], ignore_index=True), rows.path_of(folder, entry.key)
    )


def main() -> None:
    """Computes the figures that ``--figure`` names, or prints the list."""
    if not ENTRIES.is_file():
        raise ConfigError(
            f"{Path.cwd()} has no {ENTRIES}; run this command in the root of the repository"
        )
    entries, folder = read_entries(), Path(FLAGS.rows)
    if FLAGS.list:
        print(listing(entries, folder))
        return
    workdir = Path(cli.require(FLAGS.workdir, "workdir", "runs/figures"))
    cache_by_default()
    fsjax.use_cpu_devices()
    with exclusive(workdir), time_limit(FLAGS.minutes):
        for entry in chosen(entries, FLAGS.figure):
            compute(entry, workdir, folder)
            outcome = outcome_of(entry, rows.read_rows(rows.path_of(folder, entry.key)))
            print(f"{entry.key}: {outcome.holds}", *outcome.sentences, sep="\n  ", flush=True)


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_list("figure", [], "Papers, or single figures as wast/5; all by default.")
    flags.DEFINE_bool("list", False, "Prints all figures and claims with their state.")
    flags.DEFINE_float("minutes", None, "Stops after this many minutes.", 0.0)
    flags.DEFINE_string("workdir", None, "Folder for the finished jobs.")
    flags.DEFINE_string("rows", str(rows.ROWS), "Folder for the rows of data.")


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags)
