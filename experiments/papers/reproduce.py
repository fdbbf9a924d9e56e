"""The launcher of the papers' tables: plans, trains and collects runs."""

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
from experiments.papers import page, reference, results, runs, verdicts
from experiments.papers.cells import PAPERS, Cell, Run, cells_of, chosen
from fsjax.data import load
from fsjax.datasets.catalog import ENTRIES
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import ConfigError, DataError, FsjaxError

#: Seconds of CPU time above which a run gets fewer seeds.
LONG = 60.0


class TimeIsUp(Exception):
    """Ends the current training, which the next call continues from its checkpoint."""


def available(datasets: Sequence[str]) -> tuple[list[str], list[str]]:
    """The data sets that can be loaded with all their rows, and the others."""
    present, missing = list[str](), list[str]()
    for name in datasets:
        try:
            complete = load(name).X.shape[0] == ENTRIES[name].shape[0]
        except DataError:
            complete = False
        (present if complete else missing).append(name)
    return present, missing


def planned(cells: Sequence[Cell], table: pd.DataFrame) -> list[tuple[Run, int, float, list[Cell]]]:
    """Runs with their seeds, CPU seconds and cells, the cheapest first."""
    by_run = runs.runs_of(cells)
    known = results.known_costs(cells, table)
    short = runs.expected(by_run, FLAGS.seeds, known)
    plan = []
    for run, of_run in by_run.items():
        long = short[run] > LONG
        seeds = min(FLAGS.seeds, FLAGS.long_seeds) if long else FLAGS.seeds
        plan.append((run, seeds, short[run] * seeds / FLAGS.seeds, of_run))
    return sorted(plan, key=lambda item: item[2])


def plan_table(todo: Sequence[tuple[Run, int, float, list[Cell]]], workdir: Path) -> str:
    """What ``--plan`` prints."""
    lines = [
        {
            "run": run.label,
            "cells": len(of_run),
            "seeds": seeds,
            "minutes": f"{seconds / 60:.1f}",
            "state": "done" if _done(run, seeds, workdir) else "",
        }
        for run, seeds, seconds, of_run in todo
    ]
    text = pd.DataFrame(lines).to_string(index=False) if lines else "nothing to run"
    left = [item for item, line in zip(todo, lines, strict=True) if not line["state"]]
    return (
        f"{text}\n\n{len(todo)} runs give {sum(len(item[3]) for item in todo)} cells; "
        f"{len(left)} runs are left, about {sum(item[2] for item in left) / 60:.0f} minutes of CPU"
    )


def main() -> None:
    """Trains and collects what the flags choose, or prints the plan."""
    if not Path("configs/papers.py").is_file():
        raise ConfigError("run this in the folder that holds configs/papers.py")
    if FLAGS.cluster is not None:
        check_address(FLAGS.cluster)
    cells = chosen(FLAGS.paper, FLAGS.tables, FLAGS.datasets, FLAGS.methods)
    if not cells:
        raise ConfigError("no cell of the tables matches the flags; leave one of them out")
    everything = [cell for paper in PAPERS for cell in cells_of(paper)]
    path = Path(FLAGS.results)
    table = results.read_results(path, everything)
    reasons = results.read_reasons(Path(FLAGS.reasons))
    if FLAGS.only_missing:
        known = {tuple(row[name] for name in results.KEY) for row in table.to_dict("records")}
        cells = [cell for cell in cells if cell.key not in known]
    here, missing = available(list(dict.fromkeys(cell.row.dataset for cell in cells)))
    todo = planned([cell for cell in cells if cell.row.dataset in here], table)
    if missing:
        count = sum(cell.row.dataset in missing for cell in cells)
        print(
            f"{count} cells are left out, as their data are not here: {', '.join(missing)}; "
            "fsjax.data.load(NAME) says where each is looked for"
        )
    if not FLAGS.plan:
        cli.require(FLAGS.workdir, "workdir", "runs/papers")
    workdir = Path(FLAGS.workdir or "runs/papers")
    if FLAGS.plan:
        print(plan_table(todo, workdir))
        return
    cache_by_default()
    fsjax.use_cpu_devices()
    seen = [cell for _, _, _, of_run in todo for cell in of_run]
    failure = None
    try:
        for finished in _train(todo, workdir):
            table = results.merged(table, results.collect(seen, finished), reasons)
            results.write_results(table, path)
            print(f"  {_progress(seen, table)}", flush=True)
    except CellsFailedError as error:
        failure = error
    at_hand = [name for name in ENTRIES if name in here or _is_here(name)]
    packages = reference.read_reference(Path(FLAGS.reference))
    judged = verdicts.verdicts_of(everything, table, packages, reasons)
    summary = verdicts.coverage(everything, judged, at_hand)
    if FLAGS.page:
        page.write_page(everything, judged, summary, Path(FLAGS.page))
    print(summary.to_string(index=False))
    if failure is not None:
        raise failure


def _progress(cells: Sequence[Cell], table: pd.DataFrame) -> str:
    """How many of the chosen cells are in the table, and how many of these agree with the paper."""
    keys = {cell.key for cell in cells}
    rows = [row for row in table.to_dict("records") if tuple(row[k] for k in results.KEY) in keys]
    agreeing = sum(row["agrees"] == 1 for row in rows)
    return f"{len(rows)} of {len(keys)} cells, {agreeing} agree with the paper"


def _done(run: Run, seeds: int, workdir: Path) -> dict[str, Any] | None:
    return runs.read_done(run, min(seeds, FLAGS.long_seeds), workdir)


def _is_here(name: str) -> bool:
    return not available([name])[1]


def _train(
    todo: Sequence[tuple[Run, int, float, list[Cell]]], workdir: Path
) -> Iterator[dict[Run, dict[str, Any]]]:
    """Trains the missing runs until the time is up; yields all finished ones after each run."""
    finished: dict[Run, dict[str, Any]] = {}
    left = []
    for item in todo:
        result = _done(item[0], item[1], workdir)
        if result is None:
            left.append(item)
        else:
            finished[item[0]] = result
    print(f"{len(finished)} of {len(todo)} runs are done")
    yield finished
    if FLAGS.minutes == 0 or not left:
        return
    if FLAGS.cluster is not None:
        yield from _train_on_cluster(FLAGS.cluster, left, workdir, finished)
        return
    started = time.monotonic()
    if FLAGS.minutes is not None:
        signal.signal(signal.SIGALRM, _stop)
        # Again every second: one that arrives in a finaliser is lost.
        signal.setitimer(signal.ITIMER_REAL, max(1e-3, 60.0 * FLAGS.minutes), 1.0)
    try:
        for number, (run, seeds, seconds, _) in enumerate(left, start=1):
            print(f"[{number}/{len(left)}] {run.label}, {seeds} seeds, about {seconds:.0f} s")
            try:
                finished[run] = runs.train(run, seeds, workdir)
            except FsjaxError as error:
                print(f"  failed: {error}")
                continue
            print(f"  {finished[run]['cpu_seconds']} s of CPU", flush=True)
            yield finished
    except Exception:
        # JAX raises another exception in place of one from its callbacks.
        if FLAGS.minutes is None or time.monotonic() - started < 60.0 * FLAGS.minutes:
            raise
        minutes = (time.monotonic() - started) / 60
        print(f"stopped after {minutes:.1f} minutes; the same command continues")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _train_on_cluster(
    address: str,
    left: Sequence[tuple[Run, int, float, list[Cell]]],
    workdir: Path,
    finished: dict[Run, dict[str, Any]],
) -> Iterator[dict[Run, dict[str, Any]]]:
    """Trains each run on a worker; yields all finished ones after each run."""
    folder = workdir.absolute()
    jobs = [Job(run.label, runs.train, (run, seeds, folder)) for run, seeds, _, _ in left]
    seconds = None if FLAGS.minutes is None else 60.0 * FLAGS.minutes
    with connected(address) as cluster:
        try:
            for place, result in gathered(cluster, jobs, seconds):
                finished[left[place][0]] = result
                yield finished
        except TimeoutError:
            print(f"stopped after {FLAGS.minutes:g} minutes; the same command continues")


def _stop(*_: object) -> None:
    raise TimeIsUp


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_list("paper", [], f"Of {', '.join(PAPERS)}; all by default.")
    flags.DEFINE_list("tables", [], "Numbers of tables; all by default.")
    flags.DEFINE_list("datasets", [], "Data sets; all by default.")
    flags.DEFINE_list("methods", [], "Methods, also module:function; all by default.")
    flags.DEFINE_bool("only_missing", False, "Trains only for cells that --results lacks.")
    flags.DEFINE_integer("seeds", 3, "Seeds of runs that take less than a minute.", 1)
    flags.DEFINE_integer("long_seeds", 2, "Seeds of the others.", 1)
    flags.DEFINE_float("minutes", None, "Stops after these; 0 trains nothing.", 0.0)
    define_flag()
    flags.DEFINE_string("workdir", None, "Folder for the runs.")
    flags.DEFINE_bool("plan", False, "Prints runs, cells and minutes, and trains nothing.")
    flags.DEFINE_string("results", "reproduction/results.csv", "Where the cells are kept.")
    flags.DEFINE_string(
        "reference", "reproduction/reference.csv", "What reference code gives on the same rows."
    )
    flags.DEFINE_string("reasons", "reproduction/reasons.toml", "Why cells disagree.")
    flags.DEFINE_string("page", "docs/reproduction.md", "The page that shows them; or empty.")


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags)
