"""Compares ``fsjax select`` with other selectors on held-out rows.

    python -m experiments.studies.selection.held_out --tables=DIR --workdir=DIR --budgets=60,120

30 % of the rows of each table are held out. ``select`` gets a file with the other rows; the other
selectors choose the same number of columns from the same rows. Three models judge the columns on
the held-out rows. ``--steps`` chooses what to do: ``select`` (one call at a time; the machine
should be idle), ``rank`` (the other selectors, once for each split), ``judge``, and ``write`` (the
tables of the documentation, into ``--publish``). Each step resumes from its file in the workdir.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from absl import flags
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from experiments.launch import cli
from experiments.launch.csv_rows import add_rows, read_rows
from experiments.studies.selection import held_out_pages
from experiments.studies.selection.asking import Question, answer_all
from experiments.studies.selection.baselines import SELECTORS
from experiments.studies.selection.encoding import Encoded, encode
from experiments.studies.selection.judges import judge, judge_by_three
from experiments.studies.selection.tables import (
    CATALOGUE,
    Table,
    flags_of,
    load_all,
    split,
    take,
    write,
)
from fsjax.errors import check_names

#: The steps, in order.
STEPS = ("select", "rank", "judge", "write")

ANSWERS, SCORES = "answers.csv", "scores.csv"


def questions(
    tables: Sequence[Table], budgets: Sequence[float], seeds: Sequence[int], extra: Sequence[str]
) -> Iterator[Question]:
    """Yields the calls: all tables at one budget before the next budget."""
    for budget in budgets:
        for seed in seeds:
            for table in tables:

                def write_part(folder: Path, table: Table = table, seed: int = seed):
                    train, _ = split(table, seed)
                    part = take(table, train)
                    path = write(part, folder)
                    return path, flags_of(part, path)

                key = {"table": table.name, "budget": budget, "seed": seed}
                yield Question(key, write_part, budget, (f"--seed={seed}", *extra))


def ranking_path(workdir: Path, table: str, seed: int, selector: str) -> Path:
    """The file of a selector's order of a table's columns."""
    return workdir / "rankings" / f"{table}-{seed}-{selector.replace(' ', '_')}.json"


def rank_step(tables: Sequence[Table], seeds: Sequence[int], workdir: Path, jobs: int) -> None:
    """Orders the columns of all tables by all other selectors, several tables in parallel."""
    (workdir / "rankings").mkdir(parents=True, exist_ok=True)
    Parallel(n_jobs=jobs)(
        delayed(_rank)(table, seed, workdir) for table in tables for seed in seeds
    )


def _rank(table: Table, seed: int, workdir: Path) -> None:
    paths = {name: ranking_path(workdir, table.name, seed, name) for name in SELECTORS}
    if all(path.exists() for path in paths.values()):
        return
    data = encode(table, *split(table, seed))
    for name, path in paths.items():
        if path.exists():
            continue
        started = time.process_time()
        with threadpool_limits(1):
            order = SELECTORS[name](data, seed).tolist()
        seconds = round(time.process_time() - started, 1)
        path.write_text(json.dumps({"cpu_seconds": seconds, "order": order}))
        print(f"{table.name}, seed {seed}: {name} in {seconds} CPU seconds", flush=True)


def judge_step(tables: Sequence[Table], workdir: Path, jobs: int) -> None:
    """Computes the scores of all selections that ``scores.csv`` lacks, table by table."""
    answers, scores = read_rows(workdir / ANSWERS), read_rows(workdir / SCORES)
    key = ["table", "seed", "selector", "k", "budget"]
    done = set() if scores.empty else set(scores[key].itertuples(index=False, name=None))
    known = {table.name: table for table in tables}
    for (name, seed), part in answers.groupby(["table", "seed"], sort=False):
        if name not in known:
            continue
        data = encode(known[name], *split(known[name], seed))
        jobs_of_table = [
            (selector, columns, row)
            for row in part.to_dict("records")
            for selector, columns in _selections(known[name], data, row, workdir)
        ]
        missing = {}
        for selector, columns, row in jobs_of_table:
            # The other selectors do not depend on the budget.
            budget = row["budget"] if selector == "select" else 0
            place = (name, seed, selector, len(columns), budget)
            if place not in done:
                missing[place] = (columns, row if selector == "select" else None)
        results = Parallel(n_jobs=jobs)(
            delayed(_judge)(data, columns, row) for columns, row in missing.values()
        )
        rows = [
            {**dict(zip(key, place, strict=True)), **result}
            for place, result in zip(missing, results, strict=True)
        ]
        scores = add_rows(scores, rows, workdir / SCORES) if rows else scores


def _selections(
    table: Table, data: Encoded, answer: dict, workdir: Path
) -> Iterator[tuple[str, np.ndarray]]:
    """The columns of ``select``, and as many of each other selector."""
    if answer["verdict"] == "no answer":
        return
    folder = "-".join(str(answer[name]) for name in ("table", "budget", "seed"))
    selection = json.loads((workdir / "answers" / folder / "selection.json").read_text())
    names = {name: index for index, name in enumerate(table.columns)}
    columns = np.array([names[name] for name in selection["columns"]], int)
    if selection["method"] == "all":
        # Without a selection there is nothing to compare.
        yield "select", np.arange(data.num_columns)
        return
    yield "select", columns
    k = len(columns) or min(held_out_pages.NOTHING_K, data.num_columns)
    for selector in SELECTORS:
        path = ranking_path(workdir, table.name, answer["seed"], selector)
        if path.exists():
            yield selector, np.array(json.loads(path.read_text())["order"][:k], int)


def _judge(data: Encoded, columns: np.ndarray, answer: dict | None) -> dict[str, float]:
    with threadpool_limits(1):
        scores = judge_by_three(data, columns)
        by_its_judge = np.nan
        if answer is not None and answer["metric"] in ("accuracy", "auc", "r2"):
            by_its_judge = judge(data, columns, answer["judge"], answer["metric"])
    mean = float(np.mean(list(scores.values())))
    numbers = {**scores, "mean": mean, "own_judge": by_its_judge}
    return {name: round(value, 2) for name, value in numbers.items()}


def main() -> None:
    """Entry point."""
    settings = flags.FLAGS
    check_names("unknown step", settings.steps, STEPS)
    workdir = Path(settings.workdir)
    workdir.mkdir(parents=True, exist_ok=True)
    tables = load_all(settings.names, settings.tables)
    seeds = [int(seed) for seed in settings.seeds]
    budgets = [int(budget) for budget in settings.budgets]
    if "select" in settings.steps:
        asked = questions(tables, budgets, seeds, settings.select_flags)
        answer_all(asked, workdir / ANSWERS)
    if "rank" in settings.steps:
        rank_step(tables, seeds, workdir, settings.jobs)
    if "judge" in settings.steps:
        judge_step(tables, workdir, settings.jobs)
    if "write" in settings.steps:
        answers, scores = read_rows(workdir / ANSWERS), read_rows(workdir / SCORES)
        sizes = pd.DataFrame(
            [
                {"table": table.name, "rows": table.X.shape[0], "columns": table.X.shape[1]}
                for table in tables
            ]
        )
        folder = Path(settings.publish or workdir)
        for budget in budgets:
            held_out_pages.publish(answers, scores, sizes, budget, folder)


def define_flags() -> None:
    """Defines the flags of this launcher."""
    flags.DEFINE_string("tables", None, "Folder with the tables, NAME.csv or NAME.npz.")
    flags.DEFINE_string("workdir", None, "Folder for answers, rankings and scores.")
    flags.DEFINE_string("publish", None, "Folder for the Markdown tables; the workdir by default.")
    flags.DEFINE_list("names", list(CATALOGUE), "Names of tables; they may be spare ones.")
    flags.DEFINE_list("budgets", ["60"], "Seconds (--budget) of fsjax select.")
    flags.DEFINE_list("seeds", ["0"], "Seeds of the splits, and of fsjax select.")
    flags.DEFINE_list("steps", list(STEPS), "Steps to do.")
    flags.DEFINE_list("select_flags", [], "Further flags of fsjax select.")
    flags.DEFINE_integer("jobs", 2, "Processes for the steps rank and judge.", lower_bound=1)


if __name__ == "__main__":
    cli.run(main, define_flags, workdir="runs/selection_study")
