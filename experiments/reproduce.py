"""The papers' tables, cell by cell: ``python -m experiments.reproduce --workdir=runs/papers``.

    python -m experiments.reproduce --paper=wast --tables=2,5 --datasets=madelon,coil20 --plan
    python -m experiments.reproduce --paper=ctre --seeds=3 --minutes=60 --workdir=runs/papers

The cheapest runs come first. Runs that are finished are read, an interrupted one goes on from its
checkpoint, and after ``--minutes`` the same command goes on another time. ``--cluster=local:2``, or
the address of a Dask scheduler, trains them on workers. ``--plan`` trains nothing
and prints runs, cells and what they may cost. ``--methods`` also takes one's own, as
``my_file:my_method``. What came out is in ``reproduction/results.csv`` and on the page
``docs/reproduction.md``; a cell that disagrees gets its reason from ``reproduction/reasons.toml``.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from absl import flags

import fsjax
from experiments.cluster import Cell as Job
from experiments.cluster import CellsFailedError, check_address, connected, define_flag, gathered
from experiments.launch import cli
from experiments.papers import page, results, runs
from experiments.papers.cells import PAPERS, Cell, Run, cells_of, chosen
from fsjax.data import load
from fsjax.datasets.catalog import ENTRIES
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import ConfigError, DataError, FsjaxError

_PAPERS = flags.DEFINE_list("paper", [], f"Of {', '.join(PAPERS)}; all by default.")
_TABLES = flags.DEFINE_list("tables", [], "Numbers of tables; all by default.")
_DATASETS = flags.DEFINE_list("datasets", [], "Data sets; all by default.")
_METHODS = flags.DEFINE_list("methods", [], "Methods, also module:function; all by default.")
_SEEDS = flags.DEFINE_integer("seeds", 3, "Seeds of runs that take less than a minute.", 1)
_LONG_SEEDS = flags.DEFINE_integer("long_seeds", 2, "Seeds of the others.", 1)
_MINUTES = flags.DEFINE_float("minutes", None, "Stops after these; 0 trains nothing.", 0.0)
_CLUSTER = define_flag()
_WORKDIR = flags.DEFINE_string("workdir", None, "Folder for the runs.")
_PLAN = flags.DEFINE_bool("plan", False, "Prints runs, cells and minutes, and trains nothing.")
_RESULTS = flags.DEFINE_string("results", "reproduction/results.csv", "Where the cells are kept.")
_REASONS = flags.DEFINE_string("reasons", "reproduction/reasons.toml", "Why cells disagree.")
_PAGE = flags.DEFINE_string("page", "docs/reproduction.md", "The page that shows them; or empty.")

#: Seconds of CPU time above which a run gets fewer seeds.
LONG = 60.0


class TimeIsUp(Exception):
    """Ends the training that is under way; it goes on from its checkpoint another time."""


def available(datasets: Sequence[str]) -> tuple[list[str], list[str]]:
    """The data sets that are here, and for each that is not, what to do."""
    here, missing = [], []
    for name in datasets:
        try:
            rows, whole = load(name).X.shape[0], ENTRIES[name].shape[0]
        except DataError as error:
            missing.append(f"{name}: {error}")
            continue
        if rows == whole:
            here.append(name)
        else:
            missing.append(f"{name}: the file has {rows} of its {whole} rows")
    return here, missing


def planned(cells: Sequence[Cell], table: pd.DataFrame) -> list[tuple[Run, int, float, list[Cell]]]:
    """Runs with their seeds, CPU seconds and cells, the cheapest first."""
    by_run = runs.runs_of(cells)
    known = results.known_costs(cells, table)
    short = runs.expected(by_run, _SEEDS.value, known)
    found = []
    for run, of_run in by_run.items():
        long = short[run] > LONG
        seeds = min(_SEEDS.value, _LONG_SEEDS.value) if long else _SEEDS.value
        found.append((run, seeds, short[run] * seeds / _SEEDS.value, of_run))
    return sorted(found, key=lambda item: item[2])


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
    """Entry point."""
    if not Path("configs/papers.py").is_file():
        raise ConfigError("run this in the folder that holds configs/papers.py")
    if _CLUSTER.value is not None:
        check_address(_CLUSTER.value)
    cells = chosen(_PAPERS.value, _TABLES.value, _DATASETS.value, _METHODS.value)
    if not cells:
        raise ConfigError("no table has a cell of this kind; leave out a flag")
    everything = [cell for paper in PAPERS for cell in cells_of(paper)]
    path = Path(_RESULTS.value)
    table = results.read_results(path, everything)
    reasons = results.read_reasons(Path(_REASONS.value))
    here, missing = available(list(dict.fromkeys(cell.row.dataset for cell in cells)))
    todo = planned([cell for cell in cells if cell.row.dataset in here], table)
    for line in missing:
        name = line.partition(":")[0]
        count = sum(cell.row.dataset == name for cell in cells)
        print(f"{count} cells are not run, their data are not here: {line}")
    if not _PLAN.value:
        cli.require(_WORKDIR.value, "workdir", "--workdir=runs/papers")
    workdir = Path(_WORKDIR.value or "runs/papers")
    if _PLAN.value:
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
    except CellsFailedError as error:
        failure = error
    at_hand = [name for name in ENTRIES if name in here or _is_here(name)]
    summary = results.coverage(everything, table, at_hand)
    if _PAGE.value:
        page.write_page(everything, table, summary, Path(_PAGE.value))
    print(summary.to_string(index=False))
    if failure is not None:
        raise failure


def _done(run: Run, seeds: int, workdir: Path) -> dict[str, Any] | None:
    return runs.read_done(run, min(seeds, _LONG_SEEDS.value), workdir)


def _is_here(name: str) -> bool:
    return not available([name])[1]


def _train(
    todo: Sequence[tuple[Run, int, float, list[Cell]]], workdir: Path
) -> Iterator[dict[Run, dict[str, Any]]]:
    """Trains what is not done until the time is up; after each run, all that is finished."""
    finished: dict[Run, dict[str, Any]] = {}
    left = []
    for item in todo:
        found = _done(item[0], item[1], workdir)
        if found is None:
            left.append(item)
        else:
            finished[item[0]] = found
    print(f"{len(finished)} of {len(todo)} runs are done")
    yield finished
    if _MINUTES.value == 0 or not left:
        return
    if _CLUSTER.value is not None:
        yield from _train_on_cluster(_CLUSTER.value, left, workdir, finished)
        return
    started = time.monotonic()
    if _MINUTES.value is not None:
        signal.signal(signal.SIGALRM, _stop)
        # Again every second: one that arrives in a finaliser is lost.
        signal.setitimer(signal.ITIMER_REAL, max(1e-3, 60.0 * _MINUTES.value), 1.0)
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
        # Raised inside a callback of JAX it arrives as another one.
        if _MINUTES.value is None or time.monotonic() - started < 60.0 * _MINUTES.value:
            raise
        minutes = (time.monotonic() - started) / 60
        print(f"the time is up after {minutes:.1f} minutes; run the same command to continue")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _train_on_cluster(
    address: str,
    left: Sequence[tuple[Run, int, float, list[Cell]]],
    workdir: Path,
    finished: dict[Run, dict[str, Any]],
) -> Iterator[dict[Run, dict[str, Any]]]:
    """Trains each run on a worker; after each, all that is finished."""
    folder = workdir.absolute()
    jobs = [Job(run.label, runs.train, (run, seeds, folder)) for run, seeds, _, _ in left]
    seconds = None if _MINUTES.value is None else 60.0 * _MINUTES.value
    with connected(address) as cluster:
        try:
            for place, result in gathered(cluster, jobs, seconds):
                finished[left[place][0]] = result
                yield finished
        except TimeoutError:
            print(
                f"the time is up after {_MINUTES.value:g} minutes; run the same command to continue"
            )


def _stop(*_: object) -> None:
    raise TimeIsUp


if __name__ == "__main__":
    cli.run(main)
