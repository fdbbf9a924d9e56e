"""Pictures of results, which need Matplotlib: the extra ``plot``."""

import importlib
from typing import TYPE_CHECKING, Any

from fsjax.errors import unknown_attribute as _unknown_attribute
from fsjax.extras import require as _require

if TYPE_CHECKING:
    from fsjax.report.curves import plot_curves
    from fsjax.report.path import path_of, plot_path
    from fsjax.report.selection import plot_selection
    from fsjax.report.stability import plot_stability
    from fsjax.report.style import save_figure

__all__ = [
    "path_of",
    "plot_curves",
    "plot_path",
    "plot_selection",
    "plot_stability",
    "save_figure",
]

#: The module of each public name.
_MODULE_OF = {
    "path_of": "path",
    "plot_curves": "curves",
    "plot_path": "path",
    "plot_selection": "selection",
    "plot_stability": "stability",
    "save_figure": "style",
}


if not TYPE_CHECKING:  # otherwise type checkers would accept misspelt names

    def __getattr__(name: str) -> Any:
        if name not in _MODULE_OF:
            raise _unknown_attribute(__name__, name, __all__)
        _require("matplotlib", f"fsjax.report.{name}")
        value = getattr(importlib.import_module(f"fsjax.report.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
