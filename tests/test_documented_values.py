"""Numbers in README, pages and configs are filled in from the files of measurements."""

from __future__ import annotations

from typing import Any

import ml_collections
import pytest

from experiments.launch.config import load_config
from tools import documented_values
from tools.documented_values import ROOT, Run, filled

README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (README.replace("beside the", "next to the"), "has 0 times the phrase"),
        (README + README, "has 2 times the phrase"),
        ("| variant | here |\n| --- | --- |\n| nodata | 1 |\n", "no measurement of .*nodata"),
    ],
)
def test_text_without_a_source_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        filled(ROOT / "README.md", text)


def test_a_setting_is_measured_in_one_file_only() -> None:
    """A run in both files has settings in its config that are not those of the paper's table."""
    table = documented_values._measurements("configs")
    for row in table[table["setting"] == ""].to_dict("records"):
        run = Run(row["method"], row["dataset"], (), str(row["num_features"]))
        if len(documented_values.rows_of_papers(run)):
            ours = _fields(f"configs/{run.method}.py:{run.dataset}")
            papers = _fields(f"configs/papers.py:{row['paper']},{run.method},{run.dataset}")
            assert ours != papers, run


def _fields(config: str) -> dict[str, Any]:
    fields = load_config(config)
    assert isinstance(fields, ml_collections.ConfigDict)
    return fields.to_dict()
