"""The command ``fsjax``; ``fsjax select table.csv --target=NAME`` needs no clone of the project.

Nothing slow is imported until the arguments are parsed, so that ``--help`` and mistakes are fast.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from fsjax import __version__
from fsjax.engine.environment.garbage_collection import interrupt, skip_at_exit
from fsjax.engine.environment.process_age import seconds_since_process_start
from fsjax.engine.environment.terminal import describe, end_with_reader
from fsjax.errors import ConfigError, DataError, FsjaxError, nearest, printable
from fsjax.extras import require

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from fsjax.auto.reading.notes import Note

#: Exit codes: of mistakes, and after Ctrl-C.
MISTAKE, STOPPED = 2, 130

#: Shells for which ``fsjax completion`` writes a script.
SHELLS = ("bash", "zsh")

#: An example of ``fsjax select``, and the flags that are shown with it.
_EXAMPLE = "fsjax select patients.csv --target=outcome --budget=5min"
_MAIN_FLAGS = ("--target", "--budget", "--drop", "--groups", "--order", "--workdir")

#: Flags that take columns out of the table, in the order in which they do.
_TAKE_OUT = ("target", "groups", "weights", "order", "drop")

#: Arguments that are paths, by their name in ``--help``, and what shtab completes them with.
_PATHS = ("TABLE", "FILE", "FOLDER", "DIR")
_COMPLETIONS = {"bash": "_shtab_compgen_files", "zsh": "_files"}

#: The flags of each command.
_Flags = dict[str, dict[str, argparse.Action]]


class _Command(NamedTuple):
    """A command.

    Attributes:
      summary: in the list of commands.
      description: in its own ``--help``.
      arguments: those of ``add_argument``, by the argument's name.
    """

    summary: str
    description: str
    arguments: dict[str, dict[str, Any]]


def _argument(metavar: str, help: str, **settings: Any) -> dict[str, Any]:
    return {"metavar": metavar, "help": help, **settings}


_SELECT = _Command(
    "which columns of a table to keep, how many, and how sure",
    "Says which columns of a table predict its target, how many are enough, by which method, "
    "and how sure that is. Leaves report.html, columns.csv and selection.json in a folder. "
    "Ctrl-C leaves a report of what is done; run the same command to continue.",
    {
        "table": _argument("TABLE", "a .csv, .tsv, .xlsx, .parquet, .npz, .mat or .libsvm file"),
        "--target": _argument(
            "NAME", "column to predict, or several as A,B (default: the array y)"
        ),
        "--separator": _argument("MARK", "between cells: , ; tab or space (default: detected)"),
        "--decimal": _argument("MARK", "decimal mark of numbers: . or , (default: detected)"),
        "--skip-rows": _argument(
            "N",
            "lines above the column names that are not part of the table (default: %(default)s)",
            type=int,
            default=0,
        ),
        "--workdir": _argument("DIR", "folder of the report (default: TABLE-selection)"),
        "--budget": _argument(
            "TIME", "time to use, for example 90s, 5min, 1h (default: %(default)s)", default="5min"
        ),
        "--task": _argument(
            "TASK",
            "classification, regression, multilabel, counts or survival "
            "(default: one of the first three, from the target)",
        ),
        "--metric": _argument(
            "NAME", "score to compare by, for example accuracy or auc (default: by the task)"
        ),
        "--judge": _argument(
            "MODEL",
            "model that predicts from the columns: linear, rbf or trees "
            "(default: whichever predicts best)",
        ),
        "--fdr": _argument(
            "SHARE",
            "select all columns whose estimated share of false ones stays below this, "
            "for example 0.1 (default: the fewest columns that predict as well as the best)",
            type=float,
        ),
        "--impute": _argument(
            "RULE",
            "replaces missing numbers, of the training rows: median or mean, or none for "
            "an error (default: %(default)s)",
            default="median",
        ),
        "--methods": _argument(
            "A,B", "contenders, for example l1,forest,stg (default: by the shape of the table)"
        ),
        "--groups": _argument("NAME", "column that tells which rows belong together (patient)"),
        "--weights": _argument("NAME", "column of weights: rows count in proportion to them"),
        "--order": _argument("NAME", "column of times: models train on earlier rows"),
        "--drop": _argument("A,B", "columns that may not be selected"),
        "--keep": _argument("A,B", "columns that are selected in any case"),
        "--costs": _argument("FILE", "a .csv file with the columns column and cost"),
        "--seed": _argument("N", "of all draws (default: %(default)s)", type=int, default=0),
        "--quiet": {"action": "store_true", "help": "no progress line"},
    },
)

_CONVERT = _Command(
    "make a table larger than the memory one that is read from disk, once",
    "Converts a table into a folder that is read row by row and never held, for the launchers "
    "(data.name=FOLDER) and fsjax.data.load.",
    {
        "source": _argument("TABLE", "a .csv, .tsv or .parquet file, or a folder of Parquet files"),
        "folder": _argument("FOLDER", "folder to write (default: TABLE.fsjax)", nargs="?"),
        "--target": _argument("NAME", "the column to predict"),
        "--quiet": {"action": "store_true", "help": "no progress bar"},
    },
)

_COMPLETION = _Command(
    "print a script that completes commands, flags and paths in a shell",
    "Prints the completion script of a shell. Needs pip install 'fsjax[completion]'.",
    {"shell": {"choices": SHELLS}},
)

_COMMANDS = {"select": _SELECT, "convert": _CONVERT, "completion": _COMPLETION}


class _Parser(argparse.ArgumentParser):
    """One line for a mistake, with the nearest name, in place of the whole usage."""

    def error(self, message: str) -> NoReturn:
        sys.exit(_mistake(f"{message}; see {self.prog} --help"))


class _Version(argparse.Action):
    """Prints the versions of fsjax, JAX and Python, and exits; JAX is not imported."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        import platform
        from importlib import metadata

        versions = f"JAX {metadata.version('jax')}, Python {platform.python_version()}"
        print(f"fsjax {__version__} ({versions})")
        sys.exit(0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line; returns the exit code.

    Raises:
      SystemExit: for mistakes in flags, after ``--help``, and where nobody reads the output.
    """
    os.environ["MPLBACKEND"] = "agg"  # Pictures are files, whatever a notebook's shell asks for.
    with end_with_reader():
        code = _run(arguments)
        if arguments is None:
            skip_at_exit()
        return code


def _run(arguments: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser, flags = _parser()
    if words in ([], ["select"]) and sys.stderr.isatty():
        print(_guide(flags["select"]) if words else parser.format_help(), file=sys.stderr)
        return MISTAKE
    options, unknown = parser.parse_known_args(words)
    if unknown:
        known = ("--help", *flags[options.command])
        return _mistake(f"{unknown[0]!r}: {nearest(unknown[0].partition('=')[0], known)}")
    try:
        with _terminated_as_interrupted():
            if options.command == "convert":
                return _convert(options)
            if options.command == "completion":
                return _completion(parser, options.shell)
            started = time.monotonic()
            # Within another program its age says nothing.
            if arguments is None:
                started -= seconds_since_process_start()
            return _select(options, shlex.join(["fsjax", *words]), started)
    except FsjaxError as error:
        return _mistake(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        return _mistake(describe(error))
    except KeyboardInterrupt:
        message = "stopped before there was a result; run the same command to continue"
        print(f"\r{message}", file=sys.stderr)
        return STOPPED


def _mistake(text: str) -> int:
    print(f"\rerror: {printable(text)}", file=sys.stderr)
    return MISTAKE


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """A scheduler's SIGTERM ends as Ctrl-C does, with a report; handlers belong to main threads."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signal.SIGTERM: signal.getsignal(signal.SIGTERM)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.default_int_handler
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _select(options: argparse.Namespace, command: str, started: float) -> int:
    from fsjax.tables.readers.file_type import located

    located(options.table)
    workdir = Path(options.workdir or f"{Path(options.table).stem}-selection")
    if workdir.exists() and not workdir.is_dir():
        raise ConfigError(f"--workdir={workdir} is a file; name a folder for the report")

    # Heavy, and not needed for --help, a mistyped flag or a file that is not there.
    from fsjax.auto import Origin, select
    from fsjax.auto.reading.notes import FILE, Note

    frame, target, notes = _read(options)
    offered = list(frame)
    settings = _row_settings(options, frame)
    order = settings.pop("order", None)
    if order is not None:
        if order.remark:
            notes.append(Note(options.order, "order", order.remark))
        frame, target = frame.iloc[order.rows], target[order.rows]
        if "sample_weight" in settings:
            settings["sample_weight"] = settings["sample_weight"][order.rows]
    outputs: Any = target
    names = (options.target or "").split(",")
    if target.ndim == 2 and target.shape[1] == len(names):
        outputs = type(frame)(target, frame.index, names).infer_objects()
    dropped, kept = _names(options.drop, frame), _names(options.keep, frame)
    _check_columns("drop", dropped, frame, options)
    frame = frame.drop(columns=dropped)
    if dropped and frame.columns.empty:
        raise ConfigError("--drop names all columns, so that none is left to choose from")
    _check_columns("keep", kept, frame, options)
    for note in notes:
        subject = "" if note.column == FILE else f"{note.column!r} "
        print(printable(f"{options.table}: {subject}{note.text}"))
    selection = select(
        frame,
        outputs,
        budget=options.budget,
        ordered=order is not None,
        seed=options.seed,
        workdir=workdir,
        progress=not options.quiet,
        origin=Origin(
            Path(options.table).name,
            options.target,
            command,
            tuple(notes),
            elapsed=time.monotonic() - started,
        ),
        **settings,
        **_optional_settings(options, kept, {*_parts(options.target), *offered}.difference(frame)),
    )
    print(selection)
    paths = f"report: {workdir / 'report.html'}, columns: {workdir / 'columns.csv'}"
    print(f"\n{paths}; {selection.seconds:.0f} s")
    return STOPPED if selection.stopped else 0


def _read(options: argparse.Namespace) -> tuple[pd.DataFrame, np.ndarray, list[Note]]:
    """The table without its target, the target, and notes on how the file was read."""
    from fsjax.auto.reading.notes import FILE, Note
    from fsjax.tables.readers.table_files import load_frame

    frame, target, remarks, warnings = load_frame(
        options.table,
        options.target,
        separator=options.separator,
        decimal=options.decimal,
        skip_rows=options.skip_rows,
    )
    notes = [Note(FILE, "file", remark) for remark in remarks]
    return frame, target, notes + [Note(FILE, "notation", warning) for warning in warnings]


def _row_settings(options: argparse.Namespace, frame: pd.DataFrame) -> dict[str, Any]:
    """Groups, weights and order of the rows, from columns that leave the frame."""
    from fsjax.auto.reading.flag_inputs import row_groups, row_order, row_weights

    settings: dict[str, Any] = {}
    for flag, setting, read in (
        ("groups", "row_groups", row_groups),
        ("weights", "sample_weight", row_weights),
        ("order", "order", row_order),
    ):
        name = getattr(options, flag)
        if name is not None:
            _check_columns(flag, [name], frame, options)
            settings[setting] = read(name, frame.pop(name))
    return settings


def _optional_settings(
    options: argparse.Namespace, kept: list[str], taken_out: Set[str]
) -> dict[str, Any]:
    """Arguments of ``fsjax.select`` for the flags that are given, and the imputation."""
    optional = {
        "task": options.task,
        "metric": options.metric,
        "judge": options.judge,
        "fdr": options.fdr,
        "methods": options.methods,
        "keep": kept or None,
        "costs": None if options.costs is None else _costs(options.costs, taken_out),
    }
    settings = {name: value for name, value in optional.items() if value is not None}
    return settings | {"impute": None if options.impute == "none" else options.impute}


def _costs(path: str, taken_out: Set[str]) -> dict[str, float]:
    """The costs in a file, but of columns taken out by name; ConfigError if it cannot be read."""
    from fsjax.auto.reading.flag_inputs import column_costs
    from fsjax.tables.readers.text import USUAL_SEPARATOR, open_text

    file = Path(path).expanduser()
    try:
        with file.open("rb") as content:
            table = open_text(content, USUAL_SEPARATOR.get(file.suffix.lower(), ","))
            frame = table.frame(content)
    except OSError as error:
        raise ConfigError(f"costs: {file} cannot be read: {error.strerror}") from None
    except DataError as error:
        raise ConfigError(f"costs: {file}: {error}") from None
    costs = column_costs(file, frame)
    return {name: cost for name, cost in costs.items() if name not in taken_out}


def _names(text: str | None, frame: pd.DataFrame) -> list[str]:
    """The columns that a flag names, with commas between them unless a column is called so."""
    if text is None or text in frame:
        return [] if text is None else [text]
    return [name.strip() for name in text.split(",") if name.strip()]


def _parts(text: str | None) -> set[str]:
    """All that a flag may name: a column with commas in its name, or several columns."""
    return {text, *map(str.strip, text.split(","))} if text else set()


def _check_columns(
    flag: str, names: Sequence[str], frame: pd.DataFrame, options: argparse.Namespace
) -> None:
    before = _TAKE_OUT[: _TAKE_OUT.index(flag)] if flag in _TAKE_OUT else _TAKE_OUT
    for name in names:
        if name not in frame:
            takers = [other for other in before if name in _parts(getattr(options, other))]
            why = f"--{takers[0]} names this column" if takers else nearest(name, frame)
            raise ConfigError(f"--{flag}={name}: {why}")


def _convert(options: argparse.Namespace) -> int:
    from fsjax.tables.readers.conversion import convert

    folder = convert(options.source, options.folder, options.target, progress=not options.quiet)
    print(f"{folder} is ready; give it as the name of the data, as in data.name={folder}")
    return 0


def _completion(parser: argparse.ArgumentParser, shell: str) -> int:
    """Prints a script for a shell, which completes commands, flags and paths."""
    require("shtab", "fsjax completion")
    import shtab  # optional

    print(shtab.complete(parser, shell))
    return 0


def _guide(flags: dict[str, argparse.Action]) -> str:
    """The answer to ``fsjax select`` without arguments: an example, and the main flags."""
    lines = ["Give a table and the column to predict, for example", "", f"  {_EXAMPLE}", ""]
    for name in _MAIN_FLAGS:
        action = flags[name]
        lines.append(f"  {f'{name}={action.metavar}':<16}  {(action.help or '') % vars(action)}")
    return "\n".join([*lines, "", "All flags: fsjax select --help"])


def _parser() -> tuple[argparse.ArgumentParser, _Flags]:
    """The parser, and the flags of its commands."""
    parser = _Parser(prog="fsjax", description="Neural feature selection and sparse training.")
    parser.add_argument(
        "--version", nargs=0, action=_Version, help="versions of fsjax, JAX and Python"
    )
    parsers = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    flags: _Flags = {}
    for name, command in _COMMANDS.items():
        subparser = parsers.add_parser(name, help=command.summary, description=command.description)
        flags[name] = {}
        for argument, settings in command.arguments.items():
            action = subparser.add_argument(argument, **settings)
            flags[name] |= dict.fromkeys(action.option_strings, action)
            if action.metavar in _PATHS:
                action.complete = _COMPLETIONS  # type: ignore[attr-defined]
    return parser, flags


if __name__ == "__main__":
    sys.exit(main())
