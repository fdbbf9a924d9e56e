"""The table of which methods find the informative columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.artifacts.markdown import read_table
from experiments.studies import recovery
from fsjax.errors import ConfigError


@pytest.mark.slow
def test_a_table_is_written_and_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "table.md"
    names = ["random_selection", "fisher_score"]
    table = recovery.run(names, out, seeds=2, num_samples=400)
    assert list(table["estimator"]) == ["RandomSelection", "FisherScore"]
    counts = {row["estimator"]: float(row["found"].split()[0]) for _, row in table.iterrows()}
    assert counts["FisherScore"] > counts["RandomSelection"]
    assert out.read_text().splitlines()[2].startswith("| FisherScore"), "the best comes first"
    assert len(read_table(out)) == 2

    def fail(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(recovery, "measure", fail)
    assert len(recovery.run(names, out, seeds=2, num_samples=400)) == 2


def test_unknown_methods_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'lassonet'"):
        recovery.run(["lasonet"], tmp_path / "table.md", 1, 400)
