"""Command lines whose mistakes get one clear line instead of a traceback."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags, logging

from fsjax.errors import ConfigError, FsjaxError, nearest


def fail(message: object) -> None:
    """Prints the message and exits with 2."""
    print(f"error: {message}", file=sys.stderr)
    sys.exit(2)


def _parse(argv: Sequence[str]) -> list[str]:
    """Parses flags; what ml_collections raises for a mistyped field becomes a message."""
    for argument in argv[1:]:
        match = re.match(r"--config=([^:]+)", argument)
        if match:
            check_config_file(match[1])
    try:
        return flags.FLAGS(list(argv))
    except flags.Error as error:
        cause = _first_fsjax_error(error)
        fail(cause or _in_words(str(error).strip()))
    except (KeyError, AttributeError, TypeError, ValueError, OSError) as error:
        text = str(error).strip("'\"").replace("\\n", "\n").replace('\\"', '"')
        hint = re.search(r'Did you mean "([^"]+)" instead of "([^"]+)"', text)
        if hint:
            fail(f"unknown config field {hint[2]!r}: did you mean {hint[1]!r}?")
        unknown = re.match(r"\W*(\w+)\W*$", text.splitlines()[0])
        if isinstance(error, KeyError | AttributeError) and unknown:
            fail(f"unknown config field {unknown[1]!r}: {_fields_like(unknown[1], argv)}")
        fail(_first_fsjax_error(error) or text)
    raise AssertionError("unreachable")


def _in_words(text: str) -> str:
    """What absl says of a value of another type, without Python's own terms."""
    text = re.sub(
        r"\('Non-boolean argument to boolean flag', (.+)\)$", r"\1 is not true or false", text
    )
    text = re.sub(
        r"invalid literal for int\(\) with base 10: (.+)$", r"\1 is no whole number", text
    )
    return re.sub(r"could not convert string to float: (.+)$", r"\1 is no number", text)


def _fields_like(name: str, argv: Sequence[str]) -> str:
    """Where in the config of this command line a field of that name, or a similar one, is."""
    given = next((one for one in argv if one.startswith("--config=")), "")
    path, _, variant = given.removeprefix("--config=").partition(":")
    try:
        config = runpy.run_path(path)["get_config"](variant or None)
    except (FsjaxError, KeyError, OSError):
        return f"{path or 'the config file'} lists those that exist"
    fields = [".".join(keys) for keys in _paths(config.to_dict())]
    same = [field for field in fields if field.rpartition(".")[2] == name]
    if not same:
        return nearest(name, fields)
    return f"did you mean {min(same, key=lambda field: field.count('.'))!r}?"


def _paths(tree: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Paths of the leaves of nested mappings."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from ((name, *rest) for rest in _paths(value))
        else:
            yield (name,)


def _first_fsjax_error(error: BaseException | None) -> FsjaxError | str | None:
    while error is not None:
        if isinstance(error, FsjaxError):
            return error
        # A config file's error reaches us as the text of its traceback.
        found = re.findall(r"fsjax\.errors\.\w+: (.+)", str(error))
        if found:
            return found[-1]
        error = error.__cause__ or error.__context__
    return None


def check_config_file(path: str) -> None:
    """Exits with a message if there is no config file at this path."""
    if not Path(path).is_file():
        folder = Path(path).parent
        known = sorted(str(p) for p in folder.glob("*.py")) if folder.is_dir() else []
        hint = f": {nearest(path, known)}" if known else ""
        fail(f"there is no config file {path}{hint}")


def require(value: object, flag: str, example: str) -> None:
    """Raises ConfigError if a flag was left out."""
    if value is None or value == []:
        raise ConfigError(f"--{flag} is missing; for example {example}")


def run(main: Callable[[], None]) -> None:
    """Runs a launcher: errors meant for the user end it with their message and status 2."""

    def guarded(argv: Sequence[str]) -> None:
        if len(argv) > 1:
            fail(f"unexpected argument {argv[1]!r}; options are written --name=value")
        # Orbax and JAX report every save; the progress bar says enough.
        logging.set_verbosity(logging.WARNING)
        try:
            main()
        except FsjaxError as error:
            fail(error)
        except KeyboardInterrupt:
            print("interrupted; the same command continues from the last checkpoint")
            sys.exit(130)

    app.run(guarded, flags_parser=_parse)
