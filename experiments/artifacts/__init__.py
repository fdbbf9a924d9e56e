"""What a launcher writes into its folder: files, text tables, the papers' numbers, and a page."""

from experiments.artifacts.files import (
    result_dict,
    write_config_json,
    write_metrics_csv,
    write_result_json,
    write_scores,
)
from experiments.artifacts.page import write_report
from experiments.artifacts.published import published, published_value
from experiments.artifacts.text_tables import summary_table

__all__ = [
    "published",
    "published_value",
    "result_dict",
    "summary_table",
    "write_config_json",
    "write_metrics_csv",
    "write_report",
    "write_result_json",
    "write_scores",
]
