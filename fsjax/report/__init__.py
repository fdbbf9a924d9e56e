"""Reports of a run: files, figures, text tables and the papers' published numbers."""

from fsjax.report.artifacts import (
    result_dict,
    write_config_json,
    write_metrics_csv,
    write_result_json,
    write_scores,
)
from fsjax.report.curves import plot_curves
from fsjax.report.html import write_report
from fsjax.report.paper import published, published_value
from fsjax.report.path import path_of, plot_path
from fsjax.report.selection import plot_selection
from fsjax.report.stability import plot_stability
from fsjax.report.style import save_figure
from fsjax.report.tables import short_selection_note, summary_table

__all__ = [
    "path_of",
    "plot_curves",
    "plot_path",
    "plot_selection",
    "plot_stability",
    "published",
    "published_value",
    "result_dict",
    "save_figure",
    "short_selection_note",
    "summary_table",
    "write_config_json",
    "write_metrics_csv",
    "write_report",
    "write_result_json",
    "write_scores",
]
