"""Loads configurations from files with ``get_config(variant)``, and overrides their fields."""

from __future__ import annotations

import ast
import functools
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from absl import flags
from flax.traverse_util import flatten_dict
from ml_collections import ConfigDict
from ml_collections.config_flags import config_path

from fsjax.errors import ConfigError, FsjaxError, nearest
from fsjax.tables.datasets.catalog import ENTRIES

#: For each type of field: the parser of its text, and what the text must be.
_PARSERS: dict[type, tuple[Callable[[str], Any], str]] = {
    int: (flags.IntegerParser().parse, "a whole number"),
    float: (flags.FloatParser().parse, "a number"),
    bool: (flags.BooleanParser().parse, "true or false"),
}


def load_config(name: str) -> ConfigDict:
    """Loads the configuration of ``file.py`` or ``file.py:variant``.

    Raises:
      ConfigError: if there is no such file, or its ``get_config`` fails.
    """
    path, _, variant = name.partition(":")
    if not Path(path).is_file():
        files = sorted(map(str, Path(path).parent.glob("*.py")))
        raise ConfigError(f"there is no config file {path}: {nearest(path, files)}")
    try:
        config = runpy.run_path(path)["get_config"](variant or None)
    except FsjaxError:
        raise
    # A user's file may raise any error, or try to end the process.
    except (Exception, SystemExit) as error:
        reason = "it has no get_config(variant)" if error.args == ("get_config",) else error
        raise ConfigError(
            f"{path} is not a config file: {type(error).__name__}: {reason}"
        ) from error
    if not isinstance(config, ConfigDict):
        kind = type(config).__name__
        raise ConfigError(f"get_config of {path} returns {kind}, not an ml_collections.ConfigDict")
    return config


def override(config: ConfigDict, assignment: str) -> None:
    """Sets a field of a configuration from ``field=value``; tuples are written ``1,2,3``.

    Another ``data.name`` removes ``data.options``, the arguments by which a data set is generated.

    Raises:
      ConfigError: for an unknown field or a value of another type.
    """
    field, equals, text = assignment.partition("=")
    if not equals:
        raise ConfigError(f"{assignment}: write field=value")
    fields = sorted(flatten_dict(config.to_dict(), sep="."), key=lambda name: name.count("."))
    if field not in fields:
        last = field.rpartition(".")[2]
        same_last = [name for name in fields if name.rpartition(".")[2] == last]
        hint = f"did you mean {same_last[0]!r}?" if same_last else nearest(field, fields)
        if field.startswith("method.") and list(config.get("method", ())) == ["name"]:
            hint = "name the method in the variant, which adds its fields: configs/any.py:ip_cae"
        raise ConfigError(f"unknown config field {field!r}: {hint}")
    # Fields whose value is None have a declared type, too.
    kind, value = config_path.get_type(field, config), config_path.get_value(field, config)
    parse, expected = _PARSERS.get(kind, (str, "text"))
    if kind is tuple:
        parse = functools.partial(_parse_tuple, value)
        expected = f"a tuple such as {value or (1, 2)}"
    try:
        config_path.set_value(field, config, parse(text))
    except (TypeError, ValueError, SyntaxError):
        raise ConfigError(f"{assignment}: {text!r} is not {expected}") from None
    # Options of a table, such as its separator, stay.
    if field == "data.name" and text != value and value in ENTRIES and "options" in config.data:
        with config.unlocked():
            del config.data["options"]


def _parse_tuple(current: tuple[Any, ...], text: str) -> tuple[Any, ...]:
    """Parses ``1,2,3`` or ``(1, 2, 3)``; the items are numbers unless the current ones are text."""
    parse = str if current and isinstance(current[0], str) else ast.literal_eval
    items = (item.strip(" '\"") for item in text.strip("()[]").split(","))
    return tuple(parse(item) for item in items if item)
