"""The launcher that reproduces the papers' tables: plans, trains and collects runs."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from absl import flags
from absl.flags import FLAGS

import fsjax
from experiments.cluster import Cell as Job
from experiments.cluster import CellsFailedError, check_address, connected, define_flag, gathered
from experiments.launch import cli
from experiments.papers import claims, page, reference, results, runs, verdicts
from experiments.papers.cells import PAPERS, Cell, Run, cells_of, chosen
from fsjax.data import load
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import ConfigError, DataError, FsjaxError
from fsjax.storage.atomic_files import write_text
from fsjax.tables.datasets.catalog import ENTRIES

#: Runs of more CPU seconds get ``--long_seeds`` instead of ``--seeds``.
LONG = 60.0


class TimeIsUp(Exception):
    """Ends the current training; the next call resumes it from its checkpoint."""


def available(datasets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits data sets into those that can be loaded with all their rows, and the others."""
    present, missing = list[str](), list[str]()
    for name in datasets:
        try:
            complete = load(name).X.shape[0] == ENTRIES[name].shape[0]
        except DataError:
            complete = False
        (present if complete else missing).append(name)
    return present, missing


def planned(
    cells: Sequence[Cell], table: pd.DataFrame, most_seeds: int, long_seeds: int
) -> list[tuple[Run, int, float, list[Cell]]]:
    """Runs with their seeds, CPU seconds and cells; those with the least time per cell first.

    Args:
      cells: the cells that the runs shall give.
      table: the table of ``results.csv``, which has the cost of some runs.
      most_seeds: number of seeds of a run.
      long_seeds: number of seeds, if that is less, of a run of more than :data:`LONG` CPU seconds.
    """
    by_run, uses = runs.runs_of(cells), runs.cells_with(cells)
    measured = results.known_costs(cells, table)
    fewer = min(most_seeds, long_seeds)
    seconds_of = {n: runs.expected(by_run, n, measured) for n in {most_seeds, fewer}}
    plan = []
    for run, run_cells in by_run.items():
        seeds = fewer if seconds_of[most_seeds][run] > LONG else most_seeds
        plan.append((run, seeds, seconds_of[seeds][run], run_cells))
    return sorted(plan, key=lambda item: item[2] / uses[item[0]])


def plan_table(todo: Sequence[tuple[Run, int, float, list[Cell]]], workdir: Path) -> str:
    """The text that ``--plan`` prints."""
    lines = [
        {
            "run": run.label,
            "cells": len(run_cells),
            "seeds": seeds,
            "minutes": f"{seconds / 60:.1f}",
            "state": "done" if _done(run, seeds, workdir) else "",
        }
        for run, seeds, seconds, run_cells in todo
    ]
    text = pd.DataFrame(lines).to_string(index=False) if lines else "nothing to run"
    remaining = [item for item, line in zip(todo, lines, strict=True) if not line["state"]]
    return (
        f"{text}\n\n{len(todo)} runs give {sum(len(item[3]) for item in todo)} cells; "
        f"{len(remaining)} runs are left, about {sum(item[2] for item in remaining) / 60:.0f} "
        "minutes of CPU time"
    )


def main() -> None:
    """Trains the runs that the flags choose and collects their cells, or prints the plan."""
    if not Path("configs/papers.py").is_file():
        raise ConfigError(
            f"{Path.cwd()} has no configs/papers.py; run this command in the root of the repository"
        )
    if FLAGS.cluster is not None:
        check_address(FLAGS.cluster)
    cells = chosen(FLAGS.paper, FLAGS.tables, FLAGS.datasets, FLAGS.methods)
    if not cells:
        raise ConfigError(
            "no cell of the tables matches all of --paper, --tables, --datasets and --methods; "
            "leave one of them out"
        )
    everything = [cell for paper in PAPERS for cell in cells_of(paper)]
    path = Path(FLAGS.results)
    table = results.read_results(path, everything)
    reasons = results.read_reasons(Path(FLAGS.reasons))
    if FLAGS.only_missing:
        known = results.by_key(table)
        cells = [cell for cell in cells if cell.key not in known]
    present, missing = available(list(dict.fromkeys(cell.row.dataset for cell in cells)))
    loaded = [cell for cell in cells if cell.row.dataset in present]
    todo = planned(loaded, table, FLAGS.seeds, FLAGS.long_seeds)
    if missing:
        count = sum(cell.row.dataset in missing for cell in cells)
        print(
            f"{count} cells are left out, because these data sets are missing: "
            f"{', '.join(missing)}; the error of fsjax.data.load(NAME) says where it looks for each"
        )
    if not FLAGS.plan:
        cli.require(FLAGS.workdir, "workdir", "runs/papers")
    workdir = Path(FLAGS.workdir or "runs/papers")
    if FLAGS.plan:
        print(plan_table(todo, workdir))
        return
    cache_by_default()
    fsjax.use_cpu_devices()
    planned_cells = [cell for _, _, _, run_cells in todo for cell in run_cells]
    failure = None
    try:
        for finished in _train(todo, workdir):
            table = results.merged(table, results.collect(planned_cells, finished), reasons)
            results.write_results(table, path)
            print(f"  {_progress(planned_cells, table)}", flush=True)
    except CellsFailedError as error:
        failure = error
    loadable = [name for name in ENTRIES if name in present or available([name])[0]]
    packages = reference.read_reference(Path(FLAGS.reference))
    all_verdicts = verdicts.verdicts_of(everything, table, packages, reasons)
    summary = verdicts.coverage(everything, all_verdicts, loadable)
    stated = claims.read_claims(Path(FLAGS.claims))
    if FLAGS.claims_of:
        stated = claims.merged(stated, claims.collect(Path(FLAGS.claims_of)))
        claims.write_claims(stated, Path(FLAGS.claims))
    if FLAGS.page:
        further = claims.page_of(stated)
        write_text(Path(FLAGS.page), page.make_page(everything, all_verdicts, summary, further))
    print(summary.to_string(index=False))
    if failure is not None:
        raise failure


def _progress(cells: Sequence[Cell], table: pd.DataFrame) -> str:
    """Counts the chosen cells in the table, and those of them that agree with the paper."""
    keys = {cell.key for cell in cells}
    rows = [row for key, row in results.by_key(table).items() if key in keys]
    agreeing = sum(row["agrees"] == 1 for row in rows)
    return f"{len(rows)} of {len(keys)} cells, {agreeing} agree with the paper"


def _done(run: Run, seeds: int, workdir: Path) -> dict[str, Any] | None:
    return runs.read_done(run, min(seeds, FLAGS.long_seeds), workdir)


def _train(
    todo: Sequence[tuple[Run, int, float, list[Cell]]], workdir: Path
) -> Iterator[dict[Run, dict[str, Any]]]:
    """Trains the missing runs until the time is up; yields all finished runs after each one."""
    finished: dict[Run, dict[str, Any]] = {}
    remaining = []
    for item in todo:
        result = _done(item[0], item[1], workdir)
        if result is None:
            remaining.append(item)
        else:
            finished[item[0]] = result
    print(f"{len(finished)} of {len(todo)} runs are done")
    yield finished
    if FLAGS.minutes == 0 or not remaining:
        return
    if FLAGS.cluster is not None:
        yield from _train_on_cluster(FLAGS.cluster, remaining, workdir, finished)
        return
    started = time.monotonic()
    if FLAGS.minutes is not None:
        signal.signal(signal.SIGALRM, _stop)
        # Repeated every second, because an exception that is raised in a finaliser is lost.
        signal.setitimer(signal.ITIMER_REAL, max(1e-3, 60.0 * FLAGS.minutes), 1.0)
    try:
        for number, (run, seeds, seconds, _) in enumerate(remaining, start=1):
            print(f"[{number}/{len(remaining)}] {run.label}, {seeds} seeds, about {seconds:.0f} s")
            try:
                finished[run] = runs.train(run, seeds, workdir)
            except FsjaxError as error:
                print(f"  failed: {error}")
                continue
            print(f"  {finished[run]['cpu_seconds']} s of CPU", flush=True)
            yield finished
    except Exception:
        # JAX replaces an exception that is raised in one of its callbacks by another type.
        if FLAGS.minutes is None or time.monotonic() - started < 60.0 * FLAGS.minutes:
            raise
        minutes = (time.monotonic() - started) / 60
        print(f"stopped after {minutes:.1f} minutes; the same command continues")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _train_on_cluster(
    address: str,
    remaining: Sequence[tuple[Run, int, float, list[Cell]]],
    workdir: Path,
    finished: dict[Run, dict[str, Any]],
) -> Iterator[dict[Run, dict[str, Any]]]:
    """Trains each run on a worker; yields all finished runs after each one."""
    folder = workdir.absolute()
    jobs = [Job(run.label, runs.train, (run, seeds, folder)) for run, seeds, _, _ in remaining]
    seconds = None if FLAGS.minutes is None else 60.0 * FLAGS.minutes
    with connected(address) as cluster:
        try:
            for place, result in gathered(cluster, jobs, seconds):
                finished[remaining[place][0]] = result
                yield finished
        except TimeoutError:
            print(f"stopped after {FLAGS.minutes:g} minutes; the same command continues")


def _stop(*_: object) -> None:
    raise TimeIsUp


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_list("paper", [], f"Papers: {', '.join(PAPERS)}; all by default.")
    flags.DEFINE_list("tables", [], "Numbers of the tables; all by default.")
    flags.DEFINE_list("datasets", [], "Data sets; all by default.")
    flags.DEFINE_list(
        "methods", [], "Methods, or your own as module:function; all of the tables by default."
    )
    flags.DEFINE_bool("only_missing", False, "Trains only for cells that are not in --results.")
    flags.DEFINE_integer("seeds", 3, "Number of seeds of a run of up to a minute of CPU time.", 1)
    flags.DEFINE_integer("long_seeds", 2, "Number of seeds of a longer run, at most --seeds.", 1)
    flags.DEFINE_float(
        "minutes", None, "Stops training after this many minutes; 0 trains nothing.", 0.0
    )
    define_flag()
    flags.DEFINE_string("workdir", None, "Folder for the runs.")
    flags.DEFINE_bool("plan", False, "Prints the runs, cells and minutes, and trains nothing.")
    flags.DEFINE_string(
        "results", "reproduction/results.csv", "CSV file of the cells that were run."
    )
    flags.DEFINE_string(
        "reference", "reproduction/reference.csv", "CSV file with the cells of reference code."
    )
    flags.DEFINE_string(
        "reasons", "reproduction/reasons.toml", "File that says why cells differ from the paper."
    )
    flags.DEFINE_string(
        "claims",
        "reproduction/claims.csv",
        "CSV file of the numbers in BinMask's text.",
    )
    flags.DEFINE_string(
        "claims_of", "", "Folder with runs of feature_selection and sparsify to collect into it."
    )
    flags.DEFINE_string(
        "page", "docs/reproduction.md", "Page with the tables, to be written; empty for none."
    )


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags)
