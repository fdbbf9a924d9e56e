"""The launcher of the arena."""

from __future__ import annotations

from pathlib import Path

from absl import flags

from experiments import cluster
from experiments.arena import page, rows, runs
from experiments.arena.processes import DEFAULT, Limits, call
from experiments.arena.runner import run_missing
from experiments.arena.selectors import SELECTORS
from experiments.arena.tables import SUITES, TABLES
from experiments.launch import cli
from fsjax.errors import ConfigError, check_names

#: The repository, and the recorded rows in it.
ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "reproduction" / "arena.parquet"


def define_flags() -> None:
    """Defines the flags of this launcher."""
    cluster.define_flag()
    flags.DEFINE_string(
        "workdir", "runs/arena", "Folder of rows.parquet; its rows are not run again."
    )
    flags.DEFINE_string("selector", None, "A new selector, FILE.py:NAME, to rate among the others.")
    flags.DEFINE_enum("suite", "all", list(SUITES), "Which tables.")
    flags.DEFINE_multi_string("tables", [], "Names of tables, instead of a suite.")
    flags.DEFINE_multi_string("selectors", [], "Names of selectors; by default all.")
    flags.DEFINE_integer("splits", len(runs.SPLITS), "Outer splits of each table, at most.", 1, 3)
    flags.DEFINE_float("minutes", 60.0, "Minutes after which no selection is started.", 0.0)
    flags.DEFINE_float("limit", DEFAULT.cpu_seconds, "Most CPU seconds of a selection.", 0.0)
    flags.DEFINE_float("memory", DEFAULT.memory, "Most MiB of a selection.", 0.0)
    flags.DEFINE_bool("anew", False, "Run what is recorded, too.")
    flags.DEFINE_bool("publish", False, "Write the recorded rows and the documentation.")


def main() -> None:
    """Entry point."""
    options = flags.FLAGS
    names = options.tables or list(SUITES[options.suite])
    check_names("unknown table", names, TABLES)
    selectors = options.selectors or [runs.ALL, *SELECTORS]
    check_names("unknown selector", selectors, [runs.ALL, *SELECTORS])
    if options.selector:
        _check(options.selector)
        selectors = [options.selector]
    if options.selector and options.publish:
        raise ConfigError("--publish writes the recorded selectors; leave --selector out")
    limits = Limits(options.limit, options.memory)
    path, recorded = Path(options.workdir) / "rows.parquet", rows.read(RECORDED)
    not_run_again = recorded.iloc[:0] if options.anew else recorded
    # The first split of all tables comes first.
    pairs = [(name, split) for split in runs.SPLITS[: options.splits] for name in names]
    if options.selector:
        with_rivals = rows.pairs_with_rivals(rows.add(recorded, rows.read(path).to_dict("records")))
        pairs = [pair for pair in pairs if pair in with_rivals]
    all_rows, note = run_missing(
        path, not_run_again, pairs, selectors, options.minutes, limits, options.cluster
    )
    all_rows = rows.add(recorded, rows.rivals(all_rows, options.selector).to_dict("records"))
    if options.publish:
        rows.write(all_rows, RECORDED)
        page.publish(all_rows, ROOT)
    rows_of_tables = all_rows[all_rows["table"].isin(names)]
    print("\n\n".join(filter(None, [page.report(rows_of_tables, options.selector or ""), note])))


def _check(selector: str) -> None:
    """Loads a new selector in a process of its own; ConfigError if that fails."""
    outcome = call(runs.check_submission, (selector,), Limits(600.0, 64_000.0))
    if outcome.failure or outcome.value:
        raise ConfigError(outcome.value or f"--selector={selector}: {outcome.reason}")


def start() -> None:
    """Runs the launcher."""
    cli.run(main, define_flags)
