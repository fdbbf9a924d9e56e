"""The launcher that reproduces the papers' tables: plans, trains and collects runs."""

from __future__ import annotations

import contextlib
import signal
import sys
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
from experiments.papers import claims, page, reference, results, runs, verdicts, verify
from experiments.papers.cells import PAPERS, Cell, Run, cells_of, chosen
from fsjax.data import load
from fsjax.engine.compilation import cache_by_default
from fsjax.errors import ConfigError, DataError, FsjaxError
from fsjax.storage.atomic_files import write_text
from fsjax.tables.datasets.catalog import ENTRIES

#: The files with the cells of reference code, the reasons, the claims of BinMask, and fresh runs.
REFERENCE, REASONS, CLAIMS, VERIFICATION = (
    Path("reproduction", name)
    for name in ("reference.csv", "reasons.toml", "claims.csv", "verification.csv")
)


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


def with_fewer_seeds(cells: Sequence[Cell], table: pd.DataFrame, seeds: int) -> list[Cell]:
    """The cells that the table of ``results.csv`` has with fewer than ``seeds`` seeds."""
    known = results.by_key(table)
    return [cell for cell in cells if cell.key in known and known[cell.key]["seeds"] < seeds]


def planned(
    cells: Sequence[Cell], table: pd.DataFrame, seeds: int
) -> list[tuple[Run, float, list[Cell]]]:
    """Runs with their CPU seconds and cells; those with the least time per cell first.

    Args:
      cells: the cells that the runs shall give.
      table: the table of ``results.csv``, which has the cost of some runs.
      seeds: number of seeds of a run.
    """
    by_run, uses = runs.runs_of(cells), runs.cells_with(cells)
    seconds = runs.expected(by_run, seeds, results.known_costs(cells, table))
    plan = [(run, seconds[run], run_cells) for run, run_cells in by_run.items()]
    return sorted(plan, key=lambda item: item[1] / uses[item[0]])


def plan_table(todo: Sequence[tuple[Run, float, list[Cell]]], workdir: Path) -> str:
    """The text that ``--plan`` prints."""
    lines = [
        {
            "run": run.label,
            "cells": len(run_cells),
            "minutes": f"{seconds / 60:.1f}",
            "state": "done" if runs.read_done(run, FLAGS.seeds, workdir) else "",
        }
        for run, seconds, run_cells in todo
    ]
    text = pd.DataFrame(lines).to_string(index=False) if lines else "nothing to run"
    remaining = [item for item, line in zip(todo, lines, strict=True) if not line["state"]]
    return (
        f"{text}\n\n{len(todo)} runs give {sum(len(item[2]) for item in todo)} cells; "
        f"{len(remaining)} runs are left, about {sum(item[1] for item in remaining) / 60:.0f} "
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
    reasons = results.read_reasons(REASONS)
    packages = reference.read_reference(REFERENCE)
    if FLAGS.only_missing:
        known = results.by_key(table)
        cells = [cell for cell in cells if cell.key not in known]
    if FLAGS.only_fewer:
        cells = with_fewer_seeds(cells, table, FLAGS.seeds)
    present, missing = available(list(dict.fromkeys(cell.row.dataset for cell in cells)))
    loaded = [cell for cell in cells if cell.row.dataset in present]
    todo = planned(loaded, table, FLAGS.seeds)
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
    if FLAGS.verify:
        _verify(loaded, table, workdir)
        return
    planned_cells = [cell for _, _, run_cells in todo for cell in run_cells]
    keys, failure = {cell.key for cell in planned_cells}, None
    try:
        for finished in _train(todo, workdir):
            new_rows = results.collect(planned_cells, finished)
            table = results.merged(table, new_rows, everything)
            judged = verdicts.verdicts_of(everything, table, packages, reasons)
            table = verdicts.with_verdicts(table, judged)
            results.write_results(table, path)
            print(f"  {len(keys & set(results.by_key(table)))} of {len(keys)} cells", flush=True)
    except CellsFailedError as error:
        failure = error
    loadable = [name for name in ENTRIES if name in present or available([name])[0]]
    judged = verdicts.verdicts_of(everything, table, packages, reasons)
    summary = verdicts.coverage(everything, judged, loadable)
    stated = claims.read_claims(CLAIMS)
    if FLAGS.claims_of:
        stated = claims.merged(stated, claims.collect(Path(FLAGS.claims_of)))
        results.write_results(stated, CLAIMS)
    if FLAGS.page:
        further = claims.page_of(stated)
        write_text(Path(FLAGS.page), page.make_page(everything, judged, further))
    print(summary.to_string(index=False))
    if failure is not None:
        raise failure


def _verify(cells: Sequence[Cell], table: pd.DataFrame, workdir: Path) -> None:
    """Runs drawn cells again and adds them to ``--verification``."""
    path = Path(FLAGS.verification)
    done = results.read_cells(path, verify.COLUMNS, verify.TEXT)
    cells = verify.drawn(cells, table, FLAGS.verify, FLAGS.draw)
    with time_limit(FLAGS.minutes):
        for row in verify.verified(cells, table, done, workdir / "verify", FLAGS.draw):
            done = pd.DataFrame([*done.to_dict("records"), row], columns=verify.COLUMNS)
            results.write_results(done, path)
            print(f"{', '.join(row[name] for name in results.KEY)}: {row['verdict']}", flush=True)


def _train(
    todo: Sequence[tuple[Run, float, list[Cell]]], workdir: Path
) -> Iterator[dict[Run, dict[str, Any]]]:
    """Trains the missing runs until the time is up; yields all finished runs after each one."""
    done = {item[0]: runs.read_done(item[0], FLAGS.seeds, workdir) for item in todo}
    finished = {run: result for run, result in done.items() if result is not None}
    remaining = [item for item in todo if item[0] not in finished]
    print(f"{len(finished)} of {len(todo)} runs are done")
    yield finished
    if FLAGS.minutes == 0 or not remaining:
        return
    if FLAGS.cluster is not None:
        yield from _train_on_cluster(FLAGS.cluster, remaining, workdir, finished)
        return
    with time_limit(FLAGS.minutes):
        for number, (run, seconds, _) in enumerate(remaining, start=1):
            print(f"[{number}/{len(remaining)}] {run.label}, about {seconds:.0f} s")
            try:
                finished[run] = runs.train(run, FLAGS.seeds, workdir)
            except FsjaxError as error:
                print(f"  failed: {error}")
                continue
            print(f"  {finished[run]['cpu_seconds']} s of CPU", flush=True)
            yield finished


@contextlib.contextmanager
def time_limit(minutes: float | None) -> Iterator[None]:
    """Ends the training inside after some minutes; ``None`` for no limit."""
    started = time.monotonic()
    if minutes is not None:
        signal.signal(signal.SIGALRM, _stop)
        # Repeated every second, because an exception that is raised in a finaliser is lost
        # (silently: the next one follows).
        signal.setitimer(signal.ITIMER_REAL, max(1e-3, 60.0 * minutes), 1.0)
    report = sys.unraisablehook
    sys.unraisablehook = lambda lost: None if lost.exc_type is TimeIsUp else report(lost)
    try:
        yield
    except Exception:
        # JAX replaces an exception that is raised in one of its callbacks by another type.
        if minutes is None or time.monotonic() - started < 60.0 * minutes:
            raise
        spent = (time.monotonic() - started) / 60
        print(f"stopped after {spent:.1f} minutes; the same command continues")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        sys.unraisablehook = report


def _train_on_cluster(
    address: str,
    remaining: Sequence[tuple[Run, float, list[Cell]]],
    workdir: Path,
    finished: dict[Run, dict[str, Any]],
) -> Iterator[dict[Run, dict[str, Any]]]:
    """Trains each run on a worker; yields all finished runs after each one."""
    folder = workdir.absolute()
    jobs = [Job(run.label, runs.train, (run, FLAGS.seeds, folder)) for run, _, _ in remaining]
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
    flags.DEFINE_bool(
        "only_fewer", False, "Trains only for cells that --results has with fewer than --seeds."
    )
    flags.DEFINE_integer("seeds", 3, "Number of seeds of a run.", 1)
    flags.DEFINE_float(
        "minutes", None, "Stops training after this many minutes; 0 trains nothing.", 0.0
    )
    define_flag()
    flags.DEFINE_string("workdir", None, "Folder for the runs.")
    flags.DEFINE_integer(
        "verify", 0, "Runs this many recorded cells, drawn at random, again with other seeds.", 0
    )
    flags.DEFINE_integer("draw", 0, "Seed of the draw of --verify.")
    flags.DEFINE_string("verification", str(VERIFICATION), "CSV file of the outcomes of --verify.")
    flags.DEFINE_bool("plan", False, "Prints the runs, cells and minutes, and trains nothing.")
    flags.DEFINE_string(
        "results", "reproduction/results.csv", "CSV file of the cells that were run."
    )
    flags.DEFINE_string(
        "claims_of", "", "Folder with runs of feature_selection to collect into claims.csv."
    )
    flags.DEFINE_string(
        "page", "docs/reproduction.md", "Page with the tables, to be written; empty for none."
    )


def start() -> None:
    """Entry point."""
    cli.run(main, define_flags)
