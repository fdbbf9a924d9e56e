"""Reports of a run: files, figures, text tables and the papers' published numbers."""

from fsjax.report.artifacts import (
    result_dict,
    write_config_json,
    write_metrics_csv,
    write_result_json,
    write_scores,
)
from fsjax.report.atomic import save_figure
from fsjax.report.curves import plot_curves
from fsjax.report.paper import published
from fsjax.report.selection import plot_selection
from fsjax.report.tables import short_selection_note, summary_table

__all__ = [
    "plot_curves",
    "plot_selection",
    "published",
    "result_dict",
    "save_figure",
    "short_selection_note",
    "summary_table",
    "write_config_json",
    "write_metrics_csv",
    "write_result_json",
    "write_scores",
]
