"""Command lines of the launchers: flags, and one clear line for a mistake, not a traceback."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from absl import app, flags, logging
from ml_collections import ConfigDict

import fsjax
from experiments import distributed
from experiments.launch.config import load_config, override
from experiments.launch.signals import finish_at_once, interruptible
from fsjax.engine.compilation import cache_by_default
from fsjax.engine.distributed import end_process, lost_process, process_count
from fsjax.engine.environment.terminal import NO_READER, describe, end_with_reader
from fsjax.errors import ConfigError, FsjaxError, printable
from fsjax.storage.file_lock import exclusive

#: ``--config.field=value``; booleans also as ``--config.field`` and ``--noconfig.field``.
_OVERRIDE = re.compile(r"--?(no)?config\.([^=]*)(?:=(.*))?", re.DOTALL)

T = TypeVar("T")


def fail(message: object) -> NoReturn:
    """Prints the message and exits with 2."""
    text = printable(str(message))
    print(f"error: {text}", file=sys.stderr)
    if process_count() > 1:
        end_process(2)
    sys.exit(2)


def _fail_at_once(message: object) -> NoReturn:
    """Like :func:`fail`, but ends before other threads print tracebacks of their failed writes."""
    try:
        fail(message)
    finally:
        _leave(2)


def _leave(code: int) -> NoReturn:
    """Ends a launcher without Python's shutdown, where threads that still save would complain."""
    if is_launcher():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _name() -> str:
    """The launcher's name: of its file, or of its folder if that is a package."""
    path = Path(sys.argv[0])
    return path.parent.name if path.stem == "__main__" else path.stem


def is_launcher() -> bool:
    """Whether this process was started as one of the launchers."""
    spec = sys.modules["__main__"].__spec__
    return spec is not None and spec.name.startswith("experiments.")


def require(value: T | None, flag: str, example: str) -> T:
    """Returns the value of a flag; raises ConfigError if it is missing."""
    if value is None or value in ([], ""):
        raise ConfigError(f"--{flag} is missing; for example --{flag}={example}")
    return value


def _split_overrides(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Splits arguments into those that override no field, and ``field=value`` of the others."""
    arguments, assignments = list(argv), list[str]()
    for index, argument in reversed(list(enumerate(arguments))):
        if (match := _OVERRIDE.fullmatch(argument)) is None:
            continue
        negated, field, value = match.groups()
        if value is None and not negated and arguments[index + 1 : index + 2]:
            # ``--config.field value``
            if not arguments[index + 1].startswith("-"):
                value = arguments.pop(index + 1)
        default = "false" if negated else "true"
        assignments.insert(0, f"{field}={default if value is None else value}")
        del arguments[index]
    return arguments, assignments


def _parse(argv: Sequence[str]) -> list[str]:
    """Parses the flags; the value of ``--config`` becomes the configuration with its overrides."""
    try:
        if "config" not in flags.FLAGS:
            return flags.FLAGS(list(argv))
        arguments = flags.FLAGS.read_flags_from_files(list(argv[1:]), force_gnu=False)
        arguments, assignments = _split_overrides(arguments)
        rest = flags.FLAGS([argv[0], *arguments])
        config = flags.FLAGS["config"]
        if config.value:
            config.value = load_config(config.value)
            for assignment in assignments:
                override(config.value, assignment)
        elif assignments:
            raise ConfigError(
                f"--config.{assignments[0]} overrides a field, but --config is missing; "
                "add --config=FILE.py"
            )
        return rest
    except (FsjaxError, flags.Error) as error:
        fail(error)


def _missing_field(error: Exception) -> bool:
    """Whether the error was raised by access to a field that a configuration lacks."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and Path(frames[-1].filename).parent.name == "config_dict"


def run(
    main: Callable[[], None], define_flags: Callable[[], object] = lambda: None, **examples: str
) -> None:
    """Runs a launcher; errors meant for the user end it with one line and exit status 2.

    The exit status is 130 after Ctrl-C and 143 after SIGTERM.

    Args:
      main: does the work.
      define_flags: defines the launcher's flags; they are not defined at import, as several
        launchers may be imported into one process.
      examples: names of required flags, each with a value for the message if it is missing.
    """

    def guarded(argv: Sequence[str]) -> None:
        if len(argv) > 1:
            fail(f"unexpected argument {argv[1]!r}; write options as --name=value")
        # JAX would report every compilation; the progress bar is enough.
        logging.set_verbosity(logging.WARNING)
        with interruptible():
            try:
                for name, example in examples.items():
                    require(flags.FLAGS[name].value, name, example)
                distributed.begin(_name())
                main()
                if is_launcher():
                    finish_at_once()
            except FsjaxError as error:
                fail(error)
            except (AttributeError, KeyError) as error:
                if not _missing_field(error):
                    raise
                field = str(error).strip("'\"").partition("'")[0].partition('"')[0]
                fail(
                    f"the config lacks the field {field!r}; add it as the files in configs/ have it"
                )
            except RuntimeError as error:
                if (message := lost_process(error)) is None:
                    raise
                print(f"\nerror: {printable(message)}", file=sys.stderr)
                end_process(1)
            except BrokenPipeError:
                if process_count() > 1:
                    end_process(NO_READER)
                raise
            except OSError as error:
                if error.errno is None:
                    raise
                _fail_at_once(f"{describe(error)}{_advice(error.errno)}")
            except KeyboardInterrupt as error:
                _end_interrupted(error)

    define_flags()
    distributed.define_flags()
    _show_flags()
    with end_with_reader():
        app.run(guarded, flags_parser=_parse)


def _advice(number: int) -> str:
    full = number in (errno.ENOSPC, errno.EDQUOT)
    return "; free some space, and the same command continues" if full else ""


def _end_interrupted(error: KeyboardInterrupt) -> NoReturn:
    """Ends with 128 and the number of the signal, if it is known."""
    code = 128 + int(error.args[0] if error.args else signal.SIGINT)
    print("\rinterrupted; the same command continues from the last checkpoint")
    if process_count() > 1:
        end_process(code)
    _leave(code)


def _show_flags() -> None:
    """Adds the flags that this launcher accepts to ``--help``, which has those of one module."""
    hidden = distributed.__name__ if _name() in distributed.SINGLE else None
    for module, defined in flags.FLAGS.flags_by_module_dict().items():
        if module.startswith("experiments.") and module != hidden:
            for flag in defined:
                flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)


def run_config(
    main: Callable[[ConfigDict, Path, bool], None],
    define_flags: Callable[[], object] = lambda: None,
    **examples: str,
) -> None:
    """Runs a launcher that has a configuration, in a locked workdir, as :func:`run` does.

    ``main`` receives the values of the flags ``--config``, ``--workdir`` and ``--progress``.
    """

    def define_all() -> None:
        flags.DEFINE_string(
            "config",
            None,
            "Config file, FILE.py or FILE.py:VARIANT; --config.FIELD=VALUE overrides a field.",
        )
        flags.DEFINE_string(
            "workdir", None, "Folder for the results; an unfinished run in it is resumed."
        )
        flags.DEFINE_bool("progress", True, "Show progress bars and notes.")
        define_flags()

    def locked() -> None:
        values = flags.FLAGS
        cache_by_default()
        fsjax.use_cpu_devices()
        with exclusive(values.workdir):
            main(values.config, Path(values.workdir), values.progress)

    run(locked, define_all, **examples)
