"""The public names and their arguments, as the API pages document them.

    python -m tools.public_api

writes ``tests/public_api.txt``, which a test compares with the package: a changed line is a change
for users, and so a decision.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]

#: The committed list.
LISTED = ROOT / "tests" / "public_api.txt"

#: ``.. autofunction:: fit`` and the like, and their options below.
_DIRECTIVE = re.compile(r"^\.\. (?:auto(\w+)|py:(?:current)?module):: ([\w.]+)$")
_OPTION = re.compile(r"^   :([\w-]+): ?(.*)$")


def documented() -> Iterator[str]:
    """The full names that the API pages document, those of modules with ``:members:`` included."""
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        module, directives = "fsjax", list[tuple[str | None, str, dict[str, str]]]()
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := _DIRECTIVE.match(line):
                directives.append((match[1], match[2], {}))
            elif directives and (match := _OPTION.match(line)):
                directives[-1][2][match[1]] = match[2]
        for kind, name, options in directives:
            if kind is None:
                module = name
            elif kind != "module":
                yield name if name.startswith("fsjax.") else f"{module}.{name}"
            elif "members" in options:
                module = name
                names = options["members"] or ",".join(members(importlib.import_module(name)))
                left_out = _words(options.get("exclude-members", ""))
                yield from (f"{name}.{member}" for member in _words(names) - left_out)


def _words(text: str) -> set[str]:
    return {word.strip() for word in text.split(",") if word.strip()}


def members(module: ModuleType) -> list[str]:
    """The public names of a module: ``__all__``, or what is defined in it."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def lookup(name: str) -> Any:
    """The object of a full name."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            value = getattr(value, part)
        return value
    raise AttributeError(name)


def arguments(function: Any) -> str:
    """``(a, b=, *, c=)``: the names of the arguments, with ``=`` where they have a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    words, starred = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        if parameter.kind is parameter.VAR_POSITIONAL:
            words.append(f"*{parameter.name}")
            starred = True
        elif parameter.kind is parameter.VAR_KEYWORD:
            words.append(f"**{parameter.name}")
        else:
            words.append(parameter.name + ("" if parameter.default is parameter.empty else "="))
    return f"({', '.join(words)})"


def described(name: str) -> Iterator[str]:
    """The lines of a name: itself, and the public methods and attributes of a class."""
    value = lookup(name)
    if not callable(value):
        yield name
        return
    yield name + arguments(value)
    if not inspect.isclass(value) or issubclass(value, Exception):
        return
    for member in dir(value):
        of_ours = any(
            member in vars(base) for base in value.__mro__ if base.__module__.startswith("fsjax")
        )
        if member.startswith("_") or not of_ours:
            continue
        attribute = getattr(value, member)
        method = inspect.isroutine(attribute) and not isinstance(attribute, cached_property)
        yield f"{name}.{member}" + (arguments(attribute) if method else "")


def public_api() -> list[str]:
    """All lines, sorted."""
    return sorted({line for name in set(documented()) for line in described(name)})


if __name__ == "__main__":
    LISTED.write_text("\n".join(public_api()) + "\n", encoding="utf-8")
    print(f"wrote {LISTED.relative_to(ROOT)}")
