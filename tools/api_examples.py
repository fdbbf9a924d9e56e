"""The examples of the API pages, one for each public name, from ``docs/api/examples.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from fsjax.estimators import ESTIMATORS
from fsjax.methods import METHODS
from fsjax.registry import about_of

FILE = Path(__file__).parents[1] / "docs" / "api" / "examples.toml"


class Example(NamedTuple):
    """An example.

    Attributes:
      code: Python, to be run after the preamble.
      names: the public names that share it.
      runs: whether the tests run it: not if it changes the process, or trains a method of the
        library, which other tests do.
    """

    code: str
    names: tuple[str, ...]
    runs: bool


def preamble() -> str:
    """Imports and small data that every example assumes."""
    return str(_table()["preamble"]).lstrip()


def examples() -> dict[str, Example]:
    """The example of each public name."""
    table = _table()
    found: dict[str, Example] = {}
    for entry in table["examples"]:
        for name in entry["names"]:
            code = entry["code"].replace("{short}", name.split(".")[-1])
            # Names whose examples differ by the name alone do not share one.
            names = (name,) if "{short}" in entry["code"] else tuple(entry["names"])
            found[name] = Example(code.strip(), names, entry.get("run", True))
    for build in METHODS.values():
        method = build.registration
        takes_number = about_of(method).num_features is not None
        code = table["methods"].replace("{short}", method.name)
        code = code.replace("{arguments}", "num_features=2" if takes_number else "")
        name = f"fsjax.methods.{method.name}"
        found[name] = Example(code.strip(), (name,), False)
    for estimator in ESTIMATORS.values():
        name = f"fsjax.estimators.{estimator.__name__}"
        code = table["estimators"].replace("{short}", estimator.__name__)
        found[name] = Example(code.strip(), (name,), False)
    return found


def _table() -> dict:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))
