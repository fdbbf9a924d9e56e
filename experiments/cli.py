"""Command lines whose mistakes get one clear line instead of a traceback."""

import ast
import errno
import functools
import os
import re
import runpy
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import ml_collections
from absl import app, flags, logging
from flax.traverse_util import flatten_dict
from ml_collections import config_flags
from ml_collections.config_flags import config_path

import fsjax
from experiments import distributed
from experiments.signals import finish_at_once, interruptible
from fsjax.distributed import end_process, process_count
from fsjax.engine.compilation import cache_by_default
from fsjax.environment.terminal import NO_READER, describe, end_with_reader, printable
from fsjax.errors import ConfigError, FsjaxError, nearest
from fsjax.storage.file_lock import exclusive

#: How the text of a field is read, by its type, and what a text is that cannot be read.
_READERS = {
    int: (flags.IntegerParser().parse, "no whole number"),
    float: (flags.FloatParser().parse, "no number"),
    bool: (flags.BooleanParser().parse, "not true or false"),
}


def fail(message: object) -> NoReturn:
    """Prints the message and exits with 2."""
    text = printable(str(message))
    print(f"error: {text}", file=sys.stderr)
    if process_count() > 1:
        end_process(2)
    sys.exit(2)


def _fail_at_once(message: object) -> NoReturn:
    """:func:`fail`, before threads whose writes failed as well print their tracebacks."""
    try:
        fail(message)
    finally:
        _leave(2)


def _leave(code: int) -> NoReturn:
    """Ends a launcher without Python's own end, at which threads that still save would complain."""
    if is_launcher():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def is_launcher() -> bool:
    """Whether this process was started as one of the launchers."""
    spec = sys.modules["__main__"].__spec__
    return spec is not None and spec.name.startswith("experiments.")


T = TypeVar("T")


def require(value: T | None, flag: str, example: str) -> T:
    """The value of a flag; ConfigError if it was left out."""
    if value is None or value in ([], ""):
        raise ConfigError(f"--{flag} is missing; for example {example}")
    return value


def load_config(name: str) -> ml_collections.ConfigDict:
    """The configuration of ``file.py`` or ``file.py:variant``.

    Raises:
      ConfigError: if there is no such file, or for what the file does not know.
    """
    path, _, variant = name.partition(":")
    if not Path(path).is_file():
        known = sorted(map(str, Path(path).parent.glob("*.py")))
        raise ConfigError(f"there is no config file {path}: {nearest(path, known)}")
    try:
        config = runpy.run_path(path)["get_config"](variant or None)
    except FsjaxError:
        raise
    # A file of the user's own may fail in any way, or try to end the process.
    except (Exception, SystemExit) as error:
        told = "it has no get_config(variant)" if error.args == ("get_config",) else error
        raise ConfigError(f"{path} is no config file: {type(error).__name__}: {told}") from error
    if not isinstance(config, ml_collections.ConfigDict):
        kind = type(config).__name__
        raise ConfigError(f"get_config of {path} gives {kind}, not an ml_collections.ConfigDict")
    return config


def override(config: ml_collections.ConfigDict, assignment: str) -> None:
    """Sets one field from ``field=value``; tuples are written ``1,2,3``.

    Raises:
      ConfigError: for an unknown field or a value of another type.
    """
    field, equals, text = assignment.partition("=")
    if not equals:
        raise ConfigError(f"{assignment}: write field=value")
    fields = sorted(flatten_dict(config.to_dict(), sep="."), key=lambda name: name.count("."))
    if field not in fields:
        last = field.rpartition(".")[2]
        same = [name for name in fields if name.rpartition(".")[2] == last]
        hint = f"did you mean {same[0]!r}?" if same else nearest(field, fields)
        if field.startswith("method.") and list(config.get("method", ())) == ["name"]:
            hint = "a method that the variant names has its fields, as in configs/any.py:ip_cae"
        raise ConfigError(f"unknown config field {field!r}: {hint}")
    # The type of a field that is still empty, too.
    kind, old = config_path.get_type(field, config), config_path.get_value(field, config)
    read: Callable[[str], Any]
    read, fault = _READERS.get(kind, (str, "no text"))
    if kind is tuple:
        read, fault = functools.partial(_read_tuple, old), f"not like {old}"
    try:
        config_path.set_value(field, config, read(text))
    except (TypeError, ValueError, SyntaxError):
        raise ConfigError(f"{assignment}: {text!r} is {fault}") from None


def _read_tuple(like: tuple[Any, ...], text: str) -> tuple[Any, ...]:
    """``1,2,3`` or ``(1, 2, 3)``; numbers unless the tuple that it replaces has text."""
    read = str if like and isinstance(like[0], str) else ast.literal_eval
    items = (item.strip(" '\"") for item in text.strip("()[]").split(","))
    return tuple(read(item) for item in items if item)


def _joined(argv: Sequence[str]) -> list[str]:
    """``--config file.py`` as ``--config=file.py``, so that both are tried out."""
    joined: list[str] = []
    for argument in argv:
        argument = re.sub("^-config", "--config", argument)
        if joined and re.fullmatch(r"--config(\.[\w.]+)?", joined[-1]) and argument[:1] != "-":
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def _missing_field(error: Exception) -> bool:
    """Whether a configuration was asked for a field that it does not have."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and Path(frames[-1].filename).parent.name == "config_dict"


def _parse(argv: Sequence[str]) -> list[str]:
    """Parses flags, once the config file and what overrides its fields have been tried out."""
    argv = _joined(argv)
    options = [argument.removeprefix("--config") for argument in argv[1:] if "=" in argument]
    try:
        for name in (option[1:] for option in options if option.startswith("=")):
            config = load_config(name)
            for option in (option[1:] for option in options if option.startswith(".")):
                override(config, option)
        return flags.FLAGS(list(argv))
    except (FsjaxError, flags.Error) as error:
        fail(error)
    except (KeyError, AttributeError) as error:  # of options without "="
        fail(f"unknown config field {error}")


def run(main: Callable[[], None]) -> None:
    """Runs a launcher: errors meant for the user end it with one line and status 2.

    After Ctrl-C it is 130 and after SIGTERM 143.
    """

    def guarded(argv: Sequence[str]) -> None:
        if len(argv) > 1:
            fail(f"unexpected argument {argv[1]!r}; options are written --name=value")
        # JAX reports every compilation; the progress bar says enough.
        logging.set_verbosity(logging.WARNING)
        with interruptible():
            try:
                distributed.begin(Path(sys.argv[0]).stem)
                main()
                if is_launcher():
                    finish_at_once()
            except FsjaxError as error:
                fail(error)
            except (AttributeError, KeyError) as error:
                if not _missing_field(error):
                    raise
                field = str(error).strip("'\"").partition("'")[0].partition('"')[0]
                fail(f"the config lacks the field {field!r}; the files in configs have all fields")
            except BrokenPipeError:
                if process_count() > 1:
                    end_process(NO_READER)
                raise
            except OSError as error:
                if error.errno is None:
                    raise
                full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                advice = "; make room, and the same command continues" if full else ""
                _fail_at_once(f"{describe(error)}{advice}")
            except KeyboardInterrupt as error:
                told = "interrupted; the same command continues from the last checkpoint"
                code = 128 + int(error.args[0] if error.args else signal.SIGINT)
                print(f"\r{told}")
                if process_count() > 1:
                    end_process(code)
                _leave(code)

    distributed.define_flags()
    with end_with_reader():
        app.run(guarded, flags_parser=_parse)


def run_config(
    main: Callable[[ml_collections.ConfigDict | None, Path, bool], None],
    workdir: str,
    config: str | None = None,
) -> None:
    """:func:`run` with what the flags ``--config``, ``--workdir`` and ``--progress`` say.

    The other arguments are examples for the messages where a flag was left out; ``--config`` may
    be, where it has none.
    """
    # Here, so that one launcher can be imported beside another.
    given = config_flags.DEFINE_config_file("config", help_string="Config file, with its variant.")
    folder = flags.DEFINE_string("workdir", None, "Folder for the artifacts.")
    progress = flags.DEFINE_bool("progress", True, "Show progress bars and notes.")

    def checked() -> None:
        if config:
            require(given.value, "config", f"--config={config}")
        target = require(folder.value, "workdir", f"--workdir={workdir}")
        cache_by_default()
        fsjax.use_cpu_devices()
        with exclusive(target):
            main(given.value, Path(target), progress.value)

    run(checked)
