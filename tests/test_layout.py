"""Every module of the package is named in a test file: imported there, or in its docstring."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "fsjax"

NAME = re.compile(r"\bfsjax(?:\.\w+)+")
IMPORT = re.compile(r"^ *from (fsjax[\w.]*) import (\([^)]*\)|.*)", flags=re.MULTILINE)
#: The paragraph of a docstring that names the modules which are not imported by their own names.
COVERS = re.compile(r"^Covers ((?:``[\w.]+``[,\s]*)+)\.", flags=re.MULTILINE)


def dotted_names(text: str) -> Iterator[str]:
    """Names that a test file imports from the package or writes out, with those that hold them."""
    imports = (
        f"{package}.{name}"
        for package, names in IMPORT.findall(text)
        for name in re.findall(r"\w+", names)
    )
    for name in (*NAME.findall(text), *imports):
        while name:
            yield name
            name = name.rpartition(".")[0]


def test_every_module_is_named_in_a_test_file() -> None:
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
        if path.name != "__init__.py"
    }
    assert modules
    named = set()
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text()
        named.update(dotted_names(text))
        for paragraph in COVERS.findall(text):
            unknown = set(NAME.findall(paragraph)) - modules
            assert not unknown, f"{path}: no modules are named {', '.join(sorted(unknown))}"
    assert not modules - named, (
        f"no test file names {', '.join(sorted(modules - named))}: import the module where it is "
        "tested, or add it to the paragraph 'Covers ...' of that file's docstring"
    )
