"""The examples of public names: the doctests in their docstrings and in those of their modules."""

from __future__ import annotations

import doctest
import inspect
import re
import sys
from functools import cache

from tools.public_api import ROOT, documented, lookup

#: Code blocks of a page, cells of a tutorial included.
BLOCK = re.compile(r"^```(?:python|\{code-cell\})\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def preamble() -> str:
    """Imports and small data that the examples assume, as the index of the API pages shows them."""
    return BLOCK.findall((ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8"))[0]


@cache
def examples() -> dict[str, doctest.DocTest]:
    """The examples by the name whose docstring has them."""
    names = set(documented())
    sources = {name: lookup(name) for name in names}
    modules = {name.rpartition(".")[0] for name in names}
    sources |= {name: sys.modules[name] for name in modules if name in sys.modules}
    found = {}
    for name, source in sorted(sources.items()):
        text = getattr(source, "__doc__", None) or ""
        if ">>> " in text:
            parser = doctest.DocTestParser()
            found[name] = parser.get_doctest(inspect.cleandoc(text), {}, name, None, None)
    return found


def shown_by(name: str) -> str | None:
    """The name whose examples show a public name: itself, or one that uses it."""
    if name in examples():
        return name
    use = re.compile(rf"(?<!\w){re.escape('.'.join(name.split('.')[-2:]))}\b")
    return next((host for host, test in examples().items() if use.search(test.docstring)), None)
