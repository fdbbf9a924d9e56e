"""Every tutorial of the documentation runs from its first cell to its last."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
TUTORIALS = [page for page in PAGES if "file_format: mystnb" in page.read_text()]


@pytest.mark.long  # 10 to 20 seconds each; building the site executes them as well
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    read = pytest.importorskip("myst_nb.core.read")
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))  # for the kernel
    notebook = read.read_myst_markdown_notebook(page.read_text())
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs), "no picture"
    warned = [output.text for output in outputs if output.get("name") == "stderr"]
    assert not warned, warned


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial_ends_with_where_to_go_next(page: Path) -> None:
    text = page.read_text()
    last = text.split("\n## ")[-1]
    assert last.startswith("Where to go next"), page.stem
    assert last.count("](") >= 3, page.stem


def test_index_names_every_tutorial() -> None:
    text = (ROOT / "docs" / "tutorials" / "index.md").read_text()
    assert TUTORIALS
    for page in TUTORIALS:
        assert f":link: {page.stem}\n" in text and f"<{page.stem}>" in text, page.stem
