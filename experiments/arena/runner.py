"""Runs what a file of rows lacks, in the order in which most is known soonest."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.arena import rows as files
from experiments.arena import tables
from experiments.arena.processes import Limits
from experiments.arena.runs import Job, of_job, run
from experiments.arena.submission import checksum
from experiments.cluster import Cell, Cluster, connected, gathered
from fsjax.errors import DataError

#: A table and a split of its rows.
Pair = tuple[str, int]

#: Failures that a larger table would repeat.
_TOO_MUCH = ("time", "memory")


def missing(
    known: pd.DataFrame, pairs: Sequence[Pair], selectors: Sequence[str]
) -> Iterator[list[Job]]:
    """Yields the jobs that rows lack, those of a table and a split together."""
    done = set(known[files.KEY].itertuples(index=False, name=None))
    for table, split in pairs:
        jobs = [Job(table, selector, split) for selector in selectors]
        if jobs := [job for job in jobs if job not in done]:
            yield jobs


def valid(rows: pd.DataFrame, selectors: Sequence[str], limits: Limits) -> pd.DataFrame:
    """Leaves out rows of selectors whose file has changed, and failures at smaller limits.

    Rows without a limit are recorded ones, and stay.
    """
    sources = rows["selector"].map({name: checksum(name) for name in selectors if ":" in name})
    changed = sources.notna() & (rows["source"] != sources)
    larger = rows["limit"] < rows["failure"].map(limits.of)
    return rows[~(changed | (larger & rows["selector"].isin(selectors)))]


def stopped_before(
    job: Job, known: pd.DataFrame, shapes: dict[str, tuple[int, int]]
) -> dict[str, Any]:
    """The failure on a table on which a selector was stopped, if it is no larger; else empty."""
    ended = known[(known["selector"] == job.selector) & known["failure"].isin(_TOO_MUCH)]
    rows, columns = shapes[job.table]
    for name, failure, limit in zip(ended["table"], ended["failure"], ended["limit"], strict=True):
        if name in shapes and shapes[name][0] <= rows and shapes[name][1] <= columns:
            reason = f"was stopped on {name}, which is no larger"
            return {"failure": failure, "reason": reason, "limit": limit}
    return {}


def run_missing(
    path: Path,
    recorded: pd.DataFrame,
    pairs: Sequence[Pair],
    selectors: Sequence[str],
    minutes: float,
    limits: Limits,
    cluster: str | None = None,
) -> tuple[pd.DataFrame, str]:
    """Runs the jobs that are neither recorded nor in a file, until the minutes are used up.

    Args:
      path: of the file of rows, which is written after each row.
      recorded: rows that need not be run.
      pairs: tables and splits, in this order; a table that cannot be read is reported and left out.
      selectors: names, or ``FILE.py:NAME``.
      minutes: of wall time, after which no job is started.
      limits: of each selector.
      cluster: a value of ``--cluster``, or ``None`` to run one job after another.

    Returns:
      Recorded and new rows, and a sentence if there was no time for all.
    """
    new, end = valid(files.read(path), selectors, limits), time.monotonic() + 60 * minutes
    known = files.add(recorded, new.to_dict("records"))
    shapes: dict[str, tuple[int, int]] = {}
    unreadable: set[str] = set()
    with ExitStack() as stack:
        workers = stack.enter_context(connected(cluster)) if cluster else None
        for jobs in missing(known, pairs, selectors):
            try:
                shapes[jobs[0].table] = tables.read(jobs[0].table).X.shape
            except (DataError, OSError) as error:
                print(f"{jobs[0].table} is left out: {error}", flush=True)
                unreadable.add(jobs[0].table)
                continue
            for row in _rows(jobs, known, shapes, limits, end, workers):
                new, known = files.add(new, [row]), files.add(known, [row])
                files.write(new, path)
                print(describe(row), flush=True)
            if time.monotonic() > end:
                break
    pairs = [pair for pair in pairs if pair[0] not in unreadable]
    left, total = sum(map(len, missing(known, pairs, selectors))), len(pairs) * len(selectors)
    note = f"time is up: {left} of {total} selections are left; the same command continues"
    return known, note if left else ""


def _rows(
    jobs: Sequence[Job],
    known: pd.DataFrame,
    shapes: dict[str, tuple[int, int]],
    limits: Limits,
    end: float,
    workers: Cluster | None,
) -> Iterator[dict[str, Any]]:
    """Yields the rows of jobs, as they end."""
    todo = []
    for job in jobs:
        if earlier := stopped_before(job, known, shapes):
            yield of_job(job) | earlier
        else:
            todo.append(job)
    if workers is None:
        for job in todo:
            if time.monotonic() > end:
                return
            yield run(job, limits)
        return
    cells = [Cell(f"{job.table} {job.selector}", functools.partial(run, job, limits), ())
             for job in todo]  # fmt: skip
    for _, row in gathered(workers, cells):
        yield row


def describe(row: dict[str, Any]) -> str:
    """A line about a row."""
    head = f"{row['table']}, {row['selector']}, split {row['split']}"
    if row["failure"]:
        return f"{head}: {row['failure']}: {row['reason']}"
    scores = [row[name] for name in files.SCORES if name in row]
    score = f"mean score {sum(scores) / len(scores):.1f}" if scores else "judged"
    return f"{head}: {score}, {row.get('cpu_seconds', 0):g} CPU s"
