"""``tools.public_api``: a changed public name or argument is a decision, in its own commit."""

from __future__ import annotations

import difflib
from functools import partial

import fsjax
from tools.public_api import LISTED, arguments, documented, lookup, public_api


def test_public_names_and_arguments_are_those_of_the_list() -> None:
    listed = LISTED.read_text(encoding="utf-8").splitlines()
    changes = [
        line
        for line in difflib.unified_diff(listed, public_api(), lineterm="", n=0)
        if line[:2] not in ("--", "++", "@@")
    ]
    assert not changes, (
        "public names or arguments changed; if that is meant, run python -m tools.public_api, "
        "commit the list, and say it in CHANGELOG.md:\n" + "\n".join(changes)
    )


def test_names_of_the_package_are_documented() -> None:
    names = set(documented())
    # Packages have pages of their own, and the version is no name that anybody calls.
    packages = {name for name in dir(fsjax) if hasattr(getattr(fsjax, name), "__path__")}
    modules = {"data", "arguments", "testing", "errors", "method"}
    public = {name for name in fsjax.__all__ if not name.startswith("_")} - packages - modules
    assert not {f"fsjax.{name}" for name in public} - names


def test_documented_names_exist() -> None:
    for name in documented():
        assert lookup(name) is not None


def test_arguments_in_words() -> None:
    def function(a: int, b: int = 2, *, c: int, d: int = 3) -> None: ...

    def variadic(*values: int, key: str = "", **rest: int) -> None: ...

    assert arguments(function) == "(a, b=, *, c, d=)"
    assert arguments(variadic) == "(*values, key=, **rest)"
    assert arguments(partial(function, 1)) == "(b=, *, c, d=)"
