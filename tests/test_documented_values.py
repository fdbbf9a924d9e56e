"""Numbers in README, pages and configs are filled in from the files of measurements."""

from __future__ import annotations

from typing import Any

import ml_collections
import pytest

from experiments.launch.config import load_config
from experiments.studies.selectors import publish
from tools import documented_values
from tools.documented_values import ROOT, Run, filled, value_of

README = (ROOT / "README.md").read_text()
RESULTS = ROOT / "docs" / "results.md"


def test_a_number_of_a_phrase_is_replaced() -> None:
    rank = value_of("selectors; ICAP; mean rank")
    phrase = f"were ICAP {rank}, extra"
    assert README.count(phrase) == 1
    stale = README.replace(phrase, "were ICAP 7.5, extra")
    assert filled(ROOT / "README.md", stale) == README


def test_figures_of_a_table_are_replaced_also_in_configs() -> None:
    config = ROOT / "configs" / "set.py"
    for path in (RESULTS, config):
        text = path.read_text()
        (line,) = [
            line
            for line in text.splitlines()
            if line.startswith("| madelon | ") and (path == config or "| SET |" in line)
        ]
        stale = text.replace(line, line.replace("59.42", "62.04"))
        assert stale != text and filled(path, stale) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (README.replace("mean ranks of", "average ranks of"), "has 0 times the phrase"),
        (README + README, "has 2 times the phrase"),
        ("| variant | here |\n| --- | --- |\n| nodata | 1 |\n", "no measurement of .*nodata"),
    ],
)
def test_text_without_a_source_is_an_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        filled(ROOT / "README.md", text)


@pytest.mark.parametrize("place", ["selectors; nobody; mean rank", "selectors; ICAP; no column"])
def test_an_unknown_cell_is_an_error(place: str) -> None:
    with pytest.raises(ValueError, match="has no number in row"):
        value_of(place)


def test_parts_of_a_cell_are_chosen_and_printed_as_asked() -> None:
    cell = "selectors; IPCAE; minus extra trees (p)"
    difference, p_value = value_of(f"{cell}; 0"), value_of(f"{cell}; 1")
    assert difference.startswith("-") and not p_value.startswith("-")
    assert value_of(f"{cell}; 0; abs") == difference.lstrip("-")
    assert value_of(f"{cell}; 1; .1f") == f"{float(p_value):.1f}"


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


def test_tests_of_the_comparison_are_those_of_its_files() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text()
    for name, kinds in (("", tuple(publish.KINDS)), ("_wide", publish.WIDE)):
        averages = documented_values._measurements(f"selectors{name}")
        ranks = publish.ranks(publish.run_in_full(averages), kinds)
        assert f"{ranks.p_value:.2g}" in page
        assert f"{ranks.critical_difference:.1f} apart" in page
