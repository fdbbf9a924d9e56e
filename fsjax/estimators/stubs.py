"""The type stub of :mod:`fsjax.estimators`, whose classes are made at import.

    python -m fsjax.estimators.stubs

writes ``__init__.pyi`` anew, from which editors and type checkers know every argument.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path

from fsjax.atomic import write_text
from fsjax.estimators import ESTIMATORS, Selector

PATH = Path(__file__).with_name("__init__.pyi")

_HEAD = '''"""Type stub, written by ``python -m fsjax.estimators.stubs``."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fsjax.estimators.base import Selector as Selector
from fsjax.estimators.files import load as load

ESTIMATORS: dict[str, type[Selector]]
'''


def stub() -> str:
    """The text of the stub."""
    return "\n".join([_HEAD, *map(_class, ESTIMATORS.values())])


def _class(estimator: type[Selector]) -> str:
    return "\n".join(
        [
            f"class {estimator.__name__}(Selector):",
            f'    """{_idea(estimator)}"""',
            "",
            "    def __init__(",
            *(f"        {line}," for line in _arguments(estimator)),
            "    ) -> None: ...",
            "",
        ]
    )


def _arguments(estimator: type[Selector]) -> Iterator[str]:
    keyword_only = False
    for parameter in inspect.signature(estimator.__init__).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            yield "*"
        default = parameter.default
        shown = json.dumps(default) if isinstance(default, str) else repr(default)
        annotated = parameter.annotation is not parameter.empty
        yield parameter.name + (f": {parameter.annotation} = {shown}" if annotated else "")


def _idea(estimator: type[Selector]) -> str:
    """The first paragraph of the documentation, for its lines in a class."""
    first = (estimator.__doc__ or "").partition("\n\n")[0]
    lines = first.split("\n")
    return "\n    ".join(lines) + ("\n    " if len(lines) > 1 else "")


if __name__ == "__main__":
    write_text(PATH, stub())
    print(PATH)
