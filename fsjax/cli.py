"""The command ``fsjax``; ``fsjax select table.csv --target=NAME`` needs no clone of the project."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from fsjax.errors import ConfigError, FsjaxError, nearest
from fsjax.version import __version__

#: Exit codes: of mistakes, and after Ctrl-C.
MISTAKE, STOPPED = 2, 130


class _Parser(argparse.ArgumentParser):
    """One line for a mistake, with the nearest name, in place of the whole usage."""

    def error(self, message: str) -> NoReturn:
        print(f"error: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(MISTAKE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser, flags = _parser()
    options, unknown = parser.parse_known_args(given)
    if unknown:
        return _mistake(f"{unknown[0]!r}: {nearest(unknown[0].partition('=')[0], flags)}")
    try:
        with _terminated_as_interrupted():
            if options.command == "convert":
                return _convert(options)
            return _select(options, shlex.join(["fsjax", *given]))
    except FsjaxError as error:
        return _mistake(str(error))
    except OSError as error:
        return _mistake(f"{error.filename}: {error.strerror}")
    except KeyboardInterrupt:
        told = "stopped before there was anything to tell; the same command goes on"
        print(f"\r{told}", file=sys.stderr)
        return STOPPED


def _mistake(text: str) -> int:
    print(f"\rerror: {text}", file=sys.stderr)
    return MISTAKE


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """A scheduler's SIGTERM ends as Ctrl-C does, with a report; handlers belong to main threads."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _select(options: argparse.Namespace, command: str) -> int:
    # Heavy, and not needed for --help or a mistyped flag.
    import pandas as pd

    from fsjax.auto import select
    from fsjax.data.tables import load_frame

    workdir = Path(options.workdir or f"{Path(options.table).stem}-selection")
    if workdir.exists() and not workdir.is_dir():
        raise ConfigError(f"--workdir={workdir} is a file; name a folder for the report")
    frame, target = load_frame(options.table, options.target)
    row_groups = None
    if options.groups is not None:
        if options.groups not in frame:
            raise ConfigError(f"--groups={options.groups}: {nearest(options.groups, frame)}")
        row_groups = pd.factorize(frame.pop(options.groups))[0]
    if options.order is not None:
        if options.order not in frame:
            raise ConfigError(f"--order={options.order}: {nearest(options.order, frame)}")
        order = frame[options.order].argsort(kind="stable").to_numpy()
        frame, target = frame.drop(columns=options.order).iloc[order], target[order]
    for name in filter(None, (options.drop or "").split(",")):
        if name not in frame:
            raise ConfigError(f"--drop={name}: {nearest(name, frame)}")
        frame = frame.drop(columns=name)
    found = select(
        frame,
        target,
        task=options.task,
        metric=options.metric,
        budget=options.budget,
        fdr=options.fdr,
        impute=options.impute,
        methods=options.methods,
        row_groups=row_groups,
        ordered=options.order is not None,
        seed=options.seed,
        workdir=workdir,
        progress=not options.quiet,
    )
    path = found.save(workdir, command)
    print(found)
    print(f"\nreport: {path}, columns: {workdir / 'columns.csv'}; {found.seconds:.0f} s")
    return STOPPED if found.stopped else 0


def _convert(options: argparse.Namespace) -> int:
    from fsjax.data.conversion import convert

    made = convert(options.source, options.folder, options.target, progress=not options.quiet)
    print(f"{made} is ready; give it as the name of the data, as in data.name={made}")
    return 0


def _parser() -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser, and the flags of its commands."""
    parser = _Parser(prog="fsjax", description="Neural feature selection and sparse training.")
    parser.add_argument("--version", action="version", version=f"fsjax {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    one = commands.add_parser(
        "select",
        help="which columns of a table to keep, how many, and how sure",
        description="Says which columns of a table predict its target, how many are enough, by "
        "which method, and how sure that is. Leaves report.html, columns.csv and selection.json. "
        "Ctrl-C leaves a report of what is done; the same command goes on.",
    )
    flags = ["--help"]

    def add(*names: str, **settings: Any) -> None:
        flags.extend(one.add_argument(*names, **settings).option_strings)

    add("table", metavar="TABLE", help="a .csv, .tsv, .parquet, .npz, .mat or .libsvm file")
    add("--target", metavar="NAME", help="the column to predict (the array y), or A,B: numbers")
    add("--workdir", metavar="DIR", help="folder of the report (TABLE-selection)")
    add("--budget", default="5min", metavar="TIME", help="such as 90s, 5min, 1h")
    add("--task", metavar="TASK", help="classification, regression, multilabel, counts or survival")
    add("--metric", metavar="NAME", help="of classes: accuracy or auc")
    add(
        "--fdr",
        type=float,
        metavar="SHARE",
        help="select all columns whose estimated share of false ones stays below this, such as 0.1",
    )
    add("--impute", metavar="RULE", help="fill missing numbers: median or mean")
    add("--methods", metavar="A,B", help="contenders, such as l1,forest,stg")
    add("--groups", metavar="NAME", help="column of rows that belong together")
    add("--order", metavar="NAME", help="column of the time: earlier rows teach")
    add("--drop", metavar="A,B", help="columns that may not be selected")
    add("--seed", type=int, default=0, metavar="N", help="of all draws (0)")
    add("--quiet", action="store_true", help="no progress line")
    one = commands.add_parser(
        "convert",
        help="make a table larger than the memory one that is read from disk, once",
        description="Converts a table into a folder that is read row by row and never held, for "
        "the launchers (data.name=FOLDER) and fsjax.data.load.",
    )
    one.add_argument(
        "source",
        metavar="TABLE",
        help="a .csv, .tsv, .parquet or .libsvm file, or a folder of Parquet files",
    )
    one.add_argument("folder", metavar="FOLDER", nargs="?", help="what to make (TABLE.fsjax)")
    add("--target", metavar="NAME", help="the column to predict")
    add("--quiet", action="store_true", help="no progress bar")
    return parser, flags


if __name__ == "__main__":
    sys.exit(main())
