"""Generates the type stubs of :mod:`fsjax.estimators` and :mod:`fsjax.methods`.

    python -m tools.stubs

Editors and type checkers learn every argument from them. Run it after changing a registration.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fsjax
from fsjax.arguments import type_text
from fsjax.estimators import ESTIMATORS, Selector
from fsjax.methods import METHODS
from fsjax.registry import Registration
from fsjax.storage.atomic_files import write_text

HERE = Path(fsjax.__file__).parent

_ESTIMATORS = '''"""Type stub, written by ``python -m tools.stubs``."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from fsjax.arguments import Optimizer, Schedule
from fsjax.engine.control import Progress
from fsjax.estimators.auto import AutoSelector as AutoSelector
from fsjax.estimators.base import Selector as Selector
from fsjax.estimators.files import load as load
from fsjax.tasks import Task

ESTIMATORS: dict[str, type[Selector]]
'''

_METHODS = '''"""Type stub, written by ``python -m tools.stubs``."""

from collections.abc import Sequence
from typing import Literal

from fsjax.arguments import Optimizer, Schedule
from fsjax.method import Method
from fsjax.registry import METHODS as METHODS
from fsjax.registry import Builder

def get_method(name: str) -> Builder: ...'''


def stubs() -> dict[Path, str]:
    """The text of every stub file, for the methods of the library."""
    known = [builder.registration for builder in METHODS.values()]
    ours = [method for method in known if method.build.__module__.startswith("fsjax.methods")]
    classes = [_class(ESTIMATORS[method.name]) for method in ours]
    functions = map(_function, ours)
    return {
        HERE / "estimators" / "__init__.pyi": "\n".join([_ESTIMATORS, *classes]),
        HERE / "methods" / "__init__.pyi": "\n".join([_METHODS, *functions, ""]),
    }


def _class(estimator: type[Selector]) -> str:
    parameters = inspect.signature(estimator.__init__).parameters
    return "\n".join(
        [
            f"class {estimator.__name__}(Selector):",
            f'    """{_idea(estimator)}"""',
            "",
            "    def __init__(",
            *(f"        {line}," for line in _arguments(parameters)),
            "    ) -> None: ...",
            "",
        ]
    )


def _arguments(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """Name, type and default of each argument except ``self``; a star before keyword arguments."""
    lines = [
        name if name == "self" else f"{name}: {entry.annotation} = {_shown(entry.default)}"
        for name, entry in parameters.items()
    ]
    kinds = [parameter.kind for parameter in parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        lines.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    return lines


def _idea(estimator: type[Selector]) -> str:
    """The first paragraph of a class's docstring, indented for the stub."""
    first = (estimator.__doc__ or "").partition("\n\n")[0]
    lines = first.split("\n")
    return "\n    ".join(lines) + ("\n    " if len(lines) > 1 else "")


def _function(method: Registration) -> str:
    typed = {
        name: parameter.replace(annotation=type_text(method.kinds[name]))
        for name, parameter in method.parameters.items()
    }
    arguments = "".join(f"    {line},\n" for line in _arguments(typed))
    return f"def {method.name}(\n{arguments}) -> Method: ..."


def _shown(default: Any) -> str:
    return json.dumps(default) if isinstance(default, str) else repr(default)


if __name__ == "__main__":
    for _path, _text in stubs().items():
        write_text(_path, _text)
        print(_path.relative_to(HERE))
