"""Pictures of results."""

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
